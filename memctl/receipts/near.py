"""Names of files that are like one of which nothing is known, for whoever has misspelt it."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import PurePath
from typing import TYPE_CHECKING

from memctl.ingest.inbox import not_its_own, scan
from memctl.ingest.sources import printable
from memctl.store.filters import col

if TYPE_CHECKING:
    from memctl.pinned import KnowledgeBaseSettings, Layout
    from memctl.store.store import Store

MOST = 3
"""So many names are told."""
_COMPARED = 20_000
"""So many are looked at: comparing letter by letter takes its time."""
_SHORTEST_PART = 3


def names_like(
    layout: Layout, settings: KnowledgeBaseSettings, store: Store, file: str
) -> list[str]:
    """Return names that are like that of a file, the most alike first.

    What is in private namespaces, or may be, is not told.

    Args:
        layout: Where the knowledge base stands.
        settings: What is pinned for it.
        store: Its tables and ledger.
        file: The name, or a path.
    """
    wanted = PurePath(file).name.casefold()
    names: dict[str, str] = {}
    for name in _names(layout, settings, store):
        last = PurePath(name).name
        names.setdefault(last.casefold(), last)
        if len(names) >= _COMPARED:
            break
    parts = [each for each in names if _is_part(wanted, each) or _is_part(each, wanted)]
    parts.sort(key=lambda each: abs(len(each) - len(wanted)))
    alike = get_close_matches(wanted, names, MOST)
    return [names[each] for each in dict.fromkeys([*alike, *parts])][:MOST]


def _is_part(one: str, other: str) -> bool:
    return len(one) >= _SHORTEST_PART and one in other


def _names(layout: Layout, settings: KnowledgeBaseSettings, store: Store) -> Iterator[str]:
    """Yield what lies in inboxes, what documents go by and, if nothing is private, all files."""
    for inbox in settings.inboxes:
        for file in scan(inbox.path, not_its_own(layout, inbox.path)).files:
            yield printable(file.path)
    private = settings.private_namespaces
    if not private:
        yield from store.ledger.receipts.paths()
    for batch in store.snapshot().batches("documents", col("part") == 0, ["source", "namespace"]):
        for row in batch.to_pylist():
            if row["namespace"] not in private:
                yield row["source"]
