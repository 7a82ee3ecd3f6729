"""The bubblewrap engine: agents in Linux namespaces, without a daemon and without images.

A box starts in a few milliseconds. If root starts it, a control group limits it, and it shares no
inode with other boxes. An ordinary user may make no overlays outside a user namespace, and control
groups only in a delegated one. Without it, memory is limited for each process, and processor time
is not limited.
"""

from __future__ import annotations

import os
import resource
import secrets
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from threading import Lock

from fumehood.core.errors import InfraError, InputError
from fumehood.core.user_ids import BOX_UIDS
from fumehood.engines.agent_code import ENVIRONMENT, agent_mounts, sdk_command
from fumehood.engines.box_files import HeldByBox, give_sockets
from fumehood.engines.bubblewrap.cgroups import (
    KILLED,
    BoxGroup,
    exit_reason,
    hierarchies,
    unenforced,
)
from fumehood.engines.bubblewrap.command import (
    PACKAGES_FOLDER,
    Descriptors,
    StartGate,
    StatusPipe,
    View,
    box_command,
    host_view,
    view_arguments,
)
from fumehood.engines.bubblewrap.forking import (
    ForkedBox,
    ForkedChild,
    PreparedProcess,
    Request,
    can_fork,
    process_id,
)
from fumehood.engines.bubblewrap.private_mounts import PrivateMounts, PrivateView
from fumehood.engines.engine import (
    AGENT_FOLDER,
    BOX_SOCKET_DIR,
    IN_IMAGES,
    AgentSource,
    BoxOutput,
    BoxSpec,
    Engine,
    EngineOptions,
    Exit,
    Image,
    Isolation,
    IsolationFacts,
    Limits,
    Mount,
    Readiness,
    host_kernel,
)
from fumehood.engines.images.sdk_folder import installed_sdk
from fumehood.engines.ownership import owner_labels
from fumehood.engines.platforms import platform_problem
from fumehood.engines.seccomp import filter_program
from fumehood.engines.shared_inodes import hold_shared_devices, hold_shared_inodes
from fumehood.engines.subprocess_box import ChildBox, ChildBoxEngine, Command

_TOOLS = {"bwrap": "bubblewrap", "prlimit": "util-linux", "setpriv": "util-linux"}
"""Command → the Debian package that contains it."""
_CHECK_TIMEOUT_MS = 10_000


