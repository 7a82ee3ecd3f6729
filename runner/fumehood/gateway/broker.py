"""Sends model requests for a process that has neither the network nor the keys.

The process of an episode parses and charges a request; the service, which holds the keys, sends it.
One stream socket connects them. Each message is: length (4 bytes), kind (1), number of the request
(4), content.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from enum import IntEnum
from itertools import count
from typing import Any

from fumehood.core.ledger import Amounts, Budget, BudgetKind, ChargedBy, Ledger, Reservation
from fumehood.gateway.bounds import RequestOrder
from fumehood.gateway.costs import BYTES_PER_TOKEN, COST_KINDS, amounts, reserved_tokens
from fumehood.gateway.health_check import HealthCheck
from fumehood.gateway.provider_client import (
    ProviderClient,
    ProviderFailed,
    ProviderRequest,
    RequestFailed,
    ResponseTooLarge,
    StartedResponse,
    Waits,
)
from fumehood.gateway.requests import (
    PROVIDER_HEADERS,
    REQUESTS_MAX,
    SMALL_BODY_BYTES,
    ModelRequest,
    Refused,
    check_request,
)
from fumehood.gateway.responses import ResponseReader, spent_tokens
from fumehood.gateway.settings import GatewaySettings, Price
from fumehood.gateway.strict_json import StructureScan
from fumehood.gateway.waiting import Spans

OPEN_REQUESTS_MAX = 2 * REQUESTS_MAX
"""Open requests of one seat. The process permits fewer, but a request that it cancelled takes a
moment to end."""
OPEN_BODIES_MAX = 4
"""Open requests of one process of the largest size, or more smaller ones. Others are not read until
one of these has ended."""
REFUSED_MAX = 8
"""Requests of one seat that the gateway does not permit, at most: an unchanged process sends none,
and parsing a large one delays other episodes. Later requests of the seat get no response. If this
holds for all seats, the connection is closed."""
HEAD_BYTES_MAX = 256 * 1024
"""Size of a message without the body of its request, at most."""
_episodes = count(1)
_HEAD = struct.Struct(">IBI")
_LENGTH = struct.Struct(">I")


class _Kind(IntEnum):
    """Kinds of messages. SEND and CANCEL go to the service; the others come from it."""

    SEND = 1
    """Send a request: length of a JSON object, the object, the body."""
    CANCEL = 2
    """The process does not need the rest of the response."""
    BEGAN = 3
    """The response has begun: a JSON object with status, content type and delay."""
    PART = 4
    """The next bytes of the response."""
    ENDED = 5
    """The response is complete."""
    BROKE = 6
    """The response has ended early."""
    FAILED = 7
    """There is no response: a JSON object with the reason and the health check. Or the response is
    too large: a JSON object with the limit; there may be a part of it."""
    WAITED = 8
    """A wait, as a JSON list of the name of a method of ``Waits`` and numbers."""


@dataclass(frozen=True, slots=True)
class _Message:
    kind: _Kind
    number: int
    content: bytes


@dataclass(frozen=True, slots=True)
class _Outgoing:
    """A request of the process."""

    number: int
    seat: str
    """As the process states it."""
    provider: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    size_bytes: int
    """Size of the message."""


class _Account:
    """What one seat has spent, and its open requests."""

    def __init__(self, budget: Budget) -> None:
        self.ledger = Ledger(budget)
        self.open = self.refused = 0
        has_cost = any(budget[kind] is not None for kind in COST_KINDS)
        self.order = RequestOrder() if has_cost else None


class Broker:
    """Sends the requests of one process; for one event loop."""

    def __init__(self, settings: GatewaySettings, client: ProviderClient) -> None:
        """Create a broker; ``serve`` starts it.

        Args:
            settings: of the gateway, with keys.
            client: shared by all processes.
        """
        self.waited_ms = 0
        """For how long at least one request of the process waited, as this process measured it."""
        self.passed_bytes = 0
        """Size of its requests that were sent to a provider, and of the responses, read or not."""
        self.has_provider_failed = False
        """Whether a check by the gateway showed that a provider does not work."""
        # Not ``id``, which the broker of a later episode may have, too.
        self.episode = str(next(_episodes))
        """Name of the episode in the queues of providers."""
        self._settings = settings
        self._client = client
        self._waits = Spans()
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._parses = asyncio.Lock()
        self._accounts: dict[str, _Account] = {}
        """By seat; empty before the episode."""
        self._open_bytes = 0
        self._can_read = asyncio.Event()
        self._can_read.set()

    def limit(self, budgets: Mapping[str, Budget]) -> None:
        """Send requests from now on, within the budget of each seat.

        The process charges and orders the requests, too. These budgets and this order hold if an
        agent took the process over. It can then send requests in the name of another seat.

        Args:
            budgets: by seat.
        """
        self._accounts = {seat: _Account(budget) for seat, budget in budgets.items()}

    async def serve(self, connection: socket.socket) -> None:
        """Answer requests until the process closes the connection or sends a malformed message."""
        reader, self._writer = await asyncio.open_connection(sock=connection)
        bytes_max = self._settings.body_bytes_max + HEAD_BYTES_MAX
        try:
            while (message := await _read(reader, bytes_max)) is not None:
                await self._take(message)
                await self._can_read.wait()
        except (ValueError, RecursionError, OSError):
            pass
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
            self._client.forget(self.episode)
            self._writer.close()

    async def _take(self, message: _Message) -> None:
        task = self._tasks.get(message.number)
        if message.kind is _Kind.CANCEL:
            # A second cancellation would interrupt the wait for a parse that nothing ends.
            if task is not None and not task.cancelling():
                task.cancel()
            return
        if message.kind is not _Kind.SEND or task is not None:
            raise ValueError("not a request")
        request = _outgoing(message)
        account = self._accounts.get(request.seat)
        if account is None or account.open >= OPEN_REQUESTS_MAX or account.refused >= REFUSED_MAX:
            await self._reply(_Kind.BROKE, request.number, b"")
        else:
            account.open += 1
            task = asyncio.create_task(self._answer(request, account))
            self._tasks[request.number] = task
            self._open(request.size_bytes)
            task.add_done_callback(lambda _: self._close(request, account))

    def _open(self, size_bytes: int) -> None:
        self._open_bytes += size_bytes
        if self._open_bytes <= OPEN_BODIES_MAX * self._settings.body_bytes_max:
            self._can_read.set()
        else:
            self._can_read.clear()

    def _close(self, request: _Outgoing, account: _Account) -> None:
        self._tasks.pop(request.number, None)
        account.open -= 1
        self._open(-request.size_bytes)

    async def _answer(self, request: _Outgoing, account: _Account) -> None:
        number = request.number
        try:
            await self._send(request, account)
            await self._reply(_Kind.ENDED, number, b"")
        except (ProviderFailed, RequestFailed) as error:
            self.has_provider_failed |= isinstance(error, ProviderFailed)
            failed = {
                "provider": isinstance(error, ProviderFailed),
                "reason": error.reason,
                "check": _check_to_json(error.check),
            }
            await self._reply(_Kind.FAILED, number, json.dumps(failed).encode())
        except ResponseTooLarge as error:
            limit = json.dumps({"bytes_max": error.bytes_max})
            await self._reply(_Kind.FAILED, number, limit.encode())
        except OSError:
            return  # The process has ended.
        except (Refused, ValueError):
            account.refused += 1
            with suppress(OSError):
                await self._reply(_Kind.BROKE, number, b"")
            if all(each.refused >= REFUSED_MAX for each in self._accounts.values()):
                self._writer.close()
        except Exception:
            # The provider's connection broke.
            await self._reply(_Kind.BROKE, number, b"")

    async def _send(self, outgoing: _Outgoing, account: _Account) -> None:
        if not outgoing.headers.keys() <= PROVIDER_HEADERS:
            raise ValueError("the gateway writes no such headers")
        checked = await self._checked(outgoing, account)
        provider = self._settings.provider_of(checked.model)
        if provider is None or provider.name != outgoing.provider:
            raise ValueError(f"another provider has the model {checked.model}")
        request = ProviderRequest(
            provider=provider,
            path=checked.path,
            model=checked.model,
            body=checked.body,
            headers=checked.headers,
            # Not from the process: it could take the turns of another episode.
            episode=self.episode,
            seat=outgoing.seat,
            tokens=len(outgoing.body) // BYTES_PER_TOKEN + checked.tokens_max[1],
        )
        async with AsyncExitStack() as stack:
            if account.order is not None:
                entering = account.order.enter(checked.kind, is_bounded=checked.is_bounded)
                await stack.enter_async_context(entering)
            await self._forward(outgoing.number, request, checked, account)

    async def _forward(
        self, number: int, request: ProviderRequest, checked: ModelRequest, account: _Account
    ) -> None:
        price = self._settings.price_of(checked.model)
        reserved = _reserve(account.ledger, checked, price)
        spent, answered = checked.tokens_max, False
        self.passed_bytes += len(request.body)
        waits = _SentWaits(lambda event: self._note(number, event), self._add_wait)
        try:
            async with self._client.send(request, waits) as started:
                reader = ResponseReader(
                    started.content_type, checked.dialect, keep=False, usage_only=True
                )
                whole = False
                try:
                    await self._pass_on(number, started, reader)
                    whole = True
                finally:
                    reader.close()
                    spent = spent_tokens(checked, reader, started.status, whole=whole)
                    answered = whole and started.status == 200
                started.used(sum(spent))
        except (ProviderFailed, RequestFailed):
            spent = (0, 0)
            raise
        finally:
            actual = amounts(*spent, price, checked.answers)
            account.ledger.settle(Reservation(reserved), actual)
            overrun = actual[BudgetKind.MODEL_TOKENS] > reserved[BudgetKind.MODEL_TOKENS]
            if account.order is not None:
                account.order.report(checked.kind, answered=answered, overrun=overrun)

    async def _checked(self, outgoing: _Outgoing, account: _Account) -> ModelRequest:
        if len(outgoing.body) <= SMALL_BODY_BYTES:
            return self._parse(outgoing)
        parsing = asyncio.ensure_future(self._parse_alone(outgoing, account))
        try:
            return await asyncio.shield(parsing)
        except asyncio.CancelledError:
            # Nothing ends the thread, so the request counts as open until it has ended.
            await asyncio.wait([parsing])
            # Parsing it delayed others as much as if it had been sent.
            if not parsing.cancelled() and parsing.exception() is not None:
                account.refused += 1
            raise

    async def _parse_alone(self, outgoing: _Outgoing, account: _Account) -> ModelRequest:
        async with self._parses:
            if account.refused >= REFUSED_MAX:
                raise ValueError("the seat has sent too many such requests")
            return await asyncio.to_thread(self._parse, outgoing)

    def _parse(self, outgoing: _Outgoing) -> ModelRequest:
        if not StructureScan().take(outgoing.body):
            raise ValueError("too many JSON values")
        return check_request(self._settings, outgoing.path, outgoing.body, outgoing.headers)

    async def _pass_on(self, number: int, started: StartedResponse, reader: ResponseReader) -> None:
        self._add_wait(*started.delay_ms)
        began = {
            "status": started.status,
            "content_type": started.content_type,
            "delay_ms": started.delay_ms,
            "check": _check_to_json(started.check),
        }
        await self._reply(_Kind.BEGAN, number, json.dumps(began).encode())
        async for part in started.parts():
            reader.take(part)
            self.passed_bytes += len(part)
            await self._reply(_Kind.PART, number, part)

    def _add_wait(self, began_ms: int, ended_ms: int) -> None:
        # Before the process learns of the wait.
        if ended_ms > began_ms:
            self.waited_ms += self._waits.add(began_ms, ended_ms)

    def _note(self, number: int, event: list[object]) -> None:
        content = json.dumps(event).encode()
        self._writer.write(_HEAD.pack(len(content), _Kind.WAITED, number) + content)

    async def _reply(self, kind: _Kind, number: int, content: bytes) -> None:
        self._writer.write(_HEAD.pack(len(content), kind, number) + content)
        await self._writer.drain()


def _outgoing(message: _Message) -> _Outgoing:
    """Return the request in a message.

    Raises:
        ValueError: its head is malformed.
    """
    content = message.content
    size = _LENGTH.unpack_from(content)[0] if len(content) >= _LENGTH.size else len(content)
    if size > HEAD_BYTES_MAX:
        raise ValueError("the head is too long")
    body_at = _LENGTH.size + size
    match json.loads(content[_LENGTH.size : body_at]):
        case {
            "seat": str(seat),
            "provider": str(provider),
            "path": str(path),
            "headers": dict(headers),
        } if all(isinstance(value, str) for value in headers.values()):
            body = content[body_at:]
            return _Outgoing(message.number, seat, provider, path, headers, body, len(content))
    raise ValueError("the head is malformed")


def _reserve(ledger: Ledger, request: ModelRequest, price: Price | None) -> Amounts:
    """Reserve the cost of a request. Only the last one of a seat may exceed the budget.

    Raises:
        ValueError: the budget does not allow the request.
    """
    if 0 in ledger.remaining(ChargedBy.MODEL_CALL).values():
        raise ValueError("the budget of the seat does not allow another request")
    if price is None and ledger.limit(BudgetKind.MODEL_MICROUSD) is not None:
        raise ValueError(f"the budget limits the price, and {request.model} has no price")
    tokens = reserved_tokens(request.tokens_max, request.has_tools)
    reserved = amounts(*tokens, price, request.answers)
    ledger.settle(Reservation({}), reserved)
    return reserved


class _SentWaits:
    """Implements ``Waits``: sends each event to the process."""

    def __init__(
        self, send: Callable[[list[object]], None], add_wait: Callable[[int, int], None]
    ) -> None:
        self._send = send
        self._add_wait = add_wait

    def queued(self, began_ms: int, ended_ms: int) -> None:
        """Send a wait in the provider's queue."""
        self._add_wait(began_ms, ended_ms)
        self._send(["queued", began_ms, ended_ms])

    def attempt(self, began_ms: int) -> None:
        """Send the beginning of an attempt."""
        self._send(["attempt", began_ms])

    def failed(self) -> None:
        """Send the failure of an attempt."""
        self._send(["failed"])


