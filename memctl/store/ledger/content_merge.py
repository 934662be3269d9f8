"""What users and agents have stored in two ledgers, joined: the same whichever comes first.

Of two values of one key the one that was written later counts, and the other one is kept in
``merged_values``.  Versions of one thing become one history, in the order in which they were
written; those of skills and prompts keep their numbers as far as they can, see ``version_merge``.
Conversations of one id that say different things become two.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from memctl.store.ledger.content_tables import (
    CONTENT_TABLES,
    MERGED_VALUES,
    ContentTable,
    MergedValue,
    import_content,
)
from memctl.store.ledger.feedback_repositories import EFFECTS, VARIANTS, FeedbackEffect
from memctl.store.ledger.ledger_schema import empty_ledger
from memctl.store.ledger.pool_repositories import PoolVersionRepository
from memctl.store.ledger.repository import from_text
from memctl.store.ledger.session_repositories import PROFILES, TURNS, SessionKey
from memctl.store.ledger.skill_repositories import (
    SkillFileRepository,
    SkillRepository,
    SkillVersionRepository,
)
from memctl.store.ledger.version_merge import (
    VERSIONED,
    Content,
    rename_ours,
    rename_versions,
    settle_skills,
    version_names,
)
from memctl.store.ledger.work_repositories import ConfirmationRepository

_Values = Mapping[str, Any]
"""A row as SQLite stores it, by column."""
_REFERENCES = (
    (TURNS.name, "document_id"),
    (EFFECTS.name, "memory_id"),
    (ConfirmationRepository.table.name, "memory_id"),
)
"""Tables with the column that names a document or a memory."""
_HISTORIES = PoolVersionRepository.table, PROFILES
"""Tables with the versions of a thing, which are numbered in the order of their instants."""
_EARLIER = (
    *(SkillVersionRepository.table, SkillFileRepository.table, VARIANTS),
    ConfirmationRepository.table,
)
"""Tables of whose rows of one key the earlier one counts: they say the same."""


def _keep_ours(own_values: Any, _: Any) -> Any:
    return own_values


def _first_of(own_values: Any, theirs: Any) -> Any:
    return own_values or theirs


_COLUMNS: Mapping[str, Mapping[str, Callable[[Any, Any], Any]]] = {
    TURNS.name: {"document_id": _first_of},
    SkillRepository.table.name: dict.fromkeys(("effectiveness", "vector", "vector_of"), _keep_ours),
    SkillVersionRepository.table.name: dict.fromkeys(
        ("share", "successes", "failures"), _keep_ours
    ),
    EFFECTS.name: dict.fromkeys(("wanted", "delta", "is_applied"), _keep_ours),
    VARIANTS.name: {"is_retired": max},
    ConfirmationRepository.table.name: {"job_id": _keep_ours},
}
"""Columns that are joined separately, whichever row wins."""


class ContentMerge(Struct, frozen=True):
    """What joining came to, or would come to."""

    added: Mapping[str, int] = field(default_factory=dict)
    """How many rows came in, by table."""
    kept: int = 0
    """How many values gave way to later ones, and are kept beside them."""
    split: int = 0
    """How many conversations became two, whichever was renamed."""
    written: int = 0
    """How many rows were written, for whatever reason."""
    differing: Mapping[str, int] = field(default_factory=dict)
    """How many rows of both are not alike, by table."""


class SessionSplit(Struct, frozen=True):
    """Two conversations of one id that say different things, of which one gets another id."""

    key: SessionKey
    name: str
    """The id that it gets."""
    is_ours: bool


class MovedRows(Struct, frozen=True):
    """What documents and memories are called now, by what they were called.

    None for a document that turns are not in any more.
    """

    ours: dict[str, str | None] = field(default_factory=dict)
    theirs: dict[str, str | None] = field(default_factory=dict)


def merge_content(
    connection: sqlite3.Connection,
    theirs: Iterable[Mapping[str, Any]],
    origins: tuple[str, str],
    moved: MovedRows,
    effects: Iterable[FeedbackEffect] = (),
) -> ContentMerge:
    """Join rows with those of a ledger within a transaction of its own.

    Args:
        connection: The ledger's.
        theirs: Rows of the other one as ``export_content`` yields them.
        origins: What ours and theirs are called, for values that are kept beside later ones.
        moved: Documents and memories that are called otherwise now.
        effects: What judgements change of memories by now, where the two differed in that.
    """
    incoming: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for item in theirs:
        incoming[item["table"]].append(dict(item["row"]))
    merge = _Merge(connection, origins)
    merge.separate_sessions(incoming)
    merge.move_rows(incoming, moved)
    own_values = merge.name_versions(incoming)
    for table in CONTENT_TABLES:
        merge.join(table, incoming[table.name])
    merge.written += settle_skills(connection, own_values, incoming)
    merge.settle_effects(effects)
    connection.execute(
        "UPDATE pools SET version = MAX(version, COALESCE((SELECT MAX(version)"
        " FROM pool_versions WHERE pool_id = pools.pool_id), 0))"
    )
    connection.execute(
        "UPDATE sessions SET message_count = (SELECT count(*) FROM turns"
        " WHERE namespace = sessions.namespace AND session_id = sessions.session_id)"
        " WHERE EXISTS (SELECT 1 FROM turns WHERE namespace = sessions.namespace"
        " AND session_id = sessions.session_id)"
    )
    return ContentMerge(
        dict(merge.added), merge.kept, merge.split, merge.written, dict(merge.differing)
    )


def compare_content(
    ours: Iterable[Mapping[str, Any]], theirs: Iterable[Mapping[str, Any]]
) -> ContentMerge:
    """Return what joining rows with those of another ledger would change; write nothing."""
    with empty_ledger() as connection:
        import_content(ours)(connection)
        return merge_content(connection, theirs, ("", ""), MovedRows())


def split_sessions(
    connection: sqlite3.Connection, theirs: Iterable[Mapping[str, Any]]
) -> list[SessionSplit]:
    """Return the conversations that ``merge_content`` would give another id."""
    turns = [item["row"] for item in theirs if item["table"] == TURNS.name]
    return list(_find_session_splits(TURNS.stored_rows(connection), turns))


def _find_session_splits(
    ours: Iterable[_Values], theirs: Iterable[_Values]
) -> Iterator[SessionSplit]:
    own_values, others = _by_session(ours), _by_session(theirs)
    for key in sorted(own_values.keys() & others.keys()):
        one, other = _texts_by_turn(own_values[key]), _texts_by_turn(others[key])
        if all(one[turn] == other[turn] for turn in one.keys() & other.keys()):
            continue
        is_ours = (_last(own_values[key]), _text(one)) < (_last(others[key]), _text(other))
        digest = hashlib.sha256(_text(one if is_ours else other).encode()).hexdigest()[:8]
        yield SessionSplit(key, f"{key[1]}~{digest}", is_ours)


class _Merge:
    def __init__(self, connection: sqlite3.Connection, origins: tuple[str, str]) -> None:
        self._connection = connection
        self._origins = origins
        self.added: dict[str, int] = defaultdict(int)
        self.differing: dict[str, int] = defaultdict(int)
        self.kept = 0
        self.split = 0
        self.written = 0

    # --- conversations ---

    def separate_sessions(self, incoming: Mapping[str, list[dict[str, Any]]]) -> None:
        """Give one of two conversations of the same id another one where they differ."""
        ours = TURNS.stored_rows(self._connection)
        known = _by_session(ours)
        for each in _find_session_splits(ours, incoming[TURNS.name]):
            self.split += (each.key[0], each.name) not in known
            if each.is_ours:
                self._rename_ours(each.key, each.name)
            else:
                _rename(incoming, each.key, each.name)

    def move_rows(self, incoming: Mapping[str, list[dict[str, Any]]], moved: MovedRows) -> None:
        """Note in which documents turns are, and what memories are called.

        Turns that are in no document are taken over again.
        """
        for name, column in _REFERENCES:
            self._connection.executemany(
                f"UPDATE OR REPLACE {name} SET {column} = ?2 WHERE {column} = ?1",
                moved.ours.items(),
            )
            for row in incoming[name]:
                row[column] = moved.theirs.get(row[column], row[column])

    def _rename_ours(self, key: SessionKey, name: str) -> None:
        self.written += 1
        for table in CONTENT_TABLES:
            if table.session and table.namespace:
                self._connection.execute(
                    f"UPDATE {table.name} SET {table.session} = ?"
                    f" WHERE namespace = ? AND {table.session} = ?",
                    (name, *key),
                )

    # --- versions ---

    def name_versions(self, incoming: Mapping[str, list[dict[str, Any]]]) -> Content:
        """Give versions of skills and prompts one name in both; return ours."""
        ours = {table.name: table.stored_rows(self._connection) for table in VERSIONED}
        names = version_names(ours, incoming)
        self.written += rename_ours(self._connection, ours, names.ours)
        rename_versions(incoming, names.theirs)
        return ours

    # --- judgements ---

    def settle_effects(self, effects: Iterable[FeedbackEffect]) -> None:
        """Note what judgements change by now; one that is taken back changes nothing."""
        values = [(each.wanted, each.delta, each.feedback_id, each.memory_id) for each in effects]
        made = self._connection.executemany(
            f"UPDATE {EFFECTS.name} SET wanted = ?1, delta = ?2, is_applied = TRUE"
            " WHERE feedback_id = ?3 AND memory_id = ?4"
            " AND (wanted, delta, is_applied) IS NOT (?1, ?2, TRUE)",
            values,
        )
        self.written += max(0, made.rowcount)
        self._connection.execute(f"DELETE FROM {EFFECTS.name} WHERE wanted = 0 AND is_applied")

    # --- tables ---

    def join(self, table: ContentTable, theirs: Sequence[_Values]) -> None:
        """Join the rows of one table."""
        if not theirs:
            return
        ours, key = table.table.stored_rows(self._connection), table.table.key
        if table.table in _HISTORIES:
            self._join_histories(table, ours, theirs)
        elif key == ("id",) and all(isinstance(row["id"], int) for row in theirs):
            known = {_text_without(row, ("id",)) for row in ours}
            fresh = [row for row in theirs if _text_without(row, ("id",)) not in known]
            self._add(table, [{**row, "id": None} for row in fresh])
        else:
            self._join_values(table, ours, theirs)

    def _join_values(
        self, table: ContentTable, ours: Sequence[_Values], theirs: Sequence[_Values]
    ) -> None:
        here = {_key(table, row): row for row in ours}
        fresh = [row for row in theirs if _key(table, row) not in here]
        self._add(table, fresh)
        for row in theirs:
            own_values = here.get(_key(table, row))
            if own_values is not None and own_values != row:
                self._join_row(table, own_values, row)

    def _join_row(self, table: ContentTable, own_values: _Values, theirs: _Values) -> None:
        """Join two rows of one key."""
        columns = _COLUMNS.get(table.name, {})
        both = sorted(
            (own_values, theirs), key=lambda row: (row[table.at], _text_without(row, columns))
        )
        lost, chosen = reversed(both) if table.table in _EARLIER else both
        if _text_without(own_values, columns) == _text_without(theirs, columns):
            lost = chosen = own_values
        else:
            self.differing[table.name] += 1
        own = {column: join(own_values[column], theirs[column]) for column, join in columns.items()}
        if {**chosen, **own} != own_values:
            self._write(table, {**chosen, **own})
        if any(lost[column] != chosen[column] for column in table.texts):
            self._keep(table, lost, self._origins[lost is theirs])

    def _join_histories(
        self, table: ContentTable, ours: Sequence[_Values], theirs: Sequence[_Values]
    ) -> None:
        """Renumber the versions of each thing, those of both ledgers in order of time."""
        of_ours, of_theirs = _histories(table, ours), _histories(table, theirs)
        for key, versions in of_theirs.items():
            own_values = of_ours.get(key, {})
            fresh = [row for text, row in versions.items() if text not in own_values]
            if not fresh:
                continue
            both = {**own_values, **versions}.items()
            ordered = [row for _, row in sorted(both, key=lambda e: (e[1][table.at], e[0]))]
            columns = table.table.key[:-1]
            self._connection.execute(
                f"DELETE FROM {table.name} WHERE "
                + " AND ".join(f"{column} = ?" for column in columns),
                key,
            )
            for number, row in enumerate(ordered, start=1):
                self._write(table, {**row, "version": number})
            self.added[table.name] += len(fresh)

    def _add(self, table: ContentTable, rows: Sequence[_Values]) -> None:
        for row in rows:
            self._write(table, row)
        if rows:
            self.added[table.name] += len(rows)

    def _keep(self, table: ContentTable, row: _Values, origin: str) -> None:
        value = MergedValue(
            table_name=table.name,
            key=_text({name: row[name] for name in table.table.key}),
            value=_text(row),
            origin=origin,
            written_at=from_text(row[table.at]),
            namespace=row[table.namespace] if table.namespace else "",
            session_id=(row[table.session] or "") if table.session else "",
        )
        made = self._connection.execute(
            MERGED_VALUES.insert("INSERT OR IGNORE"), MERGED_VALUES.encode(value)
        )
        self.kept += made.rowcount

    def _write(self, declared: ContentTable, row: _Values) -> None:
        table = declared.table
        self.written += 1
        self._connection.execute(table.insert(), tuple(row[name] for name in table.fields))


def _key(table: ContentTable, row: _Values) -> tuple[Any, ...]:
    return tuple(row[name] for name in table.table.key)


def _text(row: Mapping[Any, Any]) -> str:
    return json.dumps(row, sort_keys=True)


def _text_without(row: _Values, columns: Container[str]) -> str:
    return _text({name: value for name, value in row.items() if name not in columns})


def _histories(
    table: ContentTable, rows: Iterable[_Values]
) -> dict[tuple[Any, ...], dict[str, _Values]]:
    """Return the versions of each thing, by what they say."""
    found: dict[tuple[Any, ...], dict[str, _Values]] = defaultdict(dict)
    for row in rows:
        found[_key(table, row)[:-1]][_text_without(row, ("version",))] = row
    return found


def _by_session(turns: Iterable[_Values]) -> dict[SessionKey, list[_Values]]:
    found: dict[SessionKey, list[_Values]] = defaultdict(list)
    for turn in turns:
        found[turn["namespace"], turn["session_id"]].append(turn)
    return found


def _texts_by_turn(turns: Iterable[_Values]) -> dict[int, list[str]]:
    return {turn["turn"]: [turn["sender"], turn["content"]] for turn in turns}


def _last(turns: Iterable[_Values]) -> str:
    return max(str(turn["at"]) for turn in turns)


def _rename(incoming: Mapping[str, Iterable[dict[str, Any]]], key: SessionKey, name: str) -> None:
    for table in CONTENT_TABLES:
        if not (table.session and table.namespace):
            continue
        for row in incoming[table.name]:
            if (row["namespace"], row[table.session]) == key:
                row[table.session] = name
