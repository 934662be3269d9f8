"""Documents that stay lose some of their words, in their text and in every passage of it.

A text that is to go becomes a row of blocks of the same length, so that everything else stays
where it was.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from memctl.forget.search_patterns import LIST_SEPARATOR
from memctl.graph.derivation import unsupported_relations
from memctl.ingest.document_records import IMPORTANCE_REASON
from memctl.ingest.reprocessing import REDACTED
from memctl.language.date_mentions import date_spans
from memctl.language.term_analysis import embedding_text, passage_terms
from memctl.models.protocols import MODEL
from memctl.rows.row_changes import amend_rows
from memctl.rows.row_lifecycle import erase_rows, mark_documents, mark_without_memories, with_mark
from memctl.schema.arrow_tables import VECTOR, metadata_to_json, vector_array
from memctl.schema.declarations import DECLARATIONS, OF_NAMESPACES
from memctl.schema.table_names import TABLES
from memctl.store.tables.filter_expressions import col
from memctl.understanding.text_outline import spoken_text

if TYPE_CHECKING:
    import pyarrow as pa

    from memctl.models.protocols import Embedder
    from memctl.schema.table_names import TableName
    from memctl.store.tables.snapshot import Snapshot
    from memctl.store.tables.transaction import Transaction

_BLOCK = "█"
_WORD = re.compile(r"\w")
KEPT_COLUMNS = frozenset(
    column for table in DECLARATIONS.values() for column in table.verbatim_columns
)
"""Columns of text that are no words of a source."""
_FOUND_IN_TEXT = ("entities", "topics", "keywords", "dates", "links")

Patterns = Sequence[re.Pattern[str]]
Row = dict[str, Any]


def block_text(text: str, patterns: Patterns) -> str:
    """Return a text with blocks in place of what goes."""
    for pattern in patterns:
        text = pattern.sub(lambda found: _BLOCK * len(found[0]), text)
    return text


def row_matches(
    row: dict[str, Any], patterns: Patterns, kept: frozenset[str] = KEPT_COLUMNS
) -> bool:
    """Return whether a column of a row has some of what goes, those that are kept aside."""
    for name, value in row.items():
        if value and name not in kept:
            whole = LIST_SEPARATOR.join(value) if isinstance(value, list) else str(value)
            if any(pattern.search(whole) for pattern in patterns):
                return True
    return False


def block_out(
    transaction: Transaction,
    roots: Iterable[str],
    patterns: Patterns,
    embedder: Callable[[], Embedder],
    *,
    drops_summaries: bool,
    hidden: Collection[str] = (),
) -> set[str]:
    """Block out words of documents, and drop relations and other rows with them.

    Args:
        transaction: What to write with.
        roots: The documents, by the ids of their first parts.
        patterns: What goes.
        embedder: Gives the embedder.
        drops_summaries: Whether what a model made of a whole document goes too, for it may say the
            same in other words.
        hidden: Namespaces; relations of what is in them stay.

    Returns:
        The memories that have lost some of their words.
    """
    changed: set[str] = set()
    for root in roots:
        rows = transaction.snapshot().scan("documents", col("root_id") == root)
        parts = [_block_row(row, patterns) for row in rows.to_pylist()]
        said = [_RemainingText(part) for part in parts]
        for part, left in zip(parts, said, strict=True):
            if drops_summaries and part["method"].startswith(MODEL):
                part |= {"summary": "", "metadata": _without_reason(part["metadata"])}
            part["metadata"] = with_mark(part["metadata"], REDACTED)
            left.keep(part)
        _write(transaction, "documents", rows.schema, parts)
        for part, left in zip(parts, said, strict=True):
            changed |= _block_passages(transaction, part, left, patterns, embedder)
    for table in set(TABLES).difference(("documents", "memories", "entities")):
        snapshot = transaction.snapshot()
        erase_rows(transaction, table, rows_naming(snapshot, table, patterns, hidden))
    if changed:
        erase_rows(transaction, "relations", unsupported_relations(transaction.snapshot(), changed))
    return changed


def rows_naming(
    snapshot: Snapshot, table: TableName, patterns: Patterns, hidden: Collection[str] = ()
) -> list[str]:
    """Return the ids of rows of a small table that have some of what goes.

    Args:
        snapshot: The tables.
        table: Which one.
        patterns: What goes.
        hidden: Namespaces; rows that refer to what is in them are left out.
    """
    found = [row for row in snapshot.scan(table).to_pylist() if row_matches(row, patterns)]
    referred = {row["id"]: [*DECLARATIONS[table].ids_referred_to(row)] for row in found}
    theirs = _select_hidden(snapshot, referred.values(), hidden) if hidden else frozenset()
    return [id_ for id_, ids in referred.items() if theirs.isdisjoint(ids)]


def _select_hidden(
    snapshot: Snapshot, ids: Iterable[Iterable[str]], hidden: Collection[str]
) -> frozenset[str]:
    """Return those of some rows that are in some namespaces."""
    distinct = list(dict.fromkeys(chain.from_iterable(ids)))
    return frozenset(
        row["id"]
        for table in OF_NAMESPACES
        for row in snapshot.get(table, distinct, ["id", "namespace"]).to_pylist()
        if row["namespace"] in hidden
    )


class _RemainingText:
    """What a part of a document says without what goes.

    Args:
        part: Its row, with blocks.
    """

    def __init__(self, part: Row) -> None:
        self._text = _text_of(part)
        spans = date_spans(part["text"] or "", part["created_at"])
        self._dates = frozenset(span.iso for span in spans)
        self._known: dict[str, bool] = {}

    def keep(self, row: Row) -> None:
        """Take from a row of the part what was found in its text and does not stand there now."""
        own = _text_of(row)
        for name in _FOUND_IN_TEXT:
            if row.get(name):
                row[name] = [
                    item for item in row[name] if self._has(item) or item.casefold() in own
                ]

    def _has(self, item: str) -> bool:
        if item not in self._known:
            self._known[item] = item in self._dates or item.casefold() in self._text
        return self._known[item]


def _text_of(row: Row) -> str:
    return "\n".join(row.get(name) or "" for name in ("title", "heading", "text")).casefold()


def _block_passages(
    transaction: Transaction,
    part: Row,
    said: _RemainingText,
    patterns: Patterns,
    embedder: Callable[[], Embedder],
) -> set[str]:
    rows = transaction.snapshot().scan("memories", col("document_id") == part["id"])
    changed: list[Row] = []
    bare: list[str] = []
    for row in rows.to_pylist():
        new = _block_row(row, patterns)
        if row["level"] == "evidence" and row["start"] is not None:
            new["text"] = part["text"][row["start"] : row["end"]]
        said.keep(new)
        if new == row:
            continue
        if _WORD.search(new["text"]):
            words = (new["title"] or "", new["heading"] or "", _spoken(new))
            new["search_text"] = " ".join(passage_terms(*words, part["language"] or ""))
            changed.append(new)
        else:
            bare.append(row["id"])
    if changed:
        texts = [
            embedding_text(row["title"] or "", row["heading"] or "", _spoken(row))
            for row in changed
        ]
        _write(transaction, "memories", rows.schema, changed, embedder().embed(texts))
    transaction.deletions.keep(dict.fromkeys(bare, part["id"]))
    erase_rows(transaction, "memories", bare, drop_orphans=False)
    if bare:
        mark_without_memories(transaction, [part["id"]])
    return {row["id"] for row in changed} | set(bare)


def _spoken(row: Row) -> str:
    return spoken_text(row["text"], row["level"], row["speaker"])


def _write(
    transaction: Transaction,
    table: TableName,
    schema: pa.Schema,
    rows: Sequence[dict[str, Any]],
    vectors: Any = None,
) -> None:
    import pyarrow as pa

    bare = pa.schema([item for item in schema if item.name != VECTOR])
    made = pa.Table.from_pylist(rows, schema=bare)
    if vectors is not None:
        made = made.append_column(VECTOR, vector_array(vectors))
    amend_rows(transaction, table, made)


def _block_row(row: Row, patterns: Patterns) -> Row:
    """Return a row with blocks in place of what goes; items of lists that have it are left out."""
    return {
        name: value if name in KEPT_COLUMNS else _blocked_column(name, value, patterns)
        for name, value in row.items()
    }


def _blocked_column(name: str, value: Any, patterns: Patterns) -> Any:
    if name == "metadata" and value:  # where quotes and line ends are escaped
        return metadata_to_json(_blocked_value(json.loads(value), patterns))
    if isinstance(value, list):
        return [item for item in value if _blocked_value(item, patterns) == item]
    return _blocked_value(value, patterns)


def _blocked_value(value: Any, patterns: Patterns) -> Any:
    if isinstance(value, dict):
        return {
            block_text(key, patterns): _blocked_value(item, patterns) for key, item in value.items()
        }
    if isinstance(value, list):
        return [_blocked_value(item, patterns) for item in value]
    return block_text(value, patterns) if isinstance(value, str) else value


def mark_redacted(transaction: Transaction, ids: Sequence[str]) -> None:
    """Record that the files of documents have forgotten text, so that they are not read again."""
    mark_documents(transaction, ids, REDACTED)


def _without_reason(metadata: str | None) -> str:
    kept = json.loads(metadata or "{}")
    kept.pop(IMPORTANCE_REASON, None)
    return metadata_to_json(kept)
