"""The gateway: reserves the cost of a model request, sends it to a provider, and charges it.

A provider gets a request that this package wrote. The response is passed on as it arrives, and its
reported usage is read.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from fumehood.core.json_values import JsonObject
from fumehood.core.ledger import Amounts, BudgetKind, Exhausted, Reservation
from fumehood.core.outcome import ModelProblem
from fumehood.core.trace import (
    ModelCalled,
    ModelExchange,
    ModelProblemNoted,
    ModelRefused,
    ProviderChecked,
)
from fumehood.gateway.bounds import RequestOrder
from fumehood.gateway.costs import (
    BYTES_PER_TOKEN,
    COST_KINDS,
    amounts,
    reserved_tokens,
)
from fumehood.gateway.health_check import HealthCheck
from fumehood.gateway.provider_client import (
    ProviderFailed,
    ProviderRequest,
    RequestFailed,
    ResponseTooLarge,
    SendsRequests,
    StartedResponse,
)
from fumehood.gateway.requests import (
    REQUESTS_MAX,
    ModelRefusal,
    ModelRequest,
    Refused,
    RequestMemory,
    RequestReader,
    SeatCassette,
    check_request,
    refuse,
)
from fumehood.gateway.responses import (
    PassedResponse,
    ResponseReader,
    read_response,
    spent_tokens,
)
from fumehood.gateway.settings import GatewaySettings, ModelsMode, Price, Provider
from fumehood.gateway.waiting import Activity, WaitCredit

T = TypeVar("T")

KEPT_BYTES_MAX = 64 * 1024 * 1024
"""Stored requests and responses of one seat, unless the run is recorded."""
TOO_LARGE_REASON = "response_too_large"
"""Reason in the event of a request whose response exceeds the limit."""
DISCONNECTED_STATUS = 499
"""Recorded status if the agent or the service disconnected before a response began."""


class BudgetPort(Protocol):
    """The budget of one seat; the service implements it.

    Safe to use from several threads; never blocks long.
    """

    name: str
    """Name of the seat."""
    episode: str
    """The same for all seats of one episode, and for no other one."""

    def has_limit(self, kind: BudgetKind) -> bool:
        """Return whether the budget limits this kind."""
        ...

    def reserve(self, amounts: Amounts) -> Reservation | Exhausted | None:
        """Reserve the cost of a request; None if the work has ended."""
        ...

    @property
    def is_monitored(self) -> bool:
        """Whether monitors decide about the requests."""
        ...

    def review(
        self, model: str, request: JsonObject, answered: tuple[int, JsonObject] | None = None
    ) -> tuple[int, JsonObject] | None:
        """Ask the monitors about a request, before it is sent or after its response.

        Args:
            model: name of the model.
            request: body of the request.
            answered: number of the request, and the response; None before it is sent.

        Returns:
            The number and the decision, as of ``Seat.review``; None if the work has ended.
        """
        ...

    def settle(self, reservation: Reservation, event: ModelCalled, actual: Amounts) -> None:
        """Charge the actual cost of a request, and record the request."""
        ...

    def note(self, event: ModelRefused | ModelProblemNoted | ProviderChecked) -> None:
        """Record a problem with a request, unless the trace has too many of them."""
        ...

    def activity(self) -> Activity:
        """Return the messages of the seat that are not model requests."""
        ...

    def grant(self, granted_ms: int) -> None:
        """Extend the wall time by a delay that the infrastructure caused."""
        ...

    def keep(self, exchange: ModelExchange) -> None:
        """Store an exchange in the cassette."""
        ...

    def end_episode(self, reason: str) -> None:
        """End the episode: no provider can be reached, which is not a failure of the agent."""
        ...


class Gateway:
    """The gateway of one service; all seats use one event loop."""

    def __init__(self, settings: GatewaySettings, provider_client: SendsRequests) -> None:
        """Create a gateway, without opening a connection.

        Args:
            settings: of the run.
            provider_client: sends the requests.
        """
        self._settings = settings
        self._provider_client = provider_client

    def endpoint(
        self, budget: BudgetPort, exchanges: Sequence[ModelExchange], threads: Executor
    ) -> ModelEndpoint:
        """Return the ASGI application of one seat.

        Args:
            budget: pays for the requests.
            exchanges: recorded exchanges, if models are replayed.
            threads: run the calls of ``budget``.
        """
        return ModelEndpoint(self._settings, self._provider_client, budget, exchanges, threads)

    async def close(self) -> None:
        """Close the connections to all providers."""
        await self._provider_client.close()


@dataclass(frozen=True, slots=True)
class _Admitted:
    """A request whose cost is reserved."""

    model_request: ModelRequest
    occurrence: int
    price: Price | None
    reservation: Reservation
    began_ns: int
    """When it was admitted, on the monotonic clock."""

    @property
    def tokens(self) -> tuple[int, int]:
        """Largest possible numbers of tokens of the request and of its response."""
        return self.model_request.tokens_max


class ModelEndpoint:
    """The ASGI application of one seat, below ``/v1``."""

    def __init__(
        self,
        settings: GatewaySettings,
        provider_client: SendsRequests,
        budget: BudgetPort,
        exchanges: Sequence[ModelExchange],
        threads: Executor,
    ) -> None:
        self._settings = settings
        self._provider_client = provider_client
        self._budget = budget
        self._cassette = SeatCassette(budget.name, exchanges)
        self._threads = threads
        self._requests = RequestReader(settings, threads)
        self._records = settings.mode is ModelsMode.RECORD
        self._kept_bytes = 0
        self._open_requests = 0
        self._order = RequestOrder()
        self._credit = WaitCredit(budget.activity, budget.grant)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope, receive)
        self._open_requests += 1
        try:
            async with AsyncExitStack() as stack:
                memory = stack.enter_context(self._requests.hold_memory())
                response = await self._answer(request, memory, stack)
                await response(scope, receive, send)
        finally:
            self._open_requests -= 1

    async def _answer(
        self, request: Request, memory: RequestMemory, stack: AsyncExitStack
    ) -> Response:
        if request.scope["path"] == "/v1/models" and request.method == "GET":
            return self._list_models()
        try:
            if self._open_requests > REQUESTS_MAX:
                message = f"a seat has at most {REQUESTS_MAX} open requests"
                raise Refused(ModelRefusal.TOO_LARGE, message)
            model_request = await self._requests.read(request, memory)
        except Refused as refused:
            return await self._refuse(refused)
        if any(map(self._budget.has_limit, COST_KINDS)):
            entering = self._order.enter(model_request.kind, is_bounded=model_request.is_bounded)
            await stack.enter_async_context(entering)
        call = await self._admit(model_request)
        if isinstance(call, Response):
            return call
        if not self._budget.is_monitored:
            return await self._respond(call, stack)
        reviewed = await self._review_request(call)
        if isinstance(reviewed, Response):
            return reviewed
        number, call = reviewed
        return await self._review_response(number, call, await self._respond(call, stack))

    async def _respond(self, call: _Admitted, stack: AsyncExitStack) -> Response:
        provider = self._settings.provider_of(call.model_request.model)
        if provider is None or self._settings.mode is ModelsMode.REPLAY:
            return await self._replay(call)
        return await self._forward(call, provider, stack)

    async def _review_request(self, call: _Admitted) -> tuple[int, _Admitted] | Response:
        """Ask the monitors before a request is sent; return it as they sent it on."""
        request = call.model_request
        body: JsonObject = json.loads(request.body)
        try:
            reviewed = await self._off_loop(lambda: self._budget.review(request.model, body))
            refused = _refused_by_monitor(reviewed)
        except BaseException:
            await asyncio.shield(
                self._settle_without_response(call, DISCONNECTED_STATUS, spent=(0, 0))
            )
            raise
        if reviewed is None or refused is not None:
            response = refused or refuse(ModelRefusal.ENDED, "your work has ended")
            await self._settle_without_response(call, response.status_code, spent=(0, 0))
            return response
        number, decision = reviewed
        if "arguments" not in decision:
            return number, call
        try:
            return number, await self._replaced(call, json.dumps(decision["arguments"]).encode())
        except Refused as error:
            response = refuse(ModelRefusal.REFUSED_BY_MONITOR, f"changed by a monitor: {error}")
            await self._settle_without_response(call, response.status_code, spent=(0, 0))
            return response

    async def _replaced(self, call: _Admitted, body: bytes) -> _Admitted:
        """Return a call with another body, and reserve what that may cost more.

        Raises:
            Refused: the gateway does not send the other body, or the budget does not allow it.
        """
        before, reserved = call.model_request, call.reservation.amounts
        request = check_request(self._settings, before.path, body, before.headers)
        if request.model != before.model:
            raise Refused(ModelRefusal.MALFORMED, "it has another model")
        tokens = reserved_tokens(request.tokens_max, request.has_tools)
        needed = amounts(*tokens, call.price, request.answers)
        more = {kind: max(0, needed[kind] - reserved.get(kind, 0)) for kind in needed}
        granted = await self._off_loop(lambda: self._budget.reserve(more))
        if not isinstance(granted, Reservation):
            raise Refused(ModelRefusal.OUT_OF_BUDGET, "the budget does not allow it")
        total = {kind: reserved.get(kind, 0) + more[kind] for kind in needed}
        return replace(
            call,
            model_request=request,
            occurrence=self._cassette.count(request.key),
            reservation=Reservation(total),
        )

    async def _review_response(self, number: int, call: _Admitted, response: Response) -> Response:
        """Ask the monitors about a response before the agent gets any of it."""
        if isinstance(response, StreamingResponse):
            # Also if the monitors refuse it: the provider was asked, so its cost is charged.
            body = bytearray()
            try:
                async for part in response.body_iterator:
                    body += part if isinstance(part, bytes) else str(part).encode()
            except ResponseTooLarge as error:
                return refuse(ModelRefusal.REQUEST_FAILED, str(error))
            media_type = response.headers.get("content-type")
            response = Response(bytes(body), response.status_code, media_type=media_type)
        request = call.model_request
        output = read_response(bytes(response.body), response.status_code)
        sent: JsonObject = json.loads(request.body)
        reviewed = await self._off_loop(
            lambda: self._budget.review(request.model, sent, (number, output))
        )
        if reviewed is None:
            return refuse(ModelRefusal.ENDED, "your work has ended")
        replaced = reviewed[1].get("output")
        if isinstance(replaced, dict):
            return JSONResponse(replaced.get("body", replaced), response.status_code)
        return _refused_by_monitor(reviewed) or response

    async def _refuse(self, refused: Refused) -> Response:
        event = ModelRefused(
            seat=self._budget.name,
            reason=refused.kind.name.lower(),
            needs=dict(refused.needs),
        )
        await self._off_loop(lambda: self._budget.note(event))
        return refuse(refused.kind, str(refused))

    def _list_models(self) -> Response:
        names = [
            name
            for provider in self._settings.providers
            for name in provider.models
            if "*" not in name
        ]
        listed = [
            {"id": name, "object": "model", "created": 0, "owned_by": "provider"} for name in names
        ]
        return JSONResponse({"object": "list", "data": listed})

    async def _admit(self, model_request: ModelRequest) -> _Admitted | Response:
        model = model_request.model
        price = self._settings.price_of(model)
        if price is None and self._budget.has_limit(BudgetKind.MODEL_MICROUSD):
            return refuse(
                ModelRefusal.NO_PRICE, f"the budget limits the price, and {model} has no price"
            )
        tokens = reserved_tokens(model_request.tokens_max, model_request.has_tools)
        to_reserve = amounts(*tokens, price, model_request.answers)
        reservation = await self._off_loop(lambda: self._budget.reserve(to_reserve))
        if reservation is None:
            return refuse(ModelRefusal.ENDED, "your work has ended")
        if isinstance(reservation, Exhausted):
            left = reservation.limit - reservation.spent
            return refuse(
                ModelRefusal.OUT_OF_BUDGET,
                f"the request may need {to_reserve[reservation.kind]} {reservation.kind.unit}, "
                f"more than the {left} left of {reservation.limit}",
            )
        occurrence = self._cassette.count(model_request.key)
        return _Admitted(model_request, occurrence, price, reservation, time.monotonic_ns())

    async def _forward(
        self, call: _Admitted, provider: Provider, stack: AsyncExitStack
    ) -> Response:
        model_request = call.model_request
        waits = _SeatWaits(self._credit)
        stack.callback(waits.ended)
        sending = self._provider_client.send(
            ProviderRequest(
                provider=provider,
                path=model_request.path,
                model=model_request.model,
                body=model_request.body,
                headers=model_request.headers,
                episode=self._budget.episode,
                seat=self._budget.name,
                tokens=model_request.size_bytes // BYTES_PER_TOKEN + model_request.tokens_max[1],
            ),
            waits,
        )
        try:
            started = await stack.enter_async_context(sending)
        except (ProviderFailed, RequestFailed) as error:
            return await self._fail(call, error)
        except ResponseTooLarge as error:
            kind = ModelRefusal.REQUEST_FAILED
            await self._settle_without_response(call, kind.value, spent=call.tokens)
            await self._note_too_large()
            return refuse(kind, str(error))
        except BaseException:
            # The agent disconnected, or this code has a bug. The cost is unknown, so charge the
            # reservation.
            await asyncio.shield(
                self._settle_without_response(call, DISCONNECTED_STATUS, spent=call.tokens)
            )
            raise
        if started.check is not None:
            await self._note_check(started.check)
        reader = self._reader(call, started.content_type)
        passing = PassedResponse(
            started, reader, lambda whole: self._finish(call, reader, started, whole=whole)
        )
        # Also if the agent has disconnected.
        stack.push_async_callback(passing.end)
        waits.delayed(*started.delay_ms)
        headers = {"content-type": started.content_type} if started.content_type else {}
        return StreamingResponse(self._parts(passing), started.status, headers)

    async def _parts(self, passing: PassedResponse) -> AsyncIterator[bytes]:
        try:
            async for part in passing.parts():
                yield part
        except ResponseTooLarge:
            await self._note_too_large()
            raise

    async def _note_too_large(self) -> None:
        event = ModelRefused(seat=self._budget.name, reason=TOO_LARGE_REASON)
        await self._off_loop(lambda: self._budget.note(event))

    async def _fail(self, call: _Admitted, error: ProviderFailed | RequestFailed) -> Response:
        is_infra = isinstance(error, ProviderFailed)
        kind = ModelRefusal.NOT_AVAILABLE if is_infra else ModelRefusal.REQUEST_FAILED
        await self._settle_without_response(call, kind.value, spent=(0, 0))
        await self._note_check(error.check)
        if is_infra:
            self._budget.end_episode(str(error))
            return refuse(kind, "the model provider cannot be reached")
        return refuse(kind, f"the model provider does not answer this request: {error}")

    async def _note_check(self, check: HealthCheck) -> None:
        event = ProviderChecked(
            seat=self._budget.name,
            provider=check.provider,
            model=check.model,
            result=check.result,
            failed=check.failed,
        )
        await self._off_loop(lambda: self._budget.note(event))

    async def _note_problem(self, problem: ModelProblem) -> None:
        event = ModelProblemNoted(self._budget.name, problem, "gateway")
        await self._off_loop(lambda: self._budget.note(event))

    async def _replay(self, call: _Admitted) -> Response:
        exchange = self._cassette.find(call.model_request.key, call.occurrence)
        if exchange is None:
            return await self._not_recorded(call)
        reader = self._reader(call, exchange.content_type)
        reader.take(exchange.response)
        await self._finish(call, reader, exchange, whole=True)
        return Response(exchange.response, exchange.status, {"content-type": exchange.content_type})

    async def _not_recorded(self, call: _Admitted) -> Response:
        await self._settle_without_response(call, ModelRefusal.NOT_RECORDED.value, spent=(0, 0))
        return refuse(ModelRefusal.NOT_RECORDED, "the cassette has no response to this request")

    def _reader(self, call: _Admitted, content_type: str) -> ResponseReader:
        keep = self._records or self._settings.keeps_bodies
        return ResponseReader(content_type, call.model_request.dialect, keep=keep)

    async def _finish(
        self,
        call: _Admitted,
        reader: ResponseReader,
        response: StartedResponse | ModelExchange,
        *,
        whole: bool,
    ) -> None:
        reader.close()
        status = response.status
        spent = spent_tokens(call.model_request, reader, status, whole=whole)
        await self._settle(call, status, reader, spent=spent)
        for problem in reader.problems(status, whole=whole):
            await self._note_problem(problem)
        reserved = reserved_tokens(call.tokens, call.model_request.has_tools)
        self._order.report(
            call.model_request.kind,
            answered=whole and status == 200,
            overrun=sum(spent) > sum(reserved),
        )
        # Of a response without an end, only the estimate is known.
        if whole and isinstance(response, StartedResponse):
            response.used(sum(spent))
        size_bytes = len(call.model_request.body) + len(reader.body)
        if self._may_keep(size_bytes):
            self._budget.keep(
                ModelExchange(
                    seat=self._budget.name,
                    key=call.model_request.key,
                    occurrence=call.occurrence,
                    request=call.model_request.body,
                    status=status,
                    content_type=reader.content_type,
                    response=reader.body,
                )
            )

    def _may_keep(self, size_bytes: int) -> bool:
        """Return whether an exchange is stored; an agent must not fill the memory of the host."""
        if not self._records:
            fits = self._kept_bytes + size_bytes <= KEPT_BYTES_MAX
            if not (self._settings.keeps_bodies and fits):
                return False
        self._kept_bytes += size_bytes
        return True

    async def _settle_without_response(
        self, call: _Admitted, status: int, *, spent: tuple[int, int]
    ) -> None:
        await self._settle(call, status, self._reader(call, ""), spent=spent)

    async def _settle(
        self, call: _Admitted, status: int, reader: ResponseReader, *, spent: tuple[int, int]
    ) -> None:
        actual = amounts(*spent, call.price, call.model_request.answers)
        event = ModelCalled(
            seat=self._budget.name,
            model=call.model_request.model,
            request=call.model_request.key,
            status=status,
            response=reader.digest,
            finish_reason=reader.finish_reason,
            reported=reader.usage.to_json(),
            spent={kind.value: amount for kind, amount in actual.items()},
            duration_ns=time.monotonic_ns() - call.began_ns,
        )
        await self._off_loop(lambda: self._budget.settle(call.reservation, event, actual))

    async def _off_loop(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def _refused_by_monitor(reviewed: tuple[int, JsonObject] | None) -> Response | None:
    if reviewed is None or reviewed[1]["action"] in ("allow", "modify"):
        return None
    message = str(reviewed[1]["message"]) or "a monitor refused this request"
    return refuse(ModelRefusal.REFUSED_BY_MONITOR, message)


class _SeatWaits:
    """Credits the waits of one request to its seat."""

    def __init__(self, credit: WaitCredit) -> None:
        self._credit = credit
        self._at_beginning = credit.begin()

    def queued(self, began_ms: int, ended_ms: int) -> None:
        """Credit a wait for the provider's queue."""
        self._credit.wait(self._at_beginning, began_ms, ended_ms)

    def attempt(self, began_ms: int) -> None:
        """Note the attempt."""
        self._credit.attempt(self, began_ms)

    def failed(self) -> None:
        """Note that the attempt is repeated."""
        self._credit.failed(self)

    def delayed(self, began_ms: int, ended_ms: int) -> None:
        """Credit the delay by retries."""
        self._credit.wait(self._at_beginning, began_ms, ended_ms)

    def ended(self) -> None:
        """Note the end of the response."""
        self._credit.ended(self)
