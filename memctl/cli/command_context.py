"""What every command has at hand: settings, the home, and where to say things."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from memctl.cli.rendering.output_formats import Column
from memctl.cli.rendering.terminal_text import terminal_safe
from memctl.errors import MemctlError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from rich.console import Console

    from memctl.config import Config
    from memctl.home import Home
    from memctl.knowledge_base import KnowledgeBase
    from memctl.queries import KnowledgeBases
    from memctl.schema.table_names import TableName


class CommandContext:
    """One run of the command line.

    Args:
        flags: Settings given as flags, by dotted key.
        quiet: Say nothing but errors on standard error.
        verbose: Say more, and show the traceback of an unexpected error.
    """

    def __init__(
        self, flags: Mapping[str, str], *, quiet: bool = False, verbose: bool = False
    ) -> None:
        self.quiet = quiet
        self.verbose = verbose
        self._flags = {**flags, **_log_level(quiet, verbose)}

    @cached_property
    def config(self) -> Config:
        """Every setting; variables that were meant to be one and are none are told of."""
        from memctl.config import load_config, unknown_variables

        config = load_config(self._flags)
        for name, hint in unknown_variables(config).items():
            self.say(f"warning: unknown environment variable {name} is ignored")
            self.suggest(hint)
        return config

    @property
    def config_path(self) -> Path:
        """Where the settings file is, or would be, whatever is in it."""
        from memctl.config import config_path

        return config_path(self._flags)

    @cached_property
    def home(self) -> Home:
        """All knowledge bases on this disk.

        Raises:
            KnowledgeBaseUnavailable: Their folder cannot be listed.
        """
        from memctl.cli.log_output import configure_logging
        from memctl.home import Home

        configure_logging(self.config.log)
        home = Home(self.config)
        home.check()
        return home

    @cached_property
    def console(self) -> Console:
        """A Rich console on standard output, for what people read."""
        from memctl.cli.rendering.output_formats import console

        return console()

    @contextmanager
    def writing(self, names: Sequence[str] | None) -> Iterator[KnowledgeBase]:
        """Open the one knowledge base to write to.

        Raises:
            UsageError: Several are named.
        """
        with self.home.open_for_writing(_only(names)) as opened:
            yield opened

    @contextmanager
    def changing(self, names: Sequence[str] | None) -> Iterator[KnowledgeBase]:
        """Open the one knowledge base to change what it holds; see ``Home.name_to_change``."""
        with self.home.open_for_writing(self.home.name_to_change(_only(names))) as opened:
            yield opened

    @contextmanager
    def trying(self, names: Sequence[str] | None) -> Iterator[KnowledgeBase]:
        """Open the one knowledge base that would be written to.

        Where writing would make the default one first, it is an empty one that does not stay.

        Raises:
            UsageError: Several are named.
        """
        wanted = self.home.name_to_write(_only(names))
        if wanted == self.config.default_kb and not self.home.exists(wanted):
            with self._passing(wanted) as opened:
                yield opened
        else:
            with self.home.open(wanted) as opened:
                yield opened

    @contextmanager
    def _passing(self, name: str) -> Iterator[KnowledgeBase]:
        """Open a new knowledge base that is gone afterwards, without asking a model for it."""
        from dataclasses import replace
        from pathlib import Path
        from tempfile import TemporaryDirectory

        from memctl.home import Home
        from memctl.models.remote_embedder import ENDPOINT_PREFIX

        embed = self.config.models.embed
        models = replace(self.config.models, embed="")
        with TemporaryDirectory(prefix="memctl-") as folder:
            Home(replace(self.config, home=Path(folder), models=models)).create(name)
            with Home(replace(self.config, home=Path(folder))).open(name) as opened:
                if embed:  # as it would be pinned
                    opened.settings = replace(opened.settings, embedder=f"{ENDPOINT_PREFIX}{embed}")
                yield opened

    @contextmanager
    def reading(self, names: Sequence[str] | None) -> Iterator[KnowledgeBases]:
        """Open the knowledge bases to ask; where none is named, tell of those that cannot be."""
        if not names and self.config.kb is None:
            self._readable()
        with self.home.open_for_reading(names or ()) as opened:
            yield opened

    def all_names(self, names: Sequence[str] | None) -> Sequence[str] | None:
        """Return the names that are given, or where none is, of all knowledge bases there are."""
        if names or self.config.kb is not None:
            return names
        return self._readable()

    def _readable(self) -> list[str]:
        """Return the knowledge bases of which the settings can be read, and tell of the others."""
        entries = self.home.entries()
        for entry in entries:
            if entry.problem:
                self.say(f"warning: {entry.name} is left out: {entry.problem}")
        return [entry.name for entry in entries if not entry.problem]

    @contextmanager
    def importing(self, names: Sequence[str] | None) -> Iterator[KnowledgeBase]:
        """Open the knowledge base to import into, which is made if it is not there.

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
    def owning(
        self, table: TableName, id_: str, names: Sequence[str] | None
    ) -> Iterator[KnowledgeBase]:
        """Open the knowledge base, of those that are named or asked anyway, that has an id."""
        with self.home.open_for_reading(names or ()) as opened:
            yield opened.owner(table, id_)

    @contextmanager
    def reading_one(self, names: Sequence[str] | None) -> Iterator[KnowledgeBase]:
        """Open one knowledge base to read: named, or the only one there is to ask.

        Raises:
            UsageError: Several are named, or could be meant where none is.
        """
        _only(names)
        with self.reading(names) as opened:
            if len(opened) > 1:
                found = ", ".join(base.name for base in opened)
                raise UsageError(f"which knowledge base: {found}?", "name one with -k")
            yield opened[0]

    def say(self, text: str) -> None:
        """Tell the user something that is not data, on standard error."""
        if not self.quiet:
            sys.stderr.write(f"{terminal_safe(text)}\n")

    def hint(self, text: str) -> None:
        """Suggest a next step, on standard error, to people only."""
        if sys.stderr.isatty():
            self.say(f"hint: {text}")

    def suggest(self, text: str) -> None:
        """Tell a next step, on standard error, to programs too; nothing where there is none."""
        if text:
            self.say(f"hint: {text}")

    def confirm(self, question: str, *, yes: bool) -> None:
        """Ask before something that cannot be undone.

        Raises:
            UsageError: Nobody is there to answer.
            MemctlError: The answer was no.
        """
        if yes:
            return
        if not sys.stdin.isatty():
            raise UsageError(f"nobody is there to be asked: {question}", "add --yes to agree to it")
        sys.stderr.write(f"{terminal_safe(question)} [y/N] ")
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise MemctlError("nothing was done")

    def agreed(self, would: str, question: str, *, yes: bool, dry_run: bool) -> bool:
        """Say what would be done where that is all, or else ask; return whether to do it.

        Raises:
            UsageError: Nobody is there to answer.
            MemctlError: The answer was no.
        """
        if dry_run:
            self.console.print(f"would {would}", soft_wrap=True)
        else:
            self.confirm(question, yes=yes)
        return not dry_run


