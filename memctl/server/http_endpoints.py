"""Endpoints: one declaration each, from which its route, its checks and its description are made.

Knows how arguments come and how results go, never what an endpoint does.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from memctl.errors import AccessRefused, NotFoundError, UsageError, VersionConflict
from memctl.operations.finding import NoParameters
from memctl.operations.operation_context import OperationContext
from memctl.operations.parameters import parameter_schema, parse_arguments
from memctl.operations.registry import Effect, find_operation
from memctl.operations.tool_calls import carry_out
from memctl.plain_values import arrow_batches, plain_rows
from memctl.server.http_access import error_reply
from memctl.server.http_calls import (
    Calls,
    ShapeError,
    calls_of,
    json_body,
    json_reply,
    run,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.knowledge_base import KnowledgeBase

ARROW = "application/vnd.apache.arrow.stream"
KB = "kb"
"""What a query string calls a knowledge base."""

_NUMBER = re.compile(r"[0-9]{1,18}")


class Place(Struct, frozen=True):
    """What a request names in its path and headers."""

    path: Mapping[str, Any]
    calls: Calls
    """What is served."""
    if_match: str | None = None
    """The version that is to be changed, where the client says one."""

    def __getitem__(self, name: str) -> str:
        return str(self.path[name])

    def matches(self, etag: str) -> None:
        """Refuse to overwrite what has changed since the client read it.

        Raises:
            VersionConflict: It has.
        """
        if self.if_match not in (None, "*", etag):
            raise VersionConflict("it has changed since that version", "read it again")

    @property
    def version(self) -> int | None:
        """The number of the version that is to be changed.

        Raises:
            VersionConflict: The client's value is not a number, so it matches no version.
        """
        if self.if_match in (None, "*"):
            return None
        number = str(self.if_match)
        if not _NUMBER.fullmatch(number):
            raise VersionConflict(f"there was no version {number[:40]!r}", "read it again")
        return int(number)


class Listing(Struct, frozen=True):
    """One page of rows."""

    rows: pa.Table | Sequence[Any]
    total: int
    offset: int = 0
    record: type[Struct] | None = None
    """What each row is, which tells the columns of Arrow."""
    leading: tuple[str, ...] = ()
    """Columns that stand before the fields of the record."""
    about: Mapping[str, Any] = {}
    """What JSON says beside the rows."""

    def plain(self) -> dict[str, Any]:
        """Return the page as JSON has it; its items are those of ``-o json``."""
        items = list(plain_rows(self.rows))
        end = self.offset + len(items)
        after = end if end < self.total else None
        return {"items": items, "total": self.total, "next": after, **self.about}


class Tagged(Struct, frozen=True):
    """A result with its version."""

    value: object
    etag: str


class Endpoint(Struct, frozen=True):
    """One route: what it takes, what it does, and what it gives."""

    method: str
    path: str
    summary: str
    run: Callable[[OperationContext, Any, Place], object]
    parameters: type[Any] = NoParameters
    """A frozen record, each field annotated with a ``Rule``: of the query string for GET and
    DELETE, else of the body, which is JSON."""
    effect: Effect = "read"
    status: int = 200
    operation: str = ""
    """The operation that an agent with a list of tools has to have for it."""
    of_home: bool = False
    """Whether it is about no knowledge base."""
    takes_kb: bool = False
    """Whether ``?kb=NAME`` names the knowledge base; by default the one that is written to."""

    only_reads: Callable[[Any], bool] | None = None
    """Tells of arguments whether it only reads with them; by default as ``effect`` says."""

    def effect_of(self, parameters: object) -> Effect:
        """Return its effect with the given arguments."""
        return (
            "read" if self.only_reads is not None and self.only_reads(parameters) else self.effect
        )

    @property
    def in_query(self) -> bool:
        """Whether its arguments are in the query string."""
        return self.method in ("GET", "DELETE")


def route_of(endpoint: Endpoint) -> Route:
    """Return the route of an endpoint."""

    async def handle(request: Request) -> Response:
        """Check the arguments, carry out the endpoint and reply."""
        in_address = {KB} if endpoint.takes_kb else set[str]()
        arguments = (
            _query(endpoint, request.query_params, in_address) if endpoint.in_query else None
        )
        if arguments is None:
            refuse_query(request, *in_address, allowed=endpoint.parameters.__struct_fields__)
            arguments = await json_body(request)
        parameters = check_arguments(
            endpoint.parameters, arguments, f"{endpoint.method} {endpoint.path}"
        )
        place = place_of(request)
        kbs = _named_kb(request) if endpoint.takes_kb else kbs_of(request, parameters)
        try:
            result = await run(
                request,
                lambda context: _carry_out(endpoint, context, parameters, place),
                *kbs,
                effect=endpoint.effect_of(parameters),
                of_home=endpoint.of_home,
                dry_run=getattr(parameters, "dry_run", False),
                user=getattr(parameters, "user_id", None),
            )
        except VersionConflict as error:
            if place.if_match is None:
                raise
            return error_reply(412, error.message, error.hint, error.exit_code)
        return await calls_of(request).in_thread(lambda: reply(request, result, endpoint.status))

    return Route(endpoint.path, handle, methods=[endpoint.method])


def operation_route() -> Route:
    """Return the one route that offers every operation by its name."""
    return Route("/v1/operations/{name}", _operation, methods=["POST"])


async def _operation(request: Request) -> Response:
    """Carry out any operation by its name; ``?kb=NAME``, repeatable, says of what."""
    try:
        operation = find_operation(request.path_params["name"])
    except UsageError as error:
        raise NotFoundError(error.message, error.hint) from None
    arguments = await json_body(request)

    parameters = check_arguments(operation.parameters, arguments, operation.name)
    kbs, effect = request.query_params.getlist(KB), operation.effect_of(parameters)
    result = await run(
        request,
        lambda context: carry_out(operation, parameters, context),
        *kbs,
        effect=effect,
        dry_run=getattr(parameters, "dry_run", False),
    )
    return json_reply(result)


def _carry_out(
    endpoint: Endpoint, context: OperationContext, parameters: Any, place: Place
) -> object:
    allowed = context.allowed_tools
    if allowed is not None and endpoint.operation not in allowed:
        raise AccessRefused(f"this is not allowed to {context.identity.agent}")
    return endpoint.run(context, parameters, place)


def check_arguments(section: type[Any], arguments: Mapping[str, Any], name: str) -> Any:
    """Return the arguments that a request gives.

    Raises:
        ShapeError: They do not fit.
    """
    try:
        return parse_arguments(section, arguments, name)
    except UsageError as error:
        raise ShapeError(error.message, error.hint) from None


def place_of(request: Request) -> Place:
    """Return what a request names in its path and headers."""
    arguments = request.headers.get("if-match")
    etag = None if arguments is None else arguments.strip().removeprefix("W/").strip('"')
    return Place(request.path_params, calls_of(request), etag)


def kbs_of(request: Request, parameters: object) -> tuple[str, ...]:
    """Return the knowledge bases that a request names in its path or arguments."""
    for name in ("kb", "kb_name"):
        found = request.path_params.get(name) or getattr(parameters, name, None)
        if found:
            return (str(found),)
    named = getattr(parameters, "kbs", ()) or getattr(parameters, "knowledge_base_ids", ())
    return tuple(name.strip() for each in named for name in each.split(","))


def _named_kb(request: Request) -> tuple[str, ...]:
    """Return the knowledge base that the query string of a request names; none for the usual one.

    Raises:
        ShapeError: It names several.
    """
    found = request.query_params.getlist(KB)
    if len(found) > 1:
        raise ShapeError(f"{KB} is given twice", "name one knowledge base")
    return tuple(name for name in found if name)


def _query(endpoint: Endpoint, arguments: QueryParams, but: Collection[str]) -> dict[str, Any]:
    """Return the arguments in a query string besides ``but``, as their parameters' types are.

    Raises:
        ShapeError: One is no number, or is given twice.
    """
    properties = parameter_schema(endpoint.parameters)["properties"]
    found: dict[str, Any] = {}
    for key in (each for each in arguments if each not in but):
        values, kind = arguments.getlist(key), properties.get(key, {}).get("type")
        if kind == "array":
            found[key] = values
        elif len(values) > 1:
            raise ShapeError(f"{key} is given twice")
        else:
            found[key] = convert_argument(values[0], kind)
    return found


def refuse_query(request: Request, *but: str, allowed: Collection[str] = ()) -> None:
    """Refuse arguments in the address of a request that has them in its body.

    Args:
        request: The request.
        but: Those that belong there.
        allowed: Those that its body may have.

    Raises:
        ShapeError: There are some, besides ``but``.
    """
    for key in request.query_params:
        if key not in but:
            is_kb = key == KB and "kbs" in allowed
            hint = 'put {"kbs": ["NAME"]} into the body' if is_kb else "put arguments into the body"
            raise ShapeError(f"{key[:60]} stands in the address", hint)


def convert_argument(text: str, kind: object) -> object:
    """Return an argument of a query string as a JSON schema type; the text if it does not fit."""
    if kind == "boolean":
        return {"": True, "true": True, "1": True, "false": False, "0": False}.get(text, text)
    with suppress(ValueError):
        if kind == "integer":
            return int(text) if text.isascii() else text
        if kind == "number":
            return float(text)
    return text


# --- replies --------------------------------------------------------------------------------------


def reply(request: Request, result: object, status: int = 200) -> Response:
    """Return an endpoint's result as the client accepts it: JSON, or rows as an Arrow stream."""
    if isinstance(result, Response):
        return result
    if isinstance(result, Tagged):
        tagged = reply(request, result.value, status)
        tagged.headers["etag"] = f'"{result.etag}"'
        return tagged
    if isinstance(result, Listing):
        if ARROW in request.headers.get("accept", ""):
            return _arrow(result, status)
        return json_reply(result.plain(), status)
    return json_reply(result, status)


def _batches(listing: Listing) -> pa.RecordBatchReader:
    return arrow_batches(listing.rows, record=listing.record, leading=listing.leading)


def _arrow(listing: Listing, status: int) -> Response:
    import pyarrow as pa

    reader, buffer = _batches(listing), io.BytesIO()
    with pa.ipc.new_stream(buffer, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)
    end = listing.offset + len(listing.rows)
    headers = {"x-total-count": str(listing.total)}
    if end < listing.total:
        headers["x-next-offset"] = str(end)
    return Response(buffer.getvalue(), status, headers, ARROW)


def with_kb(base: KnowledgeBase, rows: pa.Table) -> pa.Table:
    """Return rows with the name of their knowledge base in front, as listings have it."""
    import pyarrow as pa

    return rows.add_column(0, "kb", pa.array([base.name] * rows.num_rows, pa.string()))


def changes_in(parameters: Any, *but: str) -> dict[str, Any]:
    """Return the parameters that were given, by name."""
    values = asdict(parameters)
    return {key: value for key, value in values.items() if value is not None and key not in but}
