"""What all tests may use."""

from __future__ import annotations

import gc
import os
import shutil
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import FakeEndpoint
from hypothesis import HealthCheck, settings
from long_form import IS_LONG
from pytest_httpserver import HTTPServer

from memctl.instants import utc_now
from memctl.store.ledger.ledger import Ledger
from memctl.store.store import EMBEDDER, LEDGER_FILE, Store

MEMORY = Path("/dev/shm")
ROOMY = 1 << 30
"""How many bytes a file system in memory has to have left for the folders of tests."""

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as there is a process for each core already
if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOMY:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))  # deletes and syncs fast
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell ran this behind
settings.register_profile(
    "steady",
    deadline=None,  # how busy a machine is says nothing of a test
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=not IS_LONG,  # new examples belong in the long form
)
settings.load_profile("steady")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage among the tests, which all stay: neither now nor later."""
    gc.disable()
    result = yield
    gc.freeze()
    gc.enable()
    return result


@pytest.fixture(scope="session", autouse=True)
def _no_wait_for_the_disk() -> Iterator[None]:
    """Nothing in this process waits until files are on the disk, which is slow beside others.

    What is there when, after a kill or a cut, is tried in processes of their own.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _empty_stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A new store in this process is a copy of an empty one: a tenth of the time to make it."""
    create, empty = Store.create.__func__, tmp_path_factory.mktemp("empty")

    def copied(cls: type[Store], folder: Path, dimension: int, **more: Any) -> Store:
        original = empty / str(dimension)
        if any((folder / name).exists() for name in ("lance", LEDGER_FILE)):
            return create(cls, folder, dimension, **more)
        if not original.exists():
            create(cls, original, dimension).close()
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copytree(original / "lance", folder / "lance")
        shutil.copyfile(original / LEDGER_FILE, folder / LEDGER_FILE)
        embedder, clock = more.get("embedder"), more.get("clock", utc_now)
        ledger = Ledger.create(folder / LEDGER_FILE)
        if embedder:
            with ledger.transaction():
                ledger.set_meta(EMBEDDER, embedder)
        return cls(folder, ledger, dimension, clock)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "create", classmethod(copied))
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
