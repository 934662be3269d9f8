"""One process that serves a home over HTTP: its address, its lock, and how it starts and stops."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import h11
import uvicorn
from msgspec import Struct
from uvicorn.protocols.http.h11_impl import H11Protocol

from memctl.errors import LockedError, MemctlError, UsageError
from memctl.files import make_folder, read_regular, save_file
from memctl.locking import hold_lock, is_locked
from memctl.server.http_access import (
    AccessRules,
    Logins,
    checked_origin,
    is_loopback,
    load_token,
)
from memctl.server.http_app import ServeSettings, create_app
from memctl.server.http_calls import Calls

if TYPE_CHECKING:
    from memctl.home import Home
    from memctl.server.proxy import ProxySettings
    from memctl.server.web.open_tabs import OpenTabs

FOLDER = "serve"
_MAX_CONNECTIONS = 600
_HEADER_SECONDS = 10.0
_KEEP_ALIVE_SECONDS = 15
_LOGIN_SECONDS = 10.0
_SECONDS_WITHOUT_TABS = 60.0


class ServerOptions(Struct, frozen=True):
    """How ``memctl serve`` was started."""

    host: str = "127.0.0.1"
    port: int = 8420
    """0 for any that is free."""
    socket: Path | None = None
    """A Unix socket in place of host and port."""
    token_file: Path | None = None
    allow_origins: tuple[str, ...] = ()
    kbs: tuple[str, ...] = ()
    read_only: bool = False
    proxy: ProxySettings | None = None
    ends_with_tabs: bool = False
    """Whether it ends a minute after the last tab that shows its page was closed."""


class ServerAddress(Struct, frozen=True):
    """Where a server can be reached."""

    pid: int
    url: str
    """Without a path; of a Unix socket, ``http://localhost``."""
    token_file: Path
    socket: Path | None = None
    login: str = ""
    """A link for a browser, which can be used once."""
    kbs: tuple[str, ...] = ()
    """What alone it serves; by default all knowledge bases that are not private."""


def running_server(home: Path) -> ServerAddress | None:
    """Return where the server of a home can be reached; None where none is running."""
    folder = home / FOLDER
    if not is_locked(folder / "lock", if_unreadable=False):
        return None
    try:
        stored = json.loads(read_regular(folder / "server.json"))
    except (OSError, ValueError):  # it is just starting
        return None
    path = stored["socket"]
    return ServerAddress(
        stored["pid"],
        stored["url"],
        Path(stored["token_file"]),
        None if path is None else Path(path),
        kbs=tuple(stored.get("kbs", ())),  # which a server of an earlier version did not say
    )


def require_served(address: ServerAddress, home: Home, kbs: Sequence[str]) -> None:
    """Refuse to open knowledge bases that a server which is running does not serve.

    Raises:
        KnowledgeBaseNotFound: One is not there.
        UsageError: The server does not serve one.
    """
    for name in kbs:
        is_private = home.settings(name).private
        if name not in address.kbs if address.kbs else is_private:
            raise UsageError(
                f"the server of this home at {address.url} does not serve {name!r}",
                f"stop it (process {address.pid}), then run memctl open -k {name}",
            )


def new_login(address: ServerAddress) -> str:
    """Return a new login link of a server that is running.

    Raises:
        MemctlError: It does not answer, or listens where no browser can reach it.
    """
    if address.socket is not None:
        raise UsageError(
            f"the server of this home listens at {address.socket}, which no browser reaches",
            "stop it, then run memctl open again",
        )
    url = urlsplit(address.url)
    token = load_token(address.token_file)
    connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=_LOGIN_SECONDS)
    try:
        connection.request("POST", "/v1/login", headers={"Authorization": f"Bearer {token}"})
        reply = connection.getresponse()
        path = json.loads(reply.read())["path"]
    except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
        raise MemctlError(
            f"the server at {address.url} (process {address.pid}) gives no login link",
            "stop it, then run memctl open again",
        ) from error
    finally:
        connection.close()
    return f"{address.url}{path}"


