"""What is sent as it happens: answers while they are written, and events of knowledge bases.

Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeVar

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from memctl.errors import MemctlError, NotFoundError
from memctl.operations.operation_context import OperationContext
from memctl.plain_values import to_plain
from memctl.pools import event_row
from memctl.records import Hit
from memctl.schema.table_names import CONSOLIDATION
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
    refuse_query,
    reply,
)
from memctl.server.http_routes import QuestionParameters, query_options
from memctl.validation import Rule

if TYPE_CHECKING:
    from memctl.knowledge_base import KnowledgeBase
    from memctl.store.ledger.log_repositories import ProvenanceEntry
    from memctl.store.ledger.work_repositories import Job

PieceT = TypeVar("PieceT")
ResultT = TypeVar("ResultT")
_POLL_SECONDS = 0.5
_KEEP_ALIVE_POLLS = 30
_EVENT_ID = re.compile(r"[0-9]{1,18}")
_CURSOR = re.compile(r"[0-9]{1,18}\.[0-9]{1,18}\.[0-9]{1,17}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_EVENTS = 500


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
    refuse_query(request, allowed=QuestionParameters.__struct_fields__)
    parameters = check_arguments(QuestionParameters, await json_body(request), "a question")
    if not any(map(str.isalnum, parameters.question)):
        raise ShapeError("the question has no words")
    if not parameters.stream:
        found = await run(
            request,
            lambda context: context.reading().queries.ask(
                parameters.question, query_options(context, parameters)
            ),
            *kbs_of(request, parameters),
        )
        if ARROW in request.headers.get("accept", ""):
            hits = Listing(found.hits, found.total_results, record=Hit)
            return await calls_of(request).in_thread(lambda: reply(request, hits))
        return json_reply(found)
    return stream_reply(_answer(request, parameters))


async def _answer(request: Request, parameters: QuestionParameters) -> AsyncIterator[str]:
    """Yield pieces of an answer while a model writes it, then all that was found."""

    def ask(put: Callable[[str], None]) -> Awaitable[object]:
        """Ask in a thread, and hand on what comes."""

        def carry_out(context: OperationContext) -> object:
            options = replace(query_options(context, parameters), on_token=put)
            return context.reading().queries.ask(parameters.question, options)

        return run(request, carry_out, *kbs_of(request, parameters))

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
        int | None,
        Rule("Writes to pools after this number; by default those from now on.", low=0),
    ] = None
    cursor: Annotated[
        str | None, Rule("All after this place, which a reply or the id of an event says.")
    ] = None
    kbs: Annotated[
        tuple[str, ...], Rule("The one knowledge base; by default the one that is written to.")
    ] = ()
    stream: Annotated[bool, Rule("Send them as they come.")] = True


class _Cursor(Struct, frozen=True):
    """How far the events of a knowledge base were sent."""

    pools: int
    """The number of the last write to a pool."""
    files: int
    """The number of the last reading of a file."""
    jobs: datetime
    """When the last job ended."""

    @property
    def text(self) -> str:
        """The place as clients send it back."""
        return f"{self.pools}.{self.files}.{(self.jobs - _EPOCH) // timedelta(microseconds=1)}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the place that a text says.

        Raises:
            ShapeError: It says none.
        """
        if not _CURSOR.fullmatch(text):
            raise ShapeError(f"cursor is no place: {text[:60]!r}", "send one as a reply says it")
        pools, files, instant = map(int, text.split("."))
        return cls(pools, files, _EPOCH + timedelta(microseconds=instant))


_Sent = tuple[_Cursor, dict[str, Any]]
"""An event, and the place after it."""


