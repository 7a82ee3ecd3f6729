"""Runs the monitors of a service: one process for each monitor and episode.

A monitor that fails on a step is replaced by a new one, which gets the health-check step. If that
fails too, the monitor does not work for any agent.
"""

from __future__ import annotations

import json
import socket
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Lock, Thread

from fumehood.core.episode_spec import MonitorSpec
from fumehood.core.errors import InfraError, InputError, SpecError
from fumehood.core.json_values import (
    JsonObject,
    as_object,
    finite_number,
    is_slow_to_parse,
    no_constant,
)
from fumehood.monitors.monitor import (
    ALLOWED,
    Action,
    Decision,
    Facts,
    Stage,
    Step,
    StepKind,
    decision_from_json,
    facts_from_json,
    step_from_json,
)
from fumehood.monitors.person import RemotePerson
from fumehood.monitors.review import (
    CLOSED,
    HEAD_START_MS,
    MonitorsBroken,
    OnWait,
    Review,
    ignore_wait,
)
from fumehood.supervised.fork_server import Child, ForkServer
from fumehood.supervised.frames import receive_frame, send_frame
from fumehood.supervised.limits import Access, Limits
from fumehood.supervised.slow_messages import parsing

LIMITS = Limits(memory_bytes=1 << 30, cpu_s=3600, processes=16, open_files=64, file_bytes=0)
"""Of one monitor in one episode."""
ANSWER_BYTES_MAX = 4 << 20
"""Size of a decision, at most."""
STEP_BYTES_MAX = 96 << 20
"""Size of a step, at most; it may contain the state of the world."""
START_S = 60.0
"""Time for a monitor to import what it needs."""
END_S = 2.0
"""How long the end of a process is awaited to tell it from an answer that is too large."""
HEALTH_CHECK = Step(seat="health_check", number=1, tool="health_check", arguments={})
"""A harmless step."""
_ENTRY = "monitor"
PERSON = "person"
"""Kind of a monitor without a process."""
AskModel = Callable[[str, bytes, float], JsonObject]
"""Sends a chat completion to a model. Arguments: the model, the body, the timeout in seconds.
Raises ``TimeoutError``, or ``InfraError`` if no provider answers it."""


class MonitorHost:
    """The monitors of a service. Safe to use from several threads."""

    def __init__(self, specs: Sequence[MonitorSpec], person: socket.socket | None = None) -> None:
        """Start the fork server, without a thread; ``start`` waits for it.

        Args:
            specs: the monitors of the run, in the order in which they are asked.
            person: connection to a person; None for no person.
        """
        self._person = RemotePerson(person) if person is not None else None
        self.specs = {spec.name: spec for spec in specs}
        module = "fumehood.monitors.process"
        self._server = ForkServer({_ENTRY: f"{module}:serve"}, modules=[module], wait=False)
        self._ask_model: AskModel | None = None

    def start(self, ask_model: AskModel | None = None) -> None:
        """Wait until the fork server can fork, and check every monitor once.

        ``ask_model`` sends the model requests of monitors; None for no models.

        Raises:
            InputError: a monitor cannot be made, or does not pass the health check.
            InfraError: the fork server does not start.
        """
        self._ask_model = ask_model
        self._server.wait_until_ready()
        for spec in self.specs.values():
            if spec.kind == PERSON:
                if self._person is None:
                    raise InputError(
                        f"the monitor {spec.name}: only `run` and `resume` ask a person"
                    )
                continue
            if "model" in spec.settings and ask_model is None:
                raise InputError(f"the monitor {spec.name}: this command calls no model")
            try:
                with _Session(self._server, spec, self._ask_model) as session:
                    session.begin(Facts(world="", instructions={}))
                    session.decide(HEALTH_CHECK)
            except _Failed as failed:
                raise InputError(
                    f"the monitor {spec.name} fails its health check: {failed}"
                ) from None

    def reviewer(self, names: Sequence[str]) -> EpisodeMonitors:
        """Return the monitors of an episode, whose processes start when it begins.

        Raises:
            SpecError: the service has no such monitor.
        """
        if unknown := set(names) - self.specs.keys():
            raise SpecError("monitors", f"the service has no monitor {min(unknown)!r}")
        specs = [self.specs[name] for name in names]
        return EpisodeMonitors(self._server, specs, self._ask_model, self._person)

    def stop(self) -> None:
        """End all monitors."""
        self._server.close()


