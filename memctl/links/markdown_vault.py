"""Documents and insights written as a vault of Markdown notes, with links between them.

What is there already and has not changed is not written again; what is not known any more is
removed, as far as it was written here and not edited since.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from memctl.errors import UsageError
from memctl.files import make_folder, read_regular, save_file
from memctl.graph.page_names import Page
from memctl.ids import root_id
from memctl.language.inline_tags import without_wikilinks
from memctl.links.link_map import LinkMap
from memctl.links.page_texts import excerpt, summary_excerpt
from memctl.links.vault_files import (
    INDEX_ID,
    NOTE_ENDING,
    Seal,
    name_key,
    safe_name,
    seal_file,
    seal_of,
)
from memctl.paths import display_path
from memctl.readers.markup.markdown_files import split_front_matter
from memctl.records import Memory, Progress, ProgressListener
from memctl.schema.arrow_tables import memory_rows
from memctl.store.tables.filter_expressions import Expr, both, col

if TYPE_CHECKING:
    from memctl.store.tables.snapshot import Snapshot

DOCUMENTS, INSIGHTS = "documents", "insights"
_INDEX = "index"
_MARKDOWN = "markdown"
_FENCED = frozenset(("code", "table"))
_DOCUMENTS_A_READ = 32
_ID_SHOWN = 10
_INSIGHT_NAME = 60
_OWN_KEYS = frozenset(
    ("id", "memctl", "memctl_sha256", "title", "aliases", "alias", "date", "type", "tags",
     "authors", "author", "sources", "links", "importance_reason", "confidence", "namespace")
)  # fmt: skip
_COLUMNS = ("id", "part", "root_id", "text", "tags", "authors", "metadata")
_INSIGHT_COLUMNS = ("id", "document_id", "level", "type", "text", "namespace", "created_at",
                    "valid_from", "source_ids", "tags", "confidence", "title")  # fmt: skip


class WrittenVault(Struct, frozen=True):
    """What writing a vault came to."""

    documents: int
    insights: int
    written: int
    """How many files are new or changed."""
    unchanged: int
    removed: tuple[str, ...]
    """Files of what is not known any more."""
    kept: tuple[str, ...]
    """Files that were edited, which are left as they are."""
    dry_run: bool = False


class _Folder(Struct):
    """The files that are in the folder."""

    path: Path
    kb: str
    own: dict[str, Path] = field(default_factory=dict)
    """Those written of this knowledge base and intact, by id."""
    edited: dict[str, Path] = field(default_factory=dict)
    taken: dict[str, str] = field(default_factory=dict)
    """The names that are in use, each with the id that has it; "" for files of others."""
    is_vault: bool = False
    """Whether there are files that were written here, of any knowledge base."""

    def look(self) -> None:
        """Find out what there is."""
        for place in (self.path, self.path / DOCUMENTS, self.path / INSIGHTS):
            if place.is_symlink():
                raise UsageError(
                    f"{display_path(place)} is a link", "give a folder, or remove the link"
                )
            for entry in sorted(place.iterdir()) if place.is_dir() else ():
                if entry.suffix.casefold() == NOTE_ENDING:
                    self._add(entry)

    def _add(self, file: Path) -> None:
        seal = _seal_in(file)
        self.is_vault = self.is_vault or seal is not None
        is_own = seal is not None and seal.kb == self.kb
        self.taken[name_key(file.stem)] = seal.id if seal is not None and is_own else ""
        if seal is not None and is_own:
            (self.own if seal.is_intact else self.edited)[seal.id] = file


def _seal_in(file: Path) -> Seal | None:
    if file.is_symlink() or not file.is_file():
        return None
    return seal_of(read_regular(file))


def write_vault(
    folder: Path,
    kb: str,
    snapshot: Snapshot,
    pages: Sequence[Page],
    insights: Expr | None,
    *,
    dry_run: bool = False,
    progress: ProgressListener | None = None,
) -> WrittenVault:
    """Write documents and insights as Markdown files into a folder.

    Args:
        folder: The folder to write to; it is created if it does not exist.
        kb: The name of the knowledge base.
        snapshot: Where they are.
        pages: The documents.
        insights: The condition on the insights; of their sources too, if these are to be quoted.
        dry_run: Write and remove nothing.
        progress: Called after every file.

    Raises:
        UsageError: It is no folder, a part of it is a link, or it has files and none of a vault
            that was written before.
        OSError: It cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{display_path(folder)} is not a folder", "name a folder for the vault")
    there = _Folder(folder, kb)
    there.look()
    if not there.is_vault and _has_files(folder):
        raise UsageError(
            f"{display_path(folder)} has files already, and none that an export has written",
            "name a new or an empty folder for the vault",
        )
    return _Writing(there, snapshot, pages, insights, dry_run, progress).run()


