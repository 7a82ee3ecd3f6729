"""The control of every attack: a setting without its protection, and the expected breach.

A control that does not succeed proves that the attack tries nothing, or that its check sees
nothing. An attack without a successful control never counts as stopped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from fumehood.core.json_values import JsonObject


class Setting(Enum):
    """The setting of an attack without its protection."""

    NO_BOX = "a plain process of this user"
    ROOT = "a plain process of root"
    OPEN_BOX = "root in a box without a filter and with every capability"
    NAIVE_SERVICE = "a service without checks"
    NO_OUTPUT_LIMIT = "a plain process whose output is kept"
    NO_REFUSAL_LIMIT = "a service that records every refusal"
    PLAIN_READER = "a reader that prints records as they are"
    CARELESS_JUDGE = "a judge with a pattern of quadratic time"


@dataclass(frozen=True, slots=True)
class Control:
    """How an attack succeeds without its protection."""

    setting: Setting
    shows: str
    """Part of the detail with which it must succeed; ``|`` separates alternatives."""

    def shown_in(self, detail: str) -> str:
        """Return the part of a detail that shows the success; empty if there is none."""
        ways = self.shows.split("|")
        parts = (part for part in detail.split("; ") if any(way in part for way in ways))
        return next(parts, "")


class ControlOutcome(Enum):
    """The result of a control."""

    SUCCEEDED = "succeeded"
    """Without the protection, the attack succeeds, and the probe detects it."""
    FAILED = "failed"
    """The attack failed without the protection too, so the attack proves nothing."""
    NOT_POSSIBLE = "not possible here"
    """The setting does not exist on this machine."""


@dataclass(frozen=True, slots=True)
class ControlResult:
    """The result of one control."""

    setting: Setting
    outcome: ControlOutcome
    detail: str

    def to_json(self) -> JsonObject:
        """Return the result as JSON."""
        return {
            "setting": self.setting.value,
            "outcome": self.outcome.value,
            "detail": self.detail,
        }


FLOODS: Mapping[str, str] = {
    "http-json": "megabytes of malformed JSON over HTTP",
    "grpc-json": "megabytes of malformed JSON over gRPC",
    "numbers": "hundreds of thousands of numbers in one call",
    "model-bodies": "31 MiB requests to an unknown model",
    "tool-lists": "requests for its tools",
    "mcp-sessions": "sessions of MCP",
    "connections": "connections that it closes at once",
    "pings": "PING and SETTINGS frames",
    "rapid-resets": "calls that it cancels at once",
    "endless-headers": "headers that never end",
}
"""Floods of free messages: variant of the attack → what it sends."""


def _controls(setting: Setting, **shows: str) -> dict[str, Control]:
    return {name.replace("_", "-"): Control(setting, detail) for name, detail in shows.items()}


CONTROLS: Mapping[str, Control] = {
    **_controls(
        Setting.NO_BOX,
        egress="of the host was reached",
        abstract_sockets="an abstract socket was reached",
        host_processes="it has the secret of the process",
        host_files="it has the secret of the file",
        neighbours="a call was made in another episode",
        gold="it has the secret of the gold",
        fork_bomb="processes and threads, of",
        fork_bomb_sh="processes and threads, of",
        zombies="processes and threads, of",
        memory_bomb="MiB of memory, of",
        socket_memory="MiB in sockets, of",
        descriptors="it got descriptors",
        deaf="of its processes still run",
        look_around="it read",
        spin="processors, of",
        lock_board="one box read the message of the other",
        page_cache="one box read the message of the other",
        link_counts="it got the links of",
    ),
    **_controls(
        Setting.ROOT, raise_limits="it got a higher priority", devices="it got the device kmsg"
    ),
    **_controls(
        Setting.OPEN_BOX,
        dns="it got a question to 127.0.0.53",
        metadata="it got metadata of 169.254.169.254",
        raw_sockets="it got packets",
        daemon_sockets="a daemon of the host was reached",
        file_handles="it got change the root",
        special_files="a file of the host was written",
        shared_memory="it got memory without an owner",
        fill_inodes="it got files without content",
        shared_quotas="it got an exhausted quota",
        fill_tmp="it got places filled",
        privilege="it got every capability",
        setuid_programs="it got a program of root's",
        mounts="it got mount",
        namespaces="it got a user namespace",
        tracing="it got trace the first process",
        keyring="it got leave a key",
        kernel_surface="it got a ring into the kernel",
        kernel_files="it got any file that the kernel obeys",
    ),
    **_controls(
        Setting.NAIVE_SERVICE,
        forged_messages="it got the method /fumehood.v1.ControlService/OpenEpisode",
        replays="it got six times the budget at once",
        json_bombs="it got not a number",
        protobuf_bombs="it got a length that lies",
        oversized="it got arguments of 16 MiB",
        http_nonsense="it got the path /fumehood.v1.ControlService/OpenEpisode",
        second_client="open connections",
        slow_loris="a neighbour's grpc calls",
        many_streams="a neighbour's",
        frame_floods="a neighbour's|the service grew by",
        http_floods="open connections",
        provoke_errors="it read 'Traceback'",
        world_hang="a neighbour's|a neighbour was not served",
        world_crash="the service died",
        model_egress="a request with",
        model_names="a request with",
        model_overspend="tokens were used, of",
    ),
    **dict.fromkeys(
        ("model-infra-429", "model-infra-403", "model-infra-500", "model-infra-load"),
        Control(Setting.NAIVE_SERVICE, "the attempt is void"),
    ),
    **{
        f"flood-{variant}": Control(
            Setting.NAIVE_SERVICE, "a neighbour's|a neighbour was not served"
        )
        for variant in FLOODS
    },
    **dict.fromkeys(
        ("flood", "flood-sh", "endless-line"),
        Control(Setting.NO_OUTPUT_LIMIT, "KiB of one stream were kept"),
    ),
    **_controls(Setting.NO_REFUSAL_LIMIT, refusals="refusals were written to the trace"),
    **_controls(
        Setting.PLAIN_READER,
        terminal="a terminal would interpret",
        forged_trace="forged events were read",
        forged_run="accepts a forged run",
    ),
    **_controls(Setting.CARELESS_JUDGE, slow_answer="judging its answer took more than"),
}
"""Attack → its control."""
