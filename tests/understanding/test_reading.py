"""Statements by the reading model: what is kept of natural prose, and how it stands alone."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memctl.models.task_encoder import load_task_encoder
from memctl.records import Segment, SourceText, Understanding
from memctl.understanding.builtin_understander import BuiltinUnderstander
from memctl.understanding.sentence_reading import bare_statement, read_lines
from memctl.understanding.text_outline import text_outline

MAY = datetime(2025, 5, 12, tzinfo=UTC)


def understood(text: str, **fields: object) -> Understanding:
    source = SourceText(text, **{"media_type": "text/plain", "reader": "test", **fields})  # type: ignore[arg-type]
    [found] = BuiltinUnderstander(encoder=load_task_encoder()).understand([source])
    return found


def test_a_decision_is_kept_without_any_phrase_that_says_so() -> None:
    found = understood("Hi all,\n\nWe moved from RabbitMQ to Postgres queues last week.\n\nCheers")
    assert [each.text for each in found.distilled] == [
        "We moved from RabbitMQ to Postgres queues last week."
    ]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Beschluss: Wir kaufen die Kreissäge von Altendorf.", "decision"),
        ("Wir haben uns entschieden, die Platte in Granit zu nehmen.", "decision"),
        ("Décision : nous achetons la scie Altendorf.", "decision"),
        ("On a décidé de vendre le vieux Kangoo.", "decision"),
        ("Hemos decidido vender la furgoneta vieja.", "decision"),
        ("Je préfère le miel de tilleul.", "preference"),
        ("Prefiero la miel de romero.", "preference"),
    ],
)
def test_what_a_sentence_says_itself_that_it_is_counts_in_other_languages(
    text: str, kind: str
) -> None:
    assert [each.type for each in understood(f"{text}\n").distilled] == [kind]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("We stop the pottery lessons in Ghent. Only two children came on 3 May.", "decision"),
        (
            "## Decision\n\nWe take the oak for all 14 doors, it costs 40 EUR more a door.",
            "decision",
        ),
        (
            "# ADR 7: bookings\n\nWe take the bookings of all 14 boats through Openslot.",
            "decision",
        ),
        ("4. Opening hours: Ida Holm proposes 9 to 17 from 3 May. Accepted.", "decision"),
    ],
)
def test_what_is_stated_as_decided_is_a_decision(text: str, kind: str) -> None:
    found = understood(text, media_type="text/markdown", created_at=MAY).distilled
    assert [each.type for each in found] == [kind]


def test_a_memory_says_what_it_is_about_and_when() -> None:
    [memory] = understood(
        "Went with the grey tiles in the end, 42 a square metre.",
        title="Bathroom",
        created_at=MAY,
    ).distilled
    assert memory.text.startswith("Bathroom (12 May 2025): Went with the grey tiles")


@pytest.mark.parametrize(
    ("title", "where"),
    [
        ("2025-05-12", "12 May 2025"),
        ("Monday 12 May", "12 May 2025"),
        ("2025-05-19", "2025-05-19 (12 May 2025)"),
        ("2024-05-12", "2024-05-12 (12 May 2025)"),
        ("Thursday 12 June", "Thursday 12 June (12 May 2025)"),
        ("Monday", "Monday (12 May 2025)"),
    ],
)
def test_a_title_that_is_but_the_day_is_not_said_twice(title: str, where: str) -> None:
    text = "Went with the grey tiles in the end, 42 a square metre."
    [memory] = understood(text, title=title, created_at=MAY).distilled
    assert memory.text.startswith(f"{where}: Went with the grey tiles")


def test_entries_of_running_notes_are_kept_apart_each_with_its_day() -> None:
    text = "**9 Feb 2025** Alun broke his left wrist.\n**27 April** Alun fell in the bathroom."
    entries = (
        Segment(0, 41, said_at=datetime(2025, 2, 9, tzinfo=UTC)),
        Segment(42, len(text), said_at=datetime(2025, 4, 27, tzinfo=UTC)),
    )
    assert [each.text for each in understood(text, title="Dad", segments=entries).distilled] == [
        "Dad (9 February 2025): Alun broke his left wrist.",
        "Dad (27 April 2025): Alun fell in the bathroom.",
    ]


def test_a_wikilink_is_read_as_it_is_shown() -> None:
    text = "The [[kiln rebuild|kiln]] is off. The mason wanted cash, Ada would not pay."
    [memory] = understood(text, title="Meeting", created_at=MAY).distilled
    assert memory.text == (
        "Meeting (12 May 2025): The kiln is off. The mason wanted cash, Ada would not pay."
    )


def test_a_sentence_that_begins_with_a_pronoun_is_kept_with_the_one_before_it() -> None:
    text = "Tobias Kern rang this morning. He accepted the offer, 61k, and starts on 1 March."
    texts = [each.text for each in understood(text).distilled]
    assert any("Tobias Kern" in each and "61k" in each for each in texts)


def test_a_person_who_is_meant_is_named_in_the_memory() -> None:
    text = (
        "Tobias rang about the kitchen. The tiles are grey. Last week he said 4,200 for the lot, "
        "now he wants 4,650 by 1 March."
    )
    texts = [each.text for each in understood(text).distilled]
    assert any("Tobias" in each and "4,650" in each for each in texts)


def test_of_general_rules_only_what_is_specific_is_kept() -> None:
    rules = (
        "Gloves are worn in cold weather.",
        "No saw work is done alone.",
        "Nobody walks under a load that is being lowered.",
        "The stop bar is tested each morning.",
        "Boots are brushed after work on diseased trees.",
        "Chip of diseased trees stays in the parish.",
        "Nobody feeds the chipper alone.",
        "The supervisor is told of white or numb fingers.",
        "Cones and signs are put out before the work begins.",
        "Dead ash goes brittle fast, and limbs that looked sound have snapped under a rope.",
        "Haddow Tree Care renews the insurance by 1 March 2027.",
    )
    found = understood("\n\n".join(rules), media_type="application/pdf").distilled
    assert [each.text for each in found] == [rules[-1]]
    notes = understood("\n\n".join(rules), media_type="text/markdown").distilled
    assert len(notes) > 1


def test_a_report_of_what_was_found_is_no_general_text() -> None:
    report = (
        "The hull was blasted in May and coated with epoxy.",
        "Plating at the stern was thin below the waterline.",
        "The flue was sound when tapped.",
        "The rudder was stiff but serviceable.",
        "Anodes were fitted when new, of which most were spent.",
        "The engine had been serviced by its owner.",
        "The bilge pump did not start by itself.",
        "The gas locker was dry and its drains were clear.",
        "The roof vents leaked when hosed.",
        "The stove stands properly on its hearth, but its rope seal is worn and must be replaced.",
    )
    found = understood("\n\n".join(report), media_type="application/pdf").distilled
    notes = understood("\n\n".join(report), media_type="text/markdown").distilled
    assert found == notes != ()


def test_a_turn_of_a_few_words_is_no_memory() -> None:
    said = (
        "Zosia: The bank is closed on Friday.",
        "Ros: 115 from 1 June",
        "Zosia: I'll say no to Sundays always.",
        "Ros: Callum starts with us on 3 March at 95 a day.",
    )
    texts = [each.text for each in understood("\n".join(said)).distilled]
    assert "Ros: Callum starts with us on 3 March at 95 a day." in texts
    assert not any("115" in each for each in texts)


def test_sentences_that_make_one_memory_count_once_among_those_that_are_kept() -> None:
    paragraph = (
        "Kestrel Build got the kitchen for £38,400, fixed. Marek starts on 7 October with Kuba. "
        "The second payment of £12,000 is due when the roof is on. Lowther Structural does the "
        "calculations for £720."
    )
    others = (
        "Tomos is allergic to cashews and pistachios.",
        "Nadia starts as team lead on 1 May.",
        "The Vivaro was bought for £11,450 on 15 March.",
        "Rent of Unit 7 goes to £510 from January.",
        "Josie leaves the workshop at the end of August.",
    )
    found = understood("\n\n".join((paragraph, *others)), title="House").distilled
    assert [each.text.startswith("House: Kestrel Build got") for each in found].count(True) == 1
    assert len(found) == 4  # 1.2 times the root of nine sentences


@pytest.mark.parametrize(
    "item",
    [
        "MOT due 30 Sept",
        "passport runs out 3 Nov 2026",
        "entry form by 12 July",
        "deposit to be paid by 12 July",
    ],
)
def test_an_item_that_only_says_what_is_due_when_is_kept(item: str) -> None:
    [memory] = understood(f"# Van\n\n- spare key: hook in the larder\n- {item}\n").distilled
    assert memory.text.endswith(item)
    assert memory.type == "plan"


@pytest.mark.parametrize(
    "item",
    [
        "- lived in Bonn until 12 March 2001",
        "- worked there until 5 June 1998",
        "- rang Ann before 3 May 2024",
        "- the deadline of 3 May 2020 was missed",
        "- the report is due 31 May 2020",
        "- [x] tax return due 31 May 2030",
    ],
)
def test_an_item_on_what_is_over_is_no_deadline(item: str) -> None:
    text = f"# Notes\n\n- spare key: hook in the larder\n{item}\n"
    source = SourceText(text, "text/plain", "test", created_at=MAY)
    read = read_lines(source, text_outline(source), load_task_encoder())
    assert [each.stated_type for each in read] == ["", ""]


def test_a_memory_is_the_documents_own_text_in_place() -> None:
    text = "# Notes\n\nThe boiler was serviced on 3 May by Des Okoro.\n\nok bye\n"
    for memory in understood(text).distilled:
        assert text[memory.start : memory.end] in memory.text


def test_who_works_where_is_named_whatever_the_file_is_called() -> None:
    for title in ("f1", "alpha", "Notes"):
        found = understood("Ann Lee works at Acme.", title=title)
        assert [(each.name, each.type) for each in found.entities] == [
            ("Ann Lee", "person"),
            ("Acme", "organization"),
        ]


def test_what_rules_do_not_know_of_a_name_the_sentence_says() -> None:
    found = understood("Huw Tremlett sent an invoice. Zosia moved to Klepp last month.")
    types = {each.name: each.type for each in found.entities}
    assert types == {"Huw Tremlett": "person", "Zosia": "person", "Klepp": "place"}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("- Rang Dunmore about the sash windows, 480 each.\n", {"Dunmore"}),
        ("- Told Konrad that the rack is late.\n", {"Konrad"}),
        ("We spent 40 euros with Henrik 40 and Marta 2 on the list.\n", {"Henrik", "Marta"}),
        ("Cut the oak at Ombersow, Sun to Weds, with a Dutch saw.\n", {"Ombersow"}),
        ("It was Nov-Jan 240 in Ghent, Compartment 3.\n", {"Ghent"}),
    ],
)
def test_verbs_days_and_amounts_are_no_part_of_a_name(text: str, names: set[str]) -> None:
    assert {each.name for each in understood(text).entities} == names


def test_a_label_with_a_column_is_no_part_of_a_name() -> None:
    text = "Fabric     Linen of Ypres, cut by Emma Tan\nLining     T. Moss, weaver, of Thornby\n"
    found = {entity.name for entity in understood(text).entities}
    assert {"Emma Tan", "T. Moss"} <= found
    assert not any("Fabric" in name or "Lining" in name for name in found)


def test_an_unknown_name_is_found_in_a_note_in_small_letters() -> None:
    found = understood("ring jobst about the harbour talk at the zimtfest, he gives one there")
    assert "zimtfest" in {entity.name for entity in found.entities}


def test_a_dash_within_a_sentence_is_no_marker_of_a_list() -> None:
    text = "Paid the roofer Des Okoro - 450 pounds in cash, on 3 May."
    assert [each.text for each in understood(text).distilled] == [text]


def test_small_talk_gives_nothing() -> None:
    text = "Ann: hiya\nBen: hey how are you\nAnn: good thanks x\nBen: haha nice one\nAnn: lol\n"
    assert understood(text).distilled == ()


def test_what_its_author_asks_to_be_remembered_is_kept() -> None:
    [memory] = understood("Remember: the spare key is with Mrs Bevan at number 43.").distilled
    assert memory.type == "important_fact"


def test_code_is_neither_statement_nor_name() -> None:
    text = "Setup\n\ndef Main(): return Config.Load()\n"
    start = text.index("def")
    segments = (Segment(0, start - 2), Segment(start, len(text) - 1, "code"))
    found = understood(text, segments=segments)
    assert found.distilled == ()
    assert not {each.name for each in found.entities} & {"Main", "Config"}


def test_a_gist_names_in_brackets_what_its_sentences_leave_out() -> None:
    text = (
        "The crane is rented from Dunlin Hire until the end of March.\n\n"
        "Marguerite asked the council about the lights on the quay. The council will answer"
        " Marguerite in two weeks. The lights were her idea. On Tuesday the lights failed, and on"
        " the next Tuesday as well.\n\nTobias repainted the shed. Everybody had tea."
    )
    said, _, rest = understood(text, title="Site meeting").gist.partition(" (")
    assert said.startswith("Site meeting: ")
    names = rest.removesuffix(")").split(", ")
    assert names
    assert all(name in text or name in text.lower() for name in names)
    assert not any(name in said for name in names)
    assert "Tuesday" not in names


def test_a_gist_leaves_out_what_a_program_says_of_a_document() -> None:
    notice = "10.03.25, 07:02 - Nachrichten und Anrufe sind Ende-zu-Ende-verschlüsselt."
    said = "Der Techniker kommt am Donnerstag und tauscht das Lager."
    text = f"{notice}\n{said}"
    at = len(notice) + 1
    found = understood(
        text, segments=(Segment(0, at, "properties"), Segment(at, len(text), "prose"))
    )
    assert found.gist == said


def test_a_gist_has_thirty_words_at_most() -> None:
    text = " ".join(
        f"The board of Harrow Mill agreed on point {n}, which costs {n}00 pounds a year."
        for n in range(1, 30)
    )
    assert 0 < len(understood(text, title="Minutes").gist.split()) <= 30


def test_lines_without_marks_are_kept_apart_in_one_statement() -> None:
    text = "rent stays 340 a month till August\ndeposit 680 paid in 2019, all in writing\n"
    [found] = understood(text).distilled
    assert (
        found.text == "rent stays 340 a month till August. deposit 680 paid in 2019, all in writing"
    )


def test_what_each_part_of_a_text_repeats_is_kept_once() -> None:
    note = "Installation should be carried out by Ann Lee, who records the 14 readings in the log."
    parts = ("The tank holds 3.8 litres.", "The rods have 25 watts.", "The fuse has 2 amps.")
    text = "\n\n".join(f"{part} {note}" for part in parts)
    found = understood(text).distilled
    assert sum("Installation" in each.text for each in found) <= 1


@pytest.mark.parametrize("titles", [("Rooms > Kitchen", "Rooms > Bath"), ("Falcon", "Eagle")])
def test_the_same_words_under_another_heading_are_kept_too(titles: tuple[str, str]) -> None:
    said = "Decision: approved by the board on 3 May.\nThe budget is 5,000 EUR.\n"
    segments = tuple(
        Segment(place * len(said), (place + 1) * len(said), heading=heading)
        for place, heading in enumerate(titles)
    )
    found = [each.text for each in understood(said * 2, segments=segments).distilled]
    first, second = (heading.rpartition(" > ")[2] for heading in titles)
    assert found == [
        f"{first}: Decision: approved by the board on 3 May.",
        f"{first}: The budget is 5,000 EUR.",
        f"{second}: Decision: approved by the board on 3 May.",
        f"{second}: The budget is 5,000 EUR.",
    ]


def test_the_same_words_about_somebody_else_are_kept_with_who_they_are_about() -> None:
    text = "Ann Lee moved to Berlin in May. {0}\n\nBo Lund moved to Paris in June. {0}\n"
    [found] = understood(text.format("She pays 500 EUR of rent.")).distilled
    assert found.text == "Bo Lund moved to Paris in June. She pays 500 EUR of rent."


def test_a_statement_that_says_its_own_day_has_it_once() -> None:
    text = "The dentist is on Monday, 12 May 2025, from 10:40 to 11:10, at Priestpopple."
    assert [each.text for each in understood(text, created_at=MAY).distilled] == [text]
    said, title = "We decided to keep the van for one more year.", "Board, 12 May 2025"
    [titled] = understood(said, created_at=MAY, title=title).distilled
    assert titled.text == f"{title}: {said}"
    assert bare_statement(titled.text, title) == said
    assert bare_statement("RE: Roof: It is 420.", "RE: Roof") == "It is 420."


def test_a_gist_begins_with_no_word_for_what_is_not_named() -> None:
    text = (
        "The weekly fee for your mother, Mrs Jean Abernethy, room 12, will be £1,085 from the week "
        "of 6 April 2026. It has been £1,010 since April 2025.\n\nFrom 2 March our visiting hours "
        "are 10.00 to 19.30. The optician visits on 25 March.\n"
    )
    assert " It " not in understood(text, title="Fees").gist


def test_an_entry_of_a_calendar_is_an_event_and_a_task_is_none() -> None:
    fields = {"title": "Dentist Mr Sethi", "media_type": "text/calendar"}
    said = "Dentist Mr Sethi is on Tuesday, 24 February 2026, from 10:40 to 11:10, at Priestpopple."
    assert [each.type for each in understood(said, **fields).distilled] == ["event"]
    due = "Dentist Mr Sethi is due on Tuesday, 24 February 2026."
    assert "event" not in [each.type for each in understood(due, **fields).distilled]


def test_no_name_ends_with_the_dash_between_two_things() -> None:
    text = (
        "# Regular customers\n\n"
        "- **Mrs Pallister**, Wylam - Kemble upright - every 6 months\n"
        "- **Queen's Hall** - Steinway B - before concerts - invoices to f@queenshall.example\n"
        "- **Dr Anand**, Ryton - Yamaha U1\n"
        "- **Bielby** - Blüthner baby grand - Alnmouth now\n"
        "- **St Mary's primary** - 2 uprights - once a year\n"
        "- **Harriet Lyle**, Riding Mill - Bechstein V\n"
    )
    names = [each.name for each in understood(text, title="Regular customers").entities]
    assert "Riding Mill" in names
    assert not [name for name in names if name != name.strip(" -")]