def _has_files(folder: Path) -> bool:
    """Return whether a folder has anything but what programs hide in it, such as .obsidian."""
    return folder.is_dir() and any(not each.name.startswith(".") for each in folder.iterdir())


class _Writing:
    """One run."""

    def __init__(
        self,
        folder: _Folder,
        snapshot: Snapshot,
        pages: Sequence[Page],
        insights: Expr | None,
        dry_run: bool,
        progress: ProgressListener | None,
    ) -> None:
        self._there = folder
        self._snapshot = snapshot
        self._map = LinkMap(pages)
        self._insights = _read_insights(snapshot, insights)
        self._condition = insights
        self._dry_run = dry_run
        self._progress = progress
        self._names = self._file_names()
        self._written = self._unchanged = self._done = 0

    def run(self) -> WrittenVault:
        """Write what has changed, remove what is gone."""
        pages, insights = self._map.pages, self._insights
        listed = {
            DOCUMENTS: [
                (
                    self._names[page.id],
                    summary_excerpt(page.summary.removeprefix(f"{page.title}: ")),
                )
                for page in pages
            ],
            INSIGHTS: [(self._names[each.id], "") for each in insights],
        }
        if not self._dry_run:
            for place in (self._there.path, *(self._there.path / each for each in listed)):
                make_folder(place)
        for page, text, row in self._documents():
            self._save(page.id, DOCUMENTS, self._document_file(page, text, row))
        quotes = self._quotes()
        for insight in self._insights:
            self._save(insight.id, INSIGHTS, self._insight_file(insight, quotes))
        self._save(INDEX_ID, "", self._index_file(listed))
        removed = self._remove_gone()
        return WrittenVault(
            documents=len(self._map.pages),
            insights=len(self._insights),
            written=self._written,
            unchanged=self._unchanged,
            removed=tuple(removed),
            kept=tuple(sorted(self._relative(file) for file in self._there.edited.values())),
            dry_run=self._dry_run,
        )

    # --- names ---

    def _file_names(self) -> dict[str, str]:
        """Give each file a name: its present one if that still fits, else one from the title."""
        wanted = {INDEX_ID: _INDEX}
        for page in reversed(self._map.pages):  # of one title the first keeps the plain name
            title = page.title or Path(page.source).stem
            wanted[page.id] = safe_name(title.removesuffix(NOTE_ENDING) or title)
        for insight in self._insights:
            wanted[insight.id] = safe_name(_insight_title(insight))
        used = {key: id_ for key, id_ in self._there.taken.items() if not id_ or id_ in wanted}
        present = {**self._there.own, **self._there.edited}
        names: dict[str, str] = {}
        for id_, name in wanted.items():
            file, fallback = present.get(id_), f"{name} ({id_[:_ID_SHOWN]})"
            if (id_ in self._there.edited and file is not None) or (
                file is not None and file.stem in (name, fallback, f"{name} ({id_})")
            ):
                names[id_] = file.stem
            else:
                free = (each for each in (name, fallback) if used.get(name_key(each), id_) == id_)
                names[id_] = next(free, f"{name} ({id_})")
            used[name_key(names[id_])] = id_
        return names

    # --- what is written ---

    def _documents(self) -> Iterator[tuple[Page, str, Mapping[str, Any]]]:
        waiting = iter(self._map.pages)
        while some := list(islice(waiting, _DOCUMENTS_A_READ)):
            ids = [part for page in some for part in page.parts]
            rows = self._snapshot.get("documents", ids, _COLUMNS).to_pylist()
            texts: dict[str, list[str]] = defaultdict(list)
            for row in rows:
                texts[row["root_id"]].append(row["text"] or "")
            heads = {row["id"]: row for row in rows}
            for page in some:
                yield page, "".join(texts[page.id]), heads[page.id]

    def _document_file(self, page: Page, text: str, row: Mapping[str, Any]) -> bytes:
        metadata = json.loads(row["metadata"] or "{}")
        front = {
            "title": page.title,
            "aliases": list(dict.fromkeys((*page.aliases, *self._alias(page.id, page.title)))),
            "date": _day(page.created_at),
            "type": page.type,
            "tags": [tag.replace(" ", "-") for tag in row["tags"] or ()],
            "authors": list(row["authors"] or ()),
            "sources": [page.source],
            "namespace": page.namespace,
            "links": self._links(page),
            **{key: value for key, value in metadata.items() if key.lower() not in _OWN_KEYS},
        }
        return seal_file(front, _body(page, text), page.id, self._there.kb)

    def _alias(self, id_: str, title: str) -> list[str]:
        """The title, where the file cannot be called so."""
        return [title] if title and self._names[id_] != title else []

    def _links(self, page: Page) -> list[str]:
        at = self._map.by_id[page.id]
        ends = {target.page for _, target in self._map.targets(at) if target} - {at}
        return sorted(f"[[{self._names[self._map.pages[end].id]}]]" for end in ends)

    def _insight_file(self, insight: Memory, quotes: Mapping[str, tuple[str, str]]) -> bytes:
        found = [quotes[id_] for id_ in insight.source_ids if id_ in quotes]
        pages = dict.fromkeys(name for name, _ in found if name)
        front = {
            "date": _day(insight.created_at),
            "type": insight.type,
            "tags": [tag.replace(" ", "-") for tag in insight.tags],
            "sources": [f"[[{name}]]" for name in pages],
            "namespace": insight.namespace,
            "confidence": round(insight.confidence, 3),
        }
        lines = [f"- [[{name}]]: {text}" if name else f"- {text}" for name, text in found]
        body = without_wikilinks(insight.text) + "\n"
        if lines:
            body += "\n## Sources\n\n" + "\n".join(lines) + "\n"
        return seal_file(front, body, insight.id, self._there.kb)

    def _quotes(self) -> dict[str, tuple[str, str]]:
        """The note and the words of each memory that an insight rests on, by its id."""
        ids = list(dict.fromkeys(id_ for each in self._insights for id_ in each.source_ids))
        columns = ["id", "document_id", "text"]
        known = set(_current_insights(self._snapshot, self._condition, ids))
        rows = self._snapshot.get("memories", [id_ for id_ in ids if id_ in known], columns)
        return {
            row["id"]: (
                self._names.get(root_id(row["document_id"] or ""), ""),
                excerpt(row["text"]),
            )
            for row in rows.to_pylist()
        }

    def _index_file(self, listed: Mapping[str, Iterable[tuple[str, str]]]) -> bytes:
        lines = [f"# {self._there.kb}\n"]
        for heading, entries in listed.items():
            rows = sorted((name_key(name), name, summary) for name, summary in entries)
            lines += [f"\n## {heading.capitalize()}\n\n"] if rows else []
            lines += [
                f"- [[{name}]]{f': {summary}' if summary else ''}\n" for _, name, summary in rows
            ]
        return seal_file({}, "".join(lines), INDEX_ID, self._there.kb)

    # --- the folder ---

    def _save(self, id_: str, subfolder: str, content: bytes) -> None:
        file = self._there.path / subfolder / f"{self._names[id_]}{NOTE_ENDING}"
        before = self._there.own.pop(id_, None)
        if id_ in self._there.edited:
            pass
        elif before == file and read_regular(file) == content:
            self._unchanged += 1
        else:
            self._written += 1
            if not self._dry_run:
                if before is not None and before != file:
                    before.unlink(missing_ok=True)  # first: it may differ in case alone
                save_file(file, content, durable=False)
        self._done += 1
        if self._progress is not None:
            total = len(self._map.pages) + len(self._insights) + 1
            self._progress(Progress(self._done, total, "files"))

    def _remove_gone(self) -> Iterator[str]:
        """Remove the intact files of what is not there any more."""
        for file in sorted(self._there.own.values()):
            if not self._dry_run:
                file.unlink(missing_ok=True)
            yield self._relative(file)

    def _relative(self, file: Path) -> str:
        return str(file.relative_to(self._there.path)).replace(os.sep, "/")


