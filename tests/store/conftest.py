"""A real store in a temporary folder, and rows to put in it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pytest
from msgspec.structs import replace
from waiting import PATIENCE

from memctl.records import Document, Memory
from memctl.schema.arrow_tables import memories_table
from memctl.store.store import Store

DIMENSION = 8
NOW = datetime(2025, 6, 1, 12, tzinfo=UTC)

MemoryOf = Callable[..., Memory]
RowsOf = Callable[..., pa.Table]


@pytest.fixture(scope="session")
def empty_store_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("empty") / "kb"
    Store.create(folder, DIMENSION).close()
    return folder


@pytest.fixture
def folder(empty_store_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(empty_store_folder, tmp_path / "kb"))


@pytest.fixture
def store(folder: Path) -> Iterator[Store]:
    with Store.open(folder) as opened:
        yield opened


@pytest.fixture(scope="session")
def memory_of() -> MemoryOf:
    def make(number: int | str = 0, **changes: Any) -> Memory:
        memory = Memory(
            id=f"m_{number}",
            document_id="d_1",
            level="evidence",
            type="passage",
            text=f"text {number}",
            namespace="default",
            created_at=NOW,
            valid_from=NOW,
            search_text=f"word{number} common",
        )
        return replace(memory, **changes)

    return make


@pytest.fixture(scope="session")
def document_of() -> Callable[..., Document]:
    def make(name: str = "1", **changes: Any) -> Document:
        document = Document(
            id=f"d_{name}",
            root_id=f"d_{name}",
            part=0,
            external_id=None,
            namespace="default",
            source=f"{name}.md",
            title=name,
            media_type="text/markdown",
            sha256="0" * 64,
            size=10,
            status="indexed",
            text=f"text of {name}",
            summary="",
            entities=(),
            topics=(),
            keywords=(),
            importance=0.5,
            language="en",
            tags=("t",),
            links=(),
            authors=(),
            dates=(),
            missing=(),
            reader="text/1",
            method="builtin/1",
            signals={},
            pipeline_version=1,
            created_at=NOW - timedelta(days=30),
            ingested_at=NOW - timedelta(days=30),
        )
        return replace(document, **changes)

    return make


@pytest.fixture(scope="session")
def rows_of(memory_of: MemoryOf) -> RowsOf:
    def make(numbers: Iterable[int | str], **changes: Any) -> pa.Table:
        memories = [memory_of(number, **changes) for number in numbers]
        vectors = [
            np.random.default_rng(crc32(item.id.encode())).normal(size=DIMENSION)
            for item in memories
        ]
        return memories_table(memories, np.reshape(vectors, (len(memories), DIMENSION)))

    return make


@pytest.fixture
def run_python(folder: Path) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """Run a program in a process of its own, with the store's folder as its argument."""

    def run(program: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", program, str(folder)],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    return run
