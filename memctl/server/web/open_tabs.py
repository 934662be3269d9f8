"""Which tabs of a browser show the page, so that a server made for them can end with them.

A page says when it is shown and when it is left.  A browser that is killed says nothing, nor does
one without scripts: then the server goes on until it is stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

_MAX_TABS = 1_000
_LONGEST_ID = 64


class OpenTabs:
    """The tabs that show a page.

    Args:
        clock: Seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open_tabs: set[str] = set()
        self._empty_since: float | None = None

    def show(self, tab: str) -> None:
        """Record that a tab shows a page."""
        if len(self._open_tabs) < _MAX_TABS:
            self._open_tabs.add(tab)
        self._empty_since = None

    def leave(self, tab: str) -> None:
        """Record that a tab was closed, or went on to another page, which says so itself."""
        if tab in self._open_tabs:
            self._open_tabs.remove(tab)
            if not self._open_tabs:
                self._empty_since = self._clock()

    def are_closed_for(self, seconds: float) -> bool:
        """Return whether there were tabs, and none has been open for that long."""
        return self._empty_since is not None and self._clock() - self._empty_since >= seconds


def tab_routes() -> Sequence[BaseRoute]:
    """Return the routes by which a page says that it is there."""
    return (
        Route("/tabs/{id}/shown", _show_tab, methods=["POST"]),
        Route("/tabs/{id}/left", _leave_tab, methods=["POST"]),
    )


async def _show_tab(request: Request) -> Response:
    request.app.state.tabs.show(request.path_params["id"][:_LONGEST_ID])
    return Response(status_code=204)


async def _leave_tab(request: Request) -> Response:
    request.app.state.tabs.leave(request.path_params["id"][:_LONGEST_ID])
    return Response(status_code=204)
