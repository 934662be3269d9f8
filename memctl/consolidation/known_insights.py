"""The insights that exist already, so that a group has one, which is kept up to date."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from msgspec import Struct

if TYPE_CHECKING:
    from memctl.store.tables.snapshot import Snapshot

COMMON = "common"
"""The family of insights that tell of a whole group, whatever they find in it."""

INSIGHT_COLUMNS = ("id", "text", "namespace", "source_ids", "metadata", "version")


class KnownInsight(Struct, frozen=True):
    """A valid insight, as far as it matters for telling whether a new one replaces it."""

    id: str
    kind: str
    about: str
    text: str
    namespace: str
    source_ids: frozenset[str]
    version: int
    is_whole: bool

    @property
    def family(self) -> str:
        """See ``Draft.family``."""
        return COMMON if self.is_whole else self.kind


class KnownInsights:
    """The valid insights by what they rest on; kept in step with what a run adds."""

    def __init__(self, insights: Iterable[KnownInsight] = ()) -> None:
        self._insights: dict[str, KnownInsight] = {}
        self._by_source: dict[str, set[str]] = {}
        self._by_topic: dict[tuple[str, str, str], set[str]] = {}
        for insight in insights:
            self.add(insight)

    @classmethod
    def of_rows(cls, rows: pa.Table) -> KnownInsights:
        """Read rows of ``memories`` with the columns `INSIGHT_COLUMNS`."""
        return cls(_insight_of_row(row) for row in rows.to_pylist())

    def __iter__(self) -> Iterator[KnownInsight]:
        yield from list(self._insights.values())

    def add(self, insight: KnownInsight) -> None:
        """Remember an insight that a run has made."""
        self._insights[insight.id] = insight
        for source in insight.source_ids:
            self._by_source.setdefault(source, set()).add(insight.id)
        self._by_topic.setdefault(_topic(insight), set()).add(insight.id)

    def remove(self, id_: str) -> None:
        """Forget an insight that is no longer valid."""
        insight = self._insights.pop(id_)
        for source in insight.source_ids:
            self._by_source[source].discard(id_)
        self._by_topic[_topic(insight)].discard(id_)

    def resting_on(self, ids: Iterable[str]) -> list[KnownInsight]:
        """The insights that rest on any of these memories."""
        found = {known for id_ in ids for known in self._by_source.get(id_, ())}
        return [self._insights[known] for known in sorted(found)]

    def about(self, namespace: str, family: str, about: str) -> list[KnownInsight]:
        """The insights of one family about one thing."""
        found = self._by_topic.get((namespace, family, about), ())
        return [self._insights[known] for known in sorted(found)]


def _topic(insight: KnownInsight) -> tuple[str, str, str]:
    return (insight.namespace, insight.family, insight.about)


def _insight_of_row(row: Mapping[str, Any]) -> KnownInsight:
    metadata = json.loads(row["metadata"] or "{}")
    kind = str(metadata.get("kind", COMMON))
    return KnownInsight(
        id=row["id"],
        kind=kind,
        about=str(metadata.get("about", "")),
        text=str(row["text"]),
        namespace=str(row["namespace"]),
        source_ids=frozenset(row["source_ids"] or ()),
        version=int(row["version"] or 1),
        is_whole=bool(metadata.get("whole", kind == COMMON)),
    )


def valid_memories(snapshot: Snapshot, ids: Iterable[str], now: datetime) -> set[str]:
    """Return those of some memories that are there, hold and have not expired."""
    rows = snapshot.get("memories", sorted(set(ids)), ["id", "valid_to", "expires_at"]).to_pylist()
    ends = ("valid_to", "expires_at")
    return {row["id"] for row in rows if all(row[end] is None or row[end] > now for end in ends)}
