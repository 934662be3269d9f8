"""One knowledge base takes in another one, which stays as it is.

Rows of the same id are one row (see ``row_joins``).  Where both have edited the same thing, the
later version counts and the earlier one is its history.  What is derived is made anew.  All of it
is one commit: killed at any step it is done or not done, and done again it changes nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct, field
from msgspec.structs import replace

from memctl.errors import LockedError, UsageError
from memctl.feedback.prompt_variants import keep_in_use, undecided_variants
from memctl.files import make_folder
from memctl.graph.derivation import derive_all
from memctl.ids import other_version_id, root_id
from memctl.merging.row_joins import (
    JudgedImportance,
    Row,
    Rows,
    ids_of_conversations,
    ids_of_versions,
    join_importance,
    join_rows,
    moved_rows,
    renamed_rows,
)
from memctl.paths import display_path
from memctl.rows.derived_rows import add_missing, replace_entities
from memctl.rows.references import in_portions
from memctl.rows.row_changes import (
    append_rows,
    delete_rows,
    mark_consolidated,
    put_rows,
    set_columns,
)
from memctl.rows.row_lifecycle import supersede_documents
from memctl.schema.arrow_tables import VECTOR, entity_rows, schemas
from memctl.schema.declarations import DECLARATIONS
from memctl.schema.table_names import TableName
from memctl.sessions.folding import session_document
from memctl.store.ledger.content_merge import (
    ContentMerge,
    MovedRows,
    SessionSplit,
    merge_content,
    split_sessions,
)
from memctl.store.ledger.content_tables import export_content
from memctl.store.ledger.decision_repositories import DELETABLE
from memctl.store.ledger.feedback_repositories import EFFECTS, FeedbackEffect
from memctl.store.ledger.session_repositories import TURNS, SessionKey
from memctl.store.tables.filter_expressions import col

if TYPE_CHECKING:
    from memctl.knowledge_base import KnowledgeBase
    from memctl.store.ledger.repository import LedgerConnection
    from memctl.store.tables.snapshot import Snapshot
    from memctl.store.tables.transaction import Transaction

_MERGED: tuple[TableName, ...] = ("documents", "memories", "relations")
"""The tables that are joined; entities are derived from them."""
_MOVING = "session_id", "source"
"""Columns that have another value where a conversation has another name."""
_IMPORTANCE = ["id", "importance"]
_AGE = ["id", "root_id", "part", "sha256", "size", "ingested_at"]


class MergeReport(Struct, frozen=True):
    """What taking in a knowledge base came to."""

    kb: str
    other: str
    added: Mapping[str, int]
    """Rows that came in, by table: of the tables and of what users and agents have stored."""
    same: int
    """Documents and memories that both had."""
    edited_in_both: int
    """Things of which both had a newer version: the later one counts, the other is history."""
    kept_values: int
    """Values of pools and tiers that gave way to later ones; see the table merged_values."""
    split_sessions: int
    """Conversations of one id that say different things, and are two now."""
    snapshot: str = ""
    """What brings back the state before; "" where nothing has changed."""
    is_changed: bool = False
    """Whether anything is other than it was, if only a value of what both had."""


def merge(kb: KnowledgeBase, other: KnowledgeBase, *, copies_media: bool = True) -> MergeReport:
    """Take in all that another knowledge base has, after making a snapshot of this one.

    Where nothing new comes in, no snapshot is left.

    Args:
        kb: Is changed.
        other: Is only read.
        copies_media: Whether images and the like come along; not in a trial.

    Raises:
        UsageError: They are one, or have vectors of different models; the other one is private and
            this one is not; or a user is named, who reads only some rows.
        LockedError: Another process kept writing.
    """
    require_mergeable(kb, other)
    kb.resources.begin_change()
    kb.resources.snapshot()  # both take over what was said before either knows what the other does
    theirs = other.resources.snapshot()
    snapshot = kb.snapshots.create_before("merge").name
    for path in sorted(other.layout.media.glob("*")) if copies_media else ():
        make_folder(kb.layout.media)
        if not (kb.layout.media / path.name).exists():
            shutil.copy2(path, kb.layout.media / path.name)
    content, joined = list(export_content(other.store.ledger)), ContentMerge()
    ledger = kb.store.ledger

    def join_content(connection: LedgerConnection) -> None:
        """Join the ledgers' content; refuse it if conversations have changed since the preview."""
        nonlocal joined
        if split_sessions(connection, content) != merging.splits:
            raise LockedError("a conversation went on meanwhile", "merge again")
        if ledger.feedback_effects.all() != our_effects:
            raise LockedError("an answer was judged meanwhile", "merge again")
        origins = (name_beside(other, kb), name_beside(kb, other))
        in_use = undecided_variants(ledger)
        joined = merge_content(connection, content, origins, merging.moved, merging.effects)
        keep_in_use(ledger, in_use, kb.resources.clock())
        if joined.written:
            kb.skills.acting_as().decay()

    with kb.store.write() as transaction:
        with ledger.reading() as connection:
            splits = split_sessions(connection, content)
        talks = frozenset(session_document(*key) for key in _sessions(content))
        our_effects = ledger.feedback_effects.all()
        merging = _TableMerge(kb, transaction, theirs, transaction.snapshot(), talks, splits)
        merging.run(our_effects, _effects(content))
        transaction.deletions.keep(_deleted_in(other, transaction.snapshot()))
        transaction.ledger(join_content)
        transaction.ledger(lambda _: _join_records(kb, other))
        transaction.ledger(lambda _: ledger.comparisons.add(merging.facts, kb.resources.clock()))
    kb.resources.snapshot()  # takes over what was said
    is_changed = merging.is_changed or joined.written > 0
    if not is_changed:
        kb.snapshots.delete(snapshot)
        snapshot = ""
    return MergeReport(
        kb.name,
        name_beside(kb, other),
        added={**merging.added, **joined.added},
        same=merging.same,
        edited_in_both=merging.edited_in_both,
        kept_values=joined.kept,
        split_sessions=joined.split,
        snapshot=snapshot,
        is_changed=is_changed,
    )


