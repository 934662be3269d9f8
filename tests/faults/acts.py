"""Every command that writes, on a small home, and what must be so when it was cut short.

A command that is killed, or for which the disk has no room, has done its work or has not begun it;
run again, it ends what was begun, and nothing is lost, twice there, or back from the dead.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from damaged import manifests
from fake_endpoint import FakeEndpoint
from grown import sample_export, sample_home
from set_clock import Clock
from watched import Place, command, new_place

from memctl.config import load_config
from memctl.doctor.doctor import Doctor
from memctl.home import Home
from memctl.knowledge_base import KnowledgeBase
from memctl.schema.migrations import FIRST_VERSION, SCHEMA_VERSION
from memctl.schema.table_names import TableName
from memctl.store.ledger.content_tables import CONTENT_TABLES, ContentTable

NOTES = {
    "lease.md": "# Lease\n\n3 March 2026: Ann Keller signed the lease. The lease of the harbour"
    " office ends on 31 May 2026.",
    "visit.txt": "Ann Keller and Bo Lind visited the harbour office in April.",
    "end.txt": "9 April 2026: The lease of the harbour office now ends on 30 June 2026, says Ann"
    " Keller.",
    "keys.txt": "Bo Lind keeps the keys of the harbour office. The alarm code is 4711-Quince.",
}
BOAT = "The boat is blue."
SECRET = "4711-Quince"
"""What is forgotten."""
QUESTION = "Who keeps the keys?"
NOTES_KB = ("-k", "notes")

Command = tuple[str, ...]
State = dict[str, dict[str, Counter[Any]]]
"""What is known and how it is set, by knowledge base."""


@dataclass(frozen=True)
class Act:
    """A command that writes; ``@keys`` and the like are ids of what was ingested."""

    command: Command
    prepare: Callable[[Path], object] = lambda _: None
    """What happens to the home before it."""
    is_one_step: bool = True
    """Whether nobody ever sees half of what it does."""
    is_of_damage: bool = False
    """Whether it is about a home that is not sound."""
    codes: tuple[int, ...] = (0,)
    """How it may end when it is run again though its work was done."""
    meanwhile: tuple[Command, ...] = ()
    """What others do before it is run again; it may complete it, and must bring nothing back."""
    then: tuple[Command, ...] = ()
    """What is run after it."""
    gone: str = ""
    """What is nowhere afterwards."""
    is_repeatable: bool = True
    """Whether doing it twice comes to the same as doing it once."""


# --- what is done --------------------------------------------------------------------------------


def drop(home: Path) -> None:
    inbox = home / "kb/notes/inbox"
    (inbox / "sub").mkdir()
    (inbox / "sub/new.txt").write_text("Cleo Marsh paints the harbour office in June.")
    (inbox / "other.md").write_text("# Paint\n\nThe paint for the harbour office is green.")
    (inbox / "zeros.txt").write_bytes(b"\0")


def export(home: Path) -> None:
    to = str(home.parent / "all.memctl")
    assert command(home, "export", "all", "--to", to, *NOTES_KB) == 0


def lose_rows(home: Path) -> None:
    """Damage the file with the rows of every document; no snapshot needs it."""
    assert command(home, "snapshot", "delete", "one", "--yes", *NOTES_KB) == 0
    for path in (home / "kb/notes/lance/documents.lance/data").iterdir():
        whole = path.read_bytes()
        path.unlink()  # images share what is not written in place
        path.write_bytes(whole[: len(whole) // 2])


def lose_ledger(home: Path) -> None:
    for path in (home / "kb/notes").glob("ledger.sqlite*"):
        path.unlink()


def lose_manifest(home: Path) -> None:
    """Damage the one file that says which others the memories have."""
    newest = manifests(home / "kb/notes", "memories")[0]
    newest.unlink()  # images share it
    newest.touch()


def doing(*words: str) -> Callable[[Path], object]:
    """Have another command done before."""

    def run(home: Path) -> None:
        assert command(home, *words) == 0

    return run


def forgetting(*what: str, gone: str = SECRET) -> Act:
    """Forget, and then complete what was begun; repair and watch must not bring anything back."""
    return Act(
        ("forget", *what, "--snapshots", "--yes", *NOTES_KB),
        is_one_step=False,
        codes=(0, 1),
        meanwhile=(("doctor", "--repair", *NOTES_KB), ("watch", "--once")),
        then=(("forget", *NOTES_KB),),
        gone=gone,
    )


OLDER = range(FIRST_VERSION, SCHEMA_VERSION + 1)
"""The schemas of stored homes; the last one has the tables of today and an older ledger."""
REEMBED = ("kb", "reembed", "notes", "--embedder")


def attic(home: Path) -> None:
    """Make another knowledge base, which knows some of the same and something else."""
    letter = home.parent / "attic.md"
    letter.write_text(NOTES["lease.md"])
    for words in (
        ("kb", "create", "attic"),
        ("ingest", str(letter), "-k", "attic"),
        ("memory", "add", "The attic key is with Ida.", "-k", "attic"),
        ("session", "start", "--id", "talk", "-k", "attic"),
        ("session", "say", "talk", "remember: the attic is dry", "-k", "attic"),
        ("document", "list", "-k", "attic"),  # which takes over what was said
    ):
        assert command(home, *words) == 0


def talk(home: Path) -> None:
    """Begin a conversation of which nothing is in the tables yet."""
    for words in (
        ("session", "start", "--id", "talk", *NOTES_KB),
        ("session", "say", "talk", "remember: the attic is dry", *NOTES_KB),
        ("session", "say", "talk", "Dora Finch sweeps it in May.", "--by", "agent", *NOTES_KB),
    ):
        assert command(home, *words) == 0


def known_talk(home: Path) -> None:
    talk(home)
    assert command(home, "document", "list", *NOTES_KB) == 0


def chats(home: Path) -> None:
    """Write two conversations down."""
    for name in ("one", "two"):
        lines = [
            {"role": "user", "content": f"Who sweeps attic {name}?"},
            {"role": "assistant", "content": f"Dora Finch sweeps attic {name} in May."},
        ]
        (home.parent / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)))


def keep_entries(home: Path) -> None:
    """Have short-term entries that were over long ago, one of which was read often."""
    clock = Clock(datetime(2026, 3, 1, tzinfo=UTC))
    with Home(load_config({"home": str(home)}), clock).open("notes") as base:
        entries = base.router(agent="a", session="s").short_term
        for name, value in (("ferry", "The ferry leaves at nine."), ("lunch", "There is soup.")):
            entries.write(name, value, ttl=60)
        for _ in range(3):
            entries.read("ferry")


def write_skills(home: Path) -> None:
    for name in ("sweep", "paint"):
        folder = home.parent / "skills" / name
        folder.mkdir(parents=True, exist_ok=True)
        text = (
            f"# {name}\n\nUse it to {name} the attic of the harbour office.\n\n1. Take a brush.\n"
        )
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {name} it\n---\n{text}")
        (folder / "notes.txt").write_text(f"The brush to {name} with is in the attic.")


def older(schema: int) -> Callable[[Path], object]:
    """Have the home be one that an earlier version has left."""

    def put_older(home: Path) -> None:
        shutil.rmtree(home)
        sample_home(schema, home.parent)
        (home / "kb/notes").chmod(0o700)  # archives do not keep it

    return put_older


def have_export(schema: int, home: Path) -> None:
    sample_export(schema, home.parent)


def doing_all(*commands: Command) -> Callable[[Path], object]:
    """Have other commands done before."""

    def run(home: Path) -> None:
        for words in commands:
            assert command(home, *words) == 0

    return run


POOL = (
    ("pool", "create", "berths", *NOTES_KB),
    ("pool", "write", "berths", "one", '{"boat": "blue"}', *NOTES_KB),
)
LETTER = "Dora Finch sends a letter to the harbour office."
ACTS = {
    "ingest": Act(("ingest", "--text", LETTER, *NOTES_KB)),
    "watch": Act(("watch", "--once"), prepare=drop, is_one_step=False, codes=(0, 3)),
    "consolidate": Act(("consolidate", *NOTES_KB)),
    "job undo": Act(
        ("job", "undo", "--yes", *NOTES_KB), prepare=doing("consolidate", *NOTES_KB), codes=(1,)
    ),
    "compact": Act(("compact", *NOTES_KB)),
    "memory add": Act(("memory", "add", "The spare key is with Ida.", *NOTES_KB)),
    "memory edit": Act(
        ("memory", "edit", "@boat", "--text", "The boat is red.", *NOTES_KB), codes=(2,)
    ),
    "memory delete": Act(("memory", "delete", "@boat", "--yes", *NOTES_KB), codes=(1,)),
    "document delete": Act(("document", "delete", "@keys", "--yes", *NOTES_KB), codes=(1,)),
    "document reprocess": Act(("document", "reprocess", "@keys", *NOTES_KB)),
    "forget a document": forgetting("--document", "@keys"),
    "forget a memory": forgetting("--memory", "@boat", gone=BOAT),
    "forget a namespace": forgetting("--namespace", "default"),
    "forget a name": forgetting("--entity", SECRET),
    "forget what is older": forgetting("--before", "2100-01-01"),
    "snapshot create": Act(("snapshot", "create", "two", *NOTES_KB), codes=(2,)),
    "snapshot restore": Act(("snapshot", "restore", "one", "--yes", *NOTES_KB)),
    "snapshot delete": Act(("snapshot", "delete", "one", "--yes", *NOTES_KB), codes=(1,)),
    "graph merge": Act(("graph", "merge", "Bo Lind", "Ann Keller", *NOTES_KB), codes=(2,)),
    "graph unmerge": Act(
        ("graph", "unmerge", "Bo Lind", "Ann Keller", *NOTES_KB),
        prepare=doing("graph", "merge", "Bo Lind", "Ann Keller", *NOTES_KB),
        codes=(2,),
    ),
    "query --feedback": Act(("query", "--feedback", "last", "good", *NOTES_KB)),
    "import": Act(
        ("import", "@folder/all.memctl", "-k", "copy"),
        prepare=export,
        is_one_step=False,
        codes=(0, 2),
    ),
    "kb create": Act(("kb", "create", "other"), codes=(2,)),
    "kb set": Act(("kb", "set", "notes", "--private"), is_one_step=False),
    "kb grant": Act(("kb", "grant", "notes", "--agent", "clerk", "read")),
    "kb pause": Act(("kb", "pause", "notes")),
    "kb resume": Act(("kb", "resume", "notes"), prepare=doing("kb", "archive", "notes")),
    "kb archive": Act(("kb", "archive", "notes")),
    "kb rename": Act(("kb", "rename", "notes", "letters"), codes=(10,)),
    "kb merge": Act(("kb", "merge", "notes", "attic", "--yes"), prepare=attic, is_one_step=False),
    "kb delete": Act(("kb", "delete", "notes", "--yes"), codes=(10,)),
    "kb reembed": Act((*REEMBED, "endpoint/e")),
    "kb reembed with what is kept": Act(
        (*REEMBED, "builtin"), prepare=doing(*REEMBED, "endpoint/e")
    ),
    "kb reembed --drop-old": Act(
        ("kb", "reembed", "notes", "--drop-old"), prepare=doing(*REEMBED, "endpoint/e")
    ),
    "doctor --repair": Act(
        ("doctor", "--repair", *NOTES_KB), prepare=lose_rows, is_one_step=False, is_of_damage=True
    ),
    "doctor --repair, no ledger": Act(
        ("doctor", "--repair", *NOTES_KB), prepare=lose_ledger, is_one_step=False, is_of_damage=True
    ),
    "doctor --repair, no manifest": Act(
        ("doctor", "--repair", *NOTES_KB),
        prepare=lose_manifest,
        is_one_step=False,
        is_of_damage=True,
    ),
    "doctor --rebuild": Act(("doctor", "--rebuild", "--yes", *NOTES_KB)),
    "kb clear": Act(("kb", "clear", "notes", "--yes"), is_one_step=False),
    "user clear": Act(
        ("user", "clear", "ann", "--yes"),
        prepare=doing("memory", "add", "The attic is dry.", "--user", "ann", *NOTES_KB),
        is_one_step=False,
        codes=(1,),
    ),
    "session say": Act(
        ("session", "say", "talk", "remember: the cellar is wet", *NOTES_KB),
        prepare=talk,
        is_repeatable=False,
    ),
    "session end": Act(
        ("session", "end", "talk", *NOTES_KB), prepare=talk, is_one_step=False, codes=(1, 2)
    ),
    "session archive": Act(
        ("session", "archive", "talk", *NOTES_KB), prepare=talk, is_one_step=False
    ),
    "session import": Act(
        ("session", "import", "@folder/one.jsonl", "@folder/two.jsonl", *NOTES_KB),
        prepare=chats,
        is_one_step=False,
    ),
    "session forget": Act(
        ("session", "forget", "talk", "--yes", *NOTES_KB),
        prepare=known_talk,
        is_one_step=False,
        codes=(0, 1),
        meanwhile=(("doctor", "--repair", *NOTES_KB), ("watch", "--once")),
        then=(("forget", *NOTES_KB),),
        gone="the attic is dry",
    ),
    "tier set": Act(("tier", "set", "next", "call Ida", "--session", "s", *NOTES_KB)),
    "tier promote": Act(("tier", "promote", *NOTES_KB), prepare=keep_entries, is_one_step=False),
    "tier clear": Act(
        ("tier", "clear", "--session", "s", "--yes", *NOTES_KB),
        prepare=doing("tier", "set", "next", "call Ida", "--session", "s", *NOTES_KB),
    ),
    "pool write": Act(
        ("pool", "write", "berths", "one.boat", '"red"', *NOTES_KB),
        prepare=doing_all(*POOL),
        is_repeatable=False,
    ),
    "pool delete": Act(
        ("pool", "delete", "berths", "--yes", *NOTES_KB), prepare=doing_all(*POOL), codes=(1,)
    ),
    "skill add": Act(
        ("skill", "add", "@folder/skills", *NOTES_KB), prepare=write_skills, is_one_step=False
    ),
    "skill delete": Act(
        ("skill", "delete", "sweep", "--yes", *NOTES_KB),
        prepare=lambda home: (
            write_skills(home),
            doing("skill", "add", str(home.parent / "skills"), *NOTES_KB)(home),
        ),
        codes=(1,),
    ),
    **{
        f"upgrade from {schema}": Act(
            ("memory", "add", "The spare key is with Ida.", *NOTES_KB), prepare=older(schema)
        )
        for schema in OLDER
    },
    **{
        f"import from {schema}": Act(
            ("import", f"@folder/all-{schema}.memctl", "-k", "copy"),
            prepare=partial(have_export, schema),
            is_one_step=False,
            codes=(0, 2),
        )
        for schema in OLDER[:-1]
    },
}

LIKE_OTHERS = (
    "forget a memory",
    "forget a namespace",
    "forget a name",
    "forget what is older",
    "memory delete",
    "snapshot delete",
    "kb reembed with what is kept",
    "kb reembed --drop-old",
    "kb grant",
    "kb pause",
    "kb resume",
    "graph unmerge",
    "kb clear",
    "user clear",
    "session say",
    "session archive",
    "session forget",
    "tier set",
    "tier clear",
    "pool write",
    "pool delete",
    "skill delete",
    *(f"upgrade from {schema}" for schema in OLDER[1:]),
    *(f"import from {schema}" for schema in OLDER[:-1]),
)
"""Acts that go the way of another one; where time is short, one of them is done, by chance."""

ELSEWHERE = {
    *("config init", "demo", "eval", "export", "graph export"),
    *("session compress", "session record", "session start", "profile set", "mcp", "serve", "open"),
    *("hook", "work submit", "chat"),
    *("tool call", "tool serve", "pool create", "pool merge", "pool grant"),
    *("pool revoke", "pool restore", "pool end", "tier remove"),
    *("tier refresh", "tier share", "tier save", "tier load"),
    *("user add", "user remove", "agent add", "agent remove", "team add", "team remove"),
    *("kb revoke", "kb use", "feedback add", "feedback undo", "reflect", "enrich"),
    *("prompt add", "prompt edit", "prompt activate", "prompt split", "prompt retire"),
    "prompt improve",
    *("skill assign", "skill used", "skill activate", "skill deprecate"),
    *("skill archive", "skill export", "skill version add", "skill learn"),
    *("skill version activate", "skill version split", "skill propose", "skill submit"),
    *("skill review", "skill approve", "skill create", "skill reject", "skill conflicts"),
    *("skill acknowledge", "skill resolve", "skill dismiss", "skill repair"),
    *("kb revoke", "kb use"),
    *("upkeep run", "upkeep set", "summary", "memory restore", "memory confirm"),
}
"""Commands that write files of the user's own, or to a home of their own, or one small file or one
transaction of the ledger; conversations, pools and tiers are killed in tests of their own."""
READING = {
    *("config path", "config show", "context", "models list", "models test"),
    *("document links", "document backlinks", "document mentions", "document related"),
    *("links missing", "links check"),
    *("document list", "document show", "insight list", "insight show"),
    *("graph communities", "graph neighbors", "graph path", "graph show"),
    *("kb diff", "kb list", "kb show", "memory history", "memory list", "memory show"),
    *("job list", "snapshot list", "sql", "stats", "status", "why"),
    *("session list", "session show", "session summary", "session recall", "session prompt"),
    *("graph search", "profile show", "tool list", "tool show", "user list", "user show"),
    *("agent list", "agent show", "team list", "pool list", "pool show", "pool read"),
    *("pool stats", "pool history", "pool watch", "tier list", "tier get", "tier find"),
    *("tier stats", "work list", "work next"),
    *("feedback list", "feedback show", "feedback summary", "prompt list"),
    *("prompt show", "prompt diff"),
    *("resident status", "resident start", "resident stop"),
    *("skill list", "skill show", "skill search", "skill context", "skill gaps"),
    *("skill health", "skill suggest", "skill proposals", "skill version list"),
    *("tier stats", "upkeep list", "upkeep report", "audit", "memory learnings"),
}
"""Commands that change nothing that is known or set."""


# --- what is there -------------------------------------------------------------------------------


def home_at(folder: Path) -> Home:
    return Home(load_config({"home": str(folder)}))


def state_of(folder: Path) -> State:
    """All that is known and how it is set, but for when that was; by knowledge base."""
    home = home_at(folder)
    found: State = {}
    for name in home.names():
        with home.open(name) as base:
            found[name] = _state(base)
    return found


def state_of_copy(folder: Path) -> State:
    """The same of a home whose ledger stays of an older version if it is so."""
    with TemporaryDirectory(dir=folder.parent) as beside:
        copied = shutil.copytree(folder, Path(beside, "home"), symlinks=True)
        return state_of(copied)


def _state(base: KnowledgeBase) -> dict[str, Counter[Any]]:
    snapshot, ledger, settings = base.store.snapshot(), base.store.ledger, base.settings
    columns: dict[TableName, list[str]] = {
        "documents": ["source", "text", "status"],
        "memories": ["level", "type", "text", "document_id", "is_consolidated", "valid_to"],
        "entities": ["name"],
        "relations": ["source_id", "target_id", "relation_type"],
    }
    found: dict[str, Counter[Any]] = {
        table: Counter(map(_row, snapshot.scan(table, columns=names).to_pylist()))
        for table, names in columns.items()
    }
    with ledger.reading() as connection:
        for content in CONTENT_TABLES:
            rows = connection.execute(content.table.select).fetchall()
            found[content.name] = Counter(each for row in rows for each in _words(content, row))
    found["snapshots"] = Counter({e.name.rstrip("-0123456789") for e in ledger.snapshots.all()})
    found["decisions"] = Counter((each.one, each.other, each.same) for each in ledger.names.all())
    found["asked"] = Counter((each.question, each.feedback) for each in ledger.queries.all())
    found["replied"] = Counter([ledger.replies.get(QUESTION)])
    pinned = (
        settings.status,
        settings.private,
        settings.embedder,
        base.store.embedder,
        base.store.dimension,
    )
    found["settings"] = Counter([pinned])
    return found


def _row(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(value is not None if name == "valid_to" else value for name, value in row.items())


def _words(content: ContentTable, row: tuple[Any, ...]) -> list[tuple[str, str]]:
    """Return what each column of a row says; some acts set one after the other."""
    record = content.table.decode(row)
    return [(name, str(getattr(record, name))) for name in content.texts]


def files_of(home: Path) -> list[str]:
    """The files of the inboxes, wherever they have got to."""
    folders = [home / "kb/notes" / name for name in ("inbox", "processing", "processed", "failed")]
    return sorted(str(p.relative_to(home)) for f in folders for p in f.rglob("*") if p.is_file())


def require_sound(folder: Path, *, silent: bool = False) -> None:
    """Nothing is damaged; where nothing was cut short, the doctor has no warning either.

    But for the room on the disk, of which some tests leave little.
    """
    doctor = Doctor(home_at(folder))
    fine = ("ok",) if silent else ("ok", "warning")
    for name in doctor.names():
        found = [
            each
            for each in doctor.examine(name, deep=True)
            if each.layer != "disk" and "document reprocess" not in each.hint  # of older homes
        ]
        assert [each for each in found if each.verdict not in fine] == [], name


def flat(state: State) -> Counter[Any]:
    return Counter(
        {
            (name, part, item): count
            for name, parts in state.items()
            for part, items in parts.items()
            for item, count in items.items()
        }
    )


# --- what must be so -----------------------------------------------------------------------------


def made_ready(folder: Path) -> Path:
    """Fill a home in a folder, and keep a copy beside it to put in its place again."""
    fill(new_place(folder))
    shutil.copytree(folder / "home", folder / "filled")
    return folder


def fill(place: Place) -> None:
    """Put in documents, a memory, a question, a model's reply and a snapshot, and tidy up."""
    for name, text in NOTES.items():
        place.drop(name, text)
    place.drain()
    with place.open() as base:
        base.memories.add(BOAT)
        base.query(QUESTION)
        base.store.ledger.replies.put(QUESTION, "gist", "model", b"Bo Lind", base.clock())
        base.store.upkeep(force=True)
        base.snapshots.create("one")
        base.ingest(text="Ann Keller visited Bo Lind in the harbour office in May.")


