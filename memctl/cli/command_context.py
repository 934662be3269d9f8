"""What every command gets: settings, knowledge bases, messages, the log and a progress bar."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from memctl.cli.arguments import refuse_empty
from memctl.cli.paging import Page
from memctl.cli.rendering.terminal_text import json_text, one_line
from memctl.errors import MemctlError, UsageError
from memctl.formatting import escape_hidden

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import ProgressColumn, TaskID

    from memctl.cli.paging import Page
    from memctl.config import Config, LogSettings
    from memctl.home import Home
    from memctl.knowledge_base import KnowledgeBase, KnowledgeBases
    from memctl.records import Answer, Progress, ProgressListener
    from memctl.resident.hosting import Host
    from memctl.schema.table_names import TableName

T = TypeVar("T")
_ORDER = "order"
"""The column with what rows of several knowledge bases are sorted by."""
Fetch = Callable[["KnowledgeBase", int | None, int], "pa.Table"]
"""Returns at most so many rows of one, or all for None, and skips so many before these."""
OrderValues = Callable[["KnowledgeBase", "pa.Table"], "pa.Array | pa.ChunkedArray"]
"""Returns what rows of one knowledge base are sorted by."""


class CommandContext:
    """One run of the command line.

    Args:
        flags: Settings given as flags, by dotted key.
        quiet: Say nothing but errors on standard error.
        verbose: Say more, and show the traceback of an unexpected error.
        host: The resident process, if it carries the command out.
    """

    def __init__(
        self,
        flags: Mapping[str, str],
        *,
        quiet: bool = False,
        verbose: bool = False,
        host: Host | None = None,
    ) -> None:
        self._host = host
        self.quiet = quiet
        self.verbose = verbose
        self._flags = {**flags, **_log_level(quiet, verbose)}
        self._named: dict[str, str | None] = {}

    def act_as(self, *, user: str | None, agent: str | None) -> None:
        """Have everything done for a user and by an agent; None leaves it to the environment."""
        refuse_empty({"--user": user, "--agent": agent})
        self._named = {"user": user, "agent": agent}

    @property
    def named_user(self) -> str | None:
        """The user that the command line names."""
        return self._named.get("user")

    @cached_property
    def config(self) -> Config:
        """Every setting; warns of environment variables that look like one but are none."""

        from memctl.config import load_config, unknown_variables
        from memctl.identity import Identity

        config = load_config(self._flags)
        if self._host is not None:
            self._host.require_suited(config)
        identity = Identity.of(config, **self._named)
        config = replace(config, user=identity.user, agent=identity.agent, session=identity.session)
        for name, hint in unknown_variables(config).items():
            self.say(f"warning: unknown environment variable {name} is ignored")
            self.suggest(hint)
        return config

    def leave_to_caller_unless(self, *, reads: bool) -> None:
        """Leave a command that changes something to the caller's own process, to run only once."""
        if self._host is not None and not reads:
            self._host.leave_to_caller()

    @property
    def config_path(self) -> Path:
        """Where the settings file is, or would be."""
        from memctl.config import config_path

        return config_path(self._flags)

    @cached_property
    def home(self) -> Home:
        """All knowledge bases on this disk.

        Raises:
            KnowledgeBaseUnavailable: The home cannot be listed.
        """
        from memctl.home import Home
        from memctl.instants import utc_now

        configure_logging(self.config.log)
        home = Home(self.config, utc_now, None if self._host is None else self._host.warm)
        home.check()
        return home

    @cached_property
    def console(self) -> Console:
        """A Rich console on standard output, for what people read."""
        from memctl.cli.rendering.output_formats import console

        return console()

    def writing(self, names: Sequence[str] | None) -> KnowledgeBase:
        """Open the knowledge base to write to.

        Raises:
            UsageError: Several are named.
        """
        return self.home.open_for_writing(_only(names))

    def writing_existing(self, names: Sequence[str] | None) -> KnowledgeBase:
        """Open a knowledge base to change what it already holds; see ``Home.name_to_change``."""
        return self.home.open_for_writing(self.home.name_to_change(_only(names)))

    def reading_existing(self, names: Sequence[str] | None) -> KnowledgeBase:
        """Open for reading the knowledge base that would be written to.

        It is not created; if it does not exist, the only one is opened.

        Raises:
            KnowledgeBaseNotFound: There is none.
            UsageError: Several are named, or could be meant.
        """
        return self.home.open(self.home.name_to_change(_only(names)))

    def open_for_dry_run(
        self, names: Sequence[str] | None
    ) -> AbstractContextManager[KnowledgeBase]:
        """Open the knowledge base that would be written to, for a dry run.

        If writing would first create the default one, this is a temporary, empty one.

        Raises:
            UsageError: Several are named.
        """
        return self.home.open_for_dry_run(_only(names))

    def reading(self, names: Sequence[str] | None) -> KnowledgeBases:
        """Open the knowledge bases to query; if none is named, warn of unreadable ones."""
        self.all_names(names)
        return self.home.open_for_reading(names or ())

    def all_names(self, names: Sequence[str] | None) -> Sequence[str] | None:
        """Return the given names; if there are none, those of all readable knowledge bases.

        Warns of the others.
        """
        if names or self.config.kb is not None:
            return names
        entries = self.home.entries()
        for entry in entries:
            if entry.problem:
                self.say(f"warning: {entry.name} is left out: {entry.problem}")
        return [entry.name for entry in entries if not entry.problem]

    @contextmanager
    def importing(self, names: Sequence[str] | None) -> Iterator[KnowledgeBase]:
        """Open the knowledge base to import into; it is created if it does not exist.

        Raises:
            UsageError: Several are named.
        """
        wanted = self.home.name_to_write(_only(names))
        is_new = not self.home.exists(wanted)
        if is_new:
            self.home.create(wanted)
        try:
            with self.home.open_for_writing(wanted) as opened:
                yield opened
        except BaseException:
            if is_new:
                self.home.delete(wanted)
            raise

    @contextmanager
    def open_owner(
        self, table: TableName, id_: str, names: Sequence[str] | None
    ) -> Iterator[KnowledgeBase]:
        """Open the knowledge base that has an id, among those named or queried by default."""
        with self.home.open_for_reading(names or ()) as opened:
            yield opened.owner(table, id_)

    @contextmanager
    def reading_one(self, names: Sequence[str] | None) -> Iterator[KnowledgeBase]:
        """Open one knowledge base to read.

        It is the one named; else, of those queried by default, the only one or the usual one.

        Raises:
            UsageError: Several are named, or none is and several could be meant.
        """
        _only(names)
        with self.reading(names) as opened:
            usual = self.home.name_to_write(None)
            found = [base for base in opened if len(opened) == 1 or base.name == usual]
            if not found:
                several = ", ".join(base.name for base in opened)
                raise UsageError(f"which knowledge base: {several}?", "name one with -k")
            yield found[0]

    def say(self, text: str) -> None:
        """Write a message to standard error, unless --quiet."""
        if not self.quiet:
            sys.stderr.write(f"{escape_hidden(text)}\n")

    def hint(self, text: str) -> None:
        """Suggest a next step on standard error, if that is a terminal."""
        if sys.stderr.isatty():
            self.say(f"hint: {text}")

    def suggest(self, text: str) -> None:
        """Write a hint to standard error, for programs too, if there is one."""
        if text:
            self.say(f"hint: {text}")

    def confirm(self, question: str, *, yes: bool) -> None:
        """Ask before doing something that cannot be undone.

        Raises:
            UsageError: Standard input is not a terminal.
            MemctlError: The answer was no.
        """
        if yes:
            return
        if not sys.stdin.isatty():
            raise UsageError(f"no terminal to ask on: {question}", "add --yes to agree to it")
        sys.stderr.write(f"{escape_hidden(question)} [y/N] ")
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise MemctlError("nothing was done")

    def confirm_or_preview(
        self, action: str, question: str = "", *, yes: bool, dry_run: bool
    ) -> bool:
        """Say what would be done on a dry run, else ask; return whether to do it.

        The action is a command like ``delete pool notes``, and by default the question, too.

        Raises:
            UsageError: Standard input is not a terminal.
            MemctlError: The answer was no.
        """
        if dry_run:
            self.console.print(f"would {action}", soft_wrap=True)
        else:
            self.confirm(question or f"{action}?", yes=yes)
        return not dry_run

    def note_all(self, notes: Iterable[str]) -> None:
        """Say on standard error what a search had to do without."""
        for note in notes:
            self.say(f"note: {note}")

    def note_answer(self, answer: Answer | None, *, begun: bool = False) -> None:
        """Say on standard error why the configured model did not answer, if it did not.

        Args:
            answer: What was answered instead.
            begun: Whether the model had begun to answer.
        """
        if answer is not None and answer.note:
            how = "the model broke off, answered" if begun else "answered"
            without = "without it" if begun else "without the model"
            self.say(f"note: {how} {without}: {answer.note}")
            self.suggest(answer.hint)

    @contextmanager
    def progress(self, title: str) -> Iterator[ProgressListener | None]:
        """Give a listener that draws a bar on standard error, or None if none is to be drawn."""
        if self.quiet or not sys.stderr.isatty():
            yield None
            return
        listener = _Listener(title)
        listener.start()
        try:
            yield listener
        finally:
            listener.stop()

    def page(self, rows: Sequence[T], page: Page) -> Sequence[T]:
        """Return the requested rows of a listing, and say if more follow.

        Raises:
            UsageError: No row has the key that they are to be sorted by.
        """
        shown = page.of(rows)
        end = page.offset + len(shown)
        if len(rows) > end and not page.offset:
            self.say(f"note: only the first {page.limit} are shown; -n 0 shows all")
        elif len(rows) > end:
            self.say(f"note: rows {page.offset + 1} to {end} are shown; --offset {end} goes on")
        return shown

    def collect_rows(
        self, bases: KnowledgeBases, fetch: Fetch, page: Page, order_values: OrderValues
    ) -> pa.Table:
        """Return a page of the rows of all knowledge bases, with their names in a column ``kb``.

        Args:
            bases: The knowledge bases.
            fetch: Returns sorted rows of one of them.
            page: Which rows, of all of them together.
            order_values: What rows of several are sorted by.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        is_one = len(bases) == 1
        skipped = page.offset if is_one else 0
        wanted = page.offset - skipped + page.limit + 1 if page.limit else None
        tables: list[pa.Table] = []
        for base in bases:
            rows = fetch(base, wanted, skipped)
            values = order_values(base, rows)
            names = pa.array([base.name] * rows.num_rows, pa.string())
            tables.append(rows.add_column(0, "kb", names).append_column(_ORDER, values))
        found = pa.concat_tables(tables)
        if not is_one:
            direction = "descending" if page.sort is None or page.desc else "ascending"
            keys = [(_ORDER, direction), ("id", "ascending")]
            found = found.take(pc.sort_indices(found, sort_keys=keys)).slice(page.offset)
        if page.limit and found.num_rows > page.limit:
            of = f" of {bases[0].name}" if is_one else ""
            self.say(f"note: only the first {page.limit}{of} are shown; -n 0 shows all")
            found = found.slice(0, page.limit)
        return found.drop_columns([_ORDER])


def _only(names: Sequence[str] | None) -> str | None:
    """Return the one name given, if any."""
    if names and len(set(names)) > 1:
        raise UsageError(f"one knowledge base at a time, not {', '.join(names)}", "give -k once")
    return names[0] if names else None


def _log_level(quiet: bool, verbose: bool) -> dict[str, str]:
    if quiet:
        return {"log.level": "error"}
    return {"log.level": "debug"} if verbose else {}


# --- the log --------------------------------------------------------------------------------------


def configure_logging(settings: LogSettings) -> None:
    """Send the program's own log, not that of libraries, to standard error."""
    is_text = settings.format == "text" or (settings.format == "auto" and sys.stderr.isatty())
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Text() if is_text else _Json())
    log = logging.getLogger("memctl")
    log.handlers = [handler]
    log.setLevel(settings.level.upper())
    log.propagate = False


