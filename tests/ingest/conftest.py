"""A real store with real vectors, and a clock that only moves when told to."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memctl.ingest.discovery.ingest_inputs import from_jsonl
from memctl.ingest.discovery.sources import NO_LABELS, Labels, from_paths
from memctl.ingest.ingest_pipeline import Ingestor
from memctl.kb_settings import KnowledgeBaseSettings
from memctl.models import BUILTIN_EMBEDDER, Embedder, load_embedder
from memctl.models.task_encoder import load_task_encoder
from memctl.records import IngestReport
from memctl.store.store import Store
from memctl.understanding.builtin_understander import BuiltinUnderstander


@dataclass
class SettableClock:
    now: datetime = datetime(2025, 3, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **by: float) -> None:
        self.now += timedelta(**by)


@dataclass
class Bench:
    """One store and what takes sources into it."""

    folder: Path
    store: Store
    ingestor: Ingestor
    clock: SettableClock

    def file(self, name: str, content: str | bytes) -> Path:
        path = self.folder / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def paths(self, *paths: Path, labels: Labels = NO_LABELS) -> IngestReport:
        return self.ingestor.ingest(from_paths(paths, labels))

    def records(self, *records: dict[str, Any]) -> IngestReport:
        lines = "".join(json.dumps(record) + "\n" for record in records)
        return self.ingestor.ingest(from_jsonl(io.BytesIO(lines.encode()), "r.jsonl"))

    def rows(self, table: str, *columns: str) -> list[dict[str, Any]]:
        snapshot = self.store.snapshot()
        names = columns or [name for name in snapshot.schema(table).names if name != "vector"]
        return snapshot.scan(table, columns=names).to_pylist()

    def rows_but_importance(self) -> list[dict[str, Any]]:
        """The memories, without what depends on what else was known at the time."""
        rows = sorted(self.rows("memories"), key=lambda row: row["id"])
        return [{**row, "importance": None} for row in rows]


@pytest.fixture(scope="session")
def embedder() -> Embedder:
    return load_embedder(BUILTIN_EMBEDDER)


@pytest.fixture
def bench(tmp_path: Path, embedder: Embedder) -> Iterator[Bench]:
    clock = SettableClock()
    settings = KnowledgeBaseSettings("test", clock(), chunk_size=200, chunk_overlap=40)
    builtin = BuiltinUnderstander(encoder=load_task_encoder())
    with Store.create(tmp_path / "kb", embedder.dimension, clock=clock) as store:
        ingestor = Ingestor(store, settings, embedder, builtin, clock)
        yield Bench(tmp_path, store, ingestor, clock)
