"""The tables of the ledger that hold what people and agents have said or stored.

Each is declared once; forgetting, exports, snapshots, SQL and the checks of doctor follow from the
declaration.  Must never know what the words mean.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple, Self

from msgspec import Struct, field
from msgspec.structs import replace

from memctl.ids import root_id, storable
from memctl.store.ledger.feedback_repositories import (
    EFFECTS,
    SUMMARIES,
    USES,
    VARIANTS,
    FeedbackRepository,
)
from memctl.store.ledger.pool_repositories import (
    PoolAgentRepository,
    PoolEventRepository,
    PoolKeyRepository,
    PoolRepository,
    PoolVersionRepository,
)
from memctl.store.ledger.repository import Connections, LedgerTable, to_text
from memctl.store.ledger.session_repositories import PROFILE_FIELDS, PROFILES, SESSIONS, TURNS
from memctl.store.ledger.skill_repositories import (
    SkillAgentRepository,
    SkillConflictRepository,
    SkillFileRepository,
    SkillProposalRepository,
    SkillRepairRepository,
    SkillRepository,
    SkillUseRepository,
    SkillVersionRepository,
)
from memctl.store.ledger.tier_repositories import (
    SavedValueRepository,
    SharedValueRepository,
    ShortTermRepository,
    WorkingRepository,
)
from memctl.store.ledger.work_repositories import ConfirmationRepository

_Row = tuple[Any, ...]
_BARE_HEADING = re.compile(r"^\w[\w ]*:(?=\n\n|\Z)\n*", re.MULTILINE)
"""A heading with nothing below it."""
_CONVERSATIONS = ("session_id", "conversation_id")
"""What a column with a conversation is called."""
EXPIRES = "expires_at"
"""The column that says when a row ends, where a table has one."""


class MergedValue(Struct, frozen=True):
    """A row that gave way to a later one of the same key when knowledge bases were merged."""

    table_name: str
    key: str
    """The columns that the row is found by, as JSON."""
    value: str
    """All its columns, as JSON."""
    origin: str
    """The knowledge base that it was in."""
    written_at: datetime
    namespace: str = ""
    session_id: str = ""


MERGED_VALUES: LedgerTable[MergedValue] = LedgerTable(
    "merged_values", MergedValue, ("table_name", "key", "value"), "written_at"
)


class ContentTable(Struct, frozen=True):
    """One table of the ledger with words of users or agents.

    Its values are texts, numbers and nulls as SQLite stores them, never bytes.
    """

    table: LedgerTable[Any]
    texts: tuple[str, ...]
    """The columns that may hold such words, as text or as JSON."""
    at: str
    """The column that says when a row was written."""
    derived: tuple[str, ...] = ()
    """Those of ``texts`` that are put together from what rows elsewhere say: nothing is looked for
    because it stands there, and of what is to go they lose the lines that say it."""
    document: str = ""
    """The column with the document that has what a row says: the row goes with that document, and
    stays as it is while the document does."""
    names: tuple[str, ...] = ()
    """The columns with names of agents and things: struck where they name what is to go, but not
    looked for elsewhere when their own row goes."""
    local: tuple[str, ...] = ()
    """The columns that mean something in this ledger alone, such as the number of a job: null in
    exports and in what another knowledge base takes in."""

    @property
    def name(self) -> str:
        """Its name in the ledger, in SQL and in exports."""
        return self.table.name

    @property
    def namespace(self) -> str:
        """The column with the namespace of a row, never null; "" where there is none."""
        return "namespace" if "namespace" in self.table.fields else ""

    @property
    def session(self) -> str:
        """The column with the conversation that a row belongs to; "" where there is none."""
        return next((name for name in _CONVERSATIONS if name in self.table.fields), "")

    def key_of(self, row: _Row) -> _Row:
        """Return the key of a stored row."""
        return tuple(row[self.table.fields.index(column)] for column in self.table.key)


CONTENT_TABLES: tuple[ContentTable, ...] = (
    ContentTable(SESSIONS, texts=("title", "summary"), at="last_at", derived=("title", "summary")),
    ContentTable(
        TURNS,
        texts=("content", "title", "source", "tags", "metadata", "media"),
        at="at",
        document="document_id",
        names=("sender", "external_id", "memory_type"),
    ),
    ContentTable(
        PoolRepository.table,
        texts=("name",),
        at="updated_at",
        names=("pool_id", "owner", "access_control", "run_id"),
    ),
    ContentTable(
        PoolKeyRepository.table,
        texts=("key", "value"),
        at="written_at",
        names=("pool_id", "written_by"),
    ),
    ContentTable(
        PoolVersionRepository.table,
        texts=("keys", "data"),
        at="written_at",
        names=("pool_id", "written_by"),
    ),
    ContentTable(
        PoolEventRepository.table,
        texts=("key", "value"),
        at="written_at",
        names=("pool_id", "writer"),
    ),
    ContentTable(PoolAgentRepository.table, texts=(), at="last_at", names=("pool_id", "agent")),
    ContentTable(PROFILES, texts=PROFILE_FIELDS, at="at", derived=PROFILE_FIELDS),
    ContentTable(FeedbackRepository.table, texts=("text", "example"), at="at", names=("agent_id",)),
    ContentTable(EFFECTS, texts=(), at="at"),
    ContentTable(
        ConfirmationRepository.table, texts=(), at="at", names=("source",), local=("job_id",)
    ),
    ContentTable(
        SUMMARIES,
        texts=(
            "prompt",
            "feedback_text",
            "example",
            "improvement_suggestion",
            "conversation_summary",
        ),
        at="timestamp",
        names=("agent_id",),
    ),
    ContentTable(VARIANTS, texts=("text", "reason"), at="at", names=("task",)),
    ContentTable(USES, texts=(), at="at", names=("task",)),
    ContentTable(
        WorkingRepository.table, texts=("key", "value"), at="written_at", names=("agent",)
    ),
    ContentTable(
        SharedValueRepository.table,
        texts=("key", "value"),
        at="written_at",
        names=("agent", "target"),
    ),
    ContentTable(
        SavedValueRepository.table, texts=("key", "value"), at="saved_at", names=("agent", "name")
    ),
    ContentTable(
        ShortTermRepository.table,
        texts=("memory_key", "memory_value"),
        at="written_at",
        names=("agent",),
    ),
    ContentTable(
        SkillRepository.table,
        texts=(
            "declared_name",
            "name",
            "slug",
            "description",
            "execution",
            "metadata",
            "tags",
            "requires",
            "successor",
            "source",
        ),
        at="updated_at",
        names=("created_by",),
    ),
    ContentTable(
        SkillVersionRepository.table,
        texts=("content", "notes"),
        at="created_at",
        names=("created_by",),
    ),
    ContentTable(SkillFileRepository.table, texts=("path", "content"), at="written_at"),
    ContentTable(SkillAgentRepository.table, texts=(), at="since", names=("agent",)),
    ContentTable(SkillUseRepository.table, texts=("task", "note"), at="at", names=("agent",)),
    ContentTable(
        SkillProposalRepository.table,
        texts=("topic", "name", "description", "requires", "content", "findings", "reasons"),
        at="created_at",
        names=("agent", "reviewer"),
    ),
    ContentTable(
        SkillConflictRepository.table,
        texts=("explanation", "requirement"),
        at="found_at",
        names=("resolved_by",),
    ),
    ContentTable(SkillRepairRepository.table, texts=("before", "after"), at="at"),
    ContentTable(MERGED_VALUES, texts=("key", "value"), at="written_at"),
)
"""Every one of them, in the order in which they are exported and restored."""


class ContentScope(Struct, frozen=True):
    """The rows that one user may change: those of some namespaces, and those of their own pools."""

    sees: Callable[[str], bool]
    """Whether a namespace is among them."""
    pools: frozenset[str] = frozenset()

    @classmethod
    def of(cls, ledger: Connections, user: str, sees: Callable[[str], bool]) -> Self:
        """Return those of a user, whose pools the ledger tells."""
        owned = "SELECT pool_id FROM pools WHERE owner = ?"
        with ledger.reading() as connection:
            return cls(sees, frozenset(id_ for (id_,) in connection.execute(owned, (user,))))

    def has(self, table: ContentTable, row: _Row) -> bool:
        """Return whether a stored row is among them."""
        stored = dict(zip(table.table.fields, row, strict=True))
        if table.namespace:
            return self.sees(stored[table.namespace])
        return stored.get("pool_id") in self.pools

    def limits_question(self, filters: str) -> bool:
        """Return whether a question with these filters, as JSON, was limited to the namespaces."""
        namespaces = json.loads(filters or "{}").get("namespaces")
        return bool(namespaces) and all(map(self.sees, namespaces))


class ContentSelection(Struct, frozen=True):
    """Rows that are meant because of where they belong, whatever they say."""

    session: str | None = None
    namespace: str | None = None
    before: datetime | None = None
    """Narrows a conversation or a namespace; alone, it means all that is older."""
    scope: ContentScope | None = None
    """The rows that any of it is limited to; None for all."""

    def is_open(self, table: ContentTable, row: _Row) -> bool:
        """Return whether a stored row is within what it is limited to."""
        return self.scope is None or self.scope.has(table, row)

    def rows(self, connection: sqlite3.Connection, table: ContentTable) -> list[_Row]:
        """Return the stored rows of a table that are meant."""
        found = self.condition(table)
        if found is None:
            return []
        where, values = found
        ask = f"{table.table.select} WHERE {where}"
        rows = connection.execute(ask, values).fetchall()
        return [row for row in rows if self.is_open(table, row)]

    def condition(self, table: ContentTable) -> tuple[str, _Row] | None:
        """Return the SQL condition on rows of a table with its values; None where none is meant."""
        wanted = [
            (column, value)
            for column, value in (
                (table.session, self.session),
                (table.namespace, self.namespace),
            )
            if value is not None
        ]
        if not all(column for column, _ in wanted) or not (wanted or self.before):
            return None
        parts = [f"{column} = ?" for column, _ in wanted]
        values: list[Any] = [storable(value) for _, value in wanted]
        if self.before is not None:
            parts.append(f"{table.at} < ?")
            values.append(to_text(self.before))
        return " AND ".join(parts), tuple(values)


NO_CONTENT = ContentSelection()


def has_content(ledger: Connections, selection: ContentSelection) -> bool:
    """Return whether any table has a row that is meant."""
    with ledger.reading() as connection:
        return any(selection.rows(connection, table) for table in CONTENT_TABLES)


def content_namespaces(ledger: Connections) -> set[str]:
    """Return every namespace that a row is in."""
    with ledger.reading() as connection:
        return {
            namespace
            for table in CONTENT_TABLES
            if table.namespace
            for (namespace,) in connection.execute(f"SELECT DISTINCT namespace FROM {table.name}")
        }


def words_of_content(ledger: Connections, selection: ContentSelection) -> Iterator[str]:
    """Yield the words of the rows that are meant, one text after the other."""
    with ledger.reading() as connection:
        for table in CONTENT_TABLES:
            for row in selection.rows(connection, table):
                record = table.table.decode(row)
                for name in table.texts:
                    if name not in table.derived:
                        yield from words_of(getattr(record, name))


def words_beyond(ledger: Connections, scope: ContentScope) -> Iterator[str]:
    """Yield the words of the rows that are not within a scope, and of such questions."""
    with ledger.reading() as connection:
        for table in CONTENT_TABLES:
            rows = connection.execute(table.table.select)
            for row in rows.fetchall():
                if not scope.has(table, row):
                    record = table.table.decode(row)
                    for name in (*table.texts, *table.names):
                        yield from words_of(getattr(record, name))
        questions = connection.execute("SELECT question, filters FROM query_log")
        for question, filters in questions.fetchall():
            if not scope.limits_question(filters):
                yield from (question, filters)


class ContentErasure(Struct, frozen=True):
    """What the rows of these tables are to lose."""

    selection: ContentSelection
    """Rows that go whatever they say."""
    says: Callable[[str], bool]
    """Whether a text has any of what is to go."""
    without: Callable[[str], str] | None
    """Gives a text without it; None where a row that has it goes whole."""
    gone: frozenset[str]
    """Documents that go whole."""
    blocked: frozenset[str]
    """Documents that lose some of their words."""

    def of_row(self, declared: ContentTable, row: _Row) -> _Row | None:
        """Return what is left of a stored row; None where it goes whole.

        A conversation that is called by a name stays under what is left of it.
        """
        table = declared.table
        if not self.selection.is_open(declared, row):
            return row
        record = table.decode(row)
        if declared.document:
            document = getattr(record, declared.document) or ""
            if self.gone.intersection((document, root_id(document))):
                return None
            if self.without is None and root_id(document) not in self.blocked:
                return row
        called = (declared.session,) if declared.session and self.without is not None else ()
        names = (*declared.texts, *declared.names, *called)
        values = {name: getattr(record, name) for name in names}
        spoken = {name for name, value in values.items() if any(map(self.says, words_of(value)))}
        if not spoken:
            return row
        change = self.without
        if change is None and spoken.issubset(declared.derived):
            change = self._without_lines
        if change is None or not spoken.isdisjoint(set(table.key).difference(called)):
            return None
        return tuple(
            table.encode_value(name, _replace_texts(values[name], change))
            if name in spoken
            else stored
            for name, stored in zip(table.fields, row, strict=True)
        )

    def with_lines(self, lines: frozenset[str]) -> ContentErasure:
        """Return the same, to which lines of some texts belong as well."""
        return replace(
            self, says=lambda text: self.says(text) or not lines.isdisjoint(text.split("\n"))
        )

    def _without_lines(self, text: str) -> str:
        left = "\n".join(line for line in text.split("\n") if not self.says(line))
        return _BARE_HEADING.sub("", left.strip()).strip()


class ErasedContent(Struct, frozen=True):
    """The rows that were deleted or changed, or would be."""

    rows: Mapping[str, int] = field(default_factory=dict)
    """How many, by table."""
    pools: tuple[str, ...] = ()
    """Ids of the pools that they belong to."""
    pool_keys: tuple[str, ...] = ()
    """Keys of pools that they hold, as ``memctl pool read`` takes them: ``POOL KEY``."""
    skills: tuple[str, ...] = ()
    """Slugs of the skills that they belong to."""


def erase_content(connection: sqlite3.Connection, erasure: ContentErasure) -> ErasedContent:
    """Delete the rows that are meant, and take out of the others what they say of it.

    It goes from copies in snapshots, too, which are not counted.  A conversation goes with the
    last of its messages.

    Args:
        connection: Within a transaction of the ledger's.
        erasure: What is erased.
    """
    emptied: set[_Row] = set()
    changes = _changes(connection, erasure)
    content = _count_erased(connection, changes)
    for table, of_table, rows in changes:
        for row, changed in rows:
            key = table.key_of(row)
            if changed is None or table.key_of(changed) != key:
                connection.execute(f"DELETE FROM {table.name} WHERE {table.table.by_key}", key)
            if changed is not None:
                connection.execute(table.table.insert(), changed)
            elif table.table is TURNS:
                emptied.add(key[:2])
        _erase_copies(connection, table, of_table)
    connection.executemany(
        "DELETE FROM sessions WHERE namespace = ?1 AND session_id = ?2 AND NOT EXISTS"
        " (SELECT 1 FROM turns WHERE namespace = ?1 AND session_id = ?2)",
        sorted(emptied),
    )
    return content


def preview_content(connection: sqlite3.Connection, erasure: ContentErasure) -> ErasedContent:
    """Return what ``erase_content`` deletes or changes, without doing so."""
    return _count_erased(connection, _changes(connection, erasure))


class _TableChanges(NamedTuple):
    """What becomes of the rows of one table."""

    declared: ContentTable
    erased: ContentErasure
    """What its rows lose."""
    rows: list[tuple[_Row, _Row | None]]
    """Each stored row that changes, with what is left of it; None where it goes."""


def _changes(connection: sqlite3.Connection, erasure: ContentErasure) -> list[_TableChanges]:
    """Return what becomes of the rows of every table."""
    found = []
    for table in CONTENT_TABLES:
        of_table, condition = erasure, erasure.selection.condition(table)
        if condition is not None and table.table is PROFILES:
            of_table = erasure.with_lines(_lines_of_models(connection, *condition))
        selected = set(erasure.selection.rows(connection, table))
        stored = connection.execute(table.table.select).fetchall()
        left = ((row, None if row in selected else of_table.of_row(table, row)) for row in stored)
        rows = [(row, changed) for row, changed in left if changed != row]
        found.append(_TableChanges(table, of_table, rows))
    return found


def _count_erased(
    connection: sqlite3.Connection, changes: Iterable[_TableChanges]
) -> ErasedContent:
    """Count what changes, before it does."""
    counts = {table.name: len(rows) for table, _, rows in changes if rows}
    pools, skills = (
        {
            row[table.table.fields.index(column)]
            for table, _, rows in changes
            if column in table.table.fields
            for row, _ in rows
        }
        for column in ("pool_id", "skill_id")
    )
    keys = (
        " ".join(table.key_of(row))
        for table, _, rows in changes
        if table.table is PoolKeyRepository.table
        for row, _ in rows
    )
    called = dict(connection.execute("SELECT skill_id, slug FROM skills").fetchall())
    slugs = {called.get(id_, id_) for id_ in skills if id_}
    return ErasedContent(counts, tuple(sorted(pools)), tuple(sorted(keys)), tuple(sorted(slugs)))


def _lines_of_models(connection: sqlite3.Connection, where: str, values: _Row) -> frozenset[str]:
    """Return the lines that a model has put into those profiles, and that no others had before.

    Later profiles may have them still.
    """
    ask = f"SELECT {PROFILES.columns}, {where} FROM profiles ORDER BY at"
    rows = connection.execute(ask, values).fetchall()
    seen: set[str] = set()
    found: set[str] = set()
    for *row, is_meant in rows:
        profile = PROFILES.decode(tuple(row))
        lines = {
            line for name in PROFILE_FIELDS for line in getattr(profile, name).split("\n") if line
        }
        if is_meant and profile.by.startswith("model/"):
            found |= lines - seen
        elif not is_meant:
            seen |= lines
    return frozenset(found)


class ContentOwner(Struct, frozen=True):
    """Whose rows are meant: those in some namespaces, and those that name a user.

    None for namespaces means every row, whosesoever it is.
    """

    namespaces: tuple[str, ...] | None = None
    user: str | None = None

    def condition(self, table: ContentTable) -> tuple[str, _Row] | None:
        """Return the SQL condition on rows of a table with its values; None where none is meant."""
        if self.namespaces is None:
            return "TRUE", ()
        parts: list[str] = []
        values: list[str] = []
        if table.namespace and self.namespaces:
            parts.append(f"namespace IN ({', '.join('?' * len(self.namespaces))})")
            values += self.namespaces
        if self.user is not None and USER_COLUMN in table.table.fields:
            parts.append(f"{USER_COLUMN} = ?")
            values.append(self.user)
        return (" OR ".join(parts), tuple(values)) if parts else None


USER_COLUMN = "user_id"
"""The column of a table whose rows are of one user, in whatever namespace."""


def clear_content(connection: sqlite3.Connection, owner: ContentOwner) -> None:
    """Delete the rows of an owner within a transaction; copies in snapshots stay."""
    for table in CONTENT_TABLES:
        if found := owner.condition(table):
            where, values = found
            connection.execute(f"DELETE FROM {table.name} WHERE {where}", values)


def count_content(ledger: Connections, owner: ContentOwner) -> dict[str, int]:
    """Return how many rows each table has of an owner, where it has any."""
    counts: dict[str, int] = {}
    with ledger.reading() as connection:
        for table in CONTENT_TABLES:
            if found := owner.condition(table):
                where, values = found
                ask = f"SELECT count(*) FROM {table.name} WHERE {where}"
                if number := connection.execute(ask, values).fetchone()[0]:
                    counts[table.name] = number
    return counts


def _erase_copies(
    connection: sqlite3.Connection, table: ContentTable, erasure: ContentErasure
) -> None:
    copies = "SELECT rowid, row FROM snapshot_content WHERE table_name = ?"
    for number, text in connection.execute(copies, (table.name,)).fetchall():
        row = tuple(json.loads(text))
        is_meant = _is_selected(table, row, erasure.selection)
        changed = None if is_meant else erasure.of_row(table, row)
        if changed is None:
            connection.execute("DELETE FROM snapshot_content WHERE rowid = ?", (number,))
        elif changed != row:
            connection.execute(
                "UPDATE snapshot_content SET row = ? WHERE rowid = ?",
                (json.dumps(changed), number),
            )


def _is_selected(table: ContentTable, row: _Row, selection: ContentSelection) -> bool:
    if selection.condition(table) is None or not selection.is_open(table, row):
        return False
    stored = dict(zip(table.table.fields, row, strict=True))
    return (
        selection.session in (None, stored.get(table.session))
        and selection.namespace in (None, stored.get(table.namespace))
        and (selection.before is None or stored[table.at] < to_text(selection.before))
    )


def words_of(value: Any) -> Iterator[str]:
    """Yield every string in a JSON value, including the keys of objects."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from words_of(key)
            yield from words_of(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from words_of(item)


def _replace_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {
            _replace_texts(key, change): _replace_texts(item, change) for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return tuple(_replace_texts(item, change) for item in value)
    return value


# --- copies: snapshots and exports ---------------------------------------------------------------


def copy_to_snapshot(connection: sqlite3.Connection, snapshot: str) -> None:
    """Copy every row for a snapshot."""
    for table in CONTENT_TABLES:
        connection.execute(
            "INSERT INTO snapshot_content (snapshot, table_name, row)"
            f" SELECT ?, ?, json_array({table.table.columns}) FROM {table.name}",
            (snapshot, table.name),
        )


def restore_from_snapshot(connection: sqlite3.Connection, snapshot: str) -> None:
    """Make the tables what they were at a snapshot."""
    copies = "SELECT row FROM snapshot_content WHERE snapshot = ? AND table_name = ?"
    for table in CONTENT_TABLES:
        connection.execute(f"DELETE FROM {table.name}")
        for (text,) in connection.execute(copies, (snapshot, table.name)).fetchall():
            connection.execute(table.table.insert(), json.loads(text))


def export_content(ledger: Connections) -> Iterator[Mapping[str, Any]]:
    """Yield every row as an object of JSON: its ``table``, and its values as they are stored."""
    with ledger.reading() as connection:
        for table in CONTENT_TABLES:
            rows = connection.execute(table.table.select)
            for row in rows.fetchall():
                values = dict(zip(table.table.fields, row, strict=True))
                values |= dict.fromkeys(table.local)
                yield {"table": table.name, "row": values}


def import_content(
    rows: Iterable[Mapping[str, Any]],
) -> Callable[[sqlite3.Connection], None]:
    """Return what writes rows of an export, after checking them.

    Raises:
        ValueError: A row is of no table here, or has other columns or values.
    """
    by_name = {table.name: table for table in CONTENT_TABLES}
    checked: list[tuple[ContentTable, _Row]] = []
    for item in rows:
        table = by_name.get(item["table"])
        if table is None or set(item["row"]) != set(table.table.fields):
            raise ValueError(f"a row of {item['table']!r} has other columns than here")
        row = tuple(item["row"][name] for name in table.table.fields)
        if not all(isinstance(value, str | int | float | None) for value in row):
            raise ValueError(f"a row of {item['table']!r} holds something else than values")
        table.table.decode(row)
        checked.append((table, row))

    def write(connection: sqlite3.Connection) -> None:
        """Write them all."""
        for table, row in checked:
            connection.execute(table.table.insert(), row)

    return write


def unreadable_content(ledger: Connections) -> Iterator[str]:
    """Yield what is wrong with rows that cannot be read as what they are declared to be."""
    with ledger.reading() as connection:
        for table in CONTENT_TABLES:
            rows = connection.execute(table.table.select)
            for row in rows.fetchall():
                try:
                    table.table.decode(row)
                except (ValueError, TypeError) as error:
                    yield f"{table.name} {table.key_of(row)}: {error}"