class _Text(logging.Formatter):
    """One line, with the traceback below it where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text."""
        line = f"{record.levelname.lower()}: {one_line(record.getMessage())}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class _Json(logging.Formatter):
    """One JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON."""
        entry = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json_text(entry)


# --- progress -------------------------------------------------------------------------------------

_SHOWN_AFTER = 0.4
_BESIDE_BAR = 40
"""Characters of the terminal's width kept for the text beside the bar."""


class _Listener:
    """Starts drawing once the work has lasted a moment, so that short work does not flicker.

    A timer starts it, because the work may report no progress for a long time.
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        self._last: Progress | None = None
        self._is_over = False
        self._mutex = threading.Lock()
        self._timer = threading.Timer(_SHOWN_AFTER, self._show)
        self._timer.daemon = True

    def __call__(self, progress: Progress) -> None:
        with self._mutex:
            self._last = progress
            self._update()

    def start(self) -> None:
        """Start the timer after which the bar is drawn."""
        self._timer.start()

    def stop(self) -> None:
        """Remove the bar from the screen."""
        self._timer.cancel()
        with self._mutex:
            self._is_over = True
            if self._bar is not None:
                self._bar.stop()

    def _show(self) -> None:
        with self._mutex:
            if not self._is_over:
                self._bar = _bar()
                self._task = self._bar.add_task(self._title, total=None, of="", unit="", note="")
                self._update()
                self._bar.start()

    def _update(self) -> None:
        if self._bar is not None and self._task is not None and self._last is not None:
            self._bar.update(
                self._task,
                completed=self._last.done,
                total=self._last.total,
                of=f"/{self._last.total:,}" if self._last.total else "",
                unit=self._last.unit,
                note=one_line(self._last.note),
            )


def _bar() -> Bar:
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar
    from rich.table import Column

    from memctl.cli.rendering.output_formats import console

    screen = console(stderr=True)
    columns: list[ProgressColumn] = [
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=max(8, (screen.width - _BESIDE_BAR) // 3)),
        TextColumn("{task.completed:,.0f}{task.fields[of]} {task.fields[unit]}", markup=False),
        _rate_column(),
        TimeRemainingColumn(compact=True),
        TextColumn(
            "{task.fields[note]}",
            style="dim",
            markup=False,
            table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1),
        ),
    ]
    return Bar(*columns, console=screen, transient=True)


def _rate_column() -> ProgressColumn:
    from rich.progress import ProgressColumn, Task
    from rich.text import Text

    class Rate(ProgressColumn):
        """How much is done in a second."""

        def render(self, task: Task) -> Text:
            """Return the rate as text."""
            return Text(f"{task.speed:,.0f}/s" if task.speed else "")

    return Rate()