def _only(names: Sequence[str] | None) -> str | None:
    """Return the one name that is given, if any."""
    if names and len(set(names)) > 1:
        raise UsageError(f"one knowledge base at a time, not {', '.join(names)}", "give -k once")
    return names[0] if names else None


def _log_level(quiet: bool, verbose: bool) -> dict[str, str]:
    if quiet:
        return {"log.level": "error"}
    return {"log.level": "debug"} if verbose else {}


Fetch = Callable[["KnowledgeBase", int | None], "pa.Table"]


def collect_rows(
    session: CommandContext, bases: KnowledgeBases, fetch: Fetch, limit: int
) -> pa.Table:
    """Return rows of every knowledge base, with its name in a column ``kb``.

    Args:
        session: Where to say that there is more.
        bases: Whose rows.
        fetch: Gives at most so many rows of one knowledge base, or all for None.
        limit: At most so many rows of each; 0 for all.
    """
    import pyarrow as pa

    tables = []
    for base in bases:
        rows = fetch(base, limit + 1 if limit else None)
        if limit and rows.num_rows > limit:
            session.say(f"note: only the first {limit} of {base.name} are shown; -n 0 shows all")
            rows = rows.slice(0, limit)
        tables.append(rows.add_column(0, "kb", pa.array([base.name] * rows.num_rows, pa.string())))
    return pa.concat_tables(tables)


def listing_columns(bases: KnowledgeBases, columns: Sequence[Column]) -> list[Column]:
    """Return the columns of the table view, the knowledge base in front where there are several."""
    return [Column("kb", "KB"), *columns] if len(bases) > 1 else list(columns)
