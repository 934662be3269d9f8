"""Carries out requests in threads, for a user and on knowledge bases; errors become replies.

Knows how a request names its user and how an error is written, never what a request does.
"""

from __future__ import annotations

import asyncio
import json
import logging
import multiprocessing
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Match, Route

from memctl import errors
from memctl.errors import KnowledgeBaseNotFound, MemctlError, OverLimit, UsageError
from memctl.identity import DEFAULT_USER
from memctl.operations.operation_context import OperationContext, Unavailable
from memctl.operations.registry import Effect
from memctl.plain_values import NoJsonNumber, parse_json, to_plain
from memctl.server.http_access import error_reply

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.config import Config
    from memctl.home import Home, KnowledgeBaseEntry

T = TypeVar("T")
USER_HEADER, AGENT_HEADER, SESSION_HEADER = "x-memctl-user", "x-memctl-agent", "x-memctl-session"
_WORKERS = 8
_MAX_IDLE = 16
_MAX_SQL_BYTES = 32 << 20
_RETRY_SECONDS = "2"
_log = logging.getLogger(__name__)


class ShapeError(UsageError):
    """What was sent is JSON of the wrong shape."""


class ReadOnly(MemctlError):
    """The server was started read-only."""


_STATUS: Mapping[type[MemctlError], int] = {
    ShapeError: 422,
    ReadOnly: 403,
    Unavailable: 403,
    errors.AccessRefused: 403,
    errors.NotFoundError: 404,
    errors.NothingFound: 404,
    errors.KnowledgeBaseNotFound: 404,
    errors.UsageError: 400,
    errors.LockedError: 409,
    errors.VersionConflict: 409,
    errors.QuotaExceeded: 413,
    errors.DiskRefused: 507,
    errors.KnowledgeBaseUnavailable: 409,
    errors.OverLimit: 413,
    errors.UnreadableSource: 422,
    errors.ModelUnavailable: 503,
    errors.ModelError: 502,
    errors.MemctlError: 500,
}
"""The status of HTTP for each kind of error; of a class that is not here, that of its base."""


def status_of(error: MemctlError) -> int:
    """Return the HTTP status of an error."""
    return next(_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS)


def failure_reply(request: Request, error: Exception) -> Response:
    """Return the reply to a request that failed."""
    if isinstance(error, MemctlError):
        status = status_of(error)
        reply = error_reply(status, error.message, error.hint, error.exit_code)
        if status in (409, 503):
            reply.headers["retry-after"] = _RETRY_SECONDS
        return reply
    if isinstance(error, HTTPException):
        plain = error_reply(error.status_code, error.detail)
        plain.headers.update(error.headers or {})
        if error.status_code == 405:  # Starlette names those of one route of the path
            plain.headers["allow"] = ", ".join(sorted(_methods(request)))
        return plain
    if isinstance(error, ClientDisconnect):  # nobody reads the reply
        return error_reply(400, "the request was cut off")
    _log.error("a request failed", exc_info=error)
    return error_reply(500, f"unexpected {type(error).__name__}", "see the log of memctl serve")


def _methods(request: Request) -> set[str]:
    """Return the methods that the path of a request, as the first route has it, takes."""
    routes = [each for each in request.app.routes if isinstance(each, Route)]
    path = next(each.path for each in routes if each.matches(request.scope)[0] != Match.NONE)
    return {method for each in routes if each.path == path for method in each.methods or ()}


class Caller(Struct, frozen=True):
    """For whom a request is, and the knowledge bases that it names."""

    user: str | None = None
    agent: str | None = None
    session: str | None = None
    kbs: tuple[str, ...] = ()


def caller_of(request: Request, *kbs: str) -> Caller:
    """Return for whom a request is, as its headers and its path say."""
    headers = request.headers
    user, agent = headers.get(USER_HEADER), headers.get(AGENT_HEADER)
    if "agent_id" in request.path_params:
        user, agent = user or DEFAULT_USER, request.path_params["agent_id"]
    return Caller(user, agent, headers.get(SESSION_HEADER), kbs)


