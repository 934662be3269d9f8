"""What a page is: data as JSON has it, and a template that shows them to people.

Knows how a request asks and how a page is written, never what is on it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, get_args
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from msgspec import Struct, field
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from memctl.errors import MemctlError, UsageError
from memctl.formatting import (
    escape_hidden,
    format_clock,
    format_count,
    format_duration,
    format_money,
    format_size,
)
from memctl.instants import parse_instant
from memctl.language.inline_tags import without_wikilinks
from memctl.operations.operation_context import OperationContext
from memctl.operations.registry import Effect
from memctl.plain_values import to_plain
from memctl.records import shown_source_name
from memctl.server.http_calls import calls_of, failure_reply, json_body, json_reply, run, status_of
from memctl.understanding.sentence_reading import bare_statement

if TYPE_CHECKING:
    from memctl.home import KnowledgeBaseEntry

ChoiceT = TypeVar("ChoiceT", bound=str | None)
PAGE_ROWS = 50
_MAX_OFFSET = 10**9
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": _POLICY,
    "referrer-policy": "same-origin",  # with no-referrer a form says that it is from nowhere
    "cache-control": "no-store",
    "vary": "Accept",
}


# --- what was asked -------------------------------------------------------------------------------


class PageRequest(Struct, frozen=True):
    """What a request says: its address, and the fields of its query or form."""

    path: Mapping[str, str]
    fields: Mapping[str, Sequence[str]]
    files: Sequence[UploadFile] = ()
    now: datetime | None = None
    entries: Sequence[KnowledgeBaseEntry] = ()
    """The knowledge bases that are served."""

    def text(self, name: str, default: str = "") -> str:
        """Return a field without spaces around it, with line ends as files have them."""
        value = self.fields.get(name)
        return value[-1].replace("\r\n", "\n").strip() if value else default

    def verbatim(self, name: str) -> str:
        """Return a field as it was typed, with line ends as files have them."""
        value = self.fields.get(name)
        return value[-1].replace("\r\n", "\n") if value else ""

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the words of a field, which commas or spaces set apart."""
        return tuple(
            word for each in self.fields.get(name, ()) for word in each.replace(",", " ").split()
        )

    def number(self, name: str, default: int, low: int = 0, high: int = _MAX_OFFSET) -> int:
        """Return a whole number.

        Raises:
            UsageError: It is none, or out of bounds.
        """
        text = self.text(name)
        if not text:
            return default
        if not text.isascii() or not text.isdigit() or not low <= int(text[:12]) <= high:
            raise UsageError(f"{name} is no number from {low} to {high}: {text[:40]!r}")
        return int(text)

    def share(self, name: str) -> float | None:
        """Return a number from 0 to 1; None where none is given.

        Raises:
            UsageError: It is none.
        """
        text = self.text(name)
        if not text:
            return None
        try:
            found = float(text)
        except ValueError:
            found = -1.0
        if not 0 <= found <= 1:
            raise UsageError(f"{name} is no number from 0 to 1: {text[:40]!r}")
        return found

    def choice(self, name: str, kinds: Any, default: ChoiceT) -> ChoiceT:
        """Return one of the words that a ``Literal`` lists.

        Raises:
            UsageError: It is another word.
        """
        text = self.text(name) or default
        words = get_args(kinds)
        if text is not None and text not in words:
            raise UsageError(f"{name} is not {text[:40]!r}", f"use one of: {', '.join(words)}")
        return text  # type: ignore[return-value]

    def instant(self, name: str) -> datetime | None:
        """Return a date; None where none is given.

        Raises:
            UsageError: It cannot be read.
        """
        text = self.text(name)
        return parse_instant(text, self.now) if text and self.now else None

    def has(self, name: str) -> bool:
        """Return whether a box was ticked, or a button of that name pressed."""
        return bool(self.text(name))

    @property
    def kbs(self) -> tuple[str, ...]:
        """The knowledge bases that are named; none for all that are always on."""
        return tuple(name for name in self.fields.get("kb", ()) if name)

    @property
    def offset(self) -> int:
        """How many rows to skip."""
        return self.number("offset", 0)


async def _parse_request(request: Request) -> PageRequest:
    fields: dict[str, list[str]] = {}
    files: list[UploadFile] = []
    for name, value in request.query_params.multi_items():
        fields.setdefault(name, []).append(value)
    if request.method == "POST":
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "application/json":
            fields |= await _json_fields(request)
        else:
            form = await request.form(max_files=100, max_fields=200)
            named = {name for name, _ in form.multi_items()}
            for name in named:
                fields[name] = [each for each in form.getlist(name) if isinstance(each, str)]
                files += [each for each in form.getlist(name) if isinstance(each, UploadFile)]
    calls = calls_of(request)
    return PageRequest(request.path_params, fields, files, calls.home.now(), calls.entries())


