"""What is sent as it happens: answers while they are written, and events of knowledge bases.

Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Annotated, Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from memctl.errors import MemctlError
from memctl.operations.operation_context import OperationContext
from memctl.plain_values import to_plain
from memctl.server.http_access import error_body
from memctl.server.http_calls import (
    Calls,
    ShapeError,
    calls_of,
    json_body,
    json_reply,
    run,
)
from memctl.server.http_endpoints import (
    ARROW,
    Listing,
    check_arguments,
    convert_argument,
    kbs_of,
    reply,
)
from memctl.server.http_routes import QuestionParameters, query_options
from memctl.validation import Rule

PieceT = TypeVar("PieceT")
ResultT = TypeVar("ResultT")
_POLL_SECONDS = 0.5
_KEEP_ALIVE_POLLS = 30
_EVENT_ID = re.compile(r"\d{1,18}")
_MOST_EVENTS = 500


def stream_routes() -> Sequence[BaseRoute]:
    """Return the routes of questions and events."""
    return (
        Route("/v1/query", _query, methods=["POST"]),
        Route("/v1/events", _all_events, methods=["GET"]),
    )


def event(name: str, data: object, id_: object = None) -> str:
    """Return one event as it is sent."""
    encoded = json.dumps(to_plain(data), allow_nan=False)
    number = "" if id_ is None else f"id: {id_}\n"
    return f"{number}event: {name}\ndata: {encoded}\n\n"


def stream_reply(pieces: AsyncIterator[str]) -> Response:
    """Return a streaming reply."""
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(pieces, 200, headers, "text/event-stream")


def start_in_pieces(
    work: Callable[[Callable[[PieceT], None]], Awaitable[ResultT]],
) -> tuple[AsyncIterator[PieceT], asyncio.Future[ResultT]]:
    """Start work that hands on pieces from a thread; return them as they come, and its result."""
    loop, waiting = asyncio.get_running_loop(), asyncio.Queue[PieceT | None]()

    def put(piece: PieceT | None) -> None:
        with suppress(RuntimeError):  # the loop is closed: there is no reader any more
            loop.call_soon_threadsafe(waiting.put_nowait, piece)

    async def pieces() -> AsyncIterator[PieceT]:
        """Yield what there is until the work ends."""
        while (piece := await waiting.get()) is not None:
            yield piece

    result = asyncio.ensure_future(work(put))
    result.add_done_callback(lambda _: put(None))
    return pieces(), result


# --- answers --------------------------------------------------------------------------------------


async def _query(request: Request) -> Response:
    asked = check_arguments(QuestionParameters, await json_body(request), "a question")
    if not any(map(str.isalnum, asked.question)):
        raise ShapeError("the question has no words")
    if not asked.stream:
        found = await run(
            request,
            lambda context: context.reading().queries.ask(
                asked.question, query_options(context, asked)
            ),
            *kbs_of(request, asked),
        )
        if ARROW in request.headers.get("accept", ""):
            hits = Listing(found.hits, found.total_results)
            return await calls_of(request).in_thread(lambda: reply(request, hits))
        return json_reply(found)
    return stream_reply(_answer(request, asked))


async def _answer(request: Request, asked: QuestionParameters) -> AsyncIterator[str]:
    """Yield pieces of an answer while a model writes it, then all that was found."""

    def ask(put: Callable[[str], None]) -> Awaitable[object]:
        """Ask in a thread, and hand on what comes."""

        def carry_out(context: OperationContext) -> object:
            options = replace(query_options(context, asked), on_token=put)
            return context.reading().queries.ask(asked.question, options)

        return run(request, carry_out, *kbs_of(request, asked))

    pieces, result = start_in_pieces(ask)
    async for piece in pieces:
        if piece:
            yield event("token", {"text": piece})
    try:
        yield event("result", await result)
    except MemctlError as error:
        yield event("error", error_body(error.message, error.hint, error.exit_code))


# --- events of knowledge bases --------------------------------------------------------------------


class EventParameters(Struct, frozen=True, kw_only=True):
    """Which events."""

    after: Annotated[
        int | None, Rule("Those after this number; by default those from now on.", low=0)
    ] = None
    kbs: Annotated[
        tuple[str, ...], Rule("The one knowledge base; by default the one that is written to.")
    ] = ()
    stream: Annotated[bool, Rule("Send them as they come.")] = True


async def _all_events(request: Request) -> Response:
    """Send bulletins and other writes to pools as they come, or say which there were."""
    given = dict(request.query_params)
    arguments: dict[str, Any] = {}
    for key, text in given.items():
        if key == "kbs":
            arguments[key] = request.query_params.getlist(key)
        elif key == "after":
            arguments[key] = int(text) if _EVENT_ID.fullmatch(text) else text
        elif key == "stream":
            arguments[key] = convert_argument(text, "boolean")
        else:
            arguments[key] = text
    last = request.headers.get("last-event-id", "")
    if _EVENT_ID.fullmatch(last):
        arguments["after"] = int(last)
    asked = check_arguments(EventParameters, arguments, "GET /v1/events")

    def fetch(after: int | None) -> Callable[[OperationContext], tuple[int, list[dict[str, Any]]]]:
        return lambda context: _events_after(context, after)

    after, found = await run(request, fetch(asked.after), *asked.kbs)
    wants_json = "application/json" in request.headers.get("accept", "")
    if not asked.stream or wants_json:
        return json_reply({"items": found, "last": after})

    async def pieces() -> AsyncIterator[str]:
        """Yield what is there, then what is new, until the client or the server ends."""
        nonlocal after, found
        polls = 0
        yield ": listening\n\n"
        while True:
            for each in found:
                yield event(str(each["event"]), each, each["id"])
            if await _has_ended(request, calls_of(request)):
                return
            after, found = await run(request, fetch(after), *asked.kbs)
            polls += 1
            if polls % _KEEP_ALIVE_POLLS == 0:
                yield ": still here\n\n"

    return stream_reply(pieces())


async def _has_ended(request: Request, calls: Calls) -> bool:
    """Wait a while, and tell whether the client has gone or the server is to stop."""
    await asyncio.sleep(_POLL_SECONDS)
    return calls.closing.is_set() or await request.is_disconnected()


def _events_after(context: OperationContext, after: int | None) -> tuple[int, list[dict[str, Any]]]:
    """Return the number of the latest event, and those after one."""
    from memctl.pools import event_row

    base = context.reading_existing()
    pools = base.pools.acting_as()
    last = pools.last_event()
    if after is None:
        return last, []
    readable = {pool.pool_id for pool in pools.list()}
    found = [
        each
        for each in base.store.ledger.pools.events.after(after)
        if each.pool_id in readable and each.id is not None
    ][:_MOST_EVENTS]
    rows = [to_plain(event_row(base.name, each)) for each in found]
    return max([after, *(row["id"] for row in rows)]), rows
