"""Real knowledge bases in a temporary folder, written through the store, to be searched."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memctl.ids import root_id
from memctl.language.term_analysis import embedding_text, passage_terms
from memctl.models import BUILTIN_EMBEDDER, Embedder, load_embedder
from memctl.records import Document, Memory
from memctl.schema.arrow_tables import documents_table, memories_table
from memctl.search.ranking.reranking import NO_RERANKING, Reranking
from memctl.search.searcher import Searcher
from memctl.store.store import Store

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
WRITTEN = datetime(2026, 1, 1, tzinfo=UTC)

ROASTERY = {
    "lease": "The lease for the Harbour Street workshop starts on 1 June 2026. "
    "The rent is 1,450 euros a month. Quayside Estates pays for the new front door.",
    "permit": "Brandstad Metal builds the flue. The city has allowed the flue on 8 May.",
    "coffee": "Our main supplier of green coffee is Huila Direct. Their beans come from Colombia.",
    "people": "Ines is allergic to hazelnuts. Tomás measured the ceiling with a laser.",
    "move": "Kranich Transport moves the roaster on 18 June 2026 for 1,180 euros.",
    "garden": "We planted tomatoes and basil behind the house last spring.",
}


def memory(id: str, text: str, **more: Any) -> Memory:
    """A passage, or with ``level`` and ``type`` another memory, as ingest would write it."""
    values: dict[str, Any] = {
        "document_id": f"d_{id}",
        "external_id": id,
        "level": "evidence",
        "type": "passage",
        "namespace": "",
        "created_at": WRITTEN,
        "valid_from": WRITTEN,
        "source": f"{id}.md",
        "start": 0,
        "end": len(text),
    } | more
    terms = passage_terms(values.get("title", ""), values.get("heading", ""), text)
    return Memory(id=f"m_{id}", text=text, search_text=" ".join(terms), **values)


def document(id: str, language: str) -> Document:
    empty: dict[str, Any] = dict.fromkeys(
        ("entities", "topics", "keywords", "tags", "links", "authors", "dates", "missing"), ()
    )
    return Document(
        id=id, root_id=root_id(id), part=int(id.partition(".")[2] or 0), external_id=None,
        namespace="", source="s", title="",
        media_type="text/plain", sha256="0", size=1, status="indexed", text="", summary="",
        importance=0.5, language=language, reader="r", method="m", signals={}, pipeline_version=1,
        created_at=WRITTEN, ingested_at=WRITTEN, **empty,
    )  # fmt: skip


@dataclass
class Shelf:
    """Makes knowledge bases and a searcher over all of them."""

    folder: Path
    embedder: Embedder
    stores: dict[str, Store] = field(default_factory=dict)

    def put(self, memories: Sequence[Memory], kb: str = "kb", language: str = "") -> None:
        store = self.stores.get(kb) or Store.create(self.folder / kb, self.embedder.dimension)
        self.stores[kb] = store
        texts = [embedding_text(m.title, m.heading, m.text) for m in memories]
        with store.write() as transaction:
            transaction.append("memories", memories_table(memories, self.embedder.embed(texts)))
            if language:
                ids = [m.document_id or m.id for m in memories]
                rows = documents_table([document(id, language) for id in ids])
                transaction.append("documents", rows)

    def searcher(self, reranking: Reranking = NO_RERANKING) -> Searcher:
        snapshots = {name: store.snapshot() for name, store in self.stores.items()}
        embedders = dict.fromkeys(snapshots, self.embedder)
        return Searcher(snapshots, embedders, lambda: NOW, reranking)


@pytest.fixture(scope="session")
def embedder() -> Embedder:
    return load_embedder(BUILTIN_EMBEDDER)


@pytest.fixture
def shelf(tmp_path: Path, embedder: Embedder) -> Iterator[Shelf]:
    made = Shelf(tmp_path, embedder)
    yield made
    for store in made.stores.values():
        store.close()


@pytest.fixture(scope="session")
def roastery(tmp_path_factory: pytest.TempPathFactory, embedder: Embedder) -> Iterator[Searcher]:
    made = Shelf(tmp_path_factory.mktemp("roastery"), embedder)
    made.put([memory(id, text) for id, text in ROASTERY.items()])
    yield made.searcher()
    made.stores["kb"].close()


MemoryOf = Callable[..., Memory]


@pytest.fixture(scope="session")
def memory_of() -> MemoryOf:
    return memory
