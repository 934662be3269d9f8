"""Who may talk to the HTTP server: Host, Origin, token, login links, and how much at once.

A loopback address keeps neither other users of the machine out nor web pages in a browser, so each
request says a secret, and comes from nowhere else (https://owasp.org/www-community/attacks/csrf,
DNS rebinding).  Knows nothing of what is asked for.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import re
import secrets
import socket
import time
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct, field
from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memctl.errors import ConfigError, UsageError
from memctl.files import make_folder, open_regular, save_file

COOKIE: Final = "memctl_session"
OPEN_PATHS: Final = frozenset(("/health", "/login"))
"""What needs no token."""
_STATIC: Final = "/static/"
"""Below it are the files of the page, which are the same for everybody."""
MAX_BODY_BYTES: Final = 64 << 20
SHORTEST_TOKEN: Final = 32
_LOGIN_SECONDS: Final = 3600.0
_MAX_SESSIONS: Final = 100
_SAFE_METHODS: Final = frozenset(("GET", "HEAD", "OPTIONS"))
_ORIGIN_PORTS: Final = {"http": 80, "https": 443}
"""The schemes that a page can have, with the port that is not said."""
_HOST: Final = re.compile(r"[\w.:-]+")
_LOOPBACK_NAMES: Final = frozenset(("localhost", "127.0.0.1", "::1"))
_BODY_TYPES: Final = ("application/json", "multipart/form-data", "application/octet-stream")
_FORM: Final = "application/x-www-form-urlencoded"


def is_loopback(host: str) -> bool:
    """Return whether only this machine can connect to an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def checked_origin(origin: str) -> str:
    """Return an origin as browsers send it (https://www.rfc-editor.org/rfc/rfc6454#section-6.2).

    Raises:
        UsageError: It is none, or no single one.
    """
    try:
        parts = urlsplit(origin.strip().lower())
        port = parts.port
    except ValueError:  # a port that is no number, half an address
        parts, port = urlsplit(""), None
    host = parts.hostname or ""
    is_bare = parts.path in ("", "/") and not (parts.query or parts.fragment or "@" in parts.netloc)
    if parts.scheme not in _ORIGIN_PORTS or not _HOST.fullmatch(host) or not is_bare:
        raise UsageError(
            f"{origin[:80]!r} is no origin", "write one like https://notes.example, without a path"
        )
    name = f"[{host}]" if ":" in host else host
    suffix = "" if port in (None, _ORIGIN_PORTS[parts.scheme]) else f":{port}"
    return f"{parts.scheme}://{name}{suffix}"


def load_token(path: Path) -> str:
    """Return the token in a file; if there is none, make one that only its owner can read.

    Raises:
        ConfigError: The file is open to others, or what is in it is too short.
    """
    try:
        with open_regular(path) as file:
            mode = path.stat().st_mode & 0o077
            token = file.read(4096).decode("utf-8", "replace").strip()
    except FileNotFoundError:
        token = secrets.token_urlsafe(32)
        make_folder(path.parent, mode=0o700)
        save_file(path, f"{token}\n".encode())
        return token
    if mode:
        raise ConfigError(f"the token file {path} is open to others", f"chmod 600 {path}")
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
        raise ConfigError(
            f"the token in {path} is not {SHORTEST_TOKEN} characters or more of ASCII",
            f"remove it, and a new one is made: rm {path}",
        )
    return token


