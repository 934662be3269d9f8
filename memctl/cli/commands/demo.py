"""memctl demo: the whole tour on sample files, in a home of its own, through the real code."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from msgspec.structs import replace

from memctl.cli.arguments import input_folder
from memctl.cli.command_context import CommandContext
from memctl.cli.command_decorator import command
from memctl.cli.commands.content.graph import show_step
from memctl.cli.rendering.answer_view import show_result
from memctl.cli.rendering.output_formats import Column, emit, print_paragraph
from memctl.cli.rendering.terminal_text import one_line
from memctl.errors import UsageError
from memctl.formatting import format_count, format_size
from memctl.plain_values import plain_rows

if TYPE_CHECKING:
    from memctl.home import Home
    from memctl.knowledge_base import KnowledgeBase
    from memctl.records import Insight
    from memctl.watch.reporter import Listener, WatchEvent

_NAME = "demo"
_SETTLE_SECONDS = 0.3
_SHOWN = 2
"""Of files, rows and insights that are alike only so many are shown: the tour has 60 lines."""
_HOPS = 2
_NAMED = 8
_SAMPLE_QUESTIONS = (
    "When does the lease for the Harbour Street workshop start?",
    "Who moves the Probat P12, and for how much?",
    "Who won the chess championship?",
)
_READ_SCRIPT = """\
import duckdb, pyarrow.ipc
memories = pyarrow.ipc.open_file({path!r}).read_all()
counts = "select n || ' ' || type from (select type, count(*) n from memories group by type)"
counted = ", ".join(row[0] for row in duckdb.sql(counts + " order by n desc, type").fetchall())
print("  read back by DuckDB:", counted)"""

_DOCUMENT_COLUMNS = (
    Column("title", "DOCUMENT", lambda text: one_line(text, 28)),
    Column("summary", "GIST", lambda text: one_line(text, 60)),
    Column("entities", "NAMES", lambda names: one_line(", ".join(names[:4]), 36)),
    Column("topics", "TOPICS", lambda topics: one_line(", ".join(topics[:3]), 28)),
    Column("importance", "IMP.", right=True),
)
_DISTILLED = (
    Column("type", "TYPE"),
    Column("text", "MEMORY", lambda text: one_line(text, 90)),
    Column("source", "FROM", lambda text: one_line(text.rsplit("/", 1)[-1], 30)),
    Column("importance", "IMP.", right=True),
)


app = typer.Typer()


@command(
    app,
    "demo",
    """
    memctl demo
    memctl demo ~/notes
    """,
)
def demo(
    context: CommandContext,
    folder: str | None = typer.Argument(
        None, metavar="FOLDER", help="Your own files instead; they are not changed."
    ),
) -> None:
    """Take the whole tour on sample files.

    Everything happens in a new temporary home; your own knowledge bases are left alone.
    """
    source = _folder(folder)
    place = Path(tempfile.mkdtemp(prefix="memctl-demo-"))
    home = _home(place)
    tour = _Tour(context)
    _prepare(home, source, is_sample=folder is None)
    _take_in(tour, home, source)
    with home.open(_NAME) as base:
        _show_understood(tour, base)
        _consolidate(tour, base)
        _show_graph(tour, base)
        _ask(tour, base, _SAMPLE_QUESTIONS if folder is None else _own_questions(base))
        _export(tour, base, place)
    _say_goodbye(tour, place)


def _folder(path: str | None) -> Path:
    if path is not None:
        return input_folder(path, "give a folder with files, or nothing")
    package = Path(__file__).parents[2]
    for folder in (package / "sample_inbox", package.parent / "sample_inbox"):
        if folder.is_dir():
            return folder
    raise UsageError("the sample files are not installed", "give a folder: memctl demo FOLDER")


def _home(place: Path) -> Home:
    from memctl.config import load_config
    from memctl.home import Home

    return Home(load_config({"home": str(place)}))


class _Tour:
    """What the tour prints: numbered chapters, plain text in a pipe."""

    def __init__(self, context: CommandContext) -> None:
        self.context = context
        self.out = context.console
        self._chapter = 0

    def chapter(self, title: str, words: str = "") -> None:
        """Begin the next chapter, with the command that does the same."""
        self._chapter += 1
        self.out.print(f"\n{self._chapter}. {title}", style="bold", soft_wrap=True)
        if words:
            self.command(words)

    def say(self, text: str, style: str = "") -> None:
        """Print a paragraph, indented."""
        print_paragraph(self.out, text, style, 2)

    def line(self, text: str, style: str = "") -> None:
        """Print a line, indented; a terminal gets what fits."""
        self.say(one_line(text, self.out.width - 2 if self.out.is_terminal else 0), style)

    def command(self, words: str) -> None:
        """Print the command that does the same."""
        self.out.print(f"  $ memctl {words}", style="dim", soft_wrap=True)


# --- 1: files go in ------------------------------------------------------------------------------


def _prepare(home: Home, source: Path, *, is_sample: bool) -> None:
    """Drop the sample into the inbox; a folder of the user's is watched where it is."""
    from memctl.kb_settings import Inbox

    inboxes = () if is_sample else (Inbox(source, "keep"),)
    home.create(_NAME, inboxes=inboxes, consolidate_interval=0)  # the tour does it by hand
    if is_sample:
        for file in sorted(source.glob("[!.]*.*")):  # in order, so that the tour is always the same
            shutil.copy2(file, home.layout(_NAME).inbox)