async def _json_fields(request: Request) -> dict[str, list[str]]:
    body = await json_body(request)
    values = {name: value if isinstance(value, list) else [value] for name, value in body.items()}
    return {name: [str(each) for each in each_of] for name, each_of in values.items()}


# --- what is shown --------------------------------------------------------------------------------


class Page(Struct, frozen=True):
    """What a view gives."""

    template: str
    title: str
    data: Any
    """A record or mapping, which is also what a program gets as JSON."""
    shown: Mapping[str, Any] = field(default_factory=dict)
    """What the template needs besides, such as the fields of a form."""
    status: int = 200


class ChangeResult(Struct, frozen=True):
    """What a change gives: where its page goes on, and what a program gets as JSON."""

    to: str
    data: Any
    notice: str = ""
    """One of ``NOTICES``."""


NOTICES: Mapping[str, str] = {
    "added": "Remembered.",
    "edited": "A new version was written; the old one stays in the history.",
    "deleted": "Deleted.",
    "forgotten": "Forgotten for good, and nothing of it is left.",
    "partly-forgotten": "Forgotten. Some of it is left in other places, such as a snapshot.",
    "revised": "A new version was written in place of the one before.",
    "linked": "It is a link now.",
    "taken-back": "The text is as it was before.",
    "reprocessed": "Read again.",
    "judged": "Thank you: noted with the question.",
    "received": "Received. What can be read is remembered; the rest is listed below.",
    "waiting": "Received. The watcher takes it in a moment.",
    "retried": "Tried again.",
    "consolidated": "Consolidated.",
    "undone": "Taken back.",
    "archived": "Summarised and archived.",
    "settled": "Settled.",
}
View = Callable[[OperationContext, PageRequest], Page]
Change = Callable[[OperationContext, PageRequest], Page | ChangeResult]


def wants_json(request: Request) -> bool:
    """Return whether a program asks, rather than a browser."""
    if "format" in request.query_params:
        return request.query_params["format"] == "json"
    accepted = request.headers.get("accept", "")
    return "application/json" in accepted and "text/html" not in accepted


def page(path: str, view: View) -> Route:
    """Return the route of a page that only shows.

    Args:
        path: Its address.
        view: Returns what is on it; called in a thread.
    """
    return _route(path, view, "read", ["GET"])


def change(path: str, view: Change, effect: Effect = "write") -> Route:
    """Return the route that a form is sent to.

    Args:
        path: Its address.
        view: Does it; called in a thread.
        effect: What it does to memory.
    """
    return _route(path, view, effect, ["POST"])


def _route(path: str, view: Change, effect: Effect, methods: list[str]) -> Route:
    async def endpoint(request: Request) -> Response:
        """Answer one request."""
        try:
            parameters = await _parse_request(request)
            result = await run(
                request, lambda context: view(context, parameters), *parameters.kbs, effect=effect
            )
        except MemctlError as error:
            return _error_page(request, error)
        finally:
            await request.close()  # the files of its form
        if wants_json(request):
            reply = json_reply(result.data, result.status if isinstance(result, Page) else 200)
            reply.headers["vary"] = "Accept"
            return reply
        if isinstance(result, ChangeResult):
            return RedirectResponse(_address_with_notice(result), 303, dict(_HEADERS))
        return _page_reply(request, result, parameters.kbs)

    return Route(path, endpoint, methods=methods)


def parent_redirects(routes: Sequence[BaseRoute]) -> Sequence[BaseRoute]:
    """Return redirects to the page above for addresses that only take a form.

    Somebody who reloads, bookmarks or goes back after sending a form asks for its address.
    """
    routed = [each for each in routes if isinstance(each, Route)]
    pages = {each.path for each in routed if "GET" in (each.methods or ())}
    return [
        Route(each.path, _redirect_to_parent, methods=["GET"])
        for each in routed
        if each.path not in pages
    ]


async def _redirect_to_parent(request: Request) -> Response:
    if wants_json(request):
        raise HTTPException(405, headers={"allow": "POST"})
    above = request.url.path.rstrip("/").rpartition("/")[0] or "/"
    return RedirectResponse(address(above, kb=request.query_params.getlist("kb")), 303)


def _address_with_notice(done: ChangeResult) -> str:
    if not done.notice:
        return done.to
    path, hash_, fragment = done.to.partition("#")
    mark = "&" if "?" in path else "?"
    return f"{path}{mark}done={done.notice}{hash_}{fragment}"


def _page_reply(request: Request, page: Page, kbs: Sequence[str] = ()) -> Response:
    """Return a page as HTML."""
    calls = calls_of(request)
    text = render(
        page.template,
        page=to_plain(page.data),
        **{name: to_plain(value) for name, value in page.shown.items()},
        title=page.title,
        path=request.url.path,
        kb=kbs[0] if len(kbs) == 1 else "",
        kbs=[entry.name for entry in calls.entries()],
        read_only=calls.read_only,
        notice=NOTICES.get(request.query_params.get("done", ""), ""),
        status=page.status,
    )
    return Response(text, page.status, dict(_HEADERS), "text/html; charset=utf-8")