def with_ids(words: Command, home: Path) -> Command:
    """Put in ids where a command has names for them."""
    if not any("@" in word for word in words):
        return words
    names = {"@folder": str(home.parent)}
    with home_at(home).open("notes") as base:
        rows = base.store.snapshot().scan("memories", columns=["id", "text", "document_id"])
    for row in rows.to_pylist():
        if row["text"] == BOAT:
            names["@boat"] = row["id"]
        elif SECRET in row["text"]:
            names["@keys"] = row["document_id"]
        elif "[[" in row["text"]:
            names["@letter"] = row["document_id"]
        elif row["document_id"] is None:
            names["@stated"] = row["id"]
    for name, value in names.items():
        words = tuple(word.replace(name, value) for word in words)
    return words


def serve(name: str, endpoint: FakeEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have vectors from an endpoint for the acts that need them."""
    if name.startswith("kb reembed"):
        for key, value in endpoint.settings(embed="e").items():
            monkeypatch.setenv(key, value)


def put(image: Path, home: Path) -> None:
    """Have a home be as in an image, which stays as it is."""
    shutil.rmtree(home)
    shutil.copytree(image, home, symlinks=True)


@dataclass(frozen=True)
class Trial:
    """What one act does to a home when nothing comes between."""

    act: Act
    home: Path
    words: Command
    before: State
    after: State
    files: list[str]

    @classmethod
    def of(cls, act: Act, home: Path, run: Callable[[Command], object]) -> Trial:
        """Do it once, by ``run``."""
        before, words = state_of(home), with_ids(act.command, home)
        act.prepare(home)
        if not act.is_of_damage:  # from which it is to come back as it was
            before = state_of_copy(home)
        run(words)
        require_sound(home, silent=True)
        after = state_of(home)
        if act.is_of_damage:
            assert _rows(before) <= _rows(after), "something is lost"
        assert not act.gone or act.gone not in repr(after)
        return cls(act, home, words, before, after, files_of(home))

    def state(self) -> State:
        """What is known in the home, and how it is set."""
        return state_of(self.home)

    def require_all_well(self) -> None:
        """The home is as before or as after, and when the act is done again it is as after."""
        act, home, found = self.act, self.home, self.before
        if not act.is_of_damage:
            require_sound(home)
            found = self.state()
            require_between(found, self.before, self.after, is_one_step=act.is_one_step)
        for words in act.meanwhile:
            assert command(home, *words) == 0
            earlier, found = found, self.state()
            require_between(found, earlier, self.after, is_one_step=False)
        if found == self.after and not act.is_repeatable:
            return
        code = command(home, *self.words)
        is_undone = act.is_one_step and found == self.before != self.after
        assert code in ((0,) if is_undone else (0, *act.codes))
        for words in act.then:
            assert command(home, *words) in (0, 2), words
        require_sound(home)
        assert self.state() == self.after
        assert files_of(home) == self.files
        if act.gone:
            assert files_with(act.gone, home / "kb") == []


def _rows(state: State) -> Counter[Any]:
    """What can be recalled, which no repair may lose."""
    return state["notes"]["documents"] + state["notes"]["memories"]


def require_between(found: State, before: State, after: State, *, is_one_step: bool) -> None:
    """It is as before or as after; of several steps, each alone is."""
    one, other, now = flat(before), flat(after), flat(found)
    if is_one_step:
        assert found in (before, after), (now - one, one - now, now - other, other - now)
    assert not (one & other) - now, "something is lost"
    assert not now - (one | other), "something is there twice, or comes from nowhere"


def files_with(word: str, folder: Path) -> list[Path]:
    """The files with a word, byte by byte."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if word.encode() in path.read_bytes()]
