"""Puts notes into a real store as ingest would: one passage each, with the names they mention."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memctl.consolidation.consolidator import Consolidator
from memctl.ids import document_id, memory_id
from memctl.language.term_analysis import embedding_text, passage_terms
from memctl.models import BUILTIN_EMBEDDER, load_embedder
from memctl.models.protocols import Embedder
from memctl.records import Memory
from memctl.schema.arrow_tables import memories_table, memory_rows
from memctl.store.store import Store
from memctl.store.tables.filter_expressions import col

NOW = datetime(2026, 8, 1, 12, 0, tzinfo=UTC)
_NAME = re.compile(r"(?<![.!?] )(?<!^)\b[A-Z][a-z]+(?: [A-Z][a-z]+)*", re.MULTILINE)


@dataclass
class Clock:
    """A clock that goes only when told to."""

    now: datetime = NOW

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


def note(
    text: str,
    day: str,
    source: str,
    *,
    namespace: str = "",
    type_: str = "passage",
    importance: float = 0.5,
    entities: Sequence[str] | None = None,
) -> Memory:
    """One short note, all of it one passage."""
    created = datetime.fromisoformat(day).replace(tzinfo=UTC)
    document = document_id(namespace, source)
    names = entities if entities is not None else list(dict.fromkeys(_NAME.findall(text)))
    return Memory(
        id=memory_id(document, type_, 0, len(text)),
        document_id=document,
        level="evidence" if type_ == "passage" else "memory",
        type=type_,
        text=text,
        namespace=namespace,
        created_at=created,
        valid_from=NOW,
        search_text=" ".join(passage_terms("", "", text)),
        source=f"/inbox/{source}",
        start=0,
        end=len(text),
        entities=tuple(names),
        importance=importance,
    )


class Base:
    """A store with an embedder and a clock."""

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        self.embedder = embedder
        self.clock = Clock()
        self.store = Store.open(folder, clock=self.clock)

    def add(self, *notes: Memory) -> None:
        texts = [embedding_text(item.title, item.heading, item.text) for item in notes]
        with self.store.write() as transaction:
            transaction.upsert("memories", memories_table(list(notes), self.embedder.embed(texts)))

    def consolidator(self, **options: object) -> Consolidator:
        return Consolidator(self.store, self.embedder, self.clock, **options)  # type: ignore[arg-type]

    def memories(self) -> dict[str, Memory]:
        return {m.id: m for m in memory_rows(self.store.snapshot().scan("memories"))}

    def insights(self) -> list[Memory]:
        valid = (col("level") == "insight") & col("valid_to").is_null()
        return memory_rows(self.store.snapshot().scan("memories", valid))


@pytest.fixture(scope="session")
def embedder() -> Embedder:
    return load_embedder(BUILTIN_EMBEDDER)


@pytest.fixture(scope="session")
def empty_folder(tmp_path_factory: pytest.TempPathFactory, embedder: Embedder) -> Path:
    folder = tmp_path_factory.mktemp("empty") / "kb"
    Store.create(folder, embedder.dimension).close()
    return folder


@pytest.fixture
def base(empty_folder: Path, tmp_path: Path, embedder: Embedder) -> Iterator[Base]:
    made = Base(Path(shutil.copytree(empty_folder, tmp_path / "kb")), embedder)
    yield made
    made.store.close()


@pytest.fixture(scope="session", name="note")
def note_fixture() -> Callable[..., Memory]:
    return note
