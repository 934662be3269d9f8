"""What happened: readings of files, questions, and what models replied and used."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from msgspec import Struct, field

from memctl.files import exclusive
from memctl.literals import QueryKind, QueryStatus, Verdict
from memctl.records import FileOutcome, OutcomeKind, Usage
from memctl.store.ledger.repository import (
    Codec,
    Compressed,
    Connections,
    LedgerTable,
    Repository,
    from_text,
    to_text,
)

MAX_PROVENANCE_ENTRIES = 50_000
MAX_QUERIES = 10_000


# --- readings of files ---------------------------------------------------------------------------


class Attempt(Struct, frozen=True):
    """Why a file that was taken out of its inbox was not dealt with, and how often."""

    reason: str
    times: int
    first_at: datetime
    last_at: datetime


def _decode_attempts(text: str) -> tuple[Attempt, ...]:
    found = (Attempt(why, times, *map(from_text, ends)) for why, times, *ends in json.loads(text))
    return tuple(sorted(found, key=lambda each: each.first_at))


def _encode_attempts(attempts: Iterable[Attempt]) -> str:
    return json.dumps(
        [[a.reason, a.times, to_text(a.first_at), to_text(a.last_at)] for a in attempts]
    )


class ProvenanceEntry(Struct, frozen=True):
    """What became of a file at one reading of it."""

    path: str
    """Where it was found; bytes that are not UTF-8 are escaped."""
    outcome: OutcomeKind
    decided_at: datetime
    """When it was remembered, recognised or given up."""
    seen_at: datetime | None = None
    """When the watcher first saw it; None if it did not come from an inbox."""
    claimed_at: datetime | None = None
    """When it was taken out of its inbox."""
    moved_at: datetime | None = None
    """When it was moved to where it belongs."""
    place: str = ""
    """Where it was put; empty if it was left in place or deleted."""
    read_seconds: float | None = None
    """How long it took to turn it into text; None if that was not measured."""
    reader: str = ""
    pipeline_version: int = 0
    document_id: str | None = None
    memories: int = 0
    reason: str = ""
    hint: str = ""
    error: str = ""
    understand_seconds: float | None = None
    """How long it took to make memories of the text; of texts that were worked on together, its
    share by length."""
    redacted: int = 0
    """How many secrets were taken out of the text."""
    tries: Annotated[tuple[Attempt, ...], Codec(_encode_attempts, _decode_attempts)] = ()
    """Earlier attempts, oldest first."""


_OUTCOME_FIELDS = {*FileOutcome.__struct_fields__} & {*ProvenanceEntry.__struct_fields__}
"""What a reading takes over from the outcome of its file."""


class ProvenanceRepository(Repository[ProvenanceEntry]):
    """Readings of files: one row each time that a file was read.

    Rows are added, and completed once.  A record of JSON lines has no row here: its document says
    it all.
    """

    table = LedgerTable("receipts", ProvenanceEntry, order="id DESC")
    _ATTEMPTS = (
        "(SELECT json_group_array(json_array(reason, times, first_at, last_at)) FROM tries"
        " WHERE path = ?1)"
    )

    def add(self, outcomes: Iterable[FileOutcome], now: datetime, pipeline_version: int) -> None:
        """Record what became of files; sources without a file are skipped."""
        entries = [
            ProvenanceEntry(
                decided_at=now,
                pipeline_version=pipeline_version,
                **{name: getattr(item, name) for name in _OUTCOME_FIELDS},
            )
            for item in outcomes
            if item.path is not None
        ]
        if entries:
            self.write(entries, durable=False)

    def note_attempt(self, paths: Iterable[str], reason: str, now: datetime) -> None:
        """Record why files were not ingested, by the paths they are from; they are tried again."""
        rows = [(path, reason, to_text(now)) for path in paths]
        if rows:
            self.execute_each(
                "INSERT INTO tries VALUES (?1, ?2, 1, ?3, ?3) ON CONFLICT (path, reason)"
                " DO UPDATE SET times = times + 1, last_at = excluded.last_at",
                rows,
                durable=False,
            )

    def attempts(self, path: str) -> tuple[Attempt, ...]:
        """Return the attempts so far with a file that waits to be tried again."""
        return _decode_attempts(self.rows(f"SELECT {self._ATTEMPTS}", path)[0][0])

    def complete(
        self,
        read_at: str,
        path: str,
        place: str,
        *,
        seen_at: datetime | None,
        claimed_at: datetime | None,
        now: datetime,
    ) -> None:
        """Record where a file that was read in ``processing/`` is from and where it goes."""
        instants = [None if each is None else to_text(each) for each in (seen_at, claimed_at, now)]
        with self._ledger.transaction():
            self.execute(
                "UPDATE receipts SET path = ?1, place = ?2, seen_at = ?3, claimed_at = ?4,"
                f" moved_at = ?5, tries = {self._ATTEMPTS} WHERE path = ?6",
                *(path, place, *instants, read_at),
            )
            self.execute("DELETE FROM tries WHERE path = ?", path)

    def of(self, path: str, name: str, within: str = "") -> list[ProvenanceEntry]:
        """Return the readings of a file, newest first.

        Args:
            path: Where it is, or was.
            name: The last parts of that path, which those of others may be equal to.
            within: For a file inside the knowledge base's folder, its path below that: the folder
                may have been elsewhere when the file was read.
        """
        end, moved = f"{os.sep}{name}", f"{os.sep}{within}"
        return self.select(
            "path = ?1 OR place = ?1 OR substr(path, -?2) = ?3 OR substr(place, -?2) = ?3"
            " OR (?4 > 1 AND moved_at IS NOT NULL"
            " AND ?5 IN (substr(path, -?4), substr(place, -?4)))",
            *(path, len(end), end, len(moved), moved),
        )

    def last_id(self) -> int:
        """Return the number of the latest reading; 0 before the first."""
        return int(self.rows("SELECT coalesce(max(id), 0) FROM receipts")[0][0])

    def after(self, id_: int, limit: int) -> list[tuple[int, ProvenanceEntry]]:
        """Return the readings that came after one, the oldest first, each with its number."""
        rows = self.rows(
            f"SELECT id, {self.table.columns} FROM receipts WHERE id > ? ORDER BY id LIMIT ?",
            *(id_, limit),
        )
        return [(number, self.table.decode(row)) for number, *row in rows]

    def places_of(self, document_ids: Iterable[str]) -> list[str]:
        """Return where files were put that documents were made from."""
        rows = self.rows(
            "SELECT DISTINCT place FROM receipts"
            " WHERE place != '' AND document_id IN (SELECT value FROM json_each(?))",
            json.dumps(list(document_ids)),
        )
        return [place for (place,) in rows]

    def documents_of(self, paths: Iterable[str]) -> dict[str, list[str]]:
        """Return the documents that files were found to be, the last one first, by path."""
        found: dict[str, list[str]] = {}
        for path, document_id in self.rows(
            "SELECT path, document_id FROM receipts WHERE document_id IS NOT NULL"
            " AND path IN (SELECT value FROM json_each(?)) ORDER BY id DESC",
            json.dumps(list(paths)),
        ):
            found.setdefault(path, []).append(document_id)
        return found

    def files_of(self, document_ids: Iterable[str]) -> list[tuple[str, str]]:
        """Return the paths of files that were last found to be some documents, each with its id."""
        return self.rows(
            "SELECT path, document_id FROM receipts AS seen"
            " WHERE document_id IN (SELECT value FROM json_each(?)) AND NOT EXISTS"
            " (SELECT 1 FROM receipts WHERE path = seen.path AND id > seen.id"
            " AND document_id IS NOT NULL)",
            json.dumps(list(document_ids)),
        )

    def paths_between(self, first: str, after: str) -> list[str]:
        """Return the paths that files were found at, from one path on and before another."""
        rows = self.rows(
            "SELECT DISTINCT path FROM receipts WHERE path >= ? AND path < ?", first, after
        )
        return [path for (path,) in rows]

    def remove_failed(self, within: str) -> None:
        """Delete the readings of a file in ``failed/`` that is about to go.

        Args:
            within: Its path below the knowledge base's folder.
        """
        end = f"{os.sep}{within}"
        self.delete(
            "document_id IS NULL AND moved_at IS NOT NULL AND substr(place, -?1) = ?2",
            *(len(end), end),
        )

    def paths(self) -> Iterator[str]:
        """Yield the paths that files were found at, latest first."""
        yield from (path for (path,) in self.rows("SELECT path FROM receipts ORDER BY id DESC"))

    def trim_old(self) -> None:
        """Delete all but the newest rows."""
        with self._ledger.transaction(durable=False):
            self.trim(MAX_PROVENANCE_ENTRIES)
            self.execute(
                "DELETE FROM tries WHERE path NOT IN"
                " (SELECT path FROM tries ORDER BY last_at DESC LIMIT ?)",
                MAX_PROVENANCE_ENTRIES,
            )


# --- questions -----------------------------------------------------------------------------------


class QueryEntry(Struct, frozen=True):
    """One question that was asked."""

    at: datetime
    question: str
    """Empty if its text is not kept."""
    mode: str
    hits: int
    seconds: float
    query_id: str = ""
    """The same in every knowledge base that was asked; empty for those of older versions."""
    kind: QueryKind = "query"
    found: bool = True
    """Whether it was answered, or if no answer was asked for, whether anything was near."""
    mean_score: float | None = None
    """Of the hits; None if there are none."""
    filters: Mapping[str, Any] = field(default_factory=dict)
    hit_ids: tuple[str, ...] = ()
    """Memories, best first."""
    feedback: Verdict | None = None


class QueryDetail(Struct, frozen=True):
    """How a question was asked, and how well it was answered."""

    query_id: str
    status: QueryStatus
    """What this knowledge base gave; of several that were asked together, others may have more."""
    top_k: int = 0
    """How many hits were asked for."""
    threshold: float = 0.0
    """The least relevance of a hit that was asked for."""
    confidence: float | None = None
    """Of the answer; None where none was asked for."""
    relevance: float | None = None
    """Of the best hit; None where there is none."""
    quality: float | None = None
    """From 0 to 1; see ``queries.query_log.quality``."""
    score: float | None = None
    """How good the answer was judged to be, from 0 to 1."""
    grounding: float | None = None
    """The share of the answer's sentences that what they cite supports."""
    fusion: str = ""
    reranker: str = ""
    """The model that sorted the hits; "" for none."""
    rounds: int = 1
    """How often was searched."""
    kbs: int = 1
    """How many knowledge bases were asked together."""
    prompt: str = ""
    """The version of the prompt of a model that answered, such as ``answer/1``."""
    error: str = ""
    """The class of the error of a question that failed, or of the models that it did without."""
    cited: tuple[str, ...] = ()
    """The memories of this knowledge base that the answer relies on."""
    user_id: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    tokens: int = 0
    """Of the text that was given, about: of a context, or of the hits and the answer."""