def require_mergeable(kb: KnowledgeBase, other: KnowledgeBase) -> None:
    """Refuse two knowledge bases that cannot be one.

    Raises:
        UsageError: Says why.
    """
    if kb.layout.folder.resolve() == other.layout.folder.resolve():
        raise UsageError(f"{kb.name} is merged with itself", "name two knowledge bases")
    require_all_users(kb)
    mine, theirs = kb.settings, other.settings
    if (mine.embedder, mine.dimension) != (theirs.embedder, theirs.dimension):
        raise UsageError(
            f"{other.name} has vectors of {theirs.embedder}, {kb.name} of {mine.embedder}",
            f"memctl kb reembed {other.name} --embedder {mine.embedder}",
        )
    if theirs.private and not mine.private:
        raise UsageError(
            f"{other.name} is private, and {kb.name} is not",
            f"memctl kb set {kb.name} --private",
        )
    hidden = sorted({*theirs.private_namespaces} - {*mine.private_namespaces})
    if hidden and not mine.private:
        raise UsageError(
            f"{', '.join(hidden)} of {other.name} is private, but not in {kb.name}",
            f"memctl kb set {kb.name} --private-namespace {hidden[0]}",
        )


def name_beside(kb: KnowledgeBase, other: KnowledgeBase) -> str:
    """Return what the other one is called beside this one: of the same name, with its home."""
    if other.name != kb.name:
        return other.name
    return f"{other.name} of {display_path(other.resources.program_config.home)}"


def require_all_users(kb: KnowledgeBase) -> None:
    """Refuse for a user who is named and reads only some rows.

    Raises:
        UsageError: One is.
    """
    if kb.resources.program_config.user is not None:
        raise UsageError("a merge or a comparison is of all users", "leave out --user")


def _sessions(content: Iterable[Mapping[str, Any]]) -> set[SessionKey]:
    rows = [item["row"] for item in content if item["table"] == TURNS.name]
    return {(row["namespace"], row["session_id"]) for row in rows}


def _effects(content: Iterable[Mapping[str, Any]]) -> list[FeedbackEffect]:
    rows = [item["row"] for item in content if item["table"] == EFFECTS.name]
    return [EFFECTS.decode(row[column] for column in EFFECTS.fields) for row in rows]


