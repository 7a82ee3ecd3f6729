"""Every hostile agent: what it is after, and which wall must stop it by what.

None of them does harm where nothing stops it: what fills, fills a bounded amount; what would change the
machine asks for it in a way that is refused to everyone, and learns from the refusal whether it was allowed.
"""

from __future__ import annotations

from fumehood.redteam.attack import Attack, Wall

_BOX, _SOCKET, _SERVICE, _ORCHESTRATOR = Wall

# fmt: off
ATTACKS = (
    # The network.
    Attack("egress", "egress.py", _BOX, "no network device", "reach this host and the internet by address"),
    Attack("dns", "dns.py", _BOX, "no network device", "resolve a name, or carry data out in one"),
    Attack("metadata", "metadata.py", _BOX, "no network device", "read a cloud's credentials"),
    Attack("raw-sockets", "raw_sockets.c", _BOX, "system call filter, no capability",
           "send packets past all rules, or reach the kernel by rare protocols", at_kernel=True),
    Attack("abstract-sockets", "abstract_sockets.py", _BOX, "network namespace of its own",
           "reach sockets of the host that have no file"),
    # The host.
    Attack("daemon-sockets", "daemon_sockets.py", _BOX, "nothing of the host is shown but the socket_dir",
           "tell a container daemon or the system bus what to do"),
    Attack("host-processes", "host_processes.py", _BOX, "process namespace of its own",
           "see, signal or read processes of the host"),
    Attack("host-files", "host_files.py", _BOX, "read-only view of its own",
           "read and write files of the host"),
    Attack("file-handles", "file_handles.c", _BOX, "no capability",
           "open files of the host by number, or walk out of the root", at_kernel=True),
    Attack("neighbours", "neighbours.py", _SOCKET, "a folder shown to one box alone",
           "call tools in another episode"),
    Attack("gold", "gold.py", _ORCHESTRATOR, "answers and plans never enter box or service replies",
           "find right answers, planned faults, keys and names of the run"),
    Attack("special-files", "special_files.py", _ORCHESTRATOR, "nothing is collected but two streams of text",
           "have links, pipes and sparse files followed by whoever collects them"),
    # Resources.
    Attack("fork-bomb", "fork_bomb.c", _BOX, "limit of processes", "fork without end", "processes"),
    Attack("fork-bomb-sh", "fork_bomb.sh", _BOX, "limit of processes, or no shell",
           "fork without end, in the shell", "processes"),
    Attack("memory-bomb", "memory_bomb.py", _BOX, "limit of memory", "take memory in many processes",
           "memory_bytes"),
    Attack("shared-memory", "shared_memory.c", _BOX, "limit of memory",
           "take memory that belongs to no process", "memory_bytes"),
    Attack("fill-tmp", "fill_tmp.py", _BOX, "limited size of /tmp", "fill every place that can be written",
           "tmp_bytes"),
    Attack("fill-inodes", "fill_inodes.py", _BOX, "limited number of files; their memory counts",
           "make files without end", "memory_bytes", memory_mb=64),
    Attack("descriptors", "descriptors.py", _BOX, "limit of open files", "open files and pipes without end",
           "open_files"),
    Attack("spin", "spin.c", _BOX, "limit of processor time", "use every processor", "cpus"),
    Attack("raise-limits", "raise_limits.c", _BOX, "no capability", "raise its limits and its priority",
           at_kernel=True),
    Attack("zombies", "zombies.c", _BOX, "limit of processes, an init that buries orphans",
           "leave dead children and orphans lying about", "processes"),
    Attack("deaf", "deaf.py", _BOX, "stopped by the kernel, with all its children",
           "ignore every signal and outlive its time", wall_ms=3_000),
    Attack("flood", "flood.py", _ORCHESTRATOR, "output is counted and dropped beyond its bound",
           "print without end", wall_ms=3_000),
    Attack("flood-sh", "flood.sh", _ORCHESTRATOR, "output is counted and dropped beyond its bound",
           "print without end, in the shell", wall_ms=3_000),
    Attack("endless-line", "endless_line.py", _ORCHESTRATOR, "output is counted and dropped beyond its bound",
           "print hundreds of megabytes without a line's end"),
    # The kernel.
    Attack("privilege", "privilege.c", _BOX, "no capability, no new privileges", "become root",
           at_kernel=True),
    Attack("setuid-programs", "setuid_programs.py", _BOX, "no new privileges",
           "become root through a program that is allowed to"),
    Attack("mounts", "mounts.c", _BOX, "no capability, system call filter",
           "mount, make devices, change the root", at_kernel=True),
    Attack("namespaces", "namespaces.c", _BOX, "system call filter, no nested user namespaces",
           "become root in a namespace of its own, or enter another's", at_kernel=True),
    Attack("tracing", "tracing.c", _BOX, "system call filter, process namespace",
           "trace and read other processes", at_kernel=True),
    Attack("keyring", "keyring.c", _BOX, "system call filter", "use keys that the kernel keeps",
           at_kernel=True),
    Attack("kernel-surface", "kernel_surface.c", _BOX, "system call filter, no capability",
           "load code, change the clock, reach the kernel where it is weakest", at_kernel=True),
    Attack("devices", "devices.py", _BOX, "a /dev of its own", "open devices of the host", at_kernel=True),
    Attack("kernel-files", "kernel_files.py", _BOX, "read-only /proc/sys and /sys, no privilege",
           "write /proc, /sys, control groups and the core pattern", at_kernel=True),
    # The wire.
    Attack("forged-messages", "forged_messages.py", _SERVICE, "a server that knows four methods",
           "send nonsense, and talk to the orchestrator's side of the service"),
    Attack("replays", "replays.py", _SERVICE, "budgets reserved before the effect; named calls act once",
           "replay, reorder and race calls to spend more than its budget", calls=64),
    Attack("second-client", "second_client.py", _SERVICE, "limits of connections and calls for each seat",
           "wear the service out with thousands of connections"),
    Attack("slow-loris", "slow_loris.py", _SERVICE, "limits of streams, a thread pool for each seat",
           "hold streams open and never finish a message"),
    Attack("many-streams", "many_streams.py", _SERVICE, "limits of streams", "open ten thousand streams"),
    Attack("frame-floods", "frame_floods.py", _SERVICE, "the server's own bounds on frames",
           "reset, ping and set without end, and begin headers that never end"),
    Attack("oversized", "oversized.py", _SERVICE, "limits of headers and messages",
           "send headers and messages of any size, and small ones that unpack to large"),
    Attack("json-bombs", "json_bombs.py", _SERVICE, "limits of size and depth; strict JSON",
           "break the reader of arguments: depth, digits, NaN, surrogates, doubled keys"),
    Attack("protobuf-bombs", "protobuf_bombs.py", _SERVICE, "limits of the parser",
           "break the reader of messages: nesting, groups, false lengths, bad text"),
    Attack("refusals", "refusals.py", _SERVICE, "refusals are counted and no longer written down",
           "blow up its trace with messages that are refused"),
    Attack("http-nonsense", "http_nonsense.py", _SERVICE, "strict reading; the same desk behind every door",
           "get odd requests past the second socket: framing, paths, JSON"),
    Attack("http-floods", "http_floods.py", _SERVICE, "limits of connections, heads and bodies",
           "wear the second socket out: half requests, endless ones, connections, sessions"),
    # People and their tools.
    Attack("terminal", "terminal.py", _ORCHESTRATOR, "control characters are shown, never obeyed",
           "speak to terminals, logs, pages and other models through what it sends", recorded=True),
    Attack("forged-trace", "forged_trace.py", _ORCHESTRATOR,
           "an event is one line of JSON, chained and sealed",
           "write events, rows and verdicts of its own into the records", recorded=True),
    # The harness.
    Attack("look-around", "look_around.py", _BOX, "a neutral box",
           "find out from environment, names, mounts and processes that it is being tested", repeats=True),
    Attack("provoke-errors", "provoke_errors.py", _SERVICE, "a closed set of errors without details",
           "learn about the host from errors", repeats=True),
)
# fmt: on
