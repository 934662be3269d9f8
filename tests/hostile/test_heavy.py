"""Small files made to keep an ingest busy: the work grows with their size, and no faster."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

import pytest
from ingest.conftest import bench, embedder

from memctl.ingest import work
from memctl.ingest.derive import relations_of
from memctl.ingest.rows import MOST_TAGS
from memctl.ingest.sources import Labels
from memctl.readers.pieces import LONGEST_HEADING
from memctl.understand.marks import links, tags

if TYPE_CHECKING:
    from ingest.conftest import Bench

    from memctl.ingest.batch import Prepared

__all__ = ["bench", "embedder"]


def steps(work: Callable[[], object]) -> int:
    """How many lines of Python are run; the same every time, however busy the machine is."""
    count = 0

    def counting(_frame: FrameType, _event: str, _arg: object) -> Any:
        nonlocal count
        count += 1
        return counting

    before = sys.gettrace()
    sys.settrace(counting)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def grows_with(make: Callable[[int], Callable[[], object]]) -> float:
    """How many times as many steps four times as much takes."""
    return steps(make(400)) / steps(make(100))


def test_links_and_tags_beside_code_are_found_in_one_pass() -> None:
    for find in (links, tags):
        assert grows_with(lambda count, find=find: lambda: find("`a` [[b]] #c\n" * count)) < 6
    assert tags("`#a` #b `#c` #d", [(0, 6)]) == ("d",)
    assert links("`[[a]]` [[b]] ~~~\n[[c]]") == ("b", "c")


def test_the_passages_are_looked_through_once_for_all_the_pages_they_link_to(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Sequence[Prepared]] = []
    monkeypatch.setattr(work, "relations_of", lambda items: made.append(items) or [])

    def linking(pages: int) -> Callable[[], object]:
        text = "".join(f"Page {n} tells of [[page {n}]] and ships.\n\n" for n in range(pages))
        bench.paths(bench.file(f"{pages}.md", text))
        items = made[-1]
        return lambda: relations_of(items)

    assert grows_with(linking) < 6
    relations = relations_of(made[0])
    texts = {memory.id: memory.text for item in made[0] for memory in item.memories}
    assert len(relations) == 400
    for relation in relations:
        assert relation.memory_ids
        assert all(f"[[{relation.text}]]" in texts[id_] for id_ in relation.memory_ids)


def test_a_memory_has_few_of_the_tags_of_its_document(bench: Bench) -> None:
    found = " ".join(f"#t{n}" for n in range(1_000))
    labels = Labels(tags=tuple(f"given{n}" for n in range(300)))
    bench.paths(bench.file("a.md", f"Of ships. {found}\n"), labels=labels)
    given = [f"given{n}" for n in range(300)]
    for row in (*bench.rows("documents", "tags"), *bench.rows("memories", "tags")):
        assert row["tags"] == [*given, *(f"t{n}" for n in range(MOST_TAGS))]


def test_a_heading_that_is_long_is_not_kept_with_all_that_stands_below_it(bench: Bench) -> None:
    bench.paths(bench.file("a.md", f"# {'x' * 100_000} end\n\n" + "Of ships.\n\n" * 100))
    headings = [row["heading"] for row in bench.rows("memories", "heading") if row["heading"]]
    assert headings
    assert all(len(heading) <= LONGEST_HEADING for heading in headings)