class Logins:
    """One-time login links for browsers, and the sessions they start.

    Args:
        clock: Seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._codes: dict[str, float] = {}
        self._sessions: dict[str, None] = {}

    def new_code(self) -> str:
        """Return a code that can be used once, within an hour."""
        now = self._clock()
        self._codes = {code: until for code, until in self._codes.items() if until > now}
        code = secrets.token_urlsafe(24)
        self._codes[code] = now + _LOGIN_SECONDS
        return code

    def redeem(self, code: str) -> str | None:
        """Return a new session for a code; None where it is unknown, used or too old."""
        until = self._codes.pop(code, None)
        if until is None or until <= self._clock():
            return None
        session = secrets.token_urlsafe(32)
        self._sessions[session] = None
        while len(self._sessions) > _MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        return session

    def knows(self, session: str) -> bool:
        """Return whether a session was started by a login link."""
        return session in self._sessions


class AccessRules(Struct, frozen=True):
    """What a request must have."""

    token: str
    host: str = "127.0.0.1"
    """Where the server listens."""
    allow_origins: tuple[str, ...] = ()
    most_body_bytes: int = MAX_BODY_BYTES
    body_seconds: float = 30.0
    """How long each piece of a body may take."""
    logins: Logins = field(default_factory=Logins)


class AccessGuard:
    """Middleware that refuses unauthorized requests before anything else is done.

    Args:
        app: What is behind it.
        rules: What a request must have.
        as_page: Returns a refusal as a browser is to show it, for its Accept header.
    """

    def __init__(
        self, app: ASGIApp, rules: AccessRules, as_page: Callable[[str, Response], Response]
    ) -> None:
        self._app = app
        self._rules = rules
        self._as_page = as_page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request or pass it on, its body bounded."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refused = self._refusal(scope)
        if refused is not None:
            accepted = Headers(scope=scope).get("accept", "")
            await self._as_page(accepted, refused)(scope, receive, send)
            return
        body = _BoundedBody(receive, self._rules)
        started = False

        async def send_safely(message: Message) -> None:
            """Send a message, with the safe headers if it begins the response."""
            nonlocal started
            started = started or message["type"] == "http.response.start"
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_SAFE_HEADERS]
            await send(message)

        try:
            await self._app(scope, body.receive, send_safely)
        except BodyRefused as error:
            if not started:
                reply = error_reply(error.status, error.message, error.hint)
                reply.headers["connection"] = "close"
                await reply(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        method, path = scope["method"], scope["path"]
        host = headers.get("host", "")
        if not self._is_own_host(host):
            return error_reply(403, f"the host {host[:80]!r} is not this server's", _HOST_HINT)
        origin = headers.get("origin")
        if origin is not None and not self._is_own_origin(origin, host):
            return error_reply(403, f"pages of {origin[:80]!r} may not ask here", _ORIGIN_HINT)
        if (
            path in OPEN_PATHS
            or path.startswith(_STATIC)
            or (method == "OPTIONS" and origin is not None)
        ):
            return None
        if not self._has_token(headers):
            if not self._has_cookie(headers):
                return _unauthorized_reply()
            if method not in _SAFE_METHODS and origin is None:
                return error_reply(403, "a page that changes something says where it is from")
        return self._body_refusal(method, headers, is_page=self._has_cookie(headers))

    def _is_own_host(self, header: str) -> bool:
        name = _host_name(header)
        if name in _LOOPBACK_NAMES or name == self._rules.host.lower():
            return True
        if is_loopback(self._rules.host):
            return False
        return _is_address(name) or name == socket.gethostname().lower()

    def _is_own_origin(self, origin: str, host: str) -> bool:
        own = (f"http://{host}".lower(), f"https://{host}".lower())
        return origin.lower() in own or origin in self._rules.allow_origins

    def _has_token(self, headers: Headers) -> bool:
        if own := headers.get(TOKEN_HEADER):
            return hmac.compare_digest(own.encode("utf-8", "replace"), self._rules.token.encode())
        scheme, _, token = headers.get("authorization", "").partition(" ")
        is_bearer = scheme.lower() == "bearer"
        return is_bearer and hmac.compare_digest(
            token.strip().encode("utf-8", "replace"), self._rules.token.encode()
        )

    def _has_cookie(self, headers: Headers) -> bool:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return False
        return found is not None and self._rules.logins.knows(found.value)

    def _body_refusal(self, method: str, headers: Headers, *, is_page: bool) -> Response | None:
        length = headers.get("content-length")
        if length is not None and (
            not length.isdigit() or int(length) > self._rules.most_body_bytes
        ):
            reply = _too_big(self._rules.most_body_bytes)
            reply.headers["connection"] = "close"
            return reply
        if method in _SAFE_METHODS:
            return None
        has_body = length not in (None, "0") or "transfer-encoding" in headers
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if has_body and kind not in _BODY_TYPES and not (is_page and kind == _FORM):
            return error_reply(415, f"a body of {kind or 'no type'} is not taken", _TYPE_HINT)
        return None


TOKEN_HEADER = "x-memctl-token"
"""Has the token where ``Authorization`` is for the server behind this one."""
_HOST_HINT = "ask for it by the address that memctl serve prints"
_ORIGIN_HINT = "memctl serve --allow-origin URL lets a page in"
_TYPE_HINT = "send application/json; files as multipart/form-data or application/octet-stream"
_SAFE_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
)


class BodyRefused(Exception):
    """A body that is too big or too slow."""

    def __init__(self, status: int, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.hint = hint


class _BoundedBody:
    """A body of at most this many bytes, each piece of which comes in time."""

    def __init__(self, receive: Receive, rules: AccessRules) -> None:
        self._receive = receive
        self._rules = rules
        self._received = 0
        self._is_whole = False

    async def receive(self) -> Message:
        """Return the next piece; once there is none, whatever comes, such as a disconnect."""
        if self._is_whole:
            return await self._receive()
        try:
            message = await asyncio.wait_for(self._receive(), self._rules.body_seconds)
        except TimeoutError:
            raise BodyRefused(408, "the rest of the body did not come in time") from None
        if message["type"] != "http.request":
            self._is_whole = True
            return message
        self._is_whole = not message.get("more_body", False)
        self._received += len(message.get("body", b""))
        if self._received > self._rules.most_body_bytes:
            raise BodyRefused(413, _too_big_text(self._rules.most_body_bytes), _BIG_HINT)
        return message


_BIG_HINT = "memctl ingest takes files of any size"


def _too_big_text(limit: int) -> str:
    return f"a body has at most {limit >> 20} MB"


def _too_big(limit: int) -> JSONResponse:
    return error_reply(413, _too_big_text(limit), _BIG_HINT)


def _unauthorized_reply() -> JSONResponse:
    reply = error_reply(
        401,
        "no token, or a wrong one",
        "send Authorization: Bearer TOKEN; memctl serve prints where the token is",
    )
    reply.headers["www-authenticate"] = "Bearer"
    return reply


def error_reply(status: int, message: str, hint: str = "", code: int = 1) -> JSONResponse:
    """Return an error as every reply has it.

    Args:
        status: The HTTP status.
        message: What failed.
        hint: The next step.
        code: The exit code that the command line would end with.
    """
    return JSONResponse(error_body(message, hint, code), status)


def error_body(message: str, hint: str = "", code: int = 1) -> dict[str, dict[str, str | int]]:
    """Return an error as JSON has it; see ``error_reply``."""
    return {"error": {"message": message, "hint": hint, "code": code}}


def _host_name(header: str) -> str:
    """Return the name or address in a Host header, without its port."""
    header = header.strip().lower()
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.rpartition(":")[0] if header.count(":") == 1 else header


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
