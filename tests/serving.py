"""An HTTP server of memory in this process, and clients of it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient
from waiting import PATIENCE

from memctl.config import load_config
from memctl.home import Home
from memctl.instants import utc_now
from memctl.server.http_access import AccessRules, Logins
from memctl.server.http_app import ServeSettings, create_app
from memctl.server.http_server import RunningServer, ServerAddress, ServerOptions, serve
from memctl.server.proxy import ProxySettings

TOKEN = "a-token-of-tests-with-more-than-32-characters"
URL = "http://127.0.0.1"


class Serve:
    """Starts servers of one home, one for each way it is served, and gives clients of them.

    Args:
        home: Of the knowledge bases.
        stack: Ends the servers.
        clock: What tells the time.
    """

    def __init__(
        self, home: Path, stack: ExitStack, clock: Callable[[], datetime] = utc_now
    ) -> None:
        settings = {"home": str(home), "watch.settle_seconds": "0.1"}
        self.home = Home(load_config(settings, {}), clock)
        self._stack = stack
        self._logins = Logins()
        self._apps: dict[Any, Any] = {}

    def __call__(
        self,
        *,
        token: str | None = TOKEN,
        kbs: tuple[str, ...] = (),
        read_only: bool = False,
        proxy: ProxySettings | None = None,
        **rules: Any,
    ) -> TestClient:
        """Return a client of a server that is started like this."""
        key = (kbs, read_only, proxy, *sorted(rules.items()))
        if key not in self._apps:
            access = AccessRules(TOKEN, logins=self._logins, **rules)
            app = create_app(self.home, ServeSettings(access, kbs, read_only, proxy))
            self._stack.enter_context(TestClient(app, URL))  # which begins and ends it
            self._apps[key] = app
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return TestClient(self._apps[key], URL, headers=headers)

    def browser(self) -> TestClient:
        """Return a client without a token, which keeps cookies."""
        return self(token=None)


@contextmanager
def running(home: Home, **options: Any) -> Iterator[tuple[ServerAddress, threading.Thread]]:
    """Serve a home on a port of its own until the block ends; give the thread that does so, too."""
    addresses: queue.Queue[ServerAddress] = queue.Queue()
    servers: list[RunningServer] = []

    def started(address: ServerAddress, server: RunningServer) -> None:
        servers.append(server)
        addresses.put(address)

    thread = threading.Thread(
        target=serve, args=(home, ServerOptions(port=0, **options), started), name="server"
    )
    thread.start()
    try:
        yield addresses.get(timeout=PATIENCE), thread
    finally:
        servers[0].stop()
        thread.join(PATIENCE)
        assert not thread.is_alive()


@contextmanager
def listening(home: Home, **options: Any) -> Iterator[ServerAddress]:
    """Serve a home on a port of its own, in a thread, until the block ends."""
    with running(home, **options) as (address, _):
        yield address


@contextmanager
def serving(home: Path, clock: Callable[[], datetime] = utc_now) -> Iterator[Serve]:
    """Serve a home until the block ends."""
    with ExitStack() as stack:
        yield Serve(home, stack, clock)
