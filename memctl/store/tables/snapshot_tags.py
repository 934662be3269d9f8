"""The tags by which the tables themselves say which of their versions snapshots need.

LanceDB's own tools prune no version that has one.  The ledger is what counts; tags are written
after it, are put right from it, and stand in for it where it is lost.  They are read from their
files, for the engine (lance 13) lists none while one of them is damaged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import PurePosixPath

from msgspec import Struct, field

from memctl.schema.table_names import TableName
from memctl.store.ledger.ledger import HEAD, Ledger
from memctl.store.tables.durability import can_be_opened
from memctl.store.tables.engine import Datasets, translate_write_errors
from memctl.store.tables.inspection import ENGINE_ERRORS
from memctl.store.tables.storage import TAGS, TableFiles, read_whole

_PREFIX = "snapshot."
"""How the tags of snapshots begin; other tags are not ours."""


class Tag(Struct, frozen=True):
    """The content of a tag's file."""

    version: int
    created_at: datetime
    metadata: Mapping[str, str] = field(default_factory=dict)


class RepairedTags(Struct, frozen=True):
    """The snapshots whose tags have been repaired."""

    written: tuple[str, ...]
    removed: tuple[str, ...]
    """Those that could not be read and that no snapshot needs."""


Tags = Mapping[str, Tag | None]
"""The tags of one table by the names of their snapshots; None for one that cannot be read."""


def snapshot_tags(datasets: Datasets, table: TableName) -> Tags:
    """Return the tags of snapshots."""
    files = datasets.files(table)
    return {
        name.removeprefix(_PREFIX): _read_tag(files, path)
        for name, path in _tags(files).items()
        if name.startswith(_PREFIX)
    }


def damaged_tags(datasets: Datasets, table: TableName) -> dict[str, str]:
    """Return tags of other programs that cannot be read, each with its file."""
    files = datasets.files(table)
    others = {name: path for name, path in _tags(files).items() if not name.startswith(_PREFIX)}
    return {name: path for name, path in others.items() if _read_tag(files, path) is None}


def write_tag(
    datasets: Datasets,
    table: TableName,
    name: str,
    version: int,
    metadata: Mapping[str, str],
) -> None:
    """Record durably that a snapshot needs a version, replacing an earlier tag of its name."""
    files = datasets.files(table)
    tag = f"{_PREFIX}{name}"
    dataset = datasets.fresh(table)
    with translate_write_errors(files.uri):
        said = snapshot_tags(datasets, table)
        if name in said and not _names(said[name], version):
            dataset.tags.delete(tag)  # damaged, or of one whose deletion was cut short
        try:
            dataset.tags.create(tag, version)
        except ENGINE_ERRORS:
            if not _names(snapshot_tags(datasets, table).get(name), version):
                raise  # else another process has just written it
        _describe(files, f"{TAGS}/{tag}.json", metadata)
    files.sync([f"{TAGS}/{tag}.json"])  # the first one makes its folders


def _describe(files: TableFiles, path: str, metadata: Mapping[str, str]) -> None:
    """Write the metadata of a tag durably.

    The engine (lance 13) writes over the tag itself: on a full disk that leaves an empty file, and
    nothing is raised.
    """
    said = json.loads(read_whole(files, path))
    files.save(path, json.dumps(said | {"metadata": dict(metadata)}).encode())


def wrong_tags(tags: Tags, versions: Mapping[str, int]) -> list[str]:
    """Return the snapshots whose tag is missing, cannot be read or names another version."""
    return [name for name, version in versions.items() if not _names(tags.get(name), version)]


def repair_tags(datasets: Datasets, ledger: Ledger, table: TableName) -> RepairedTags:
    """Make the tags of snapshots on a table agree with the ledger.

    A version with a tag is never pruned, and none at all is while a tag is damaged.
    """
    tags = snapshot_tags(datasets, table)  # before the ledger, which a new snapshot is in first
    wanted = wanted_versions(ledger, table)
    wrong = wrong_tags(tags, wanted)
    writable = [name for name in wrong if can_be_opened(datasets, table, wanted[name])]
    lost = {name for name in wrong if name not in writable}
    removed = [name for name in tags if name not in wanted or name in lost]
    if removed:
        dataset = datasets.fresh(table)
        with translate_write_errors(datasets.uri(table)):
            for name in removed:
                dataset.tags.delete(f"{_PREFIX}{name}")
    settings = {entry.name: entry.pinned for entry in ledger.snapshots.all()} if writable else {}
    for name in writable:
        write_tag(datasets, table, name, wanted[name], settings.get(name, {}))
    return RepairedTags(tuple(writable), tuple(name for name in removed if tags[name] is None))


def wanted_versions(ledger: Ledger, table: TableName) -> dict[str, int]:
    """Return the version of a table that each snapshot needs."""
    heads = ledger.heads().items()
    return {name: head[table] for name, head in heads if name != HEAD and table in head}


def _names(tag: Tag | None, version: int) -> bool:
    return tag is not None and tag.version == version


def _tags(files: TableFiles) -> dict[str, str]:
    """Return the tags of a table, each with its file."""
    found = sorted(name for name in files.names(TAGS) if name.endswith(".json"))
    return {PurePosixPath(name).stem: name for name in found}


def _read_tag(files: TableFiles, path: str) -> Tag | None:
    try:
        said = json.loads(read_whole(files, path))
        return Tag(
            int(said["version"]),
            datetime.fromisoformat(said["createdAt"]),
            {str(key): str(value) for key, value in said.get("metadata", {}).items()},
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