def _moved_effects(
    effects: Iterable[FeedbackEffect], moved: Mapping[str, str | None]
) -> list[FeedbackEffect]:
    """Return effects with what their memories are called now."""
    return [
        replace(each, memory_id=moved.get(each.memory_id) or each.memory_id) for each in effects
    ]


def _judged_importance(
    memories: pa.Table, effects: Iterable[FeedbackEffect]
) -> dict[str, JudgedImportance]:
    """Return how important memories of one side are, with what judgements changed of it, by id."""
    values = zip(memories["id"].to_pylist(), memories["importance"].to_pylist(), strict=True)
    found = {id_: JudgedImportance(float(value)) for id_, value in values}
    for each in effects:
        found.setdefault(each.memory_id, JudgedImportance()).effects[each.feedback_id] = each
    return found


def _deleted_in(other: KnowledgeBase, merged: Snapshot) -> Mapping[str, str | None]:
    """Return what was deleted by hand in the other one and is in neither, as it is kept."""
    deleted = {each.id: each.document_id for each in other.store.ledger.deletions.all()}
    there: set[str] = set()
    for table in DELETABLE:
        there.update(merged.get(table, list(deleted), ["id"])["id"].to_pylist())
    return {id_: document for id_, document in deleted.items() if id_ not in there}


def _join_records(kb: KnowledgeBase, other: KnowledgeBase) -> None:
    """Take in what was said of names, and what was asked."""
    ours, theirs = kb.store.ledger, other.store.ledger
    decided = {(each.one, each.other): each for each in ours.names.all()}
    for each in theirs.names.all():
        mine = decided.get((each.one, each.other))
        if mine is None or (mine.at, mine.same) < (each.at, each.same):
            ours.names.save(each)
    known = {each.query_id for each in ours.queries.all()}
    ours.queries.write(each for each in theirs.queries.all() if each.query_id not in known)