async def _all_events(request: Request) -> Response:
    """Send what happens as it does, or say what there was: files, jobs and writes to pools."""
    query = dict(request.query_params)
    arguments: dict[str, Any] = {}
    for key, text in query.items():
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
    elif _CURSOR.fullmatch(last):
        arguments["cursor"] = last
    parameters = check_arguments(EventParameters, arguments, "GET /v1/events")

    def fetch(after: _Cursor) -> Callable[[OperationContext], list[_Sent]]:
        return lambda context: list(_events_after(context, after))

    kbs = kbs_of(request, parameters)
    if parameters.cursor is None:
        place = await run(request, lambda context: _start(context, parameters.after), *kbs)
    else:
        place = _Cursor.parse(parameters.cursor)
    found = await run(request, fetch(place), *kbs)
    wants_json = "application/json" in request.headers.get("accept", "")
    if not parameters.stream or wants_json:
        end = found[-1][0] if found else place
        rows = [row for _, row in found]
        return json_reply({"items": rows, "last": end.pools, "cursor": end.text})

    async def pieces() -> AsyncIterator[str]:
        """Yield what is there, then what is new, until the client or the server ends."""
        nonlocal place, found
        polls = 0
        yield ": listening\n\n"
        while True:
            for place, row in found:
                yield event(str(row["event"]), row, place.text)
            if await _has_ended(request, calls_of(request)):
                return
            found = await run(request, fetch(place), *kbs)
            polls += 1
            if polls % _KEEP_ALIVE_POLLS == 0:
                yield ": still here\n\n"

    return stream_reply(pieces())


async def _has_ended(request: Request, calls: Calls) -> bool:
    """Wait a while, and tell whether the client has gone or the server is to stop."""
    await asyncio.sleep(_POLL_SECONDS)
    return calls.closing.is_set() or await request.is_disconnected()


def _start(context: OperationContext, after: int | None) -> _Cursor:
    """Return the place after a write to a pool; by default after all there is."""
    base = context.reading_existing()
    pools = base.pools.acting_as().last_event() if after is None else after
    return _Cursor(pools, base.store.ledger.provenance.last_id(), context.now)


def _events_after(context: OperationContext, place: _Cursor) -> Iterator[_Sent]:
    """Yield the events after a place; who is limited to some of memory gets those of pools."""
    base = context.reading_existing()
    ledger = base.store.ledger
    readable = {pool.pool_id for pool in base.pools.acting_as().list()}
    writes = [each for each in ledger.pools.events.after(place.pools) if each.pool_id in readable]
    for each in writes[:_MAX_EVENTS]:
        place = replace(place, pools=each.id)
        yield place, to_plain(event_row(base.name, each))
    if context.identity.user is not None or context.allowed_tools is not None:
        return
    for number, entry in ledger.provenance.after(place.files, _MAX_EVENTS):
        place = replace(place, files=number)
        if _is_open(context, base, entry.document_id):
            yield place, to_plain(_file_row(base.name, entry))
    for job in ledger.jobs.finished_after(place.jobs, _MAX_EVENTS):
        place = replace(place, jobs=job.finished_at)
        yield place, to_plain(_job_row(base.name, job))


def _is_open(context: OperationContext, base: KnowledgeBase, document_id: str | None) -> bool:
    """Return whether a file may be named: not where its namespace is, or may be, private."""
    if not base.settings.private_namespaces:
        return True
    with suppress(NotFoundError):
        if document_id is not None:
            return context.reads(base, base.documents.get(document_id).document.namespace)
    return False


def _file_row(kb: str, entry: ProvenanceEntry) -> dict[str, Any]:
    return {
        "event": entry.outcome,
        "kb": kb,
        "at": entry.decided_at,
        "source": entry.path,
        "document_id": entry.document_id,
        "memories": entry.memories,
        "message": entry.reason,
        "hint": entry.hint,
    }


def _job_row(kb: str, job: Job) -> dict[str, Any]:
    done = "consolidated" if job.kind == CONSOLIDATION else "upkeep"
    return {
        "event": "failed" if job.state in ("failed", "abandoned") else done,
        "kb": kb,
        "at": job.finished_at,
        "job": job.id,
        "kind": job.kind,
        "state": job.state,
        "detail": {name: count for name, count in job.detail.items() if type(count) is int},
        "message": str(job.detail.get("error", "")),
        "hint": str(job.detail.get("hint", "")),
    }