class BubblewrapEngine(ChildBoxEngine, Engine):
    """Starts boxes in namespaces."""

    name = "bubblewrap"
    isolation = Isolation.NAMESPACES
    has_forked_starts = True

    def __init__(self, options: EngineOptions | None = None) -> None:
        super().__init__()
        self._mounts = PrivateMounts()
        self._shares_inodes = os.geteuid() != 0
        self._preparing = Lock()
        self._prepared: PreparedProcess | None = None
        self._fork_problem: str | None = None
        """Why boxes are not forked; empty if they are, None until the first trial."""
        if not (options or EngineOptions()).forked_starts:
            self._fork_problem = "as requested"
        elif os.geteuid() != 0:
            # The attacks were tried on forked boxes of root only.
            self._fork_problem = "because only boxes of root are forked"

    @property
    def unenforced(self) -> tuple[str, ...]:
        """The limits that need control groups, if this process cannot make any."""
        return unenforced()

    @cached_property
    def _view(self) -> View:
        return host_view()

    def check(self) -> Readiness:
        """Start a box that does nothing, and report whether it works."""
        if problem := platform_problem():
            return Readiness(False, problem)
        for tool, package in _TOOLS.items():
            if shutil.which(tool) is None:
                return Readiness(
                    False, f"{tool} is missing; install it (Debian: apt-get install {package})"
                )
        try:
            box_exit, output = self._trial()
        except InfraError as error:
            return Readiness(False, str(error))
        if box_exit is None or box_exit.code != 0:
            return Readiness(
                False, f"namespaces do not work here: {_last_line(output.stderr) or 'no answer'}"
            )
        limits = "memory, processes and processor time are limited"
        if self.unenforced:
            limits = "memory is limited for each process, processor time is not"
        if self._shares_inodes and os.geteuid() == 0:
            limits += "; boxes share the files of /usr, because this kernel refuses overlays"
        if filter_program() is None:
            limits += "; system calls are not filtered (Debian: apt-get install libseccomp2)"
        starts = "forked" if self._can_fork() else f"new processes, {self._fork_problem}"
        return Readiness(True, f"namespaces, no network, read-only; {limits}; agents are {starts}")

    def isolation_facts(self) -> IsolationFacts:
        """Return the facts of the namespaces, with the digest of the BPF program."""
        program = filter_program()
        return IsolationFacts(
            kernel=host_kernel(),
            users=f"{BOX_UIDS.start}-{BOX_UIDS.stop - 1}"
            if os.geteuid() == 0
            else str(os.geteuid()),
            network="none",
            system_call_filter="" if program is None else sha256(program).hexdigest(),
            starts="forked" if self._can_fork() else "new",
        )

    def prepare(self, source: AgentSource) -> Image:
        """Return the command that runs ``source``, and the mounts that it needs.

        Raises:
            InputError: the agent cannot be found, or it needs a container engine.
        """
        if source.kind in IN_IMAGES:
            raise InputError(
                f"the bubblewrap engine has no images, so it cannot run {source.name!r}; "
                "use --engine docker, or an agent that `fumehood list agents` names"
            )
        sdk = installed_sdk()
        mounts = agent_mounts(source, as_other_user=os.geteuid() == 0)
        packages = f"{AGENT_FOLDER}:{PACKAGES_FOLDER}" if mounts else PACKAGES_FOLDER
        return Image(
            "",
            sdk.name,
            sdk_command(source),
            (*mounts, Mount(sdk, PACKAGES_FOLDER)),
            ENVIRONMENT | {"PYTHONPATH": packages},
        )

    def start(self, spec: BoxSpec) -> ChildBox:
        """Start one box, when fewer are starting than this machine can start at once.

        Raises:
            InputError: the box has no such command.
            InfraError: the process cannot be started.
        """
        command = (*spec.image.command, *spec.arguments)
        held = HeldByBox(spec.labels)
        try:
            view = self._view.with_mounts(self._mounts_of(spec, held))
            if not view.holds_command(command[0]):
                raise InputError(f"the box has no command {command[0]!r}")
            if os.geteuid() == 0:
                give_sockets(spec.socket_dir, held.user())
            environment = spec.image.environment
            forks = can_fork(command, environment) and _packages(view.mounts) and self._can_fork()
            box: ChildBox
            with self._starting:
                if forks:
                    folder = spec.socket_dir
                    box = self._fork(view, environment, spec.limits, command, held, folder)
                else:
                    box = self._start(view, environment, spec.limits, command, held)
        except (InfraError, InputError):
            held.release()
            raise
        self._queues.add(box)
        return box

    def _mounts_of(self, spec: BoxSpec, held: HeldByBox) -> tuple[Mount, ...]:
        mounts = (*spec.image.mounts, *spec.mounts)
        sdk = _packages(mounts)
        copies = held.files.copies(mount for mount in mounts if mount not in sdk)
        return (*copies, *sdk, Mount(spec.socket_dir, BOX_SOCKET_DIR))

    def close(self) -> None:
        """End the thread that starts boxes, and all boxes that still run."""
        if self._prepared is not None:
            self._prepared.close()
        super().close()

    def _trial(self, *, forks: bool = False) -> tuple[Exit | None, BoxOutput]:
        held = HeldByBox(owner_labels("trial"))
        try:
            if forks:
                command = ("python3", "-c", "")
                box: ChildBox = self._fork(self._view, {}, Limits(), command, held, None)
            else:
                box = self._start(self._view, {}, Limits(), ("true",), held)
        except InfraError:
            held.release()
            raise
        try:
            box_exit = box.wait(_CHECK_TIMEOUT_MS)
        finally:
            output = box.close()
        return box_exit, output

    def _can_fork(self) -> bool:
        """Return whether boxes are forked; fork one as a trial first."""
        with self._preparing:
            if self._fork_problem is None:
                try:
                    box_exit, output = self._trial(forks=True)
                    failed = box_exit is None or box_exit.code != 0
                    problem = (_last_line(output.stderr) or "no answer") if failed else ""
                except (InfraError, InputError) as error:
                    problem = str(error)
                self._fork_problem = problem and f"because no box can be forked: {problem}"
        return not self._fork_problem

    def _fork(
        self,
        view: View,
        environment: Mapping[str, str],
        limits: Limits,
        command: Sequence[str],
        held: HeldByBox,
        socket_dir: Path | None,
    ) -> ForkedBox:
        if self._prepared is None:
            self._prepared = PreparedProcess(self._starter, self._view, filter_program())
        hold_shared_inodes()
        group = self._group(held, limits)
        request = Request(
            view=view,
            environment=environment,
            limits=limits,
            command=command,
            user=held.user() if os.geteuid() == 0 else None,
            has_group=group is not None,
            is_private=not self._shares_inodes,
        )
        status = StatusPipe()
        held.on_release(status.close)
        with ExitStack() as its_ends:
            pipes = [os.pipe() for _ in range(3)]
            (out_fd, its_out), (err_fd, its_err), (its_gate, gate_fd) = pipes
            for descriptor in (status.write_fd, its_out, its_err, its_gate, gate_fd):
                its_ends.callback(os.close, descriptor)
            stdout, stderr = (
                its_ends.enter_context(os.fdopen(descriptor, "rb"))
                for descriptor in (out_fd, err_fd)
            )
            files = (status.write_fd, its_out, its_err, its_gate)
            handle = self._prepared.start(request, socket_dir, files)
            box = ForkedBox(
                ForkedChild(process_id(handle), stdout, stderr),
                limits.output_bytes,
                handle=handle,
                read_code=lambda code: _forked_code(status, code, group),
                read_reason=lambda code: exit_reason(code, group),
                on_close=held.release,
            )
            box.hold_namespaces(status, self._prepared.close_later)
            try:
                pid = box.host_pid()
                _require_files(pid, limits)
                if group is not None and pid is not None:
                    group.add(pid)
            except InfraError:
                box.close()
                raise
            os.write(gate_fd, b"x")
        return box

    def _start(
        self,
        view: View,
        environment: Mapping[str, str],
        limits: Limits,
        command: Sequence[str],
        held: HeldByBox,
    ) -> ChildBox:
        hold_shared_inodes()
        user = held.user() if os.geteuid() == 0 else None
        group = self._group(held, limits)
        private = self._private(view, held, limits)
        if private is None:
            hold_shared_devices()
        program = filter_program()
        arguments = "\0".join(view_arguments(view, environment, limits, private))
        status = StatusPipe()
        held.on_release(status.close)
        with closing(StartGate()) as gate:
            files = Descriptors(
                view=_file(arguments.encode()),
                status=status.write_fd,
                filter=_file(program) if program else None,
                info=gate.info_fd,
                block=gate.block_fd,
            )
            # The box can read the command line of its first process, so the mark is random.
            mark = secrets.token_hex(8)
            try:
                line = box_command(files, limits, command, user, has_group=group is not None)
                start = Command(
                    arguments=line,
                    environment={},
                    descriptors=files.all(),
                    mark=mark,
                    # Boxes could lock the inode of the host's null device.
                    stdin=private.device("null") if private else Path(os.devnull),
                )
                child = self._starter.start(start)
                record = self._records.write(child.pid, held.labels, mark)
            finally:
                for descriptor in files.all():
                    os.close(descriptor)
            held.on_release(lambda: record.unlink(missing_ok=True))
            pid = gate.box_pid()
            box = ChildBox(
                child,
                limits.output_bytes,
                pid=pid,
                read_code=status.read_code,
                read_reason=lambda code: exit_reason(code, group),
                on_close=held.release,
            )
            try:
                if pid is not None and box.hold_first(pid):
                    self._records.write(child.pid, held.labels, mark, pid)
                self._let_run(box, pid, group, gate, limits)
            except (InfraError, OSError):
                box.close()
                raise
        return box

    @staticmethod
    def _let_run(
        box: ChildBox, pid: int | None, group: BoxGroup | None, gate: StartGate, limits: Limits
    ) -> None:
        _require_files(box.host_pid(), limits)
        if group is not None and pid is not None:
            group.add(pid)
        gate.open()

    def _group(self, held: HeldByBox, limits: Limits) -> BoxGroup | None:
        """Make the control group of a box; None where there are none."""
        writable_hierarchies = hierarchies()
        if writable_hierarchies is None:
            return None
        group = BoxGroup(writable_hierarchies, held.user())
        group.make(limits)
        held.on_release(group.require_removed)
        return group

    def _private(self, view: View, held: HeldByBox, limits: Limits) -> PrivateView | None:
        """Make the private sources of a box; None where the kernel refuses them."""
        if self._shares_inodes:
            return None
        shared = {mount.source for mount in (*self._view.mounts, *_packages(view.mounts))}
        try:
            private = self._starter.call(lambda: self._mounts.make(sorted(shared), limits))
        except OSError:
            self._shares_inodes = True
            return None
        held.on_release(lambda: self._starter.call(lambda: self._mounts.drop(private)))
        return private


def _packages(mounts: Iterable[Mount]) -> tuple[Mount, ...]:
    return tuple(mount for mount in mounts if mount.target == PACKAGES_FOLDER)


def _forked_code(status: StatusPipe, code: int, group: BoxGroup | None) -> int:
    try:
        return status.read_code(code)
    except InfraError:
        # The kernel chose the first process.
        if group is not None and group.ran_out_of_memory():
            return KILLED
        raise


def _require_files(pid: int | None, limits: Limits) -> None:
    """Check the hard limit of open files that a box inherits.

    Otherwise prlimit fails in the box, which looks like a crash of the agent.

    Raises:
        InfraError: it is below the limit of the box.
    """
    if pid is None:
        return
    try:
        _, files_max = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    except OSError:
        return  # It has ended already.
    if files_max != resource.RLIM_INFINITY and files_max < limits.open_files:
        raise InfraError(
            f"a box may open {limits.open_files} files, but this process may open {files_max}; "
            "raise its hard limit (ulimit -Hn)"
        )


def _file(content: bytes) -> int:
    """Return the descriptor of an anonymous file with this content."""
    descriptor = os.memfd_create("content")
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _last_line(text: bytes) -> str:
    return text.decode(errors="replace").strip().rpartition("\n")[2]