class _Failed(Exception):
    """A monitor has failed. Arguments: ``deadline``, ``ended``, ``invalid``, ``budget`` or
    ``model``, and a text."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason


class _Session:
    """One monitor in one episode."""

    def __init__(self, server: ForkServer, spec: MonitorSpec, ask_model: AskModel | None) -> None:
        self.spec = spec
        self._ask_model = ask_model
        self._spent = Counter[str]()
        self._seen = Counter[str]()
        self._budget = as_object(spec.settings.get("budget"))
        self._child: Child = server.start(_ENTRY, {}, LIMITS, Access())
        made = self._ask(spec.settings, START_S)
        if "failed" in made:
            self.close()
            raise _Failed("invalid", str(made["failed"]))
        self.needs_state = made.get("needs_state") is True

    def __enter__(self) -> _Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin(self, facts: Facts) -> None:
        self._ask({"begin": facts.to_json()}, self.spec.deadline_ms / 1000)

    def decide(self, step: Step) -> Decision:
        seen = step if self.needs_state else replace(step, state=None)
        answer = self._ask({"step": seen.to_json()}, self.spec.deadline_ms / 1000)
        try:
            return decision_from_json(answer, step.stage)
        except ValueError as error:
            raise _Failed("invalid", str(error)) from None

    def take_spent(self) -> JsonObject:
        """Return what the requests about the last step cost."""
        spent = {name: units for name, units in self._spent.items() if units != self._seen[name]}
        taken: JsonObject = {name: units - self._seen[name] for name, units in spent.items()}
        self._seen = Counter(self._spent)
        return taken

    def close(self) -> None:
        self._child.kill()
        self._child.channel.close()

    def kill(self) -> None:
        """End the process; a thread that waits for its answer learns that it has ended."""
        self._child.kill()

    def _ask(self, question: JsonObject, timeout_s: float) -> JsonObject:
        """Return the answer to a question. Meanwhile, send the model requests of the monitor."""
        deadline = time.monotonic() + timeout_s
        answer = self._exchange(question, timeout_s, deadline)
        while "ask" in answer:
            response = self._respond(as_object(answer["ask"]), deadline)
            answer = self._exchange(response, timeout_s, deadline)
        return answer

    def _respond(self, request: JsonObject, deadline: float) -> JsonObject:
        model = self.spec.settings.get("model")
        if self._ask_model is None or request.get("model") != model:
            raise _Failed("invalid", "it may not ask this model")
        for name, limit in self._budget.items():
            if isinstance(limit, int) and self._spent[name] >= limit:
                raise _Failed("budget", f"its budget of {limit} {name} is used up")
        self._spent["model_calls"] += 1
        body = json.dumps(request).encode("ascii")
        try:
            response = self._ask_model(str(model), body, deadline - time.monotonic())
        except TimeoutError:
            raise _Failed("deadline", "its model did not answer in time") from None
        except InfraError as error:
            raise _Failed("model", str(error)) from None
        usage = as_object(response.get("usage")).get("total_tokens")
        self._spent["model_tokens"] += usage if isinstance(usage, int) else 0
        return response

    def _exchange(self, question: JsonObject, timeout_s: float, deadline: float) -> JsonObject:
        channel = self._child.channel
        try:
            channel.settimeout(timeout_s)
            send_frame(channel, json.dumps(question).encode("ascii"))
            answer = receive_frame(channel, ANSWER_BYTES_MAX, deadline)
        except TimeoutError:
            self.close()
            raise _Failed("deadline", f"no answer within {timeout_s:g} s") from None
        except OSError:
            answer = None
        if answer is None:
            end = self._child.wait(END_S)
            self.close()
            if end is None:
                raise _Failed("invalid", f"its answer has more than {ANSWER_BYTES_MAX} bytes")
            raise _Failed("ended", f"its process {end}")
        try:
            return _strict_object(answer)
        except (ValueError, RecursionError) as error:
            self.close()
            raise _Failed("invalid", f"its answer is not valid: {error}") from None


class _PersonSession:
    """A person in one episode. Only tool calls are shown, before they are executed."""

    needs_state = False

    def __init__(self, spec: MonitorSpec, person: RemotePerson) -> None:
        self.spec = spec
        self._person = person
        self._is_closed = False

    def decide(self, step: Step) -> Decision:
        if step.stage is not Stage.BEFORE or step.kind is not StepKind.TOOL:
            return ALLOWED
        timeout_s = self.spec.deadline_ms / 1000
        try:
            answer = self._person.ask(step, timeout_s, lambda: self._is_closed)
            return decision_from_json(answer, step.stage)
        except TimeoutError:
            raise _Failed("deadline", f"no answer within {timeout_s:g} s") from None
        except (OSError, ValueError) as error:
            raise _Failed("ended", str(error)) from None

    def take_spent(self) -> JsonObject:
        return {}

    def close(self) -> None:
        self._is_closed = True

    kill = close


class EpisodeMonitors:
    """The monitors of one episode; implements ``Reviewer``, and knows how long they took."""

    def __init__(
        self,
        server: ForkServer,
        specs: Sequence[MonitorSpec],
        ask_model: AskModel | None = None,
        person: RemotePerson | None = None,
    ) -> None:
        self.has_failed = False
        """Whether a monitor failed its health check too."""
        self.on_wait: OnWait = ignore_wait
        self._server = server
        self._ask_model = ask_model
        self._person = person
        self._specs = specs
        self._sessions: list[_Session | _PersonSession] = []
        self._facts = Facts(world="", instructions={})
        self._has_begun = False
        self._waited_ns = 0
        self._waiting_since_ns: int | None = None
        self._is_closed = False
        self._lock = Lock()

    @property
    def waited_ms(self) -> int:
        """For how long the episode has waited for its monitors, with a head start."""
        since_ns = self._waiting_since_ns
        running_ns = 0 if since_ns is None else time.monotonic_ns() - since_ns
        return HEAD_START_MS + (self._waited_ns + running_ns) // 1_000_000

    def begin(self, facts: Facts) -> bool:
        """Start the monitors; return whether one needs the state of the world.

        Raises:
            MonitorsBroken: a monitor does not begin.
            ValueError: the episode has begun before. The first facts come from the process before
                an agent can reach it; others could make a monitor fail its health check.
        """
        if self._has_begun:
            raise ValueError("the episode has begun before")
        self._has_begun = True
        self._facts = facts
        for spec in self._specs:
            try:
                if spec.kind == PERSON and self._person is not None:
                    self._sessions.append(_PersonSession(spec, self._person))
                    continue
                self._sessions.append(self._begun(spec))
            except (_Failed, InfraError) as error:
                self.has_failed = True
                raise MonitorsBroken(f"the monitor {spec.name} does not begin: {error}") from None
        return any(session.needs_state for session in self._sessions)

    def review(self, step: Step) -> Review:
        """Return the decisions of the monitors, up to the first that does not escalate.

        Raises:
            MonitorsBroken: a monitor failed, and failed its health check too.
        """
        with self._lock:
            self._waiting_since_ns = time.monotonic_ns()
            try:
                return self._review(step)
            finally:
                took_ns = time.monotonic_ns() - self._waiting_since_ns
                self._waited_ns, self._waiting_since_ns = self._waited_ns + took_ns, None
                self.on_wait(took_ns)

    def close(self) -> None:
        """End the monitors; a step that waits for one is refused."""
        self._is_closed = True
        for session in self._sessions:
            session.kill()

    def release(self) -> None:
        """End the monitors. No step waits for one."""
        for session in self._sessions:
            session.close()

    def _review(self, step: Step) -> Review:
        decided: list[tuple[str, Decision]] = []
        failure: tuple[str, str] | None = None
        spent: dict[str, JsonObject] = {}
        for session in self._sessions:
            name = session.spec.name
            try:
                decided.append((name, session.decide(step)))
            except _Failed as failed:
                failure = (name, CLOSED if self._is_closed else failed.reason)
                if not self._is_closed:
                    self._check_health(session.spec, failed)
            if units := session.take_spent():
                spent[name] = units
            if failure is not None or decided[-1][1].action is not Action.ESCALATE:
                break
        return Review(tuple(decided), failure, spent)

    def _check_health(self, spec: MonitorSpec, failed: _Failed) -> None:
        try:
            if spec.kind == PERSON:
                raise failed  # An agent is not the reason that a person does not answer.
            with self._begun(spec) as session:
                session.decide(HEALTH_CHECK)
        except (_Failed, InfraError) as error:
            self.has_failed = True
            raise MonitorsBroken(
                f"the monitor {spec.name} failed ({failed}) and fails its health check: {error}"
            ) from None

    def _begun(self, spec: MonitorSpec) -> _Session:
        session = _Session(self._server, spec, self._ask_model)
        session.begin(self._facts)
        return session


def answer_reviews(connection: socket.socket, monitors: EpisodeMonitors) -> None:
    """Answer the reviews of an episode's process until it closes the connection."""
    try:
        with connection:
            while question := receive_frame(connection, STEP_BYTES_MAX):
                begun = time.thread_time()
                send_frame(connection, json.dumps(_reviewed(monitors, question)).encode("ascii"))
                # Code in the process could send step after step: leave half of the time to others.
                time.sleep(time.thread_time() - begun)
    except (OSError, ValueError, RecursionError):
        pass  # The process has ended, or code in it wrote a question of another form.
    finally:
        monitors.release()


def serve_reviews(connection: socket.socket, monitors: EpisodeMonitors) -> None:
    """Answer the reviews of an episode's process in a new thread."""
    answer: Callable[[], None] = lambda: answer_reviews(connection, monitors)  # noqa: E731
    Thread(target=answer, daemon=True).start()


def _reviewed(monitors: EpisodeMonitors, question: bytes) -> JsonObject:
    with parsing(len(question)):
        if is_slow_to_parse(question):
            raise ValueError("too many values")
        asked = json.loads(question)
    try:
        match asked:
            case {"begin": dict(facts)}:
                return {"needs_state": monitors.begin(facts_from_json(facts))}
            case {"step": dict(step)}:
                return monitors.review(step_from_json(step)).to_json()
    except InfraError as error:
        return {"broken": str(error)}
    raise ValueError("not a question")


def _strict_object(text: bytes) -> JsonObject:
    value = json.loads(text, parse_constant=no_constant, parse_float=finite_number)
    if not isinstance(value, dict):
        raise ValueError("not an object")
    # A lone surrogate could not be sent to the agent.
    json.dumps(value, ensure_ascii=False).encode()
    return value
