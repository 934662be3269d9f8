"""Pages of the web that are named by their URLs, from a real server on loopback."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from memctl.ingest.discovery import downloads

if TYPE_CHECKING:
    from conftest import Run

PAGE = "<html><head><title>Minutes</title></head><body><p>{}</p></body></html>"
TEA = PAGE.format("The board met in Lisbon and chose Ann Lee as its chair.")
WHEN = {"Last-Modified": "Tue, 03 Mar 2026 08:00:00 GMT"}


def test_a_page_is_remembered_by_its_url_with_title_and_date(
    memctl: Run, httpserver: HTTPServer
) -> None:
    httpserver.expect_request("/minutes", query_string="y=2026").respond_with_data(
        gzip.compress(TEA.encode()),
        content_type="text/html",
        headers={**WHEN, "Content-Encoding": "gzip"},
    )
    url = httpserver.url_for("/minutes?y=2026")
    named = url.replace("//", "//ann:secret@")
    result = memctl("ingest", f"{named}#top", "--allow-private")
    assert (result.code, result.json["ingested"]) == (0, 1), result.err
    (row,) = memctl("document", "list").rows
    assert (row["source"], row["title"]) == (url, "Minutes")
    assert row["created_at"].startswith("2026-03-03T08:00:00")
    (receipt,) = memctl("why", url, "-o", "json").json
    assert (receipt["outcome"], receipt["path"]) == ("ingested", url)
    assert memctl("doctor").code == 0
    assert memctl("forget", "--document", row["id"], "--yes").code == 0
    assert memctl("why", url).code == 4


def test_a_page_that_has_changed_supersedes_its_earlier_version(
    memctl: Run, httpserver: HTTPServer
) -> None:
    url = httpserver.url_for("/minutes")
    codes = []
    for text in (TEA, TEA, TEA.replace("Ann Lee", "Bo Marsh")):
        httpserver.clear()
        httpserver.expect_request("/minutes").respond_with_data(text, content_type="text/html")
        report = memctl("ingest", url, "--allow-private").json
        codes.append((report["ingested"], report["skipped"], report["superseded"]))
    assert codes == [(1, 0, 0), (0, 1, 0), (1, 0, 1)]
    rows = memctl("sql", "select source, status from documents order by status").rows
    assert [(row["source"], row["status"]) for row in rows] == [
        (url, "indexed"),
        (url, "superseded"),
    ]


def test_a_page_of_this_machine_is_refused_unless_it_is_allowed(
    memctl: Run, httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    httpserver.expect_request("/").respond_with_data(TEA, content_type="text/html")
    url = f"http://127.0.0.1:{httpserver.port}/"
    refused = memctl("ingest", url)
    assert refused.code == 1
    assert f"cannot fetch {url}: 127.0.0.1 is on this machine or a private network" in refused.err
    assert "hint: give --allow-private" in refused.err
    assert httpserver.log == []
    monkeypatch.setenv("MEMCTL_WEB_ALLOW_PRIVATE", "true")
    assert memctl("ingest", url).code == 0


@pytest.mark.parametrize("target", ["http://127.0.0.2:9/secret", "file:///etc/passwd"])
def test_a_redirect_is_checked_as_the_first_address_is(
    memctl: Run, httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    public = downloads._is_public
    # Stands for a server on the internet, which no test can reach.
    monkeypatch.setattr(downloads, "_is_public", lambda at: at == "127.0.0.1" or public(at))
    httpserver.expect_request("/").respond_with_data("", 302, headers={"Location": target})
    refused = memctl("ingest", f"http://127.0.0.1:{httpserver.port}/")
    assert refused.code == 1
    assert "127.0.0.2 is on this machine" in refused.err or "no http or https" in refused.err


def test_redirects_end(memctl: Run, httpserver: HTTPServer) -> None:
    for number in range(7):
        httpserver.expect_request(f"/{number}").respond_with_data(
            "", 302, headers={"Location": f"/{number + 1}"}
        )
    httpserver.expect_request("/7").respond_with_data(TEA, content_type="text/html")
    assert memctl("ingest", httpserver.url_for("/2"), "--allow-private").code == 0
    endless = memctl("ingest", httpserver.url_for("/1"), "--allow-private")
    assert endless.code == 1
    assert "it redirects more than 5 times" in endless.err


def test_a_page_that_is_not_there_says_so(memctl: Run, httpserver: HTTPServer) -> None:
    httpserver.expect_request("/gone").respond_with_data("no", 404)
    result = memctl("ingest", httpserver.url_for("/gone"), "--allow-private")
    assert result.code == 1
    assert "the server says 404 NOT FOUND\nhint: " in result.err
    closed = memctl("ingest", "http://127.0.0.1:9/", "--allow-private")
    assert (closed.code, "cannot fetch" in closed.err) == (1, True)


@pytest.mark.parametrize("packed", [False, True])
def test_a_page_that_is_too_large_is_refused(
    memctl: Run, httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch, packed: bool
) -> None:
    monkeypatch.setenv("MEMCTL_WEB_MEGABYTES", "1")
    content = bytes(3 << 20)
    httpserver.expect_request("/").respond_with_data(
        gzip.compress(content) if packed else content,
        headers={"Content-Encoding": "gzip"} if packed else {},
    )
    result = memctl("ingest", httpserver.url_for("/"), "--allow-private")
    assert result.code == 1
    assert "it has more than 1 MB\nhint: " in result.err


@pytest.mark.parametrize("length", [{}, {"Content-Length": "5000", "Connection": "close"}])
def test_a_server_that_takes_its_time_is_left(
    memctl: Run,
    httpserver: HTTPServer,
    monkeypatch: pytest.MonkeyPatch,
    length: dict[str, str],
) -> None:
    monkeypatch.setenv("MEMCTL_WEB_SECONDS", "0.5")

    never = threading.Event()

    def drips(_: Request) -> Response:
        def body() -> Iterator[bytes]:
            for _ in range(40):
                never.wait(0.1)
                yield b"x"

        return Response(body(), headers=length)

    httpserver.expect_request("/").respond_with_handler(drips)
    result = memctl("ingest", httpserver.url_for("/"), "--allow-private")
    assert result.code == 1
    assert "it takes more than 0.5 seconds\nhint: " in result.err


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
        "0.0.0.0", "224.0.0.1", "::1", "::", "fe80::1", "fe80::1%2", "fd00::1", "ff02::1",
        "::ffff:127.0.0.1", "2002:7f00:1::", "64:ff9b::a00:1",
    ],
)  # fmt: skip
def test_addresses_of_private_networks_are_not_public(address: str) -> None:
    assert not downloads._is_public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8"])
def test_addresses_of_the_internet_are_public(address: str) -> None:
    assert downloads._is_public(address)