def _take_in(tour: _Tour, home: Home, source: Path) -> None:
    from memctl.watch.kb_watcher import WatchOptions
    from memctl.watch.service import WatchedBases, WatchService

    tour.chapter(f"Files are dropped into an inbox: {source}", f"watch -k {_NAME} --once")
    events: list[WatchEvent] = []
    options = WatchOptions(settle_seconds=_SETTLE_SECONDS, poll=True, once=True)
    with _listening(tour.context, source, events) as listener:
        WatchService(WatchedBases(home, [_NAME]), options, listener).run()
    _show_events(tour, events)


@contextmanager
def _listening(
    context: CommandContext, source: Path, events: list[WatchEvent]
) -> Iterator[Listener]:
    from memctl.records import Progress

    total = sum(path.is_file() for path in source.rglob("*"))
    with context.progress("reading") as bar:

        def listen(event: WatchEvent) -> None:
            """Keep the events of files, and show how many there have been."""
            if event.source:
                events.append(event)
                if bar is not None:
                    bar(Progress(len(events), total, "files", event.source.rsplit("/", 1)[-1]))

        yield listen


def _show_events(tour: _Tour, events: list[WatchEvent]) -> None:
    marks = {"ingested": "+", "superseded": "+", "known": "=", "failed": "!"}
    taken = [event for event in events if marks.get(event.kind) == "+"]
    hidden = sorted(taken, key=lambda event: event.source)[_SHOWN:]
    for event in sorted(events, key=lambda event: event.source):
        if event in hidden:
            continue
        name = one_line(event.source.rsplit("/", 1)[-1], 34)
        mark = marks.get(event.kind)
        if mark == "+":
            made = format_count(int(event.detail.get("memories", 0)), "memory", "memories")
            lacking = event.detail.get("missing")
            note = f", no {', '.join(lacking)} yet" if lacking else ""
            tour.line(f"+ {name}  {made}{note}")
        elif mark == "=":
            tour.line(
                f"= {name}  known already: the same content as {_duplicate_name(events, event)}"
            )
        elif mark == "!":
            tour.line(f"! {name}  {event.message}", "red")
            tour.line(f"  hint: {event.hint}", "dim")
    if hidden:
        tour.line(f"+ and {format_count(len(hidden), 'file')} more", "dim")


def _duplicate_name(events: list[WatchEvent], event: WatchEvent) -> str:
    names = [
        other.source.rsplit("/", 1)[-1]
        for other in events
        if other.document_id == event.document_id and other.kind == "ingested"
    ]
    return one_line(names[0]) if names else "another file"


# --- 2: what was understood ----------------------------------------------------------------------


def _show_understood(tour: _Tour, base: KnowledgeBase) -> None:
    from memctl.records import Filters

    tour.chapter("Each document is understood: gist, names, topics, importance", "document list")
    documents = sorted(plain_rows(base.documents.list()), key=lambda row: -row["importance"])
    emit(documents[:_SHOWN], _DOCUMENT_COLUMNS, "table")
    tour.command("memory list --level memory")
    found = plain_rows(base.memories.list(Filters(levels=("memory",))))
    distilled = [row for row in found if row["type"] not in ("gist", "summary")]
    distilled.sort(key=lambda row: -row["importance"])
    emit(distilled[:_SHOWN], _DISTILLED, "table")


