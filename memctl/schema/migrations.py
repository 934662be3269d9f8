"""Schema versions of the tables: what each one added to the version before it.

A migration only ever adds: tables, columns with a default, indexes.  The declarations say what the
tables are now; this list says since when, so that the tables of every earlier version are known.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct, field

from memctl.errors import KnowledgeBaseUnavailable
from memctl.schema.table_names import TABLES, TableName

FIRST_VERSION = 1
"""The schema of knowledge bases that do not name one."""


class Migration(Struct, frozen=True):
    """What one schema version has that the version before it had not."""

    tables: tuple[TableName, ...] = ()
    """New tables."""
    columns: Mapping[TableName, tuple[str, ...]] = field(default_factory=dict)
    """New columns of older tables; each has a default in its record."""
    indexes: tuple[TableName, ...] = ()
    """Older tables whose scalar indexes are not those of the version before."""


MIGRATIONS: tuple[Migration, ...] = (
    Migration(  # who wrote a memory, and what kind of thing it is
        columns={
            "documents": ("doc_type", "agent_id"),
            "memories": ("doc_type", "agent_id", "source_type", "kind", "edited_by"),
        }
    ),
    Migration(columns={"memories": ("archived_at",)}),  # memories that have not been used for long
)
"""The first entry leads from version 1 to version 2.  Entries are only ever appended."""
SCHEMA_VERSION = FIRST_VERSION + len(MIGRATIONS)


def migrations_after(version: int) -> tuple[Migration, ...]:
    """Return what has to be done to bring tables of a schema version up to date."""
    return MIGRATIONS[version - FIRST_VERSION :]


def tables_at(version: int) -> tuple[TableName, ...]:
    """Return the tables that a schema version has."""
    later = {table for each in migrations_after(version) for table in each.tables}
    return tuple(table for table in TABLES if table not in later)


def columns_after(version: int, table: TableName) -> frozenset[str]:
    """Return the columns of a table that a schema version has not got yet."""
    later = (each.columns.get(table, ()) for each in migrations_after(version))
    return frozenset(name for names in later for name in names)


def version_of(columns: Mapping[TableName, Collection[str]]) -> int:
    """Return the newest schema version that the tables satisfy.

    Args:
        columns: The columns of the tables that there are.
    """
    for version in range(FIRST_VERSION, SCHEMA_VERSION):
        step = MIGRATIONS[version - FIRST_VERSION]
        has_tables = all(table in columns for table in step.tables)
        has_columns = all(
            set(names) <= set(columns.get(t, ())) for t, names in step.columns.items()
        )
        if not (has_tables and has_columns):
            return version
    return SCHEMA_VERSION


def require_known(version: int, what: str) -> None:
    """Refuse tables of a schema version that this program does not know.

    Args:
        version: Their schema version.
        what: What they are of, for the message.

    Raises:
        KnowledgeBaseUnavailable: The version is a newer one.
    """
    if version > SCHEMA_VERSION:
        raise KnowledgeBaseUnavailable(
            f"{what} was written by a newer memctl: its tables have schema version {version},"
            f" this one knows versions up to {SCHEMA_VERSION}",
            "upgrade memctl",
        )
