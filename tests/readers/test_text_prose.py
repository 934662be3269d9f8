"""Text, Markdown, reStructuredText, source code, logs and chats keep their text and gain places."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memctl.ingest.chunking import ChunkSizes, chunk
from memctl.language.inline_tags import find_hashtags, find_wikilinks
from memctl.language.sentence_splitting import split_sentences
from memctl.readers import read
from memctl.readers.dated_entries import with_entry_days
from memctl.readers.text_files.chat_logs import chat_style
from memctl.readers.text_files.headed_text import (
    AsciiDocHeadings,
    HeadedText,
    PlainHeadings,
    UnderlinedHeadings,
)
from memctl.records import Segment, SourceText

from .conftest import headings_of

NOTE = """\
---
title: Harbour plan
date: 2026-05-01
authors: [Ann Lee, Bob Ray]
tags: harbour, plan
status: draft
berths: 12
---
# Harbour

See [[Budget 2026#May|the budget]] and #crane/big.

## Costs **today**

| item | cost |
|------|------|
| rope | 5 |
| tar | 6 |

```sh
# not a heading, #not-a-tag, [[not a link]]
```

Sub
---

The end.
"""


def _read(folder: Path, content: str | bytes, name: str) -> SourceText:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    [source] = read(path)
    return source


def _cut(source: SourceText, kind: str) -> list[str]:
    return [source.text[s.start : s.end] for s in source.segments if s.kind == kind]


def _segment(source: SourceText, words: str) -> Segment:
    place = source.text.index(words)
    return next(s for s in source.segments if s.start <= place < s.end)


# --- Markdown -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("heading", "day"),
    [
        ("## 2026-06-11 Halle", 11),
        ("## Thursday, 11 June 2026", 11),
        ("### Jun 11, 2026 - relieved", 11),
        ("## 11.06.2026: Halle", 11),
        ("## [1.2.0] - 2026-06-11", 11),
        ("**11 June 2026** In Halle:", 11),
        ("## Move on 11 June 2026", None),
        ("## Budget 2026", None),
        ("**Anna** 11 June 2026", None),
    ],
)
def test_text_below_a_date_has_that_date(tmp_path: Path, heading: str, day: int | None) -> None:
    note = f"# Running notes\n\nOf the whole.\n\n{heading}\n\nMet Holger.\n\n# Next\n\nLater.\n"
    source = _read(
        tmp_path, note.replace("\n\nMet", "\nMet" if "**" in heading else "\n\nMet"), "n.md"
    )
    expected = datetime(2026, 6, day, tzinfo=UTC) if day else None
    assert _segment(source, "Met Holger").said_at == expected
    assert _segment(source, "Of the whole").said_at is None
    assert _segment(source, "Later").said_at is None


def test_front_matter_says_what_a_note_is(tmp_path: Path) -> None:
    source = _read(tmp_path, NOTE, "2026-06-09-x.md")
    assert source.title == "Harbour plan"
    assert source.authors == ("Ann Lee", "Bob Ray")
    assert source.created_at == datetime(2026, 5, 1, tzinfo=UTC)
    assert source.tags == ("harbour", "plan", "crane/big")
    assert source.links == ("Budget 2026",)
    assert source.metadata["status"] == "draft"


def test_the_text_of_a_note_is_the_file_itself(tmp_path: Path) -> None:
    source = _read(tmp_path, NOTE.replace("\n", "\r\n"), "x.md")
    assert source.text == NOTE


def test_text_under_a_heading_carries_its_path(tmp_path: Path) -> None:
    source = _read(tmp_path, NOTE, "x.md")
    assert _segment(source, "See [[").heading == "Harbour"
    assert _segment(source, "| tar").heading == "Harbour > Costs today"
    assert _segment(source, "The end.").heading == "Harbour > Sub"
    assert _cut(source, "heading") == ["# Harbour", "## Costs **today**", "Sub\n---"]
    assert _cut(source, "code") == ["```sh\n# not a heading, #not-a-tag, [[not a link]]\n```"]
    [table] = _cut(source, "table")
    assert table.endswith("| tar | 6 |")
    assert _cut(source, "properties")[0].startswith("---\ntitle:")


@pytest.mark.parametrize("fence", ["---", "+++"])
def test_front_matter_that_only_describes_the_note_is_text_and_no_evidence(
    tmp_path: Path, fence: str
) -> None:
    fields = {"---": "title: Plan\nDate: 2026-05-01\naliases: [x]", "+++": 'title = "Plan"'}
    front = f"{fence}\n{fields[fence]}\n{fence}\n"
    source = _read(tmp_path, f"{front}\nWe open in June.\n", "x.md")
    assert source.text.startswith(front)
    assert _cut(source, "properties") == []
    passages = [source.text[p.start : p.end] for p in chunk(source, ChunkSizes())]
    assert passages == ["We open in June."]


def test_a_note_that_only_says_when_it_was_updated_is_of_that_day(tmp_path: Path) -> None:
    source = _read(tmp_path, "---\nupdated: 2026-07-20\n---\n18 tanks.\n", "x.md")
    assert source.created_at == datetime(2026, 7, 20, tzinfo=UTC)
    front = "---\nupdated: 2026-07-20\ncreated: 2026-01-11\n---\n"
    source = _read(tmp_path, f"{front}18 tanks.\n", "x.md")
    assert source.created_at == datetime(2026, 1, 11, tzinfo=UTC)


def test_front_matter_that_says_more_is_evidence(tmp_path: Path) -> None:
    front = "---\ntitle: Coffee\nsupplier: Huila\n---"
    source = _read(tmp_path, f"{front}\n\nWe open in June.\n", "x.md")
    passages = [source.text[p.start : p.end] for p in chunk(source, ChunkSizes())]
    assert passages == [front, "We open in June."]


def test_without_front_matter_the_first_heading_is_the_title(tmp_path: Path) -> None:
    source = _read(tmp_path, "Some words.\n\n## The [plan](x.md)\n\nText.\n", "2026-05-01-a.md")
    assert source.title == "The plan"
    assert source.created_at == datetime(2026, 5, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "front", ["---\n[broken\n---\n", "---\njust a line\n---\n", "---\na: 1\n", "---\n---\n"]
)
def test_a_block_that_is_no_front_matter_is_text(tmp_path: Path, front: str) -> None:
    source = _read(tmp_path, f"{front}Hello\n", "x.md")
    assert source.text == f"{front}Hello\n"
    assert "Hello" in source.text[source.segments[-1].start :]
    assert not source.metadata


def test_toml_front_matter_is_understood(tmp_path: Path) -> None:
    source = _read(tmp_path, '+++\ntitle = "Plan"\ndate = 2026-05-01\n+++\nHello\n', "x.md")
    assert (source.title, source.created_at) == ("Plan", datetime(2026, 5, 1, tzinfo=UTC))


def test_a_long_table_is_cut_between_rows_and_keeps_count(tmp_path: Path) -> None:
    rows = "".join(f"| item {n} | {n} |\n" for n in range(1, 301))
    source = _read(tmp_path, f"| item | n |\n|---|---|\n{rows}", "x.md")
    segment = _segment(source, "| item 250 |")
    before = source.text.count("\n", segment.start, source.text.index("| item 250 |"))
    assert segment.row is not None
    assert segment.row + before == 250


def test_a_fence_that_is_never_closed_holds_the_rest(tmp_path: Path) -> None:
    source = _read(tmp_path, "# A\n\n```\n# B\n", "x.md")
    assert _cut(source, "heading") == ["# A"]


def test_links_and_tags_are_found_where_they_are_meant() -> None:
    text = "#one, (#two) a#no http://x/#no #2026 #v2 #fff #a1b2c3 #naïve `#no` [[A|b]] ![[A]] [[]]"
    text += " [[:alnum:]]"
    assert find_hashtags(text) == ("one", "two", "v2", "naïve")
    assert find_wikilinks(text) == ("A",)


# --- plain text, rst, code, logs ------------------------------------------------------------------


def test_paragraphs_of_plain_text_are_its_segments(tmp_path: Path) -> None:
    source = _read(tmp_path, "One.\nStill one.\n\n\n  Two.\n", "my_notes.txt")
    assert _cut(source, "prose") == ["One.\nStill one.", "Two."]
    assert source.title == "my notes"


def test_zero_bytes_and_mixed_line_ends_are_normalised(tmp_path: Path) -> None:
    source = _read(tmp_path, b"one\rtwo\r\nth\0ree\nfour", "x.txt")
    assert source.text == "one\ntwo\nthree\nfour"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Le café est fermé à Genève.", "cp1252"),
        ("Привет, как дела? Мы решили встретиться завтра вечером в порту. " * 3, "cp1251"),
        ("今日は港で会議があります。クレーンを買うことに決めました。" * 3, "shift_jis"),
        ("Grüße aus Köln", "utf-16"),
    ],
)
def test_text_in_an_old_encoding_is_read_right(tmp_path: Path, text: str, encoding: str) -> None:
    assert _read(tmp_path, text.encode(encoding), "x.txt").text == text


def test_one_damaged_byte_does_not_turn_utf8_into_another_encoding(tmp_path: Path) -> None:
    content = "Wörter über Wörter, größer und schöner".encode() + b" \xff " + "ä".encode()
    assert _read(tmp_path, content, "x.txt").text == (
        "Wörter über Wörter, größer und schöner \ufffd ä"
    )


def test_headings_of_restructured_text_make_paths(tmp_path: Path) -> None:
    text = "=====\nTitle\n=====\n\nIntro.\n\nPart\n----\n\nText.\n\nNext\n----\n\nMore.\n"
    source = _read(tmp_path, text, "x.rst")
    assert source.title == "Title"
    assert _segment(source, "Intro").heading == "Title"
    assert _segment(source, "Text.").heading == "Title > Part"
    assert _segment(source, "More.").heading == "Title > Next"


def test_lines_that_are_underlined_are_headings_of_plain_text(tmp_path: Path) -> None:
    text = (
        "WINCH\n=====\nIt pulls.\n\nRope\n----\nIt is long.\n\nThanks, Bob\n"
        "------------------------------\nitem   cost\n-----------\nrope   4\n\n1\n-\n"
    )
    source = _read(tmp_path, text, "winch.txt")
    assert source.text == text
    kinds = [(s.kind, s.heading) for s in source.segments]
    assert kinds[:4] == [
        ("heading", "WINCH"),
        ("prose", "WINCH"),
        ("heading", "WINCH > Rope"),
        ("prose", "WINCH > Rope"),
    ]
    assert set(kinds[4:]) == {("prose", "WINCH > Rope")}


def test_what_a_list_of_terms_defines_is_a_heading_of_plain_text(tmp_path: Path) -> None:
    source = _read(
        tmp_path,
        "OPTIONS\n-------\n\n-q::\n`--quiet`::\n\tSays nothing.\n\n[[def_winch]]winch::\n"
        "  What pulls.\n\nNOTES\n-----\n\nSuch as::\n\n    pull(rope)\n\na::b::\nc\n",
        "winch.txt",
    )
    headings = headings_of(source)
    assert headings["Says nothing."] == "OPTIONS > -q, --quiet"
    assert headings["What pulls."] == "OPTIONS > winch"
    assert headings["pull(rope)"] == headings["Such as::"] == headings["a::b::\nc"] == "NOTES"


def test_headings_of_asciidoc_make_paths(tmp_path: Path) -> None:
    source = _read(
        tmp_path,
        "= Winches\n\nIntro.\n\n== Use\n\npull [<rope>]::\n\n\tPulls it.\n\n=== Care\n\nOil it.\n\n"
        "Rope\n----\n\nIt is long.\n\n----\nls\n----\n\n.Cap\n****\nside\n****\n\n"
        "----\n== no\n----\n\nEnds\n----\n\nAll.\n",
        "winch.adoc",
    )
    assert (source.title, source.media_type) == ("Winches", "text/asciidoc")
    headings = headings_of(source)
    assert headings["Intro."] == "Winches"
    assert headings["Pulls it."] == "Winches > Use > pull [<rope>]"
    assert headings["Oil it."] == "Winches > Use > Care"
    assert headings["It is long."] == "Winches > Rope"
    assert headings["All."] == "Winches > Ends"
    assert {*headings.values()} == {
        *("Winches", "Winches > Use", "Winches > Use > pull [<rope>]", "Winches > Use > Care"),
        *("Winches > Rope", "Winches > Ends"),
    }


def test_the_name_dates_a_note_of_org_mode_whose_own_date_is_none(tmp_path: Path) -> None:
    source = _read(tmp_path, "#+DATE: <2026-13-45>\n\nSeeds.\n", "2026-02-03 garden.org")
    assert source.created_at is not None
    assert source.created_at.date().isoformat() == "2026-02-03"


def test_notes_of_org_mode_are_read_without_their_settings(tmp_path: Path) -> None:
    text = (
        "#+TITLE: Garden\n#+DATE: <2026-03-14 Sat>\n#+filetags: :plants:shed:\n\n"
        "* TODO Seeds   :shop:\n:PROPERTIES:\n:ID: a1\n:END:\nThey cost 12 pounds.\n"
        "** Tomatoes\nSow them indoors.\n* Done\n**bold** text\n\n#+CAPTION: The shed\n\n"
        "#+BEGIN_EXAMPLE\n* no heading\n#+END_EXAMPLE\n"
    )
    source = _read(tmp_path, text, "garden.org")
    marked = text.replace("\n* ", "\n# ").replace("** Tom", "## Tom")
    assert source.text == marked.replace("# no heading", "* no heading")
    assert source.title == "Garden"
    assert source.tags == ("plants", "shed")
    assert source.created_at is not None
    assert source.created_at.date().isoformat() == "2026-03-14"
    assert headings_of(source) == {
        "# TODO Seeds   :shop:": "TODO Seeds",
        "They cost 12 pounds.": "TODO Seeds",
        "## Tomatoes": "TODO Seeds > Tomatoes",
        "Sow them indoors.": "TODO Seeds > Tomatoes",
        "# Done": "Done",
        "**bold** text": "Done",
        "#+CAPTION: The shed": "Done",
        "#+BEGIN_EXAMPLE\n* no heading\n#+END_EXAMPLE": "Done",
    }


def test_a_heading_of_org_mode_is_no_sentence_with_the_line_below(tmp_path: Path) -> None:
    text = "* Lanes\n** DONE Replace belts lanes 1-4\nContract 300 a month.\n******** Deep\n"
    source = _read(tmp_path, text, "lanes.org")
    sentences = [source.text[start:end] for start, end in split_sentences(source.text)]
    assert sentences == [
        "# Lanes",
        "## DONE Replace belts lanes 1-4",
        "Contract 300 a month.",
        "######   Deep",
    ]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("rules.rst", "Rules\n=====\n\n:Date: 2025-01-20\n\nSwitch off.\n", "2025-01-20"),
        ("rules.rst", "Rules\n=====\n\nSwitch off by 20 January 2025.\n", ""),
        ("cover.txt", "2025-12-03\nSwitched as of 1 January 2026.\n", "2025-12-03"),
        ("diary.txt", "2025-12-03\nRain.\n\n2025-12-04\nSun.\n", ""),
        (
            "pump.log",
            "2025-09-01 06:00:01 INFO on\n2025-09-03 06:31:09 ERROR off\n  at 2025-09-04\n",
            "2025-09-03",
        ),
        ("pump.log", "2025-09-01 on\n2025-09-02 off\n", "2025-09-02"),
        ("pump.log", "on since 2025-09-01\noff\n", ""),
    ],
)
def test_the_day_that_is_written_in_a_file_is_that_of_its_document(
    tmp_path: Path, name: str, text: str, expected: str
) -> None:
    created_at = _read(tmp_path, text, name).created_at
    assert (created_at.date().isoformat() if created_at else "") == expected


def test_emphasis_used_instead_of_a_heading_is_one(tmp_path: Path) -> None:
    source = _read(
        tmp_path,
        "**Draft**\n\n# Flat\n\n**Rent**\n\n900 a month.\n\n__May I have a cat?__\n\nNo.\n\n"
        "**The code is 4711.**\n\nKeep it.\n\n**Tap:** drips\n\n## Shed\n\nEmpty.\n",
        "flat.md",
    )
    headings = headings_of(source)
    assert source.title == "Flat"
    assert headings["900 a month."] == "Flat > Rent"
    assert headings["No."] == headings["Keep it."] == "Flat > May I have a cat?"
    assert headings["**The code is 4711.**"] == headings["**Tap:** drips"] == headings["No."]
    assert headings["Empty."] == "Flat > Shed"


@pytest.mark.parametrize(
    "unit", ["a::\n", "a::\n\n", ":PROPERTIES:\n", "* a \n", "= a\t", "a \n--\n"]
)
def test_the_work_grows_no_faster_than_a_hostile_text(unit: str) -> None:
    for find in (AsciiDocHeadings(), PlainHeadings(), UnderlinedHeadings()):
        assert len(list(HeadedText(find).pieces(unit * 30_000))) > 0


def test_source_code_is_cut_at_blank_lines_under_its_definition(tmp_path: Path) -> None:
    code = "import os\n\n\nclass Crane:\n    load = 1\n\n    def lift(self):\n        pass\n"
    source = _read(tmp_path, code, "crane.py")
    assert (source.title, source.text) == ("crane.py", code)
    assert source.metadata["programming_language"] == "python"
    assert _segment(source, "def lift").heading == "Crane"
    assert {s.kind for s in source.segments} == {"code"}


def test_log_lines_carry_their_number_and_time(tmp_path: Path) -> None:
    lines = [f"2026-05-01 10:{n // 60:02}:{n % 60:02} INFO main: step {n}" for n in range(200)]
    source = _read(tmp_path, "\n".join(lines) + "\n", "x.log")
    segment = _segment(source, "step 150")
    place = source.text.index("step 150")
    assert segment.row is not None
    assert segment.row + source.text.count("\n", segment.start, place) == 151
    assert segment.said_at is not None
    assert datetime(2026, 5, 1, 10, tzinfo=UTC) < segment.said_at
    assert {s.kind for s in source.segments} == {"table"}


# --- chats ----------------------------------------------------------------------------------------

CHATS = [
    ("[2026-05-01 10:00] Ann: hello\n[2026-05-01 10:01] Bob: hi\n", "2026-05-01T10:00:00Z"),
    ("2026-05-01 10:00 Ann: hello\n2026-05-01 10:01 Bob: hi\n", "2026-05-01T10:00:00Z"),
    ("2026-05-01T10:00:00Z Ann: hello\n2026-05-01T10:01:00Z Bob: hi\n", "2026-05-01T10:00:00Z"),
    ("13/05/2026, 10:00 - Ann: hello\n13/05/2026, 10:01 - Bob: hi\n", "2026-05-13T10:00:00Z"),
    ("[5/13/26, 1:00:05 PM] Ann: hello\n[5/13/26, 1:01:00 PM] Bob: hi\n",
     "2026-05-13T13:00:05Z"),
    ("--- 2026-05-01 ---\n[10:00] <Ann> hello\n[10:01] <Bob> hi\n", "2026-05-01T10:00:00Z"),
    ("Ann: hello\nBob: hi\nAnn: how are you?\n", None),
    ("**Ann:** hello\n\n**Bob:** hi\n\n**Ann:** bye\n", None),
    ("User: hello\nand more\n\nAssistant: hi\n\nA list:\n- one\n- two\n", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "said_at"), CHATS)
@pytest.mark.parametrize("name", ["chat.txt", "chat.md", "chat.log", "chat"])
def test_a_conversation_becomes_turns(
    tmp_path: Path, text: str, said_at: str | None, name: str
) -> None:
    source = _read(tmp_path, text, name)
    turns = [s for s in source.segments if s.kind == "turn"]
    assert source.text == text
    assert [t.speaker for t in turns[:2]] in (["Ann", "Bob"], ["User", "Assistant"])
    assert turns[0].said_at == (datetime.fromisoformat(said_at) if said_at else None)
    assert "hello" in text[turns[0].start : turns[0].end]


def test_lines_without_a_speaker_belong_to_the_turn_before_them(tmp_path: Path) -> None:
    text = "Ann: hello\nthis is mine too\n\nand this\nBob: hi\nAnn: bye\n"
    assert _cut(_read(tmp_path, text, "c.txt"), "turn") == [
        "Ann: hello\nthis is mine too\n\nand this", "Bob: hi", "Ann: bye",
    ]  # fmt: skip


def test_times_without_a_date_take_the_day_of_the_files_name(tmp_path: Path) -> None:
    source = _read(tmp_path, "[10:00] Ann: hi\n[10:05] Bob: yo\n", "2026-05-01-call.txt")
    assert source.segments[1].said_at == datetime(2026, 5, 1, 10, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "Name: Ann\nCity: Rome\nAge: 31\nJob: captain\n",
        "Note: buy rope\nTODO: tar\nNote: more rope\nTODO: nails\n",
        "2026-05-01 10:00:00 INFO main: started\n2026-05-01 10:00:01 ERROR main: failed\n",
        "2026-05-01 10:00:00 nginx: started\n2026-05-01 10:00:01 nginx: stopped\n",
        "He said: no.\nThen nothing happened for a while.\nShe said: yes.\nAnd so they went.\n",
        "Ingredients: flour\n\nMethod: bake\n",
        "Version: 2\nPackage: rope\nCost: 3\nNeeds: tar\nNeeds: wax\nNeeds: dye\nBy: Ann\nBy: Bo\n",
        "https://a.b\nhttps://a.c\nhttps://a.d\n",
    ],
)
def test_prose_is_not_taken_for_a_conversation(text: str) -> None:
    assert not chat_style(text)


# --- of which day -------------------------------------------------------------------------------


def test_each_day_of_a_diary_in_plain_text_is_told_of_that_day(tmp_path: Path) -> None:
    path = tmp_path / "diary.txt"
    days = ("2026-11-01\nOrdered a cake.\n", "Fri 20 November 2026\nThe vet rang.\n", "Slept.\n")
    path.write_text("\n".join(days))
    (found,) = read(path)
    dated = [
        (found.text[each.start : each.end], each.said_at.date().isoformat())
        for each in found.segments
        if each.kind == "prose" and each.said_at
    ]
    assert dated == [
        ("Ordered a cake.", "2026-11-01"),
        ("The vet rang.", "2026-11-20"),
        ("Slept.", "2026-11-20"),
    ]
    assert found.created_at is None


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("LEASE\n\nDate: 3 February 2026\nTenant: Ann Lee\n", "2026-02-03"),
        ("Quayside Vets\n11 November 2026\n\nDear Ms Lee,\n", "2026-11-11"),
        ("Quote\n\nValid until\n17 May 2026\nCostas Ltd\n", ""),
        ("# Bell fund\n\nLast edited: 10 March 2026\n\nWe need 40.\n", "2026-03-10"),
        ("# Launch\nOwner: Nele · last edit 4 Mar 2026\n\nGo-live in May.\n", "2026-03-04"),
        ("# Preise\nStand: 3. April 2026\n\nEin Brot kostet 5.\n", "2026-04-03"),
        ("# Rota\nLast modified 2026-04-03 | v2\n", "2026-04-03"),
        ("# Pump\n\nUpdate 3 May 2026: replaced by Karl.\n", ""),
        ("# Plan\nDate: 1 May 2026\n\nLast edited 3 May 2026, by Ann\n", "2026-05-01"),
        ("Update 1 May 2026\nUpdate 2 May 2026\nUpdate 3 May 2026\n", ""),
        ("# Plan\n\n*written 28 Dec 2025*\n\nFour days a week.\n", "2025-12-28"),
        ("# Table, v2\n\n*sent 15 April 2026, she rang back and said go*\n", "2026-04-15"),
        ("Lübeck, den 14. März 2025\n\nLiebe Gwen,\n", "2025-03-14"),
        ("St Austell, 3 May 2026\n\nDear Jago,\n", "2026-05-03"),
        ("Opinion on the rope\nDr. Ann Lee, York, 3 May 2026\n1. Subject\n", "2026-05-03"),
        ("Dear Jago,\n\nthe pump is fine.\n\nAnn Lee\nYork, 3 May 2026\n", "2026-05-03"),
        ("The pump leaks again.\n\nRegards\nBob\nYork, 3 May 2026\n", "2026-05-03"),
        ("Liebe Gwen,\nes regnet.\nViele Grüße\nKonrad, den 14. März 2025\n", "2025-03-14"),
        ("We fly home in May.\n\nReturn flight:\nLisbon, 12 May 2026\n", ""),
        ("Tour\n\nThe dates\n\nYork, 4 May 2026\nBath, 6 May 2026\n", ""),
        ("Dear all,\nwe sing again.\nYork, 4 May 2026\nBath, 6 May 2026\nLove, Ann\n", ""),
        ("Ask not.\n\nJohn F. Kennedy, 20 January 1961\n", ""),
        ("Last visit:\nDentist, 3 March 2019\nThe next is open.\n", ""),
        ("Wedding of Ann and Bob\nYork, 12 May 2126\n\nBring flowers.\n", ""),
        ("Dear Ann,\n\nwe wed.\n\nLove\nYork, 12 May 2126\n", ""),
        ("Ann Lee, born, 3 May 1980\n\nShe sings.\n", ""),
        ("Quote\n\nValid until\n17 May 2026\n\nCostas Ltd\n", ""),
        ("Changed my mind on 3 May 2026.\n", ""),
        ("Date: 05/06/2026\n", ""),
        ("We meet on 3 May 2026.\n", ""),
        ("# Minutes of the AGM, 20 March 2026\n\nSix were there.\n", "2026-03-20"),
        ("Minutes of the AGM, 20 March 2026\n---------\nSix were there.\n", "2026-03-20"),
        ("# Walks from 3 May 2025 to 8 June 2026\n\nSix.\n", ""),
        ("# Wedding of Rui, 20 March 2126\n\nFifty guests.\n", ""),
        ("# The fire of 3 March 1998\n\nWhat the parish kept of it.\n", ""),
    ],
)
def test_a_text_says_near_its_beginning_of_which_day_it_is(
    tmp_path: Path, text: str, day: str
) -> None:
    for name in ("text.txt", "text.md"):
        path = tmp_path / name
        path.write_text(text)
        (found,) = read(path)
        written = found.created_at
        assert (written.date().isoformat() if written else "") == day


@pytest.mark.parametrize("text", ["Ann\nYork, 3 May 2026\n\n{}", "{}\n\nLove\nYork, 3 May 2026\n"])
@pytest.mark.parametrize(("written", "is_of_day"), [("2026-05-03", True), ("2026-04-20", False)])
def test_no_letter_is_of_a_day_after_the_time_of_its_file(
    tmp_path: Path, text: str, written: str, *, is_of_day: bool
) -> None:
    path = tmp_path / "letter.txt"
    path.write_text(text.format("The pump leaks."))
    time = datetime.fromisoformat(f"{written}T12:00+00:00").timestamp()
    os.utime(path, (time, time))
    (found,) = read(path)
    assert found.created_at == (datetime(2026, 5, 3, tzinfo=UTC) if is_of_day else None)


CALLS = "20 Dec - Ann rang.\nShe wants a quote.\n27 Dec: nothing\n\n3 Jan, Ben came by\n"


@pytest.mark.parametrize(
    ("name", "text", "written", "days"),
    [
        ("a.txt", CALLS, "2026-01-09", ["2025-12-20", "2025-12-27", "2026-01-03"]),
        ("a.txt", CALLS, "2027-11-09", ["2026-12-20", "2026-12-27", "2027-01-03"]),
        ("a.md", "**6 Mar** - Jo\n\n**3 Mar** - Al\n", "2026-03-07", ["2026-03-06", "2026-03-03"]),
        ("a.txt", "Mon 2 Mar: rain\n3 Mar 2025: fog\n", "2026-03-07", ["2025-03-02", "2025-03-03"]),
        (
            "a.md",
            "**9 Feb 2025** A\n\n**27 April** B\n",
            "2026-11-07",
            ["2025-02-09", "2025-04-27"],
        ),
        (
            "a.txt",
            "Plot 4   2025\n\n19 jan   frost\n 3 may\tsun\n",
            "2026-11-07",
            ["2025-01-19", "2025-05-03"],
        ),
        (
            "bees_2025.md",
            "# bees\n\n3 feb  fed\n9 feb  hefted\n",
            "2026-11-07",
            ["2025-02-03", "2025-02-09"],
        ),
        ("1984.txt", "8 Dec: A\n9 Dec: B\n", "2026-12-20", ["2026-12-08", "2026-12-09"]),
        ("diary 2024.txt", "8 Dec: A\n9 Dec: B\n", "2026-11-07", ["2024-12-08", "2024-12-09"]),
        ("a.txt", "- 3 Mar: rain\n- 5 Mar: sun\n", "2026-03-07", ["2026-03-03", "2026-03-05"]),
        ("plans.txt", "- 27 Aug: school\n- 3 Sep: fair\n", "2026-03-07", []),
        ("spans.txt", "3 Mar - 9 Mar: Wales\n10 Mar – 12 March: York\n", "2026-03-27", []),
        ("one.txt", "3 Mar - rang Ann\n", "2026-03-07", []),
        ("no_order.txt", "3 Mar: a\n1 Mar: b\n5 Mar: c\n", "2026-03-07", []),
        ("no_days.txt", "31 Feb: a\n2 Feb: b\n", "2026-03-07", []),
        (
            "boat log.txt",
            "BOAT\n\n2023\n3 mar  out\n\n2025\n19 jan  frost\n3 may  sun\n",
            "2025-11-07",
            ["2023-03-03", "2025-01-19", "2025-05-03"],
        ),
        (
            "2025-03.txt",
            "march\n\n1 sat  a\n2 sun  b,\n  3 of it\n3 mon c\n6 thu d\n7 fri e\n",
            "2026-11-07",
            ["2025-03-01", "2025-03-02", "2025-03-03", "2025-03-06", "2025-03-07"],
        ),
        (
            "july 25.txt",
            "1  hot\n4  out\n16 invoiced\n22 T dentist\n30 1600 to them\n",
            "2026-11-07",
            ["2025-07-01", "2025-07-04", "2025-07-16", "2025-07-22", "2025-07-30"],
        ),
        (
            "diary.md",
            "## March\n\nMon 3: a\nTue 4: b\nThu 6: c\nSat 8: d\nSun 9: e\n",
            "2026-11-07",  # the 3rd was a Monday in 2025
            ["2025-03-03", "2025-03-04", "2025-03-06", "2025-03-08", "2025-03-09"],
        ),
        (
            "days.txt",
            "December 2024\n30 a\n31 b\nJanuary\n1 c\n2 d\n3 e\n4 f\n5 g\n",
            "2026-11-07",
            [f"2025-01-0{day}" for day in range(1, 6)],
        ),
        ("a.txt", "3 Feb - a\n1830\n5 Feb - b\n", "2026-03-07", ["2026-02-03", "2026-02-05"]),
        ("a.txt", "12 March\n3 Apr - a\n5 Apr - b\n", "2026-04-07", ["2026-04-03", "2026-04-05"]),
        ("a.txt", "12.6.25 a\nmore\n23.11.25: b\n", "2025-12-07", ["2025-06-12", "2025-11-23"]),
        ("a.md", "2026-03-09 b\n\n2025-03-19 a\n", "2026-04-07", ["2026-03-09", "2025-03-19"]),
        (
            "a.md",
            "- **2025-03-19**: a\n- 2025-03-21: b\n",
            "2025-04-07",
            ["2025-03-19", "2025-03-21"],
        ),
        ("plans.txt", "2026-05-09 a\n2026-05-19 b\n", "2026-04-07", []),
        (
            "log.txt",
            "2026-03-09 a\n2026-03-19 b\n2026-05-19 due\n",
            "2026-04-07",
            ["2026-03-09", "2026-03-19"],
        ),
        (
            "old.txt",
            "12.6.19 a\n21.7.19 b\n3.8.19 c\n",
            "2026-04-07",
            ["2019-06-12", "2019-07-21", "2019-08-03"],
        ),
        (
            "log.txt",
            "2026-06-01 a\n2026-06-02 b\n2026-06-03\nc\n2026-06-05 d\n2026-06-06",
            "2026-07-07",
            [f"2026-06-0{day}" for day in (1, 2, 3, 5, 6)],
        ),
        (
            "log.txt",
            "12.6.25 a\n21.6.25-23.6.25 away\n25.6.25 b\n",
            "2025-12-07",
            ["2025-06-12", "2025-06-25"],
        ),
        ("invoice.txt", "issued:\n2026-06-01\nPaid:\n2026-06-03\nThanks\n", "2026-07-07", []),
        ("changes.txt", "1.2.10 a\n1.2.11 b\n", "2026-04-07", []),
        ("versions.txt", "1.1.10 a\n1.2.10 b\n1.3.10 c\n", "2026-04-07", []),
        ("clauses.txt", "1.1.20 a\n2.1.20 b\n3.1.20 c\n", "2026-04-07", []),
        ("clauses.txt", "1.1.25 a\n2.1.25 b\n3.1.25 c\n", "2026-04-07", []),
        ("clauses.txt", "13.1.20 a\n14.1.20 b\n15.1.20 c\n", "2026-04-07", []),
        ("clauses.txt", "13.1.9 a\n13.1.25 b\n14.1.25 c\n", "2026-04-07", []),
        ("parts.txt", "3.14.15 a\n3.11.15 b\n", "2026-04-07", []),
        ("boot.log.txt", "2026-03-09 10:00:01 a\n2026-03-09 10:00:02 b\n", "2026-04-07", []),
        ("spans.txt", "3.3.2026 - 9.3.2026 a\n10.3.2026 – 12.3.2026 b\n", "2026-04-07", []),
        ("march.md", "1. a\n2. b\n3. c\n4. d\n5. e\n", "2026-11-07", []),
        ("march 2025.txt", "2 eggs\n1 lemon\n3 figs\n2 limes\n4 pears\n1 leek\n", "2026-11-07", []),
        ("setlist.txt", "1 Sodium\n2 Tungsten\n3 Slow\n4 Ghost\n5 Preset\n", "2026-11-07", []),
    ],
)
def test_an_entry_of_running_notes_is_of_the_day_that_it_begins_with(
    tmp_path: Path, name: str, text: str, written: str, days: list[str]
) -> None:
    path = tmp_path / name
    path.write_text(text)
    (plain,) = read(path)
    found = with_entry_days(plain, None, datetime.fromisoformat(written).replace(tzinfo=UTC), name)
    assert [each.said_at.date().isoformat() for each in found.segments if each.said_at] == days
    whole = [text[each.start : each.end] for each in found.segments]
    assert "".join("".join(whole).split()) == "".join(text.split())


def test_entries_without_a_year_are_near_the_day_that_their_text_says_it_is_of() -> None:
    text = SourceText(CALLS, "text/plain", "text", segments=(Segment(0, len(CALLS)),))
    stated, copied = datetime(2019, 12, 1, tzinfo=UTC), datetime(2026, 11, 9, tzinfo=UTC)
    found = with_entry_days(text, stated, copied)
    assert [each.said_at and each.said_at.year for each in found.segments] == [2019, 2019, 2020]
    assert with_entry_days(text, None, None) is text