class _TableMerge(Struct):
    """Joins the tables of a snapshot with those that a transaction writes."""

    kb: KnowledgeBase
    transaction: Transaction
    theirs: Snapshot
    before: Snapshot
    """Of the tables as they were."""
    conversations: frozenset[str]
    """Root ids of their documents that are conversations."""
    splits: Sequence[SessionSplit]
    """The conversations that are two from now on."""
    moved: MovedRows = field(default_factory=MovedRows)
    """What documents and memories are called now."""
    effects: list[FeedbackEffect] = field(default_factory=list)
    """What judgements change of memories by now, where the two differed in that."""
    added: dict[str, int] = field(default_factory=dict)
    same: int = 0
    edited_in_both: int = 0
    facts: list[str] = field(default_factory=list)
    """Ids of statements that came in, to be compared with what is known."""
    is_changed: bool = False
    """Whether any row came in or has changed."""

    def run(
        self, our_effects: Sequence[FeedbackEffect], their_effects: Sequence[FeedbackEffect]
    ) -> None:
        """Join them.

        Args:
            our_effects: What judgements have changed of ours.
            their_effects: The same of theirs.
        """
        incoming = {t: self.theirs.scan(t, None, self._columns[t]) for t in _MERGED}
        ended = self._separate_versions(incoming)
        ours = self.transaction.snapshot()
        for table in _MERGED:
            self._join(table, incoming[table], ours)
        self._order_versions(ended)
        if our_effects or their_effects:
            self._join_effects(
                ours,
                incoming["memories"],
                _moved_effects(our_effects, self.moved.ours),
                _moved_effects(their_effects, self.moved.theirs),
            )
        if self.added["memories"]:  # what was looked at may go together with what came in
            found = self.transaction.snapshot().scan("memories", None, ["id", "is_consolidated"])
            done = found.filter(found["is_consolidated"])["id"].to_pylist()
            mark_consolidated(self.transaction, done, done=False)
        self.is_changed = any(self.added.values()) or self._rows_differ()
        if self.is_changed:
            self._derive()

    # --- whole tables ---

    @property
    def _columns(self) -> Mapping[TableName, list[str]]:
        """The columns of every table, vectors among them."""
        return {table: each.names for table, each in schemas(self.kb.store.dimension).items()}

    def _rows_differ(self) -> bool:
        """Return whether any row is other than it was, though none came in."""
        after = self.transaction.snapshot()
        for table, columns in self._columns.items():
            names = [name for name in columns if name != VECTOR]
            old, new = (each.scan(table, None, names) for each in (self.before, after))
            if not old.sort_by("id").equals(new.sort_by("id")):
                return True
        return False

    # --- one id, two contents ---

    def _separate_versions(self, incoming: dict[TableName, pa.Table]) -> dict[str, str]:
        """Give one of two documents of the same id, but with other content, another id.

        Of two conversations that say different things one gets another name.  Of two that say the
        same, but were taken over at different turns, the longer one counts; the turns that it
        lacks are taken over again.

        Returns:
            The root ids that the earlier versions have now, each with that of the later one.
        """
        split = {session_document(*each.key) for each in self.splits}
        theirs = _versions(incoming["documents"], self.conversations)
        mine = _versions(self.before.scan("documents", None, _AGE), self.conversations)
        of_ours: dict[str, str] = {}
        of_theirs: dict[str, str] = {}
        ended: dict[str, str] = {}
        for root in sorted((theirs.keys() & mine.keys()) - split):
            one, other = mine[root], theirs[root]
            if not one.differs(other):
                continue
            is_theirs = other.rank < one.rank
            version = (other if is_theirs else one).name
            (of_theirs if is_theirs else of_ours)[root] = version
            ended[other_version_id(root, version)] = root
        known = set(self.before.get("documents", list(ended), ["id"])["id"].to_pylist())
        self.edited_in_both += len(ended.keys() - known)
        self._rename_ours(of_ours, incoming)
        self._rename_theirs(of_theirs, incoming)
        return ended

    def _rename_theirs(
        self, versions: Mapping[str, str], incoming: dict[TableName, pa.Table]
    ) -> None:
        """Give documents of theirs, and what was made from them, other ids."""
        splits = [each for each in self.splits if not each.is_ours]
        mapping, lost = self._renaming(incoming, versions, splits)
        self.moved.theirs.update({**mapping, **lost})
        known = self._ids(self.before)
        for table in _MERGED if mapping else ():
            rows = renamed_rows(table, incoming[table], mapping)
            incoming[table] = moved_rows(table, rows, splits, known)

    def _rename_ours(
        self, versions: Mapping[str, str], incoming: Mapping[TableName, pa.Table]
    ) -> None:
        """Give documents of ours, and what was made from them, other ids."""
        splits = [each for each in self.splits if each.is_ours]
        if not versions and not splits:
            return
        rows = {table: self.before.scan(table, None, self._columns[table]) for table in _MERGED}
        mapping, lost = self._renaming(rows, versions, splits)
        self.moved.ours.update({**mapping, **lost})
        known = {id_ for table in _MERGED for id_ in incoming[table]["id"].to_pylist()}
        for table in _MERGED:
            old = rows[table]
            new = moved_rows(table, renamed_rows(table, old, mapping), splits, known)
            columns = sorted({*DECLARATIONS[table].id_columns, *_MOVING} & {*old.column_names})
            pairs = zip(
                old.select(columns).to_pylist(), new.select(columns).to_pylist(), strict=True
            )
            moved = [place for place, (one, other) in enumerate(pairs) if one != other]
            if not moved:
                continue
            for some in in_portions(old["id"].take(moved).to_pylist()):
                delete_rows(self.transaction, table, col("id").is_in(some))
            append_rows(self.transaction, table, new.take(moved))

    def _renaming(
        self, rows: Rows, versions: Mapping[str, str], splits: Iterable[SessionSplit]
    ) -> tuple[dict[str, str], dict[str, None]]:
        """Return the ids that rows are to have, and the documents that turns are no longer in."""
        mapping = ids_of_versions(rows, versions)
        lost = dict.fromkeys(id_ for id_ in mapping if root_id(id_) in self.conversations)
        return {**mapping, **ids_of_conversations(rows, splits)}, lost

    def _ids(self, snapshot: Snapshot) -> set[str]:
        return {
            id_ for table in _MERGED for id_ in snapshot.scan(table, None, ["id"])["id"].to_pylist()
        }

    # --- one id, one content ---

    def _join(self, table: TableName, theirs: pa.Table, ours: Snapshot) -> None:
        ids = theirs["id"].to_pylist()
        names = [name for name in theirs.column_names if name != VECTOR]
        mine = {row["id"]: row for row in ours.get(table, ids, names).to_pylist()}
        is_new = pa.array([id_ not in mine for id_ in ids], pa.bool_())
        fresh = theirs.filter(is_new)
        if table == "relations":
            fresh = self._drop_dangling(fresh)
        self.added[table] = fresh.num_rows
        if fresh.num_rows:
            append_rows(self.transaction, table, fresh)
        if table == "memories":
            live = fresh.filter(pc.is_null(fresh["valid_to"]))
            facts = live.filter(pc.equal(live["level"], "memory"))
            self.facts = facts["id"].to_pylist()
        both = theirs.filter(pc.invert(is_new))
        if table in ("documents", "memories"):
            self.same += both.num_rows
        changed, places = [], []
        for place, row in enumerate(both.select(names).to_pylist()):
            joined = join_rows(table, mine[row["id"]], row)
            if joined != mine[row["id"]]:
                changed.append(joined)
                places.append(place)
        if changed:
            schema = pa.schema([theirs.schema.field(name) for name in names])
            rows = pa.Table.from_pylist(changed, schema=schema)
            if VECTOR in theirs.column_names:
                rows = self._with_vectors(rows, both.take(places), ours)
            put_rows(self.transaction, table, rows.select(theirs.column_names))

    def _with_vectors(self, rows: pa.Table, theirs: pa.Table, ours: Snapshot) -> pa.Table:
        """Give joined memories the vector of the version whose text they have."""
        mine = ours.get("memories", rows["id"].to_pylist(), [VECTOR])
        vectors = pa.concat_tables([theirs.select([VECTOR]), mine])[VECTOR]
        texts = zip(rows["text"].to_pylist(), theirs["text"].to_pylist(), strict=True)
        places = [
            place if text == other else rows.num_rows + place
            for place, (text, other) in enumerate(texts)
        ]
        return rows.append_column(theirs.schema.field(VECTOR), vectors.take(places))

    def _drop_dangling(self, relations: pa.Table) -> pa.Table:
        """Leave out relations of which an end does not come along."""
        snapshot, known = self.transaction.snapshot(), set[str]()
        for table in ("documents", "memories", "entities"):
            known.update(snapshot.scan(table, None, ["id"])["id"].to_pylist())
        known.update(self.theirs.scan("entities", None, ["id"])["id"].to_pylist())
        ends = zip(
            relations["source_id"].to_pylist(), relations["target_id"].to_pylist(), strict=True
        )
        keep = [one in known and other in known for one, other in ends]
        return relations.filter(pa.array(keep, pa.bool_()))

    # --- judgements ---

    def _join_effects(
        self,
        ours: Snapshot,
        theirs: pa.Table,
        our_effects: Sequence[FeedbackEffect],
        their_effects: Sequence[FeedbackEffect],
    ) -> None:
        """Give memories that the two have judged differently the effects of both."""
        judged = sorted({each.memory_id for each in (*our_effects, *their_effects)})
        is_judged = pc.is_in(theirs["id"], pa.array(judged, pa.string()))
        mine = _judged_importance(ours.get("memories", judged, _IMPORTANCE), our_effects)
        others = _judged_importance(theirs.filter(is_judged), their_effects)
        importance: dict[str, float] = {}
        for id_ in sorted(mine.keys() & others.keys()):
            if mine[id_].effects != others[id_].effects:
                joined = join_importance(mine[id_], others[id_])
                if joined.importance is not None:
                    importance[id_] = joined.importance
                    self.effects += joined.effects.values()
        ids = list(importance)
        found = self.transaction.snapshot().get("memories", ids, _IMPORTANCE)
        for row in found.to_pylist():
            if importance[row["id"]] == row["importance"]:
                del importance[row["id"]]
        set_columns(
            self.transaction, "memories", list(importance), importance=list(importance.values())
        )

    # --- several newer versions of one thing ---

    def _order_versions(self, ended: Mapping[str, str]) -> None:
        """Make one history of what was edited in both, the later version at its end."""
        snapshot = self.transaction.snapshot()
        for earlier, later in ended.items():
            (row,) = snapshot.get("documents", [later], ["ingested_at"]).to_pylist()
            supersede_documents(self.transaction, {earlier: later}, row["ingested_at"])
        self._order_memories(snapshot)

    def _order_memories(self, snapshot: Snapshot) -> None:
        mine, theirs = _successors(self.before), _successors(self.theirs)
        for id_ in sorted(mine.keys() & theirs.keys()):
            if mine[id_] != theirs[id_]:
                self._order(snapshot, id_, mine[id_], theirs[id_], {**theirs, **mine})

    def _order(
        self, snapshot: Snapshot, id_: str, one: str, other: str, next_of: Mapping[str, str]
    ) -> None:
        """Make one history of a memory that ours and theirs have different next versions of."""
        columns = ["id", "valid_from", "version", "valid_to"]
        next_ones = snapshot.get("memories", [one, other], columns).to_pylist()
        heads = list(dict.fromkeys((_last_of(one, next_of), _last_of(other, next_of))))
        found = snapshot.get("memories", heads, columns).to_pylist()
        live = [row for row in found if row["valid_to"] is None]
        if len(live) == 2:
            self.edited_in_both += 1
            earlier, later = sorted(live, key=_since)
            self._set(earlier["id"], superseded_by=later["id"], valid_to=later["valid_from"])
            self._set(later["id"], version=max(later["version"], earlier["version"] + 1))
        if next_ones:
            self._set(id_, superseded_by=min(next_ones, key=_since)["id"])

    def _set(self, id_: str, **columns: Any) -> None:
        set_columns(self.transaction, "memories", [id_], **columns)

    # --- what is derived ---

    def _derive(self) -> None:
        """Make entities and links anew; of what type a name is, theirs say too."""
        theirs = entity_rows(self.theirs.scan("entities"))
        add_missing(self.transaction, {each.id: each for each in theirs}, {})
        replace_entities(self.transaction, *derive_all(self.transaction.snapshot()))