class Calls:
    """Carries out calls, each in a thread, with knowledge bases that stay open.

    Args:
        home: All knowledge bases on this disk.
        served: The knowledge bases to offer; by default all that are not private.
        read_only: Refuse what changes something.
    """

    def __init__(
        self, home: Home, served: tuple[str, ...] = (), *, read_only: bool = False
    ) -> None:
        self.home = home
        self.read_only = read_only
        self.closing = threading.Event()
        """Set when the server is to stop: streams end then."""
        self._served = served or ((home.config.kb,) if home.config.kb else ())
        self._idle: dict[Caller, list[OperationContext]] = {}
        self._mutex = threading.Lock()
        self._threads = ThreadPoolExecutor(_WORKERS, "memctl-call")

    # --- which knowledge bases --------------------------------------------------------------------

    def is_served(self, name: str) -> bool:
        """Return whether a knowledge base is offered: one that is private only if it was named."""
        if self._served:
            return name in self._served
        return not (self.home.exists(name) and self.home.settings(name).private)

    def entries(self) -> list[KnowledgeBaseEntry]:
        """Return the knowledge bases that are offered."""
        found = self.home.entries()
        if self._served:
            return [entry for entry in found if entry.name in self._served]
        return [entry for entry in found if entry.settings is None or not entry.settings.private]

    def require_creatable(self, name: str) -> None:
        """Refuse to make a knowledge base that would not be offered.

        Raises:
            AccessRefused: It would not be.
        """
        if self._served and name not in self._served:
            raise errors.AccessRefused(f"this server does not serve {name!r}", "name it with -k")

    def require_served(self, name: str) -> str:
        """Return the name of a knowledge base that is there and offered.

        Raises:
            KnowledgeBaseNotFound: It is not.
        """
        if not self.is_served(name) or not self.home.exists(name):
            raise KnowledgeBaseNotFound(
                f"no knowledge base {name!r}", "GET /v1/kbs lists those that are served"
            )
        return name

    def require_written(self, name: str | None) -> str:
        """Return the knowledge base to write to: the named one or the usual one.

        The default one is made when it is first written to, as on the command line.

        Raises:
            KnowledgeBaseNotFound: It is not there, or not offered.
        """
        if name is None:
            name = self._served[0] if self._served else self.home.name_to_write(None)
        if self.is_to_be_made(name) and not self.read_only:
            self.home.open_for_writing(name).close()
        return self.require_served(name)

    def is_to_be_made(self, name: str) -> bool:
        """Return whether a knowledge base is offered, and made when it is first written to."""
        is_missing = name == self.home.config.default_kb and not self.home.exists(name)
        return is_missing and self.is_served(name)

    def require_writing(self) -> None:
        """Refuse to change anything on a server that only reads.

        Raises:
            ReadOnly: This is one.
        """
        if self.read_only:
            raise ReadOnly("this server only reads", "start it without --read-only")

    # --- calls ------------------------------------------------------------------------------------

    async def in_thread(self, function: Callable[[], T]) -> T:
        """Call a function in one of the threads; it is finished even if its client disconnects."""
        loop = asyncio.get_running_loop()
        return await asyncio.shield(loop.run_in_executor(self._threads, function))

    def carry_out(
        self,
        caller: Caller,
        function: Callable[[OperationContext], T],
        effect: Effect = "read",
        *,
        of_home: bool = False,
        dry_run: bool = False,
    ) -> T:
        """Carry out a call in this thread; see ``run``.

        Raises:
            MemctlError: It failed.
        """
        if effect != "read":
            self.require_writing()
        if effect == "destructive":
            self._close_idle()  # each keeps the state that it read last on disk
        kbs = () if of_home else self._kbs(caller, effect, makes=not dry_run)
        with self._context(replace(caller, kbs=kbs)) as context:
            return function(context)

    def _kbs(self, caller: Caller, effect: Effect, *, makes: bool) -> tuple[str, ...]:
        """Return the knowledge bases that a call is about; none for those that are always on.

        Raises:
            KnowledgeBaseNotFound: One of them is not there, or not offered.
        """
        if caller.kbs:
            is_written = makes and effect == "write"
            require = self.require_written if is_written else self.require_served
            return tuple(require(name) for name in caller.kbs)
        if self._served:
            return tuple(self.require_served(name) for name in self._served)
        written = self.home.name_to_write(None)
        if self.is_served(written):
            return ()
        if effect != "read":
            self.require_served(written)
        return tuple(self.home.names_to_read())

    @contextmanager
    def _context(self, caller: Caller) -> Iterator[OperationContext]:
        """Give a context of the caller that no other request uses at the same time."""
        with self._mutex:
            idle = self._idle.get(caller)
            context = idle.pop() if idle else None
        if context is None:
            context = OperationContext.of(
                self.home,
                caller.kbs,
                user=caller.user,
                agent=caller.agent,
                session=caller.session,
                read_only=self.read_only,
            )
        try:
            yield context
            context.flush()
        except MemctlError:
            self._keep(caller, context)
            raise
        except BaseException:
            context.close()
            raise
        self._keep(caller, context)

    def _keep(self, caller: Caller, context: OperationContext) -> None:
        """Keep a context for the caller's next call; the least recently used one is closed."""
        with self._mutex:
            self._idle[caller] = [*self._idle.pop(caller, ()), context]
            surplus = sum(map(len, self._idle.values())) - _MAX_IDLE
            gone = []
            while surplus > 0:
                oldest = next(iter(self._idle))
                gone.append(self._idle[oldest].pop(0))
                if not self._idle[oldest]:
                    del self._idle[oldest]
                surplus -= 1
        for each in gone:
            each.close()

    def close(self) -> None:
        """Wait for calls that are being carried out, and close all knowledge bases."""
        self._threads.shutdown()
        self._close_idle()

    def _close_idle(self) -> None:
        """Close the knowledge bases that no request uses now."""
        with self._mutex:
            idle = [context for contexts in self._idle.values() for context in contexts]
            self._idle.clear()
        for context in idle:
            context.close()