def _error_page(request: Request, error: MemctlError) -> Response:
    """Return what went wrong, as a page or as JSON."""
    if wants_json(request):
        return failure_reply(request, error)
    data = {"message": error.message, "hint": error.hint}
    return _page_reply(request, Page("error.html", "Not possible", data, status=status_of(error)))


_TITLES = {401: "Log in first", 403: "Not allowed", 404: "Not found"}
_LOG_IN = "open this page with the command memctl open; its link works once for each browser"


def as_page(accepted: str, reply: Response) -> Response:
    """Return an error as a page where a browser asks, otherwise as for programs.

    Args:
        accepted: The Accept header.
        reply: The error as JSON.
    """
    if "text/html" not in accepted or not isinstance(reply, JSONResponse):
        return reply
    error = json.loads(bytes(reply.body))["error"]
    status = reply.status_code
    hint = _LOG_IN if status == 401 else error["hint"]
    title = _TITLES.get(status, "Not possible")
    text = render(
        "refused.html", title=title, message=error["message"], hint=hint, has_start=status != 401
    )
    page = Response(text, status, dict(_HEADERS), "text/html; charset=utf-8")
    page.headers.update(
        {name: value for name, value in reply.headers.items() if name.startswith(("www-", "retry"))}
    )
    return page


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("memctl.server.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=visible,
    )
    made.filters |= {
        "day": day,
        "moment": moment,
        "size": format_size,
        "count": format_count,
        "seconds": seconds,
        "money": format_money,
        "percent": percent,
        "clock": format_clock,
        "as_typed": as_typed,
        "file_name": file_name,
        "words": words,
        "statement": statement,
        "gist": gist,
        "unlinked": without_wikilinks,
        "segment": lambda value: quote(str(value), safe=""),
    }
    made.globals |= {"address": address}
    return made


def render(template: str, **values: Any) -> str:
    """Return a template with its values."""
    return _environment().get_template(template).render(values)


def address(path: str, **fields: Any) -> str:
    """Return an address with a query of the fields that are not empty."""
    query = {name: value for name, value in fields.items() if value not in (None, "", (), [])}
    return f"{path}?{urlencode(query, doseq=True)}" if query else path


# --- texts ----------------------------------------------------------------------------------------


def visible(value: Any) -> Any:
    """Return a text with control characters and overrides of its direction shown, not acted on."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return escape_hidden(value)


def as_typed(text: str) -> Markup:
    """Return a text for a field that is sent back: as it is, but for what HTML cannot hold."""
    return escape("".join(c if c.isprintable() or c in "\n\t" else visible(c) for c in text))


def words(name: str) -> str:
    """Return an identifier as words: ``important_fact`` is ``important fact``."""
    return name.replace("_", " ")


def statement(row: Mapping[str, Any]) -> str:
    """Return the text of a memory beside a link to its document: without title, day and brackets.

    Args:
        row: The memory, with the title of its document.
    """
    text = str(row["text"])
    if row["level"] == "memory" and row["document_id"]:
        text = bare_statement(text, row["title"] or "")
    return without_wikilinks(text)


def gist(document: Mapping[str, Any]) -> str:
    """Return what a document comes to, without the title that stands above it."""
    return str(document["summary"]).removeprefix(f"{document['title']}: ")


def file_name(path: str) -> str:
    """Return the last part of a path; of a message in a mail box, the box's."""
    return shown_source_name(path) or path


# --- dates and numbers ----------------------------------------------------------------------------


def _instant(value: str) -> datetime:
    return datetime.fromisoformat(value)


def day(value: str | None) -> Markup:
    """Return the day of an instant: 3 April 2026."""
    return Markup("") if not value else _time(value, _day(_instant(value)))


def moment(value: str | None) -> Markup:
    """Return an instant to the minute, in local time; a midnight in UTC is a day."""
    if not value:
        return Markup("")
    at = _instant(value)
    if at.astimezone(UTC).strftime("%H%M%S") == "000000":
        return _time(value, _day(at.astimezone(UTC)))
    local = at.astimezone()
    return _time(value, f"{_day(local)}, {local:%H:%M}")


def _day(at: datetime) -> str:
    return f"{at.day} {at:%B %Y}"


def _time(value: str, text: str) -> Markup:
    return Markup('<time datetime="{}" title="{}">{}</time>').format(value, value, text)


def seconds(value: float | None) -> str:
    """Return a duration: 40 ms, 3.2 s, 4 min."""
    return "–" if value is None else format_duration(value)


def percent(share: float) -> str:
    """Return a share as a percentage."""
    return f"{share:.0%}"
