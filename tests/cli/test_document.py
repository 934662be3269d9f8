"""memctl document, insight and consolidate: what was taken in and what was made of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from memctl.literals import InsightKind

from .conftest import Run

LEASE = "The lease for the Harbour Street workshop starts on {} June 2026.\n"


@pytest.fixture
def leases(memctl: Run, tmp_path: Path) -> Run:
    """A home with two documents that contradict each other."""
    (tmp_path / "signed.md").write_text("---\ndate: 2026-03-24\n---\n" + LEASE.format(1))
    (tmp_path / "moved.md").write_text("---\ndate: 2026-05-12\n---\n" + LEASE.format(15))
    assert memctl("ingest", "signed.md", "moved.md").code == 0
    return memctl


def test_a_document_shows_what_was_understood(leases: Run) -> None:
    row = leases("document", "list", "--source", "signed.md").rows[0]
    view = leases("document", "show", row["id"], "-o", "json").json
    assert view["document"]["title"]
    assert "Harbour Street" in " ".join(view["document"]["entities"])
    assert {memory["document_id"] for memory in view["memories"]} == {row["id"]}
    assert sum(view["document"]["signals"].values()) == pytest.approx(
        view["document"]["importance"], abs=0.01
    )
    out = leases("document", "show", row["id"][:12], "-o", "table").out
    assert "importance" in out
    assert "Harbour Street" in out


def test_the_list_leaves_whole_texts_out(leases: Run) -> None:
    assert all("text" not in row for row in leases("document", "list").rows)


def test_a_list_offers_no_filter_that_means_nothing_to_it(leases: Run) -> None:
    for noun in ("document", "insight"):
        for option in ("--type", "--level"):
            result = leases(noun, "list", option, "insight")
            assert (result.code, result.out) == (2, "")
            assert f"no such option: {option}" in result.err
    assert len(leases("memory", "list", "--type", "passage", "--level", "evidence").rows) == 2


def test_consolidating_tells_of_the_change_once(leases: Run) -> None:
    dry = leases("consolidate", "--dry-run", "-o", "json").json[0]
    assert dry["dry_run"]
    assert leases("insight", "list").rows == []
    (report,) = leases("consolidate", "-o", "json").json
    (insight,) = [item for item in report["insights"] if item["kind"] == "change"]
    assert [item["id"] for item in dry["insights"]] == [item["id"] for item in report["insights"]]
    assert leases("consolidate").rows[0]["examined"] == 0
    again = leases("consolidate", "-o", "table").out
    assert f"{len(report['insights'])} earlier insight" in again
    assert "memctl insight list -k" in again
    assert insight["id"] in {row["id"] for row in leases("insight", "list").rows}
    (row,) = leases("insight", "list", "--kind", "change").rows
    assert (row["id"], row["metadata"]["kind"]) == (insight["id"], "change")
    assert leases("insight", "list", "--kind", "total").rows == []
    assert leases("insight", "list", "--kind", "changes").code == 2
    lines = leases("insight", "list", "--kind", "change", "-o", "table").out.splitlines()
    assert "KIND" in lines[0]
    assert " change " in lines[2]
    assert max(map(len, lines)) < 160, "a line in a pipe is short"
    view = leases("insight", "show", insight["id"], "-o", "json").json
    assert {Path(item["source"]).name for item in view["evidence"]} == {"signed.md", "moved.md"}


def test_an_insight_is_not_edited_and_says_what_to_edit(leases: Run) -> None:
    leases("consolidate")
    (insight, *_) = leases("insight", "list").rows
    result = leases("memory", "edit", insight["id"], "--text", "something else")
    assert result.code == 2
    assert "is an insight, which is drawn from memories and not edited" in result.err
    assert f"hint: edit those that it names: memctl insight show {insight['id']}" in result.err


def test_the_kinds_of_insights_have_the_same_names_everywhere() -> None:
    page = (Path(__file__).parents[2] / "docs/concepts.md").read_text().split("## Insights")[1]
    table = [line.split("|")[1] for line in page.split("\n## ")[0].splitlines() if line[:2] == "| "]
    cells = [word for cell in table[1:] for word in cell.replace("`", "").replace(",", "").split()]
    assert cells == list(get_args(InsightKind))


def test_forgetting_a_document_takes_its_memories_and_insights(leases: Run, tmp_path: Path) -> None:
    leases("consolidate")
    row = leases("document", "list", "--source", "moved.md").rows[0]
    assert "would delete" in leases("document", "delete", row["id"], "--dry-run").out
    assert len(leases("document", "list").rows) == 2
    assert leases("document", "delete", row["id"], "--yes").code == 0
    assert [Path(r["source"]).name for r in leases("document", "list").rows] == ["signed.md"]
    assert "15 June" not in leases("memory", "list", "-n", "0").out
    assert "15 June" not in leases("export", "relations").out
    assert (tmp_path / "moved.md").exists()
    assert leases("ingest", "moved.md", "-o", "json").json["ingested"] == 1


def test_a_document_can_be_read_again(leases: Run) -> None:
    ids = [row["id"] for row in leases("document", "list").rows]
    before = leases("memory", "list").rows
    result = leases("document", "reprocess", *ids, "-o", "json")
    assert (result.code, result.json["ingested"]) == (0, 2)
    assert {row["id"] for row in leases("memory", "list").rows} == {row["id"] for row in before}


def test_a_text_of_several_parts_is_one_document_with_all_of_it(
    memctl: Run, tmp_path: Path
) -> None:
    text = "The kiln is old.\n" + " " * 999_970 + "\nThe kiln is sold.\n"
    (tmp_path / "kiln.txt").write_text(text)
    assert memctl("ingest", "kiln.txt").code == 0
    assert {row["part"] for row in memctl("document", "list").rows} == {0, 1}
    assert memctl("document", "show", "kiln", "--text").out == f"{text}\n"

    def call(name: str, **arguments: object) -> Any:
        return memctl("tool", "call", name, json.dumps(arguments)).json

    (listed,) = call("list_documents")["documents"]
    assert listed["passages"] == 2
    for name in ("kiln", listed["id"]):
        read = call("get_document", document_id=name, start=len(text) - 18)
        assert (read["id"], read["text"]) == (listed["id"], "The kiln is sold.\n")
        assert (read["length"], read["has_more"]) == (len(text), False)
    last = call("get_document", document_id=f"{listed['id']}.1")
    assert last["text"].strip() == "The kiln is sold."


def test_what_came_through_a_pipe_is_read_again_by_its_title(leases: Run) -> None:
    assert leases("ingest", "-", stdin="# Rent\n\nThe rent is 1,450 euros.\n").code == 0
    result = leases("document", "reprocess", "Rent", "-o", "json")
    assert (result.code, result.json["ingested"]) == (0, 1)
    wrong = leases("document", "reprocess", "Rents")
    assert (wrong.code, "near titles: Rent" in wrong.err) == (1, True)


def test_which_documents_to_read_again_must_be_said(leases: Run) -> None:
    assert leases("document", "reprocess").code == 2
    assert leases("document", "reprocess", "d_000000").code == 1
    assert leases("document", "reprocess", "d_000000", "--incomplete").code == 2


def test_statistics_add_up(leases: Run) -> None:
    (numbers,) = leases("stats").rows
    assert numbers["documents"] == 2
    assert sum(numbers["by_level"].values()) == numbers["memories"]
    assert sum(numbers["by_day"].values()) == numbers["memories"]
    assert len(leases("memory", "list", "-n", "0").rows) == numbers["memories"]
    assert "█" in leases("stats", "-o", "table").out
