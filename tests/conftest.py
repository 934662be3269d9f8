"""What tests of every room may use."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from fake_endpoint import FakeEndpoint
from hypothesis import settings
from pytest_httpserver import HTTPServer

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell ran this behind
settings.register_profile("untimed", deadline=None)  # how busy a machine is says nothing of a test
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def _server() -> Iterator[HTTPServer]:
    with HTTPServer(threaded=True) as server:
        yield server


@pytest.fixture
def endpoint(_server: HTTPServer) -> FakeEndpoint:
    """An OpenAI-compatible endpoint on loopback; nothing uses it until told to."""
    _server.clear()
    return FakeEndpoint(_server)
