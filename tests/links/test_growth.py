"""What links cost grows with the notes and their links, not with their square."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from types import FrameType

import pytest
from long_form import IS_LONG

from memctl.graph.page_names import Page
from memctl.links.link_map import LinkMap

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def vault(count: int) -> list[Page]:
    """Notes in folders of ten, each with links by title, slug, alias and path, and in vain."""

    def title(number: int) -> str:
        return f"Pier {number % count} of Lisbon"

    return [
        Page(
            kb="vault",
            id=f"d_{number:024d}",
            title=title(number),
            namespace="default",
            source=f"/vault/{number // 10}/note {number}.md",
            type="markdown",
            sha256=str(number),
            summary="",
            aliases=(f"P{number}",),
            links=(
                title(number + 1),
                f"pier-{(number + 2) % count}-of-lisbon",
                f"p{(number * 7) % count}",
                f"{number // 10}/note {number}",
                f"Lost {number % 50}",
            ),
            parts=(f"d_{number:024d}",),
            created_at=BEGAN,
            ingested_at=BEGAN + timedelta(seconds=number),
        )
        for number in range(count)
    ]


def calls_of(pages: list[Page]) -> int:
    """Count the calls of Python functions while everything is asked of the links."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        links = LinkMap(pages)
        assert len(links.missing) == 50
        assert links.backlinks
        assert links.find("pier-3-of-lisbon").page == links.find(pages[3].id).page
    finally:
        sys.setprofile(None)
    return calls


def test_four_times_the_notes_cost_four_times_the_calls() -> None:
    few, many = calls_of(vault(200)), calls_of(vault(800))
    assert many / few == pytest.approx(4, abs=0.5)


def test_very_many_notes_are_linked() -> None:
    notes = 50_000 if IS_LONG else 10_000
    links = LinkMap(vault(notes))
    assert len(links.backlinks) == notes
    assert sum(map(len, links.backlinks.values())) > 2.4 * notes