class RemoteResponse:
    """A response that a broker passes on; implements ``StartedResponse``."""

    def __init__(
        self,
        head: dict[str, Any],
        arriving: asyncio.Queue[_Message],
    ) -> None:
        self.status: int = head["status"]
        self.content_type: str = head["content_type"]
        began_ms, ended_ms = head["delay_ms"]
        self.delay_ms: tuple[int, int] = (began_ms, ended_ms)
        self.check = HealthCheck(**head["check"]) if head["check"] else None
        self._arriving = arriving

    async def parts(self) -> AsyncIterator[bytes]:
        """Yield the bytes as they arrive.

        Raises:
            ConnectionError: the response ended early.
            ResponseTooLarge: it exceeds the limit.
        """
        while True:
            message = await self._arriving.get()
            if message.kind is _Kind.ENDED:
                return
            if message.kind is _Kind.FAILED:
                raise _failure(json.loads(message.content))
            if message.kind is not _Kind.PART:
                raise ConnectionError("the response of the provider ended early")
            yield message.content

    def used(self, tokens: int) -> None:
        """Do nothing: the broker counts the tokens itself."""


class RemoteProviderClient:
    """Has the interface of ``ProviderClient``, and asks a broker; for one event loop."""

    def __init__(self, connection: socket.socket) -> None:
        """Create a client.

        Args:
            connection: to the broker.
        """
        self._connection = connection
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._connecting = asyncio.Lock()
        self._arriving: dict[int, asyncio.Queue[_Message]] = {}
        self._numbers = count(1)

    @asynccontextmanager
    async def send(self, request: ProviderRequest, waits: Waits) -> AsyncIterator[RemoteResponse]:
        """Send a request as ``ProviderClient.send`` does; the broker adds the key.

        Args:
            request: the request.
            waits: receives the waits of the request.

        Raises:
            ProviderFailed: the provider does not work.
            RequestFailed: the provider does not answer this request.
            ResponseTooLarge: the provider states that its response exceeds the limit.
            ConnectionError: the response broke before it began.
        """
        writer = await self._connected()
        number = next(self._numbers)
        arriving = self._arriving[number] = asyncio.Queue()
        head = json.dumps(
            {
                "seat": request.seat,
                "provider": request.provider.name,
                "path": request.path,
                "headers": dict(request.headers),
            }
        ).encode()
        try:
            _write(writer, _Kind.SEND, number, _LENGTH.pack(len(head)) + head + request.body)
            await writer.drain()
            yield await _started(arriving, waits)
        finally:
            del self._arriving[number]
            _write(writer, _Kind.CANCEL, number, b"")

    async def close(self) -> None:
        """Close the connection."""
        if self._writer is not None:
            self._writer.close()
        if self._reading is not None:
            self._reading.cancel()

    async def _connected(self) -> asyncio.StreamWriter:
        async with self._connecting:
            if self._writer is None:
                reader, self._writer = await asyncio.open_connection(sock=self._connection)
                self._reading = asyncio.create_task(self._read(reader))
        return self._writer

    async def _read(self, reader: asyncio.StreamReader) -> None:
        with suppress(OSError, ValueError):
            while (message := await _read(reader, (1 << 32) - 1)) is not None:
                if message.number in self._arriving:
                    self._arriving[message.number].put_nowait(message)
        for number, arriving in self._arriving.items():
            arriving.put_nowait(_Message(_Kind.BROKE, number, b""))


