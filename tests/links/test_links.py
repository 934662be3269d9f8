"""Links between documents at the command line: what links where, in vain, and what is related."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Run

from memctl.config import load_config
from memctl.home import Home
from memctl.rows.row_changes import set_columns

from .conftest import Write

PLAN = "# Release Plan\n\nWe ship the first release in May, when the tests have passed.\n"


def titles(memctl: Run, what: str, page: str, *more: str) -> list[str]:
    """Return the titles of the documents that a command lists for a page."""
    result = memctl("document", what, page, *more)
    assert result.code == 0, result.err
    return [row["title"] for row in result.rows]


def missing(memctl: Run, *more: str) -> dict[str, Any]:
    """Return the missing pages by name."""
    return {row["name"]: row for row in memctl("links", "missing", *more).rows}


def problems(memctl: Run) -> dict[str, list[dict[str, Any]]]:
    """Return what is wrong with links, by kind."""
    found: dict[str, list[dict[str, Any]]] = {}
    for each in memctl("links", "check", "-o", "json").json["problems"]:
        found.setdefault(each["problem"], []).append(each)
    return found


# --- one vault, from the first note to the last -------------------------------------------------


def test_links_follow_what_becomes_of_the_notes(memctl: Run, write: Write) -> None:
    write(
        n1="# Alpha\n\nSee [[Release Plan]], again [[release plan|the plan]], [[release-plan]].\n",
        n2=PLAN,
        n3="# Gamma\n\nAs the release plan says, the harbour comes first.\n",
        n4="# Delta\n\nThe harbour office has new keys.\n",
        n5="# Epsilon\n\nNothing but a dream, as [[Nowhere]] tells.\n",
    )
    (back,) = memctl("document", "backlinks", "Release Plan").rows
    assert (back["title"], back["slug"], back["type"]) == ("Alpha", "alpha", "markdown")
    assert len(back["places"]) == 3
    assert titles(memctl, "links", "Alpha") == ["Release Plan"]

    (mention,) = memctl("document", "mentions", "Release Plan").rows
    assert mention["title"] == "Gamma"
    assert mention["excerpt"] == "As the release plan says, the harbour comes first."
    write(n3="# Gamma\n\nAs the [[Release Plan]] says, the release plan comes first.\n")
    assert titles(memctl, "mentions", "Release Plan") == []
    assert set(titles(memctl, "backlinks", "Release Plan")) == {"Alpha", "Gamma"}

    write(n1="# Alpha\n\nSee [[Delta]] alone.\n")
    assert titles(memctl, "backlinks", "Release Plan") == ["Gamma"]
    assert titles(memctl, "backlinks", "Delta") == ["Alpha"]

    assert missing(memctl).keys() == {"Nowhere"}
    write(n2=PLAN.replace("Release Plan", "Launch Plan"))
    assert missing(memctl).keys() == {"Nowhere", "Release Plan"}
    assert titles(memctl, "backlinks", "Launch Plan") == []
    assert memctl("document", "backlinks", "Release Plan").code == 1
    details = {row["name"]: row["detail"] for row in problems(memctl)["missing"]}
    assert details == {
        "Release Plan": "the document that was called that is called 'Launch Plan' now",
        "Nowhere": "no document is called that",
    }
    write(n6="# Nowhere\n\nA place after all.\n")
    assert missing(memctl).keys() == {"Release Plan"}
    assert titles(memctl, "backlinks", "nowhere") == ["Epsilon"]
    write(n6=None)
    assert missing(memctl).keys() == {"Nowhere", "Release Plan"}
    details = {row["name"]: row["detail"] for row in problems(memctl)["missing"]}
    assert details["Nowhere"] == "the document that was called that is gone"


def test_documents_are_related_as_much_to_each_other_as_the_other_way(
    memctl: Run, write: Write
) -> None:
    write(
        sea="# Sea\n\nThe ferry leaves the harbour at nine.\n\n## Later\n\nThe ferry is late.\n",
        port="# Port\n\nFerries lie in the harbour at night.\n",
        garden="# Garden\n\nTomatoes want sun and water.\n",
    )
    copy = "# Sea\n\nThe ferry leaves the harbour at nine.\n\n## Later\n\nThe ferry is late.\n"
    memctl("ingest", "--text", copy, "--namespace", "copies")
    found = {
        page: {row["title"]: row["similarity"] for row in memctl("document", "related", page).rows}
        for page in ("sea", "Port", "Garden")
    }
    assert found["Port"]["Sea"] == pytest.approx(found["sea"]["Port"], abs=1e-3)
    assert found["sea"]["Port"] > found["sea"].get("Garden", 0.0)
    assert all(0 <= each <= 1 for near in found.values() for each in near.values())
    assert titles(memctl, "related", "sea", "-n", "1") == ["Port"]


def test_an_empty_knowledge_base_beside_is_no_problem(memctl: Run, write: Write) -> None:
    write(sea="# Sea\n\nThe ferry leaves at nine.\n", port="# Port\n\nThe ferry lies here.\n")
    assert memctl("kb", "create", "empty").code == 0
    assert titles(memctl, "related", "sea") == ["Port"]


# --- what a link means ---------------------------------------------------------------------------


def test_a_link_names_a_title_a_slug_an_alias_a_file_or_a_part_of_a_page(
    memctl: Run, write: Write
) -> None:
    write(
        folder="deep/er",
        handbook="---\naliases: [HB, House Rules]\n---\n# The Handbook\n\n## Keys\n\nAnn. ^k1\n",
    )
    spellings = ("THE  HANDBOOK", "the-handbook", "hb", "House Rules", "handbook", "er/handbook",
                 "The Handbook#Keys", "The Handbook#^k1", "The Handbook^k1")  # fmt: skip
    text = "# Index\n\n" + "\n\n".join(f"[[{each}]]" for each in spellings)
    write(index=text + "\n\nand [the rules](deep/er/handbook.md#Keys), ![[handbook]]\n")
    (link,) = memctl("document", "links", "Index").rows
    assert (link["title"], link["status"]) == ("The Handbook", "resolved")
    assert len(link["places"]) == len(spellings) + 2
    assert link["anchors"] == ["Keys", "^k1"]
    assert problems(memctl).keys() == set()
    write(index="# Index\n\n[[The Handbook#Lost]], [[HB#^k2]], [[The-Handbook]]\n")
    found = problems(memctl)
    assert [each["detail"] for each in found["anchor"]] == [
        "'The Handbook' has no heading 'Lost'",
        "'The Handbook' has no block '^k2'",
    ]
    assert [each["name"] for each in found["missing"]] == ["The-Handbook"]


@pytest.mark.parametrize(
    "link",
    [
        "[md](<../my plan.md>)",
        "[md](<../my plan.md#Scope>)",
        "[md](../my%20plan.md)",
        "[md](./../my%20plan.md)",
        "[md](/my%20plan.md)",
        "[md](</my plan.md>)",
        "[[../my plan]]",
        "[[./../my plan.md]]",
        "[[/my plan|the plan]]",
    ],
)
def test_a_link_to_a_file_may_begin_with_folders_above_or_the_root(
    memctl: Run, write: Write, link: str
) -> None:
    write(**{"my plan": "# The Plan\n\nText.\n\n## Scope\n", "other": "# /etc/hosts\n\nText.\n"})
    write(folder="p", ang=f"# Ang\n\nSee {link} and [[/etc/hosts]].\n")
    assert set(titles(memctl, "links", "Ang")) == {"The Plan", "/etc/hosts"}
    assert problems(memctl).keys() == set()


def test_titles_in_other_scripts_are_linked_by_title_and_slug(memctl: Run, write: Write) -> None:
    write(
        n1="# План выпуска\n\nВ мае.\n",
        n2="# 東京計画\n\n五月に出荷する。\n",
        n3="# Über Öl\n\nText.\n",
        n4="# Links\n\n[[план выпуска]] [[план-выпуска]] [[東京計画]] [[ÜBER ÖL]] [[über-öl]]"
        " [[ber-l]]\n",
        n5="# Gedanken\n\n昨日の東京計画について、и План Выпуска.\n",
    )
    assert set(titles(memctl, "links", "Links")) == {"План выпуска", "東京計画", "Über Öl"}
    assert titles(memctl, "mentions", "東京計画") == ["Gedanken"]
    assert titles(memctl, "mentions", "план-выпуска") == ["Gedanken"]


def test_of_two_notes_of_one_title_the_nearest_is_meant_then_the_newest(
    memctl: Run, write: Write
) -> None:
    write(folder="a", todo="# Todo\n\nOld.\n")
    write(folder="b", todo="# Todo\n\nNew.\n")
    write(folder="a", start="# Start A\n\n[[todo]]\n")
    write(folder="c", start="# Start C\n\n[[todo]]\n")
    memctl("ingest", "--text", "# Todo\n\nElsewhere.", "--namespace", "other")
    found = {page: memctl("document", "links", page).rows[0] for page in ("Start A", "Start C")}
    listed = {
        row["source"].split("/")[-2:][0]: row["id"] for row in memctl("document", "list").rows
    }
    assert found["Start A"]["id"] == listed["a"]
    assert found["Start A"]["status"] == "resolved"
    assert found["Start C"]["id"] == listed["b"]
    assert found["Start C"]["others"] == [listed["a"]]
    assert found["Start C"]["status"] == "ambiguous"
    assert [each["title"] for each in problems(memctl)["ambiguous"]] == ["Start C"]
    assert "is taken for" in memctl("document", "backlinks", "Todo").err


def test_links_lead_to_other_knowledge_bases_but_not_to_private_ones(memctl: Run) -> None:
    for name, options in (("one", ()), ("two", ()), ("secret", ("--private",))):
        assert memctl("kb", "create", name, *options).code == 0
    memctl("ingest", "--text", "# Start\n\n[[Far]] and [[Hidden]]", "--title", "Start", "-k", "one")
    memctl("ingest", "--text", "Far away.", "--title", "Far", "-k", "two")
    memctl("ingest", "--text", "Start is hidden.", "--title", "Hidden", "-k", "secret")
    memctl(
        "ingest", "--text", "Start is mine.", "--title", "Mine", "-k", "one", "--namespace", "me"
    )
    memctl("kb", "set", "one", "--private-namespace", "me")
    found = {row["name"]: row for row in memctl("document", "links", "Start").rows}
    assert (found["Far"]["status"], found["Far"]["kb"]) == ("resolved", "two")
    assert found["Hidden"]["status"] == "missing"
    assert titles(memctl, "mentions", "Start") == []
    assert "Mine" not in titles(memctl, "related", "Start")
    assert memctl("document", "links", "Mine").code == 1
    assert memctl("document", "links", "Mine", "--namespace", "me").code == 0


# --- notes as people write them ------------------------------------------------------------------


def test_a_note_called_go_is_no_mention_of_everything(memctl: Run, write: Write) -> None:
    write(
        go="# Go\n\nA language.\n",
        trip="# Trip\n\nWe go to town; Go is far.\n",
        plan="# Plan Go\n\nIt begins.\n",
        talk="# Talk\n\nWhat of plan go? And `plan go`, a planet.\n",
    )
    assert titles(memctl, "mentions", "Go") == []
    (found,) = memctl("document", "mentions", "Plan Go").rows
    assert found["title"] == "Talk"
    assert len(found["places"]) == 1


def test_mentions_have_offsets_at_which_a_link_can_be_put(
    memctl: Run, write: Write, tmp_path: Path
) -> None:
    text = (
        "# Talk\n\nFirst, Ann\nLee spoke. [[X|Ann Lee]]\n\n```\nAnn Lee\n```\n\nSo did ann lee.\n"
    )
    write(ann="# Ann Lee\n\nA person.\n", talk=text)
    (found,) = memctl("document", "mentions", "Ann Lee").rows
    spans = [text[place["start"] : place["end"]] for place in found["places"]]
    assert spans == ["Ann\nLee", "ann lee"]
    assert found["places"][1]["sentence"] == "So did ann lee."


def test_what_a_template_has_in_place_of_a_name_is_no_link(memctl: Run, write: Write) -> None:
    write(template="# {{date}}\n\n[[{{yesterday}}]] | [[{{tomorrow}}|next]] and [[Alpha]]\n")
    write(alpha="# Alpha\n\nNothing.\n")
    assert missing(memctl) == {}
    assert titles(memctl, "backlinks", "Alpha") == ["{{date}}"]


def test_comments_have_no_links_and_no_mentions(memctl: Run, write: Write) -> None:
    write(
        hidden="# Hidden\n\n<!-- [[Lost]] Alpha Page -->\n\n%%\n[[Gone]] and Alpha Page\n%%\n\n"
        "`<!--` opens one. See [[Beta]].\n\n100 %% of [[Gamma]]\n",
        alpha="# Alpha Page\n\nNothing.\n",
    )
    assert missing(memctl).keys() == {"Beta", "Gamma"}
    assert titles(memctl, "mentions", "Alpha Page") == []


def test_spellings_of_one_missing_name_are_counted_once(memctl: Run, write: Write) -> None:
    write(
        one="# One\n\n[[Second Thing]] and [[SECOND  THING]]\n",
        two="# Two\n\n[[second-thing]] and [[One]]\n",
    )
    found = memctl("links", "check", "-o", "json").json
    assert (found["links"], found["missing"]) == (3, 1)
    assert [each["title"] for each in found["problems"]].count("One") == 1
    assert len(memctl("links", "missing").rows) == 1


def test_excerpts_have_no_names_in_brackets_behind_them(memctl: Run, write: Write) -> None:
    days = " ".join(f"It was sunny on day {day}, and the Harbour Street was full." for day in "12")
    write(
        bay="# Bay\n\nWe decided to move the office to the bay in May. Everybody agreed to it at"
        f" once, and nobody looked back.\n\n{days}\n\nThe ferry Selkie left late.\n",
        start="# Start\n\n[[Bay]]\n",
    )
    (shown,) = memctl("document", "list", "--source", "*bay.md").rows
    assert shown["summary"].endswith(")"), "the gist names what it leaves out"
    (link,) = memctl("document", "links", "Start").rows
    assert link["excerpt"] == shown["summary"].rpartition(" (")[0]


def test_circles_and_links_to_oneself_do_no_harm(memctl: Run, write: Write) -> None:
    write(
        one="# One\n\n[[Two]] [[One]] [[#Here]]\n\n## Here\n",
        two="# Two\n\n[[Three]]\n",
        three="# Three\n\n[[One]]\n",
        alone="# Alone\n\n[[alone]] only.\n",
    )
    assert titles(memctl, "backlinks", "One") == ["Three"]
    assert titles(memctl, "links", "One") == ["Two"]
    assert [each["title"] for each in problems(memctl)["orphan"]] == ["Alone"]


def test_notes_that_nobody_links_are_no_orphans(memctl: Run, write: Write) -> None:
    write(one="# One\n\nThe harbour is full.\n", two="# Two\n\nThe bay is empty.\n")
    assert problems(memctl) == {}
    assert memctl("links", "check", "-o", "table").out == "2 documents, no links between them\n"
    write(one="# One\n\nThe harbour is full, see [[Three]].\n")
    assert [each["title"] for each in problems(memctl)["orphan"]] == ["Two"]


def test_a_note_with_ten_thousand_links_is_taken_in(memctl: Run, write: Write) -> None:
    lines = "\n".join(f"[[Page {number % 3_000}]]" for number in range(10_000))
    write(index=f"# Index\n\n{lines}\n", page="# Page 7\n\nThe seventh.\n")
    assert titles(memctl, "backlinks", "Page 7") == ["Index"]
    (first, *_) = memctl("document", "links", "Index", "-n", "1").rows
    assert first["name"] == "Page 0"
    assert len(memctl("links", "missing", "-n", "0").rows) >= 1_999


def test_a_deleted_document_is_nowhere(memctl: Run, write: Write) -> None:
    write(
        n1="# Alpha\n\nSee [[Release Plan]].\n", n2=PLAN, n3="# Gamma\n\nThe release plan waits.\n"
    )
    for page in ("Alpha", "Gamma"):
        id_ = next(row["id"] for row in memctl("document", "list").rows if row["title"] == page)
        assert memctl("document", "delete", id_, "--yes").code == 0
    for what in ("backlinks", "mentions", "related"):
        assert titles(memctl, what, "Release Plan") == []


def test_an_unknown_document_is_one_line_with_the_nearest_titles(memctl: Run, write: Write) -> None:
    write(n2=PLAN)
    result = memctl("document", "backlinks", "Relase Plan")
    error, hint = result.err.splitlines()
    assert (result.code, error) == (1, "error: there is no document 'Relase Plan'")
    assert hint == "hint: near titles: Release Plan"


# --- what readers see -----------------------------------------------------------------------------


def test_brackets_are_never_shown_and_citations_stand_in_the_source(
    memctl: Run, write: Write
) -> None:
    write(
        n1="# Harbour\n\nWe decided that [[Ann Lee|Ann]] keeps the keys of [[Harbour Office]].\n\n"
        "The office opens at nine.\n"
    )
    found = memctl("query", "who keeps the keys?", "-o", "json").json
    assert "Ann keeps the keys of Harbour Office" in found["answer"]["text"]
    assert "[[" not in found["answer"]["text"]
    document = found["hits"][0]["document_id"]
    text = memctl("document", "show", document, "--text").out
    for citation in found["answer"]["citations"]:
        assert text[citation["start"] : citation["end"]] == citation["quote"]
    shown = memctl("document", "show", document, "-o", "json").json
    assert "[[" not in shown["document"]["summary"]
    assert not any("[[" in each["text"] for each in shown["memories"] if each["level"] == "memory")
    assert "[[" not in memctl("context", "who keeps the keys?").out
    for words in (["query", "who keeps the keys?"], ["memory", "list"], ["document", "list"]):
        assert "[[" not in memctl(*words, "-o", "table").out


def test_daily_notes_are_called_as_their_files(memctl: Run, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    notes = {
        "2026-03-09": "# Monday\n\nMet [[Ann]].\n",
        "2026-03-10": "# Tuesday, 10 March 2026\n\nAfter [[2026-03-09]].\n",
        "2026-03-11": "# Budget meeting\n\nFour thousand.\n",
    }
    for name, text in notes.items():
        (vault / f"{name}.md").write_text(text)
    (vault / "meta.md").write_text(
        "---\nauthor: Ann Lee\naliases: Facts\ndate: 2026-03-01\nstatus: draft\ntags: [a/b, c]\n"
        "---\n# Meta\n\nText.\n"
    )
    memctl("ingest", str(vault))
    listed = {row["title"]: row for row in memctl("document", "list").rows}
    assert listed.keys() == {"2026-03-09", "2026-03-10", "Budget meeting", "Meta"}
    assert titles(memctl, "backlinks", "2026-03-09") == ["2026-03-10"]
    assert titles(memctl, "links", "Facts") == []
    meta = memctl("document", "show", listed["Meta"]["id"], "-o", "json").json
    document = meta["document"]
    assert (document["authors"], document["tags"]) == (["Ann Lee"], ["a/b", "c"])
    assert document["created_at"].startswith("2026-03-01")
    assert document["metadata"]["status"] == "draft"
    assert not any("draft" in memory["text"] for memory in meta["memories"])


# --- the same for agents --------------------------------------------------------------------------


def test_operations_give_what_the_commands_give(memctl: Run, write: Write) -> None:
    write(
        n1="# Alpha\n\nSee [[Release Plan]] and [[Nowhere]].\n",
        n2=PLAN,
        n3="# Gamma\n\nThe release plan says May.\n",
    )

    def called(name: str, **given: object) -> Any:
        result = memctl("tool", "call", name, json.dumps(given))
        assert result.code == 0, result.err
        return json.loads(result.out)

    page = {"document_id": "release-plan"}
    found = called("backlinks", **page)["backlinks"]
    assert found == memctl("document", "backlinks", "Release Plan").rows
    found = called("unlinked_mentions", **page)["unlinked_mentions"]
    assert found == memctl("document", "mentions", "Release Plan").rows
    found = called("related_pages", **page)["related_pages"]
    assert found == memctl("document", "related", "Release Plan").rows
    assert {*found[0]} >= {"id", "title", "slug", "type", "excerpt", "similarity"}
    found = called("page_links", document_id="Alpha")["links"]
    assert found == memctl("document", "links", "Alpha").rows
    assert called("missing_links")["missing"] == memctl("links", "missing").rows
    assert called("check_links") == memctl("links", "check", "-o", "json").json


# --- made anew ----------------------------------------------------------------------------------


def test_links_and_vectors_are_made_anew_from_the_stored_text(memctl: Run, write: Write) -> None:
    write(n1="# Alpha\n\nSee [[Release Plan]], [[Nowhere]].\n", n2=PLAN)
    before = memctl("export", "documents").out, memctl("export", "relations").out
    memories = {row["id"]: row["vector"] for row in memctl("export", "memories").rows}
    report = memctl("document", "reprocess", "--links", "-o", "json").json
    assert report == {"documents": 2, "links": 2, "changed": 0}
    assert (memctl("export", "documents").out, memctl("export", "relations").out) == before
    report = memctl("document", "reprocess", "alpha", "--links", "-o", "json").json
    assert report == {"documents": 1, "links": 2, "changed": 0}
    report = memctl("document", "reprocess", "Alpha", "--vectors", "-o", "json").json
    assert report == {"documents": 1, "memories": 1}
    assert {row["id"]: row["vector"] for row in memctl("export", "memories").rows} == memories
    result = memctl("tool", "call", "extract_links", '{"document_id": "Alpha"}')
    assert json.loads(result.out) == {"documents": 1, "links": 2, "changed": 0}
    given = '{"document_id": "Alpha", "dry_run": true}'
    assert memctl("tool", "call", "extract_links", given).json == json.loads(result.out)
    assert memctl("tool", "call", "embed_document", given).json == report
    result = memctl("tool", "call", "embed_document", '{"document_id": "Release Plan"}')
    assert json.loads(result.out)["documents"] == 1
    assert memctl("document", "reprocess", "Alpha", "--links", "--vectors").code == 2
    assert memctl("document", "reprocess", "Lost", "--links").code == 1


def test_links_that_an_earlier_version_did_not_read_are_found_again(
    memctl: Run, write: Write, tmp_path: Path
) -> None:
    write(n1="# Alpha\n\nSee [[Release Plan]], [[Nowhere]].\n", n2=PLAN)
    home = Home(load_config({"home": str(tmp_path / "home")}))
    with home.open("default") as base:
        (alpha,) = (p.id for p in base.links.view().map.pages if p.title == "Alpha")
        with base.store.write() as transaction:
            set_columns(transaction, "documents", [alpha], links=[["Wrong"]])
    assert titles(memctl, "backlinks", "Release Plan") == []
    report = memctl("document", "reprocess", "--links", "-o", "json").json
    assert report == {"documents": 2, "links": 2, "changed": 1}
    assert titles(memctl, "backlinks", "Release Plan") == ["Alpha"]
    assert memctl("doctor").code == 0


# --- in the graph of names ------------------------------------------------------------------------


def test_all_spellings_of_a_page_are_one_name_in_the_graph(memctl: Run, write: Write) -> None:
    write(
        plan="---\naliases: [Boskop]\n---\n# Release Plan\n\nWe ship in May.\n",
        n1="# Alpha\n\nSee [[Boskop]].\n",
        n2="# Beta\n\nSee [[release-plan]].\n",
        n3="# Gamma\n\nSee [[Release Plan]] and [[Alpha]].\n",
    )
    links = ("--relation", "references")
    near = memctl("graph", "neighbors", "Release Plan", *links, "--direction", "in").rows
    assert {row["name"] for row in near} == {"Alpha", "Beta", "Gamma"}
    assert {row["direction"] for row in near} == {"in"}
    assert memctl("graph", "neighbors", "Release Plan", *links, "--direction", "out").rows == []
    (out,) = memctl("graph", "neighbors", "Alpha", *links, "--direction", "out").rows
    assert out["name"] == "Release Plan"
    pages = memctl("graph", "search", "release plan").rows
    assert [row["name"] for row in pages][:1] == ["Release Plan"]
    type_ = pages[0]["type"]
    assert memctl("graph", "search", "release plan", "--type", type_).rows[0] == pages[0]
    assert memctl("graph", "search", "release plan", "--type", "planet").rows == []
    given = json.dumps({"query": "release plan", "node_type": "planet"})
    found = memctl("tool", "call", "search_knowledge_graph", given).json
    assert found["names"] == []


def test_a_list_of_documents_that_is_empty_says_so(memctl: Run, write: Write) -> None:
    write(lone="# Lone Note\n\nNothing else is here.\n")
    for command, note in {
        "mentions": "names 'Lone Note' without linking to it",
        "links": "is linked from 'Lone Note'",
        "backlinks": "links to 'Lone Note'",
        "related": "is about the same as 'Lone Note'",
    }.items():
        result = memctl("document", command, "Lone Note")
        assert (result.code, result.rows) == (0, [])
        assert f"note: nothing {note}" in result.err


def test_an_alias_of_front_matter_is_a_name_in_the_graph(memctl: Run, write: Write) -> None:
    write(
        plan="---\naliases: [BPP plan]\n---\n# Budget Plan\n\nWe ship in May.\n",
        n1="# Alpha\n\nSee [[Budget Plan]].\n",
    )
    (found,) = memctl("graph", "search", "BPP").rows
    assert (found["name"], found["aliases"]) == ("Budget Plan", ["BPP plan"])
    near = memctl("graph", "neighbors", "BPP plan", "--relation", "references").rows
    assert [row["name"] for row in near] == ["Alpha"]


def test_a_row_of_links_to_other_days_is_no_answer_and_still_links(
    memctl: Run, tmp_path: Path
) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "2026-03-09.md").write_text(
        "# Monday\n\n<< [[2026-03-08]] | [[2026-03-10]] >>\n\n"
        "## Log\n\nPaid the deposit to Jonas.\n"
    )
    (vault / "2026-03-10.md").write_text("# Tuesday\n\n[[2026-03-09]] | [[2026-03-11]]\n")
    memctl("ingest", str(vault))
    answer = memctl("query", "what happened on 2026-03-09?", "-o", "json").json["answer"]["text"]
    assert "Paid the deposit to Jonas." in answer
    assert "<<" not in answer
    assert titles(memctl, "backlinks", "2026-03-09") == ["2026-03-10"]
    assert len(memctl("document", "list").rows) == 2, "a day with nothing but links is kept"


def test_ids_of_blocks_are_not_shown(memctl: Run, tmp_path: Path) -> None:
    note = tmp_path / "Marta.md"
    note.write_text("# Marta\n\n- Allergic to walnuts ^nuts\n\nSee [[Cake#^eggs]], 2 ^10.\n")
    memctl("ingest", str(note))
    shown = memctl("context", "Marta walnuts cake").out
    assert "walnuts\n" in shown
    assert "See Cake, 2 ^10." in shown


def test_the_aliases_of_documents_of_one_title_add_up(memctl: Run, write: Write) -> None:
    write(
        one="---\ntitle: Weekly\naliases: [Monday Round]\n---\nNothing here yet.\n",
        other="---\ntitle: Weekly\naliases: [Friday Round]\n---\nNothing there either.\n",
    )
    for alias in ("Monday Round", "Friday Round"):
        (found,) = memctl("graph", "search", alias).rows
        assert found["name"] == "Weekly"


def test_a_document_is_shown_and_deleted_by_its_title_or_alias(memctl: Run, tmp_path: Path) -> None:
    note = tmp_path / "Refit.md"
    note.write_text("---\naliases: [the refit]\n---\n# Refit of the Selkie\n\nLaunch in June.\n")
    memctl("ingest", str(note))
    for name in ("Refit of the Selkie", "refit-of-the-selkie", "the refit"):
        assert "Launch in June." in memctl("document", "show", name, "--text").out
    refused = memctl("document", "show", "another refit")
    assert (refused.code, "no document 'another refit'" in refused.err) == (1, True)
    assert memctl("document", "delete", "The Refit", "--yes").code == 0
    assert memctl("document", "list").rows == []
