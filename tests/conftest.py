"""What all tests may use."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from fake_endpoint import FakeEndpoint
from hypothesis import HealthCheck, settings
from long_form import IS_LONG
from pytest_httpserver import HTTPServer

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as there is a process for each core already
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell ran this behind
settings.register_profile(
    "steady",
    deadline=None,  # how busy a machine is says nothing of a test
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=not IS_LONG,  # new examples belong in the long form
)
settings.load_profile("steady")


@pytest.fixture(scope="session", autouse=True)
def _no_wait_for_the_disk() -> Iterator[None]:
    """Nothing in this process waits until files are on the disk, which takes a third of all time.

    What is there when, after a kill or a cut, is tried in processes of their own.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="session")
def _server() -> Iterator[HTTPServer]:
    with HTTPServer(threaded=True) as server:
        yield server


@pytest.fixture
def endpoint(_server: HTTPServer) -> FakeEndpoint:
    """An OpenAI-compatible endpoint on loopback; nothing uses it until told to."""
    _server.clear()
    return FakeEndpoint(_server)


@pytest.fixture
def quick_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents are understood by rules alone: for tests of much text that ask nothing of it."""
    monkeypatch.setenv("MEMCTL_LIMITS_READ_CLOSELY", "false")