def serve(home: Home, options: ServerOptions, announce: Announce) -> None:
    """Serve a home until the process is stopped; requests in hand are finished.

    Args:
        home: All knowledge bases on this disk.
        options: Where it listens, and what it serves.
        announce: Called with where, and which server, once it listens.

    Raises:
        LockedError: Another server serves this home.
        UsageError: The address cannot be had, or an origin is none.
        ConfigError: The token cannot be used.
    """
    for name in options.kbs:
        home.layout(name)
    origins = tuple(map(checked_origin, options.allow_origins))
    folder = home.config.home / FOLDER
    make_folder(folder, mode=0o700)
    with hold_lock(folder / "lock", 0, lambda: _running_already(home.config.home)):
        token_file = options.token_file or folder / "token"
        rules = AccessRules(load_token(token_file), options.host, origins, logins=Logins())
        app = create_app(home, ServeSettings(rules, options.kbs, options.read_only, options.proxy))
        with _listening_socket(options) as listener:
            url = _url(listener)
            login = f"{url}/login?code={rules.logins.new_code()}"
            address = ServerAddress(os.getpid(), url, token_file.absolute(), options.socket, login)
            stored: dict[str, Any] = {
                "pid": address.pid,
                "url": url,
                "token_file": os.fspath(address.token_file),
            }
            stored["kbs"] = options.kbs
            stored["socket"] = options.socket and os.fspath(options.socket.absolute())
            save_file(folder / "server.json", json.dumps(stored).encode())
            try:
                server = RunningServer(
                    _config(app),
                    app.state.calls,
                    lambda server: announce(address, server),
                    app.state.tabs if options.ends_with_tabs else None,
                )
                server.run([listener])
            finally:
                (folder / "server.json").unlink(missing_ok=True)


def _running_already(home: Path) -> MemctlError:
    found = running_server(home)
    where = f" at {found.url} (process {found.pid})" if found else ""
    return LockedError(f"a server of this home is running already{where}", "stop it, or use it")


def _config(app: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=_Protocol,
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_MAX_CONNECTIONS,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
    )


@contextmanager
def _listening_socket(options: ServerOptions) -> Iterator[socket.socket]:
    """Give a socket that listens; a Unix socket is its owner's alone, and removed afterwards.

    Raises:
        UsageError: The address cannot be had.
    """
    if options.socket is not None:
        with _unix_listening(options.socket) as listener:
            yield listener
        return
    try:
        family, _, _, _, address = socket.getaddrinfo(
            options.host, options.port, type=socket.SOCK_STREAM
        )[0]
        listener = socket.create_server(address[:2], family=family)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"cannot listen on {options.host} port {options.port}: {why}",
            "give another one with --port, or 0 for any that is free",
        ) from error
    with listener:
        yield listener


@contextmanager
def _unix_listening(path: Path) -> Iterator[socket.socket]:
    if path.is_socket():
        path.unlink()  # of a server that was killed: a running one holds the lock
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(os.fspath(path))
        listener.listen()
    except OSError as error:
        listener.close()
        raise UsageError(
            f"cannot listen at {path}: {error.strerror}", "name another file"
        ) from error
    finally:
        os.umask(before)
    try:
        with listener:
            yield listener
    finally:
        path.unlink(missing_ok=True)


def _url(listener: socket.socket) -> str:
    if listener.family == socket.AF_UNIX:
        return "http://localhost"
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def warning_of(options: ServerOptions) -> str:
    """Return a warning about the options; "" if there is none."""
    if options.socket is not None or is_loopback(options.host):
        return ""
    return (
        f"others can connect to {options.host}, and what goes over the network is not encrypted:"
        " put a proxy with TLS before it"
    )


class RunningServer(uvicorn.Server):
    """A server that ends streams and finishes requests in hand when it is stopped.

    uvicorn raises the signal again after that, so that the process would end by it; here it ends as
    the other long commands do.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        calls: Calls,
        started: Callable[[RunningServer], None],
        tabs: OpenTabs | None,
    ) -> None:
        super().__init__(config)
        self._calls = calls
        self._on_start = started
        self._tabs = tabs

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and call back when it listens."""
        await super().startup(sockets)
        self._on_start(self)

    async def on_tick(self, counter: int) -> bool:
        """Stop when the tabs that it was started for are closed."""
        if self._tabs is not None and self._tabs.are_closed_for(_SECONDS_WITHOUT_TABS):
            self.stop()
        return await super().on_tick(counter)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on SIGTERM and SIGINT; the second SIGINT does not wait."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        numbers = (signal.SIGTERM, signal.SIGINT)
        before = {number: signal.signal(number, self.handle_exit) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Record that it is to stop, and end all streams."""
        super().handle_exit(sig, frame)
        self._calls.closing.set()

    def stop(self) -> None:
        """Stop as a signal does; may be called from any thread."""
        self.handle_exit(signal.SIGTERM, None)


Announce = Callable[[ServerAddress, RunningServer], None]


class _Protocol(H11Protocol):
    """HTTP whose connections have to send a whole request head in time.

    uvicorn 0.54 closes a connection that is idle after a reply, and no other.
    """

    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._start_head_timer()

    def data_received(self, data: bytes) -> None:
        """Process data; the head of a request must not come too slowly."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self._start_head_timer()
        else:
            self._stop_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_head_timer()
        super().connection_lost(exc)

    def _start_head_timer(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(_HEADER_SECONDS, self.transport.close)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