def _read_insights(snapshot: Snapshot, where: Expr | None) -> list[Memory]:
    rows = memory_rows(
        snapshot.scan("memories", both(where, col("level") == "insight"), _INSIGHT_COLUMNS)
    )
    return sorted(rows, key=lambda each: (each.created_at, each.id))


def _current_insights(snapshot: Snapshot, where: Expr | None, ids: Sequence[str]) -> Iterator[str]:
    """Yield those of some memories for which a condition holds."""
    for at in range(0, len(ids), 1_000):
        some = col("id").is_in(ids[at : at + 1_000])
        yield from snapshot.scan("memories", both(where, some), ["id"])["id"].to_pylist()


def _insight_title(insight: Memory) -> str:
    words = without_wikilinks(insight.text)
    if len(words) > _INSIGHT_NAME:
        words = words[:_INSIGHT_NAME].rpartition(" ")[0] or words[:_INSIGHT_NAME]
    return words


def _body(page: Page, text: str) -> str:
    """The text of a document below its front matter; code and tables in a fence."""
    if page.type == _MARKDOWN:
        return split_front_matter(text)[1].strip("\n") + "\n"
    if page.type in _FENCED:
        fence = "```"
        while fence in text:
            fence += "`"
        return f"{fence}\n{text.rstrip()}\n{fence}\n"
    return text.strip("\n") + "\n"


def _day(moment: datetime) -> date | str:
    """A date, with the time where there is one."""
    is_day = moment.timetz().replace(tzinfo=None) == time()
    return moment.date() if is_day else moment.isoformat(timespec="seconds")