class _Version(Struct, frozen=True):
    """What a document is in one of the two."""

    hashes: Mapping[str, str]
    """Of its first part, of a conversation of every part, by id."""
    rank: tuple[Any, ...]
    """The higher one counts: the later one, of conversations the longer one."""
    name: str
    """What tells it from others."""

    def differs(self, other: _Version) -> bool:
        """Return whether a part of the same id is not alike."""
        both = self.hashes.keys() & other.hashes.keys()
        return any(self.hashes[id_] != other.hashes[id_] for id_ in both)


def _versions(documents: pa.Table, conversations: Collection[str]) -> dict[str, _Version]:
    """Return what documents are by the ids of their first parts."""
    firsts: dict[str, Row] = {}
    talks: dict[str, list[Row]] = {}
    for row in documents.select(_AGE).to_pylist():
        if row["part"] == 0:
            firsts[row["id"]] = row
        if row["root_id"] in conversations:
            talks.setdefault(row["root_id"], []).append(row)
    found: dict[str, _Version] = {}
    for id_, row in firsts.items():
        parts = sorted(talks.get(id_, ()), key=lambda each: int(each["part"]))
        hashes = {each["id"]: each["sha256"] for each in parts or [row]}
        rank = (sum(each["size"] for each in parts), row["ingested_at"], *hashes.values())
        found[id_] = _Version(hashes, rank, "/".join(hashes.values()))
    return found


def _since(row: Row) -> tuple[Any, ...]:
    return (row["valid_from"], row["id"])


def _successors(snapshot: Snapshot) -> dict[str, str]:
    """Return what each memory was superseded by, of those that were."""
    columns, where = ["id", "superseded_by"], ~col("superseded_by").is_null()
    rows = snapshot.scan("memories", where, columns).to_pylist()
    return {row["id"]: row["superseded_by"] for row in rows}


def _last_of(id_: str, next_of: Mapping[str, str]) -> str:
    """Return the last of the versions that came after one."""
    seen = {id_}
    while (following := next_of.get(id_)) is not None and following not in seen:
        seen.add(id_ := following)
    return id_
