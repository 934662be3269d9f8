"""Striking from the ledger what it knows of documents and memories that are to be forgotten."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Says = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Erased:
    """What the ledger is to forget."""

    documents: Sequence[str]
    """Ids of whole documents."""
    memories: frozenset[str]
    names: frozenset[str]
    """Names that nothing names any more, as names are compared."""
    sources: frozenset[str]
    """What the documents go by."""
    says: Says
    """Whether a text holds any of what is to be forgotten."""


def erase(connection: sqlite3.Connection, erased: Erased) -> None:
    """Strike it, within a transaction of the ledger's.

    All replies of models go, for which of them rest on a text cannot be told from their keys.
    Questions that hold some of it, or were answered by it, lose their text.
    """
    documents = [(id_,) for id_ in erased.documents]
    memories = [(id_,) for id_ in erased.memories]
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("DELETE FROM model_replies")
    connection.executemany("DELETE FROM receipts WHERE document_id = ?", documents)
    connection.executemany("DELETE FROM document_usage WHERE document_id = ?", documents)
    connection.executemany("UPDATE files SET document_id = NULL WHERE document_id = ?", documents)
    connection.executemany("DELETE FROM access_log WHERE memory_id = ?", memories)
    connection.executemany("DELETE FROM comparisons WHERE memory_id = ?", memories)
    connection.executemany(
        "DELETE FROM name_decisions WHERE one = ?1 OR other = ?1",
        [(name,) for name in erased.names],
    )
    _erase_questions(connection, erased)
    _erase_events(connection, erased)


def _erase_questions(connection: sqlite3.Connection, erased: Erased) -> None:
    rows = connection.execute("SELECT id, question, filters, hit_ids FROM query_log").fetchall()
    told = []
    for number, question, filters, hits in rows:
        ids = json.loads(hits)
        left = [id_ for id_ in ids if id_ not in erased.memories]
        if len(left) < len(ids) or erased.says(question) or erased.says(filters):
            told.append((json.dumps(left), number))
    connection.executemany(
        "UPDATE query_log SET question = '', filters = '{}', hit_ids = ? WHERE id = ?", told
    )


def _erase_events(connection: sqlite3.Connection, erased: Erased) -> None:
    events = connection.execute("SELECT id, message, hint, subject FROM events").fetchall()
    gone = [
        (number,)
        for number, message, hint, subject in events
        if subject in erased.sources or any(map(erased.says, (message, hint, subject)))
    ]
    connection.executemany("DELETE FROM events WHERE id = ?", gone)
    jobs = connection.execute("SELECT id, detail FROM jobs").fetchall()
    spoken = [(number,) for number, detail in jobs if erased.says(detail)]
    connection.executemany("UPDATE jobs SET detail = '{}' WHERE id = ?", spoken)