class QueryVector(Struct, frozen=True):
    """The vector of a question, as float16."""

    query_id: str
    embedder: str
    vector: bytes


class QueryDetailRepository(Repository[QueryDetail]):
    """Details of the questions that are noted; they go with their question."""

    table = LedgerTable("query_details", QueryDetail, ("query_id",))

    def of_session(self, session_id: str) -> list[QueryDetail]:
        """Return the questions asked in a conversation, the oldest first."""
        where = "session_id = ? AND query_id IN (SELECT query_id FROM query_log)"
        order = "(SELECT max(id) FROM query_log q WHERE q.query_id = query_details.query_id)"
        return self.select(where, session_id, order=order)


class QueryVectorRepository(Repository[QueryVector]):
    """Vectors of the questions that are noted; they go with the text of their question."""

    table = LedgerTable("query_vectors", QueryVector, ("query_id",))


class QueryRepository(Repository[QueryEntry]):
    """The latest questions, oldest first."""

    table = LedgerTable("query_log", QueryEntry, order="id")

    def add(self, entry: QueryEntry, keep: int = MAX_QUERIES) -> None:
        """Record a question, and drop all but the newest ones."""
        with self._ledger.transaction():
            self.save(entry)
            self.trim(keep)

    def find_by_id(self, query_id: str) -> QueryEntry | None:
        """Return the question with an id."""
        found = self.select("query_id = ? AND query_id <> ''", query_id, limit=1)
        return found[0] if found else None

    def recent(self, limit: int = 20) -> list[QueryEntry]:
        """Return questions, newest first; all of them with a limit of -1."""
        return self.select("TRUE", order="id DESC", limit=limit)

    def judge(self, query_id: str, verdict: Verdict | None) -> bool:
        """Record how good an answer was, None to clear it; return whether the answer is known."""
        where = "query_id = ? AND query_id <> ''"
        found = self.count(where, query_id) > 0
        if found:  # only the ledgers that have the question must be writable
            self.execute(f"UPDATE query_log SET feedback = ? WHERE {where}", verdict, query_id)
        return found

    def forget_namespaces(self, namespaces: Collection[str] | None) -> None:
        """Delete the questions that were limited to some of these namespaces; None for all."""
        if namespaces is None:
            self.execute("DELETE FROM query_log")
            return
        self.execute(
            "DELETE FROM query_log WHERE EXISTS (SELECT 1 FROM json_each(filters, '$.namespaces')"
            " WHERE value IN (SELECT value FROM json_each(?)))",
            json.dumps(list(namespaces)),
        )

    def forget_user(self, user: str) -> None:
        """Delete the questions that a user asked."""
        self.delete("query_id IN (SELECT query_id FROM query_details WHERE user_id = ?)", user)

    def forget_texts(self) -> None:
        """Delete the text and the filters of every question; the rest stays."""
        with self.wiping_transaction() as connection:
            connection.execute("UPDATE query_log SET question = '', filters = '{}'")