async def _started(arriving: asyncio.Queue[_Message], waits: Waits) -> RemoteResponse:
    while True:
        message = await arriving.get()
        match message.kind:
            case _Kind.WAITED:
                _note(waits, json.loads(message.content))
            case _Kind.BEGAN:
                return RemoteResponse(json.loads(message.content), arriving)
            case _Kind.FAILED:
                raise _failure(json.loads(message.content))
            case _:
                raise ConnectionError("the provider sent no response")


def _failure(failed: dict[str, Any]) -> ProviderFailed | RequestFailed | ResponseTooLarge:
    if "bytes_max" in failed:
        return ResponseTooLarge(failed["bytes_max"])
    kind = ProviderFailed if failed["provider"] else RequestFailed
    return kind(failed["reason"], HealthCheck(**failed["check"]))


def _note(waits: Waits, event: list[Any]) -> None:
    match event:
        case ["queued", int(began_ms), int(ended_ms)]:
            waits.queued(began_ms, ended_ms)
        case ["attempt", int(began_ms)]:
            waits.attempt(began_ms)
        case _:
            waits.failed()


def _check_to_json(check: HealthCheck | None) -> dict[str, object] | None:
    return None if check is None else asdict(check)


def _write(writer: asyncio.StreamWriter, kind: _Kind, number: int, content: bytes) -> None:
    writer.write(_HEAD.pack(len(content), kind, number) + content)


async def _read(reader: asyncio.StreamReader, bytes_max: int) -> _Message | None:
    """Return the next message; None at the end.

    Raises:
        ValueError: it is too large, or of an unknown kind.
    """
    try:
        size, kind, number = _HEAD.unpack(await reader.readexactly(_HEAD.size))
        if size > bytes_max:
            raise ValueError(f"a message of {size} bytes exceeds {bytes_max}")
        return _Message(_Kind(kind), number, await reader.readexactly(size))
    except asyncio.IncompleteReadError:
        return None
