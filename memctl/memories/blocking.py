"""Documents that stay lose some of their words, in their text and in every passage of it.

A text that is to go becomes a row of blocks of the same length, so that everything else stays
where it was.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from memctl.ingest.stored import REDACTED
from memctl.memories.editing import forget
from memctl.store.filters import col
from memctl.store.schema import VECTOR, vector_array
from memctl.understand.passage import passage_for_embedding, passage_terms

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.models.protocols import Embedder
    from memctl.store.names import TableName
    from memctl.store.transaction import Transaction

_BLOCK = "█"
_WORD = re.compile(r"\w")
KEPT = frozenset(
    {
        "id", "root_id", "document_id", "external_id", "namespace", "media_type", "sha256",
        "status", "language", "reader", "method", "superseded_by", "level", "type",
        "source_ids", "search_text",
    }
)  # fmt: skip
"""Columns of text that are no words of a source."""
_FOUND_IN_TEXT = ("entities", "topics", "keywords", "dates", "links")

Patterns = Sequence[re.Pattern[str]]


def blocked(text: str, patterns: Patterns) -> str:
    """Return a text with blocks in place of what goes."""
    for pattern in patterns:
        text = pattern.sub(lambda found: _BLOCK * len(found[0]), text)
    return text


def matches(row: dict[str, Any], patterns: Patterns, kept: frozenset[str] = KEPT) -> bool:
    """Tell whether a column of a row has some of what goes, those that are kept aside."""
    for name, value in row.items():
        if value and name not in kept:
            whole = "\n".join(value) if isinstance(value, list) else str(value)
            if any(pattern.search(whole) for pattern in patterns):
                return True
    return False


def block_out(
    transaction: Transaction,
    roots: Iterable[str],
    patterns: Patterns,
    embedder: Callable[[], Embedder],
) -> None:
    """Block out words of documents, by the id of their first part, and drop relations with them."""
    for root in roots:
        rows = transaction.snapshot().scan("documents", col("root_id") == root)
        parts = [_blocked(row, patterns) for row in rows.to_pylist()]
        for part in parts:
            part["metadata"] = _marked(part["metadata"])
            _keep_said(part)
        _write(transaction, "documents", rows.schema, parts)
        for part in parts:
            _block_passages(transaction, part, patterns, embedder)
    relations = transaction.snapshot().scan("relations")
    naming = [row["id"] for row in relations.to_pylist() if matches(row, patterns)]
    transaction.delete("relations", col("id").is_in(naming))


def _block_passages(
    transaction: Transaction,
    part: dict[str, Any],
    patterns: Patterns,
    embedder: Callable[[], Embedder],
) -> None:
    rows = transaction.snapshot().scan("memories", col("document_id") == part["id"])
    changed: list[dict[str, Any]] = []
    bare: list[str] = []
    for row in rows.to_pylist():
        new = _blocked(row, patterns)
        if row["level"] == "evidence" and row["start"] is not None:
            new["text"] = part["text"][row["start"] : row["end"]]
        if new == row:
            continue
        _keep_said(new)
        if _WORD.search(new["text"]):
            words = (new["title"] or "", new["heading"] or "", new["text"])
            new["search_text"] = " ".join(passage_terms(*words, part["language"] or ""))
            changed.append(new)
        else:
            bare.append(row["id"])
    if bare:
        transaction.deletions.keep(dict.fromkeys(bare, part["id"]))
        forget(transaction, bare)
    if changed:
        said = [
            passage_for_embedding(row["title"] or "", row["heading"] or "", row["text"])
            for row in changed
        ]
        _write(transaction, "memories", rows.schema, changed, embedder().embed(said))


def _write(
    transaction: Transaction,
    table: TableName,
    schema: pa.Schema,
    rows: Sequence[dict[str, Any]],
    vectors: Any = None,
) -> None:
    import pyarrow as pa

    names = [name for name in schema.names if name != VECTOR]
    columns = {
        name: pa.array([row[name] for row in rows], schema.field(name).type) for name in names
    }
    if vectors is not None:
        columns[VECTOR] = vector_array(vectors)
    transaction.update(table, pa.table(columns))


def _blocked(row: dict[str, Any], patterns: Patterns) -> dict[str, Any]:
    """Return a row with blocks in place of what goes; items of lists that have it are left out."""
    return {
        name: value if name in KEPT else _blocked_value(value, patterns)
        for name, value in row.items()
    }


def _blocked_value(value: Any, patterns: Patterns) -> Any:
    if isinstance(value, list):
        return [
            item
            for item in value
            if not isinstance(item, str) or not any(p.search(item) for p in patterns)
        ]
    return blocked(value, patterns) if isinstance(value, str) else value


def _keep_said(row: dict[str, Any]) -> None:
    """Take from a row what was found in its text and does not stand there any more."""
    said = "\n".join(row.get(name) or "" for name in ("title", "heading", "text")).casefold()
    for name in _FOUND_IN_TEXT:
        if row.get(name):
            row[name] = [item for item in row[name] if item.casefold() in said]


def _marked(metadata: str | None) -> str:
    return json.dumps({**json.loads(metadata or "{}"), REDACTED: True}, sort_keys=True)