# --- models --------------------------------------------------------------------------------------


class Reply(Struct, frozen=True):
    """What a model replied."""

    key: str
    """What it was asked, hashed."""
    task: str
    model: str
    reply: Compressed
    at: datetime


class ReplyRepository(Repository[Reply]):
    """Replies by what was asked, so that asking the same again costs nothing."""

    table = LedgerTable("model_replies", Reply, ("key",))

    def __init__(self, ledger: Connections, asking: Path) -> None:
        super().__init__(ledger)
        self._asking = asking

    def lock_key(self, key: str) -> AbstractContextManager[object]:
        """Keep everybody else from asking the same at the same time."""
        return exclusive(self._asking / key)

    def get(self, key: str) -> bytes | None:
        """Return the reply that was kept under a key."""
        found = self.find(key)
        return None if found is None else found.reply

    def put(self, key: str, task: str, model: str, reply: bytes, now: datetime) -> None:
        """Keep a reply, in place of an earlier one under the same key."""
        self.save(Reply(key, task, model, reply, now))

    def write_together(self) -> AbstractContextManager[object]:
        """Write all replies inside in one durable step, which takes no longer than for one."""
        return self._ledger.transaction()

    def forget_all(self) -> None:
        """Delete every reply."""
        with self.wiping_transaction() as connection:
            connection.execute("DELETE FROM model_replies")


