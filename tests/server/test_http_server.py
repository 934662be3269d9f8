"""The server as a process, and over real sockets."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
from serving import listening
from waiting import PATIENCE

from memctl.cli.main import run
from memctl.config import load_config
from memctl.home import Home
from memctl.server import http_server
from memctl.server.http_access import load_token
from memctl.server.http_jobs import FOLDER
from memctl.server.http_server import ServerAddress, running_server

DOCS = Path(__file__).parents[2] / "docs" / "http.md"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with one knowledge base."""
    made = Home(load_config({"home": str(tmp_path_factory.mktemp("server"))}, {}))
    made.create("default")
    with made.open("default") as base:
        base.ingest(text="The launch is on 12 May 2026.")
    return made


@contextmanager
def process(home: Home, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server process, and where it says it is."""
    environment = {**os.environ, "MEMCTL_HOME": str(home.config.home)}
    started = subprocess.Popen(
        [sys.executable, "-m", "memctl", "serve", "--port", "0", *options],
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )
    try:
        assert started.stderr is not None
        line = started.stderr.readline()
        found = re.search(r"http://\S+", line)
        assert found, line + started.stderr.read()
        yield started, found[0]
    finally:
        started.kill()
        started.communicate(timeout=PATIENCE)


def client_of(address: ServerAddress) -> httpx.Client:
    """A client that has the token."""
    headers = {"Authorization": f"Bearer {load_token(address.token_file)}"}
    transport = httpx.HTTPTransport(uds=str(address.socket)) if address.socket else None
    return httpx.Client(
        base_url=address.url, headers=headers, transport=transport, timeout=PATIENCE
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_and_what_is_in_hand_is_finished(
    home: Home, number: signal.Signals
) -> None:
    with process(home) as (server, url):
        token = load_token(home.config.home / "serve" / "token")
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=url, headers=headers, timeout=PATIENCE) as client:
            body = {"text": f"Said before signal {number}."}
            later = {"Prefer": "respond-async"}
            sent = client.post("/v1/kbs/default/ingest", json=body, headers=later)
            with client.stream("GET", "/v1/events") as events:
                lines = events.iter_lines()
                assert next(lines) == ": listening"
                server.send_signal(number)
                list(lines)  # the stream ends
        assert sent.status_code == 202
        assert server.wait(PATIENCE) == 0
    left = list((home.layout("default").folder / FOLDER).rglob("request.json"))
    with home.open("default") as base:
        found = base.sql("select text from documents").read_all()["text"].to_pylist()
    assert body["text"] in found or left, "taken in, or kept for the next start"
    assert running_server(home.config.home) is None


def test_a_killed_upload_leaves_nothing_half_written(home: Home) -> None:
    folder = home.layout("default").folder / FOLDER
    with process(home) as (server, url):
        host, port = url.removeprefix("http://").split(":")
        token = load_token(home.config.home / "serve" / "token")
        with socket.create_connection((host, int(port)), PATIENCE) as connection:
            head = (
                "POST /v1/kbs/default/ingest?filename=half.txt HTTP/1.1\r\n"
                f"Host: {host}\r\nAuthorization: Bearer {token}\r\n"
                "Content-Type: application/octet-stream\r\nContent-Length: 5000\r\n"
                "Expect: 100-continue\r\n\r\n"
            )
            connection.sendall(head.encode())
            assert b"100" in connection.recv(100), "it is reading the body"
            connection.sendall(b"x" * 2500)
            server.kill()
            server.wait(PATIENCE)
    with listening(home) as address, client_of(address) as client:
        assert client.get("/health").status_code == 200
        sources = [row["source"] for row in client.get("/v1/kbs/default/documents").json()["items"]]
        assert "half.txt" not in sources
    assert [path for path in folder.rglob("*") if path.is_file()] == []


def test_a_second_server_of_a_home_says_where_the_first_is(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    with listening(home) as address:
        assert running_server(home.config.home) is not None
        code = run(["--home", str(home.config.home), "serve", "--port", "0"])
        said = capsys.readouterr().err
        assert code == 11
        assert address.url in said
        assert "hint: " in said
    assert running_server(home.config.home) is None


def test_a_port_that_is_taken_is_told(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert run(["--home", str(home.config.home), "serve", "--port", port]) == 2
    assert f"cannot listen on 127.0.0.1 port {port}" in capsys.readouterr().err
    named = ["--home", str(home.config.home), "serve", "--port", "0", "-k", "nowhere"]
    assert run(named) == 10


def test_without_the_extra_it_says_how_to_get_it(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert run(["--home", str(home.config.home), "serve"]) == 2
    said = capsys.readouterr().err
    assert "memctl serve needs starlette" in said
    assert "pip install -e '.[serve]' in the checkout" in said


def test_a_unix_socket_is_its_owners_alone(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "memctl.sock"
    with listening(home, socket=path) as address:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
        with client_of(address) as client:
            assert client.get("/v1/kbs").json()["total"] == 1
    assert not path.exists()


def test_idle_and_slow_connections_do_not_keep_others_out(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "_HEADER_SECONDS", 0.5)
    with listening(home) as address, ExitStack() as stack:
        host, port = address.url.removeprefix("http://").split(":")
        for _ in range(300):
            idle = stack.enter_context(socket.create_connection((host, int(port)), PATIENCE))
        slow = stack.enter_context(socket.create_connection((host, int(port)), PATIENCE))
        slow.sendall(b"GET /health HTTP/1.1\r\nHost: ")
        with client_of(address) as client:
            assert client.get("/v1/kbs").status_code == 200
        assert idle.recv(1) == b"", "it is closed by the server"
        assert slow.recv(1) == b""


def test_readers_and_a_writer_go_on_side_by_side(home: Home) -> None:
    with listening(home) as address, client_of(address) as client:
        before = client.get("/v1/kbs/default/documents").json()["total"]
        places = [
            client.post(
                "/v1/kbs/default/ingest",
                json={"text": f"Line {number} of the log."},
                headers={"Prefer": "respond-async"},
            ).headers["location"]
            for number in range(5)
        ]
        while any(client.get(place).json()["state"] in ("waiting", "running") for place in places):
            found = client.post("/v1/query", json={"question": "When is the launch?"})
            assert "12 May" in found.json()["answer"]["text"]
        assert client.get("/v1/kbs/default/documents").json()["total"] == before + 5


def test_every_example_of_the_page_runs(home: Home, tmp_path: Path) -> None:
    blocks = re.findall(r"```sh\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
    examples = [block for block in blocks if "curl" in block]
    assert len(examples) >= 5
    (tmp_path / "minutes.md").write_text("# Minutes\n\nThe launch is on 12 May 2026.")
    folders = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {**os.environ, "PATH": folders, "MEMCTL_HOME": str(home.config.home)}
    with listening(home) as address:
        token = shlex.quote(load_token(address.token_file))
        for block in examples:
            text = block.replace("http://127.0.0.1:8420", address.url)
            text = re.sub(r"TOKEN=.*", f"TOKEN={token}", text)
            script = f"set -e\nTOKEN={token}\n{text.replace('curl ', 'curl --fail-with-body ')}"
            done = subprocess.run(
                ["bash", "-c", script], capture_output=True, text=True, cwd=tmp_path, check=False,
                timeout=PATIENCE, env=environment,
            )  # fmt: skip
            assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
