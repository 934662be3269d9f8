"""What a shell offers for TAB: knowledge bases and ids as they are on this disk.

What cannot be read is silently left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import typer

from memctl.cli.command_context import CommandContext
from memctl.cli.rendering.terminal_text import format_moment, one_line
from memctl.errors import MemctlError

if TYPE_CHECKING:
    from memctl.knowledge_base import KnowledgeBase
    from memctl.records import Filters

Offers = list[tuple[str, str]]
"""What may be written, each with what it is."""
Find = Callable[["KnowledgeBase", str], Iterator[tuple[str, str]]]

_ID = re.compile(r"[a-z0-9_.]*")
_MOST = 50


def complete_kb(context: typer.Context, incomplete: str) -> list[str]:
    """Offer the knowledge bases."""
    with suppress(MemctlError, OSError):
        return [name for name in _ours(context).home.names() if name.startswith(incomplete)]
    return []


def _completing(find: Find) -> Callable[[typer.Context, str], Offers]:
    """Return a completion of what the named knowledge bases have, or those queried by default."""

    def complete(context: typer.Context, incomplete: str) -> Offers:
        """Offer what begins as it is written so far."""
        offers: Offers = []
        with (
            suppress(MemctlError, OSError),
            _ours(context).home.open_for_reading(context.params.get("kb") or ()) as opened,
        ):
            offers = [offer for base in opened for offer in find(base, incomplete)]
        return [
            (id_, one_line(description, 60))
            for id_, description in offers
            if id_.startswith(incomplete)
        ]

    return complete


def _ours(context: typer.Context) -> CommandContext:
    root_options = context.find_root().params
    return CommandContext(
        {key: root_options[key] for key in ("home", "config") if root_options.get(key)}, quiet=True
    )


def _documents(base: KnowledgeBase, beginning: str) -> Iterator[tuple[str, str]]:
    rows = base.documents.list(_beginning_with(beginning), limit=_MOST)
    yield from zip(rows["id"].to_pylist(), rows["title"].to_pylist(), strict=True)


def _memories(base: KnowledgeBase, beginning: str) -> Iterator[tuple[str, str]]:
    rows = base.memories.list(_beginning_with(beginning), limit=_MOST)
    yield from zip(rows["id"].to_pylist(), rows["text"].to_pylist(), strict=True)


def _beginning_with(beginning: str) -> Filters:
    from memctl.records import Filters

    return Filters(where=f"id like '{beginning if _ID.fullmatch(beginning) else '-'}%'")


def _snapshots(base: KnowledgeBase, _: str) -> Iterator[tuple[str, str]]:
    for each in base.snapshots.list():
        yield each.name, format_moment(each.created_at)


def _jobs(base: KnowledgeBase, _: str) -> Iterator[tuple[str, str]]:
    for each in base.jobs.list(limit=_MOST):
        yield str(each.id), f"{each.kind}, {format_moment(each.started_at)}"


def _pools(base: KnowledgeBase, _: str) -> Iterator[tuple[str, str]]:
    for each in base.pools.acting_as().list():
        yield each.pool_id, each.name


def _skills(base: KnowledgeBase, _: str) -> Iterator[tuple[str, str]]:
    for each in base.skills.acting_as().list():
        yield each.slug, each.description


complete_document = _completing(_documents)
complete_memory = _completing(_memories)
complete_snapshot = _completing(_snapshots)
complete_job = _completing(_jobs)
complete_pool = _completing(_pools)
complete_skill = _completing(_skills)
