"""The web page: what people look at in a browser, served beside the HTTP interface.

Every page is also JSON, and whatever it changes goes through what the command line calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from memctl.server.web import (
    agent_pages,
    ask_pages,
    memory_pages,
    overview_pages,
    upkeep_pages,
)
from memctl.server.web.open_tabs import tab_routes
from memctl.server.web.pages import change, page, parent_redirects

_STATIC = Path(__file__).parent / "static"


def web_routes() -> Sequence[BaseRoute]:
    """Return the routes of the web page, which come after those of the HTTP interface."""
    routes = (
        page("/", ask_pages.start),
        change("/ask", ask_pages.ask, "read"),
        change("/feedback", ask_pages.judge),
        page("/timeline", overview_pages.timeline),
        page("/memories", memory_pages.memories),
        page("/memories/new", memory_pages.new_memory),
        change("/memories/new", memory_pages.add_memory),
        page("/memories/{id}", memory_pages.memory),
        change("/memories/{id}/edit", memory_pages.edit_memory),
        page("/memories/{id}/forget", memory_pages.preview_memory),
        change("/memories/{id}/forget", memory_pages.remove_memory, "destructive"),
        page("/documents", memory_pages.documents),
        page("/documents/{id}", memory_pages.document),
        page("/documents/{id}/links", memory_pages.linked_pages),
        change("/documents/{id}/edit", memory_pages.edit_document),
        page("/documents/{id}/link", memory_pages.preview_link),
        change("/documents/{id}/link", memory_pages.make_link),
        change("/documents/{id}/reprocess", memory_pages.reprocess),
        page("/documents/{id}/forget", memory_pages.preview_document),
        change("/documents/{id}/forget", memory_pages.remove_document, "destructive"),
        page("/insights", overview_pages.insights),
        page("/sessions", memory_pages.sessions),
        page("/sessions/{id:path}/forget", memory_pages.preview_session),
        change("/sessions/{id:path}/forget", memory_pages.forget_session, "destructive"),
        change("/sessions/{id:path}/archive", memory_pages.archive_session),
        page("/sessions/{id:path}", memory_pages.session),
        page("/graph", overview_pages.graph),
        page("/pools", agent_pages.pools),
        page("/pools/{id}", agent_pages.pool),
        page("/skills", agent_pages.skills),
        page("/skills/{id}", agent_pages.skill),
        page("/inbox", upkeep_pages.inbox),
        change("/inbox", upkeep_pages.receive),
        change("/inbox/take-in", upkeep_pages.take_in_waiting),
        change("/inbox/try-again", upkeep_pages.try_again),
        page("/upkeep", upkeep_pages.upkeep),
        change("/upkeep/consolidate", upkeep_pages.consolidate),
        page("/upkeep/jobs/{job}", upkeep_pages.preview_undo),
        change("/upkeep/jobs/{job}", upkeep_pages.undo, "destructive"),
        page("/settings", upkeep_pages.settings),
        change("/settings/models", upkeep_pages.test_models, "read"),
        Mount("/static", StaticFiles(directory=_STATIC)),
        Route("/favicon.ico", _icon),
    )
    return (*routes, *parent_redirects(routes), *tab_routes())


async def _icon(_: Request) -> Response:
    return Response((_STATIC / "icon.svg").read_bytes(), media_type="image/svg+xml")