class UsageRepository(Repository[Usage]):
    """What models used, added up by day (UTC), task and model, and by document.

    Args:
        ledger: The ledger that it belongs to.
        document_id: The document that what is added was used for; "" for none.
    """

    table = LedgerTable("model_usage", Usage, ("task", "model"), "task, model")

    def __init__(self, ledger: Connections, document_id: str = "") -> None:
        super().__init__(ledger)
        self._document_id = document_id

    def of(self, document_id: str) -> UsageRepository:
        """Return a repository that adds usage to a document, too."""
        return UsageRepository(self._ledger, document_id)

    def add(self, day: str, usage: Usage) -> None:
        """Add a call, or several, to a day, and to the document if it is for one."""
        with self._ledger.transaction():
            self._add_to("model_usage", "day", day, usage)
            if self._document_id:
                self._add_to("document_usage", "document_id", self._document_id, usage)

    def _add_to(self, name: str, column: str, value: str, usage: Usage) -> None:
        table = self.table
        amounts = [name for name in Usage.__struct_fields__ if name not in table.key]
        sums = ", ".join(f"{each} = {each} + excluded.{each}" for each in amounts)
        self.execute(
            f"INSERT INTO {name} ({column}, {table.columns}) VALUES (?, {table.marks})"
            f" ON CONFLICT ({column}, task, model) DO UPDATE SET {sums}",
            *(value, *table.encode(usage)),
        )

    def of_documents(self, ids: Iterable[str]) -> dict[str, list[Usage]]:
        """Return what was used for documents, by id; documents without usage are left out."""
        found: dict[str, list[Usage]] = {}
        rows = self.rows(
            f"SELECT document_id, {self.table.columns} FROM document_usage WHERE document_id IN"
            " (SELECT value FROM json_each(?)) ORDER BY document_id, task, model",
            json.dumps(list(ids)),
        )
        for document_id, *amounts in rows:
            found.setdefault(document_id, []).append(Usage(*amounts))
        return found

    def of_day(self, day: str) -> list[Usage]:
        """Return what was used on a day (``2026-05-12``, UTC)."""
        return self.select("day = ?", day)


class Comparison(Struct, frozen=True):
    """A new fact that has not been compared yet with what was known."""

    memory_id: str
    at: datetime


class ComparisonRepository(Repository[Comparison]):
    """New facts that wait to be compared."""

    table = LedgerTable("comparisons", Comparison, ("memory_id",), "memory_id")

    def add(self, memory_ids: Iterable[str], now: datetime) -> None:
        """Record facts that are to be compared."""
        self.write((Comparison(each, now) for each in memory_ids), "DO NOTHING")

    def discard(self, memory_ids: Iterable[str]) -> None:
        """Delete facts that have been compared, or that are gone."""
        self.delete_each("memory_id", memory_ids)

    def pending(self) -> list[str]:
        """Return the ids of the facts that wait."""
        return [each.memory_id for each in self.all()]
