"""The HTTP server: its routes, its middleware, and how it starts and stops.

Nothing but ``memctl serve`` imports this: Starlette and uvicorn come with the extra ``serve``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from msgspec import Struct
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from memctl import __version__
from memctl.errors import MemctlError
from memctl.server.http_access import (
    COOKIE,
    AccessGuard,
    AccessRules,
    error_reply,
)
from memctl.server.http_agents import AGENT_ENDPOINTS
from memctl.server.http_aliases import ALIASES, alias_routes
from memctl.server.http_calls import Caller, Calls, failure_reply, json_reply
from memctl.server.http_endpoints import operation_route, route_of
from memctl.server.http_jobs import JobQueue
from memctl.server.http_mcp import mcp_routes
from memctl.server.http_openapi import openapi_routes
from memctl.server.http_pages import PAGES
from memctl.server.http_routes import ENDPOINTS
from memctl.server.http_streams import stream_routes
from memctl.server.http_uploads import JOB_KINDS, upload_routes
from memctl.server.proxy import ProxySettings, proxy_routes, warm_up
from memctl.server.web import web_routes
from memctl.server.web.open_tabs import OpenTabs
from memctl.server.web.pages import as_page

if TYPE_CHECKING:
    from memctl.home import Home


class ServeSettings(Struct, frozen=True):
    """How a home is served."""

    access: AccessRules
    kbs: tuple[str, ...] = ()
    """Those that are offered; by default all that are not private."""
    read_only: bool = False
    proxy: ProxySettings | None = None
    """What chats are passed on to; by default nothing."""


def create_app(home: Home, settings: ServeSettings) -> Starlette:
    """Return the application that serves a home.

    Args:
        home: All knowledge bases on this disk.
        settings: Who may come in, and what is offered.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        """Run the queue of jobs for as long as the application is served."""
        calls: Calls = app.state.calls
        jobs: JobQueue = app.state.jobs
        jobs.start()
        if settings.proxy is not None:
            warmed = calls.in_thread(lambda: calls.carry_out(Caller(), warm_up))
            app.state.warming = asyncio.ensure_future(warmed)
        try:
            yield
        finally:
            jobs.stop()
            calls.close()

    access = settings.access
    middleware = [Middleware(AccessGuard, rules=access, as_page=as_page)]
    if access.allow_origins:
        middleware.insert(
            0,
            Middleware(
                CORSMiddleware,
                allow_origins=access.allow_origins,
                allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
                allow_headers=["*"],
            ),
        )
    app = Starlette(
        routes=[
            *(proxy_routes(settings.proxy) if settings.proxy else ()),
            *_routes(),
            *web_routes(),
        ],
        middleware=middleware,
        exception_handlers={
            MemctlError: _failure_page,
            HTTPException: _failure_page,
            ClientDisconnect: _failure_page,
            Exception: _failure_page,
        },
        lifespan=lifespan,
    )
    app.state.calls = Calls(home, settings.kbs, read_only=settings.read_only)
    app.state.jobs = JobQueue(app.state.calls, JOB_KINDS)
    app.state.access = access
    app.state.tabs = OpenTabs()
    return app


def _routes() -> Sequence[BaseRoute]:
    endpoints = (*ENDPOINTS, *AGENT_ENDPOINTS, *PAGES, *ALIASES)
    return (
        Route("/health", _health),
        Route("/login", _log_in),
        Route("/v1/login", _new_login, methods=["POST"]),
        *mcp_routes(),
        operation_route(),
        *stream_routes(),
        *upload_routes(),
        *alias_routes(),
        *map(route_of, endpoints),
        *openapi_routes(endpoints),
    )


def _failure_page(request: Request, error: Exception) -> Response:
    return as_page(request.headers.get("accept", ""), failure_reply(request, error))


async def _health(_: Request) -> Response:
    return json_reply({"status": "ok", "version": __version__})


async def _log_in(request: Request) -> Response:
    """Exchange a one-time code for a cookie, and redirect to the page."""
    access: AccessRules = request.app.state.access
    if request.method == "HEAD":  # a program that looks ahead must not use up the code
        return Response()
    session = access.logins.redeem(request.query_params.get("code", ""))
    if session is None:
        hint = "memctl open makes a new one"
        refused = error_reply(403, "this login link was used before, or is too old", hint)
        return as_page(request.headers.get("accept", ""), refused)
    reply = RedirectResponse("/", 303)
    reply.set_cookie(COOKIE, session, httponly=True, samesite="strict", path="/")
    reply.headers["cache-control"] = "no-store"
    return reply


async def _new_login(request: Request) -> Response:
    """Make a one-time login link, for a program that has the token."""
    access: AccessRules = request.app.state.access
    return json_reply({"path": f"/login?code={access.logins.new_code()}"})