# --- 3: insights ---------------------------------------------------------------------------------


def _consolidate(tour: _Tour, base: KnowledgeBase) -> None:
    tour.chapter("Consolidation connects files, and finds where they contradict", "consolidate")
    with tour.context.progress("consolidating") as listener:
        report = base.consolidate(progress=listener)
    kinds: dict[str, list[Insight]] = {}
    for insight in sorted(report.insights, key=lambda each: each.kind != "contradiction"):
        kinds.setdefault(insight.kind, []).append(insight)
    made = format_count(len(report.insights), "insight")
    tour.line(f"{format_count(report.examined, 'memory', 'memories')} looked at, {made}")
    for insight in (each for found in kinds.values() for each in found[:_SHOWN]):
        style = "yellow" if insight.kind == "contradiction" else "green"
        tour.line(f"{insight.kind}: {insight.text}", style)


# --- 4: the graph --------------------------------------------------------------------------------


def _show_graph(tour: _Tour, base: KnowledgeBase) -> None:
    """Show the best connected name, its neighbours, and the path to a name further away."""
    view = base.graph.view()
    best = view.overview().best_connected[:1]
    if not best:
        return
    name = best[0].name
    tour.chapter("Who and what is named hangs together", f'graph neighbors "{name}"')
    near = view.neighbours(name, _HOPS)
    beside = [each.name for each in near if each.hops == 1]
    tour.line(f"{name}: {_join_names(beside)}")
    farther = next((each.name for each in near if each.hops == _HOPS), None)
    if farther is not None:
        tour.command(f'graph path "{name}" "{farther}"')
        for step in view.path(name, farther):
            show_step(tour.out, replace(step, created_at=None), indent=2)


def _join_names(names: Sequence[str]) -> str:
    shown = ", ".join(one_line(name, 40) for name in names[:_NAMED])
    left = len(names) - _NAMED
    return f"{shown} and {left} more" if left > 0 else shown


# --- 5: questions --------------------------------------------------------------------------------


def _ask(tour: _Tour, base: KnowledgeBase, questions: tuple[str, ...]) -> None:
    tour.chapter("Questions are answered with citations that can be checked")
    for question in questions:
        tour.command(f'query "{question}"')
        result = base.query(question)
        tour.context.note_answer(result.answer)
        show_result(tour.out, replace(result, hits=(), insights=(), communities=()))


def _own_questions(base: KnowledgeBase) -> tuple[str, ...]:
    """Return questions on what the user's files speak of most."""
    statement = "select name from entities order by mention_count desc, name limit 2"
    names = [row["name"] for row in plain_rows(base.sql(statement))]
    return tuple(f"What about {name}?" for name in names) or ("What was decided?",)


# --- 6: the way out ------------------------------------------------------------------------------


def _export(tour: _Tour, base: KnowledgeBase, place: Path) -> None:
    target = place / "memories.arrow"
    words = f"export memories --to {target}"
    tour.chapter("Everything is yours: an Arrow export, read back by DuckDB", words)
    rows = base.transfer.export_to(target, "memories")
    size = format_size(target.stat().st_size)
    tour.say(f"{format_count(rows, 'row')}, {size}, vectors included")
    code = _READ_SCRIPT.format(path=str(target))
    tour.out.file.flush()
    subprocess.run([sys.executable, "-c", code], check=True, stdout=_stdout())


def _stdout() -> int | None:
    """Return the descriptor of standard output; None where it is no real file."""
    try:
        return sys.stdout.fileno()
    except (OSError, ValueError):
        return None


def _say_goodbye(tour: _Tour, place: Path) -> None:
    tour.chapter("Where things are, and what to try next")
    tour.say(f"{place}/kb/{_NAME}/failed   files that failed, each with its reason")
    tour.command(f'--home {place} query "..."')
    tour.command("ingest FILE...    # begin with files of your own")
    tour.say(f"It was a tour: rm -r {place} leaves no trace.")
