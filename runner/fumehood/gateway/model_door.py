"""One seat's models: an ASGI application below ``/v1``.

A request is parsed to know its model and its bounds, and passed on as the bytes it came in. An answer is
passed on as it comes, while its costs are read in passing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from fumehood.core.ledger import BudgetKind, Exhausted, Reservation
from fumehood.core.trace import ModelCalled, ModelExchange
from fumehood.gateway.budget_port import BudgetPort
from fumehood.gateway.cassette import SeatCassette, request_key
from fumehood.gateway.costs import BadBound, amounts, believed, fewest_tokens, most_tokens
from fumehood.gateway.memory_quota import BodyRoom, Held
from fumehood.gateway.provider_client import ProviderClient, ProviderFailed
from fumehood.gateway.provider_delay import LostTime
from fumehood.gateway.question import Question, read_question
from fumehood.gateway.reading import AnswerReader
from fumehood.gateway.refusals import ModelRefusal, refuse
from fumehood.gateway.settings import GatewaySettings, ModelsMode, Price, Provider
from fumehood.gateway.streaming_response import Passing

T = TypeVar("T")

BROKEN_OFF_STATUS = 499
"""Written down where an agent, or the service, went away before there was an answer."""


@dataclass(frozen=True, slots=True)
class _Admitted:
    """A question whose answer is paid for."""

    question: Question
    key: str
    occurrence: int
    price: Price | None
    tokens: tuple[int, int]
    """Reserved for the request and for the answer."""
    reservation: Reservation


class ModelDoor:
    """Answers for one seat."""

    def __init__(
        self,
        settings: GatewaySettings,
        provider_client: ProviderClient,
        budget_port: BudgetPort,
        exchanges: Sequence[ModelExchange],
        threads: Executor,
    ) -> None:
        self._settings = settings
        self._provider_client = provider_client
        self._purse = budget_port
        self._cassette = SeatCassette(budget_port.name, exchanges)
        self._threads = threads
        self._room = BodyRoom(2 * settings.body_bytes_max)
        self._lost_time = LostTime()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope, receive)
        async with AsyncExitStack() as stack:
            held = stack.enter_context(self._room.hold())
            response = await self._answer(request, held, stack)
            await response(scope, receive, send)

    async def _answer(self, request: Request, held: Held, stack: AsyncExitStack) -> Response:
        if request.scope["path"] == "/v1/models" and request.method == "GET":
            return self._list_models()
        question = await read_question(request, self._settings.body_bytes_max, held)
        if isinstance(question, Response):
            return question
        replays = self._settings.mode is ModelsMode.REPLAY
        provider = self._settings.provider_of(question.model)
        if provider is None and not replays:
            return refuse(ModelRefusal.UNKNOWN_MODEL, f"no provider has the model {question.model}")
        call = await self._admit(question)
        if isinstance(call, Response):
            return call
        if provider is None or replays:
            return await self._play_back(call)
        return await self._pass_on(call, provider, request, stack)

    def _list_models(self) -> Response:
        names = [name for one in self._settings.providers for name in one.models if "*" not in name]
        listed = [
            {"id": name, "object": "model", "created": 0, "owned_by": "provider"} for name in names
        ]
        return JSONResponse({"object": "list", "data": listed})

    async def _admit(self, question: Question) -> _Admitted | Response:
        model = question.model
        price = self._settings.price_of(model)
        default = self._settings.output_tokens_max
        try:
            tokens = most_tokens(question.parsed, len(question.body), question.dialect, default)
        except BadBound as error:
            return refuse(ModelRefusal.MALFORMED, str(error))
        if price is None and self._purse.bounds(BudgetKind.MODEL_MICROUSD):
            return refuse(
                ModelRefusal.NO_PRICE, f"money is bounded, and nobody knows what {model} costs"
            )
        granted = await self._off_loop(lambda: self._purse.reserve(amounts(*tokens, price)))
        if granted is None:
            return refuse(ModelRefusal.ENDED, "the work has ended")
        if isinstance(granted, Exhausted):
            left = granted.limit - granted.spent
            return refuse(
                ModelRefusal.OUT_OF_BUDGET, f"{granted.kind.value}: {left} of {granted.limit} left"
            )
        key = request_key(question.path, question.parsed)
        return _Admitted(question, key, self._cassette.count(key), price, tokens, granted)

    async def _pass_on(
        self, call: _Admitted, provider: Provider, request: Request, stack: AsyncExitStack
    ) -> Response:
        question = call.question
        asking = self._provider_client.ask(
            provider,
            question.path,
            question.body,
            dict(request.headers),
            question.dialect.key_header(provider.key),
            named=self._settings.names(question.model),
        )
        try:
            asked = await stack.enter_async_context(asking)
        except ProviderFailed as error:
            await self._settle_unanswered(call, ModelRefusal.NOT_AVAILABLE.value, spent=(0, 0))
            self._purse.break_off(str(error))
            return refuse(ModelRefusal.NOT_AVAILABLE, "no provider can be asked")
        except BaseException:
            # Hung up on, or a mistake of ours: nobody knows what it has cost, and nothing stays reserved.
            await asyncio.shield(
                self._settle_unanswered(call, BROKEN_OFF_STATUS, spent=call.tokens)
            )
            raise
        status, content_type = (
            asked.response.status_code,
            asked.response.headers.get("content-type", ""),
        )
        reader = self._reader(call, content_type)
        passing = Passing(
            asked, reader, lambda whole: self._finish(call, status, reader, whole=whole)
        )
        # Also where nobody is left to whom it could pass.
        stack.push_async_callback(passing.end)
        self._give_back(asked.lost_ms)
        headers = {"content-type": content_type} if content_type else {}
        return StreamingResponse(passing.parts(), status, headers)

    def _give_back(self, lost_ms: tuple[int, int]) -> None:
        granted_ms = self._lost_time.add(*lost_ms) if lost_ms[1] > lost_ms[0] else 0
        if granted_ms:
            self._purse.grant(granted_ms)

    async def _play_back(self, call: _Admitted) -> Response:
        known = self._cassette.find(call.key, call.occurrence)
        if known is None:
            return await self._miss(call)
        reader = self._reader(call, known.content_type)
        reader.take(known.response)
        await self._finish(call, known.status, reader, whole=True)
        return Response(known.response, known.status, {"content-type": known.content_type})

    async def _miss(self, call: _Admitted) -> Response:
        await self._settle_unanswered(call, ModelRefusal.NOT_RECORDED.value, spent=(0, 0))
        if self._settings.names(call.question.model):
            asked = f"request {call.key[:16]} when it is asked for time {call.occurrence}"
            self._purse.break_off(f"the cassette has no answer to {asked}")
        return refuse(ModelRefusal.NOT_RECORDED, "nothing was recorded that answers this request")

    def _reader(self, call: _Admitted, content_type: str) -> AnswerReader:
        keep = self._settings.mode is ModelsMode.RECORD
        return AnswerReader(content_type, call.question.dialect.usage, keep=keep)

    async def _finish(
        self, call: _Admitted, status: int, reader: AnswerReader, *, whole: bool
    ) -> None:
        reader.close()
        if status >= 400:
            spent = (0, 0)
        elif whole:
            spent = believed(reader.usage, call.tokens, self._fewest(call.question, reader))
        else:
            spent = call.tokens
        await self._settle(call, status, reader, spent=spent)
        if self._settings.mode is ModelsMode.RECORD:
            self._purse.keep(
                ModelExchange(
                    seat=self._purse.name,
                    key=call.key,
                    occurrence=call.occurrence,
                    request=call.question.body,
                    status=status,
                    content_type=reader.content_type,
                    response=reader.body,
                )
            )

    def _fewest(self, asked: Question, reader: AnswerReader) -> tuple[int, int]:
        size_bytes = len(asked.body)
        return fewest_tokens(
            asked.parsed, size_bytes, reader.size_bytes, asked.dialect, streamed=reader.streams
        )

    async def _settle_unanswered(
        self, call: _Admitted, status: int, *, spent: tuple[int, int]
    ) -> None:
        await self._settle(call, status, self._reader(call, ""), spent=spent)

    async def _settle(
        self, call: _Admitted, status: int, reader: AnswerReader, *, spent: tuple[int, int]
    ) -> None:
        actual = amounts(*spent, call.price)
        event = ModelCalled(
            seat=self._purse.name,
            model=call.question.model,
            request=call.key,
            status=status,
            response=reader.digest,
            spent={kind.value: amount for kind, amount in actual.items()},
        )
        await self._off_loop(lambda: self._purse.settle(call.reservation, event, actual))

    async def _off_loop(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)