def run_sql(context: OperationContext, statement: str, namespaces: tuple[str, ...]) -> pa.Table:
    """Run SQL in a process of its own, whose memory is bounded, and return its rows.

    A statement can ask for more memory than DuckDB counts, which the whole process would lack.

    Raises:
        UsageError: It is no statement that may run.
        OverLimit: It gives more than a reply may have.
    """
    import pyarrow as pa

    if any("\ud800" <= character <= "\udfff" for character in statement):
        raise UsageError("the statement is not UTF-8", "write it in UTF-8")
    kbs = [base.name for base in context.reading()]
    spawn = multiprocessing.get_context("spawn")
    try:
        with ProcessPoolExecutor(1, spawn) as pool:
            job = pool.submit(_sql_stream, context.home.config, kbs, statement, namespaces)
            stream = job.result()
    except BrokenProcessPool:
        raise OverLimit("the statement took more memory than it may", "ask for less") from None
    return pa.ipc.open_stream(stream).read_all()


def _sql_stream(
    config: Config, kbs: Sequence[str], statement: str, namespaces: tuple[str, ...]
) -> bytes:
    """Return the rows of a statement as an Arrow stream."""
    import io

    import pyarrow as pa

    from memctl.home import Home

    sink = io.BytesIO()
    with Home(config).open_for_reading(kbs) as bases, bases.queries.capped_memory():
        reader = bases.sql(statement, namespaces)
        with pa.ipc.new_stream(sink, reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
                if sink.tell() > _MAX_SQL_BYTES:
                    raise OverLimit("the rows are too many for a reply", "add LIMIT")
    return sink.getvalue()


def calls_of(request: Request) -> Calls:
    """Return the calls of the server that received a request."""
    calls: Calls = request.app.state.calls
    return calls


async def run(
    request: Request,
    function: Callable[[OperationContext], T],
    *kbs: str,
    effect: Effect = "read",
    of_home: bool = False,
    dry_run: bool = False,
    user: str | None = None,
) -> T:
    """Carry out in a thread what a request asks for, as the user and agent that it names.

    Args:
        request: The request.
        function: Takes the context of operations, and returns the result.
        kbs: The knowledge bases that it is about; by default all that are always on.
        effect: Whether it changes something.
        of_home: Whether it is about no knowledge base.
        dry_run: Whether it only says what would be done: no knowledge base is made for it.
        user: The user, where another part of the request than its headers says who that is.

    Raises:
        MemctlError: It failed.
    """
    calls, caller = calls_of(request), caller_of(request, *kbs)
    caller = caller if user is None else replace(caller, user=user)
    return await calls.in_thread(
        lambda: calls.carry_out(caller, function, effect, of_home=of_home, dry_run=dry_run)
    )


def json_reply(
    value: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a record as the JSON that the command line writes."""
    return _Json(to_plain(value), status, headers)


class _Json(JSONResponse):
    """JSON in UTF-8; a lone surrogate, which UTF-8 lacks, is written as JSON escapes it."""

    def render(self, content: Any) -> bytes:
        """Return the bytes of a value."""
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "backslashreplace")


async def json_body(request: Request) -> dict[str, Any]:
    """Return the object that the body of a request is; an empty body is an empty one.

    Raises:
        UsageError: It is no JSON.
        ShapeError: It is JSON of something else, or has NaN or Infinity.
    """
    body = await request.body()
    if not body:
        return {}
    try:
        found = parse_json(body)
    except NoJsonNumber as error:
        raise ShapeError(str(error), "send null, or a number") from None
    except (ValueError, RecursionError) as error:
        raise UsageError("the body is no JSON", str(error)[:200]) from None
    if not isinstance(found, dict):
        raise ShapeError("the body must be a JSON object")
    return found
