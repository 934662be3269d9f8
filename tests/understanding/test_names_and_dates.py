"""Names, dates, languages, keywords and topics."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memctl.language.date_mentions import date_spans
from memctl.language.identification import identify_language
from memctl.records import EntityMention, Segment, SourceText
from memctl.understanding.entity_extraction import (
    extract_entities,
    is_named,
    with_contact,
    with_small_names,
    without_zones,
)
from memctl.understanding.importance_score import ImportanceInputs, score_importance, with_novelty
from memctl.understanding.keyword_extraction import choose_topics, extract_keywords
from memctl.understanding.text_outline import text_outline

TUESDAY = datetime(2026, 5, 12, 9, 30, tzinfo=UTC)


def named(text: str, language: str = "en") -> dict[str, str]:
    source = SourceText(text, "text/plain", "text/1")
    found = extract_entities(source, text_outline(source), language)
    return {entity.name: entity.type for entity in found}


# --- names ----------------------------------------------------------------------------------------


def test_people_places_and_organisations_are_told_apart() -> None:
    found = named("Yesterday Dr. Ruiz from Acme Ltd met Ann Lee in Berlin at the Bank of Spain.")
    assert found == {
        "Dr. Ruiz": "person",
        "Acme Ltd": "organization",
        "Ann Lee": "person",
        "Berlin": "place",
        "Bank of Spain": "organization",
    }


def test_greetings_and_words_that_begin_a_sentence_are_no_part_of_a_name() -> None:
    text = "Bonjour Madame Omnès, merci.\n\nEntre Mme Roux et la SARL Garnier Bois, rien."
    assert {*named(text, "fr")} == {"Madame Omnès", "Mme Roux", "SARL Garnier Bois"}
    assert {*named("Hola María, gracias.", "es")} == {"María"}
    found = extract_keywords(
        "Guten Tag Herr Brandl, vielen Dank. Am 3.3.25 kommt die Lieferung.", "de"
    )
    assert {*found} == {"Brandl", "Lieferung"}


def test_what_is_named_in_a_time_zone_alone_is_no_place() -> None:
    found = (EntityMention("Berlin", "place", 1), EntityMention("Europe", "place", 1))
    assert without_zones(found, "At 09:00 (Europe/Berlin), in Bern.") == ()
    assert without_zones(found, "At 09:00 (Europe/Berlin), in Berlin.") == found[:1]


def test_a_person_is_told_from_what_they_are_of() -> None:
    found = named("We heard from Camila Rojas of Huila Direct, and read of Joan of Arc.")
    assert {*found} == {"Camila Rojas", "Huila Direct", "Joan of Arc"}


def test_known_names_are_found_in_notes_written_in_small_letters() -> None:
    text = (
        "call w/ pieter, marek's cousin\n- josie + emre off to groningen in may, i will stay\n"
        "rose said no. Ann says frank talk, hope and olivia.txt"
    )
    source = SourceText(text, "text/plain", "text/1")
    found = with_small_names((EntityMention("Emre Kaya", "person", 1),), text, text_outline(source))
    assert {entity.name: entity.type for entity in found} == {
        "Pieter": "person",
        "Marek": "person",
        "Josie": "person",
        "Emre Kaya": "person",
        "Groningen": "place",
    }


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("Marek", "call marek's cousin", True),
        ("Marek", "see marek.txt", False),
        ("Rose", "prices rose again", False),
        ("Rose", "Rose said no", True),
        ("Acme", "the acme of it", False),
    ],
)
def test_a_part_of_a_document_has_the_names_that_it_writes_in_small_letters(
    name: str, text: str, expected: bool
) -> None:
    assert is_named(name, text) is expected


def test_a_capital_alone_makes_no_name_where_every_noun_has_one() -> None:
    text = (
        "Der Fahrer brachte die Proben ins Labor. Danach rief Frau Zänker an. "
        "Dauerhafte Tätigkeit von Herrn Menon. Holger Prätorius bleibt bei LabVelo in Utrecht."
    )
    assert named(text, "de") == {
        "Frau Zänker": "person",
        "Herrn Menon": "person",
        "Holger Prätorius": "person",
        "LabVelo": "other",
        "Utrecht": "place",
    }


def test_a_word_that_is_also_a_name_begins_a_sentence_without_naming_anybody() -> None:
    assert named("Mark the date. Rose bushes need water. Tobias accepted.") == {"Tobias": "person"}


def test_addresses_handles_and_identifiers_are_found() -> None:
    found = named("Ask ann@x.org or @bob, see https://x.org/a. Call `load_file()` first.")
    assert found == {
        "ann@x.org": "email",
        "@bob": "handle",
        "https://x.org/a": "url",
        "load_file": "identifier",
    }


def test_the_first_word_of_a_sentence_is_no_name_for_its_capital() -> None:
    assert (
        named("Looking forward to it. Great! Thanks 😊 Dinner was nice. On Monday, in May.") == {}
    )


def test_a_first_name_counts_for_the_full_name() -> None:
    text = "I called Ann Lee. Then Ann called back. Ann is fine."
    source = SourceText(text, "text/plain", "text/1")
    [ann] = extract_entities(source, text_outline(source))
    assert (ann.name, ann.count) == ("Ann Lee", 3)


def test_a_person_known_by_an_initial_keeps_its_dot() -> None:
    assert {*named("We asked Emma T. again. Nina is with Emma T.")} == {"Emma T.", "Nina"}
    assert {*named("We asked Emma T. again. Yes, Emma Tan knows.")} == {"Emma Tan"}


def test_companies_are_told_from_two_people_joined_by_the_same_mark() -> None:
    assert named("It was billed by Hartley & Sons and by Moss & Fenn Ltd.") == {
        "Hartley & Sons": "organization",
        "Moss & Fenn Ltd": "organization",
    }
    assert named("Then Emma Tan & Oliver Reed came.") == {
        "Emma Tan": "person",
        "Oliver Reed": "person",
    }


def test_what_is_called_after_a_saint_keeps_the_whole_name() -> None:
    text = "We moved from St Andrew's to St Luke's Hospital, and saw Oliver's Cafe."
    assert {*named(text)} == {"St Andrew's", "St Luke's Hospital", "Oliver"}


@pytest.mark.parametrize("title", ["Cllr", "Councillor", "Lt", "Mw"])
def test_a_title_makes_a_person(title: str) -> None:
    assert named(f"The road was raised by {title} Thornby.") == {f"{title} Thornby": "person"}


@pytest.mark.parametrize(
    ("name", "type_"),
    [
        ("Bishop Street", "place"),
        ("Archbishop Road", "place"),
        ("Bishop Thornby", "person"),
        ("Captain Hill", "person"),
        ("Dr Street", "person"),
    ],
)
def test_the_end_of_a_place_decides_before_a_title(name: str, type_: str) -> None:
    assert named(f"Yesterday we heard about {name}.") == {name: type_}


def test_a_word_of_the_language_begins_a_sentence_without_naming_anybody() -> None:
    assert named("Dan komt de bus niet meer.", "nl") == {}
    assert named("Ik sprak met Pieter en Dan.", "nl") == {
        "Pieter": "person",
        "Dan": "person",
    }


def test_a_mail_names_addresses_in_what_it_says_and_none_in_its_headers() -> None:
    text = "From: ann@x.org\nTo: bob@y.org\n\nAsk cy@z.org about it."
    source = SourceText(
        text,
        "message/rfc822",
        "email/2",
        segments=(Segment(0, 32, "properties"), Segment(33, len(text))),
    )
    found = extract_entities(source, text_outline(source))
    assert [entity.name for entity in found] == ["cy@z.org"]


def test_a_contact_names_who_it_is_of_and_not_what_their_job_is_called() -> None:
    text = "Quill Barrow\nQuill Barrow is with Tide.\nJob title of Quill Barrow: Deputy Dean\n"
    source = SourceText(
        text,
        "text/vcard",
        "contacts/1",
        title="Quill Barrow",
        metadata={"organisation": "Tide, Sales"},
    )
    found = with_contact(extract_entities(source, text_outline(source)), source)
    assert {entity.name: entity.type for entity in found} == {
        "Quill Barrow": "person",
        "Tide": "organization",
    }


def test_a_product_is_a_name_with_a_number() -> None:
    assert named("We moved from GPT-4 to the Boeing 747 simulator.") == {
        "GPT-4": "product",
        "Boeing 747": "product",
    }


def test_a_street_with_a_number_is_a_place_and_estates_are_a_firm() -> None:
    found = named("We moved from Lindengasse 9 to Via dei Pini 12, let by Orrin Estates.")
    assert found["Lindengasse 9"] == found["Via dei Pini 12"] == "place"
    assert found["Orrin Estates"] == "organization"


def test_shouted_text_names_nobody() -> None:
    assert named("PLEASE READ THE FOLLOWING CAREFULLY BEFORE YOU START") == {}


def test_who_speaks_is_a_person() -> None:
    assert named("Zorblax: I am fine\nQuux: are you?\nZorblax: yes") == {
        "Zorblax": "person",
        "Quux": "person",
    }


# --- dates ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "iso"),
    [
        ("2026-05-12", "2026-05-12"),
        ("on 12 May 2026", "2026-05-12"),
        ("May 12th, 2026", "2026-05-12"),
        ("am 3. Mai 2026", "2026-05-03"),
        ("12 de mayo de 2026", "2026-05-12"),
        ("13/05/2026", "2026-05-13"),
        ("3.4.2026", "2026-04-03"),
        ("2026年5月12日", "2026-05-12"),
        ("in May 2026", "2026-05"),
        ("Q3 2026", "2026-Q3"),
        ("2026-Q3", "2026-Q3"),
        ("week 12 of 2026", "2026-W12"),
        ("KW 12/2026", "2026-W12"),
        ("2026-W12", "2026-W12"),
        ("in 2026-W12", "2026-W12"),
        ("mid-2026", "2026"),
        ("since 1999", "1999"),
    ],
)
def test_a_written_date_becomes_iso(written: str, iso: str) -> None:
    [span] = date_spans(written)
    assert span.iso == iso
    assert written[span.start : span.end].strip()


@pytest.mark.parametrize(
    "text",
    [
        "31 February 2026",
        "30.-2.7.2026",
        "My W2 2024 form",
        "W12/2024",
        "05/06/2026",
        "you may 3 times",
        "2000 people",
        "v1.2.2026.4",
        "tomorrow",
    ],
)
def test_what_is_no_certain_date_is_left_out(text: str) -> None:
    assert date_spans(text) == []


@pytest.mark.parametrize(
    ("said", "iso"),
    [
        ("Wir kommen am nächsten Montag.", "2026-05-18"),
        ("Ich war gestern dort, morgen Nachmittag nicht.", "2026-05-11 2026-05-13"),
        ("Rendez-vous lundi prochain, ou après-demain.", "2026-05-18 2026-05-14"),
        ("Nos vemos el martes que viene o mañana por la mañana.", "2026-05-19 2026-05-13"),
        ("A partir du 1er avril 2025, et du 2 mai 2025.", "2025-04-01 2025-05-02"),
        ("Am 3.3.25 und vom 04.03.25 an.", "2025-03-03 2025-03-04"),
        ("Guten Morgen! Hier ist Python 3.11.25, Abschnitt 3.3.25, am 3.3.25.1.", ""),
        ("A las 8 de la mañana hace frío.", ""),
    ],
)
def test_dates_and_days_of_other_languages_are_known(said: str, iso: str) -> None:
    assert [span.iso for span in date_spans(said, TUESDAY)] == iso.split()


@pytest.mark.parametrize(
    ("said", "iso"),
    [
        ("tomorrow", "2026-05-13"),
        ("3 days ago", "2026-05-09"),
        ("this Friday", "2026-05-15"),
        ("next month", "2026-06"),
        ("next week", "2026-W21"),
        ("May 14th", "2026-05-14"),
        ("2 January", "2026-01-02"),
    ],
)
def test_a_relative_date_is_resolved_by_when_it_was_said(said: str, iso: str) -> None:
    assert [span.iso for span in date_spans(said, TUESDAY)] == [iso]


def test_next_friday_said_on_a_tuesday_may_be_either_and_is_left_out() -> None:
    assert date_spans("next Friday", TUESDAY) == []
    assert date_spans("next Monday", TUESDAY)[0].iso == "2026-05-18"


# --- language, keywords, topics -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("I think that this is what they wanted", "en"),
        ("Ich glaube, dass das auch nicht besser ist", "de"),
        ("je ne sais pas ce que tu veux", "fr"),
        ("no lo sé, pero está bien así", "es"),
        ("non so che cosa sia, ma è per lei", "it"),
        ("não sei o que é isso, mas ela está aqui", "pt"),
        ("ik weet niet wat dat is maar het is van hem", "nl"),
        ("jag vet inte vad det är men hon är här", "sv"),
        ("nie wiem co to jest, ale już się stało", "pl"),
        ("это очень хорошо, что ты пришёл", "ru"),
        ("це дуже добре, що ти є", "uk"),
        ("bu çok güzel ama ne olduğu belli değil", "tr"),
        ("今日は晴れです", "ja"),
        ("今天天气很好", "zh"),
        ("안녕하세요 여러분", "ko"),
        ("مرحبا كيف حالك", "ar"),
        ("ok lol", ""),
        ("", ""),
        ("12345 67890", ""),
    ],
)
def test_the_language_is_told_or_left_open(text: str, language: str) -> None:
    assert identify_language(text) == language


def test_keywords_are_phrases_of_the_text_that_differ() -> None:
    text = "Solar panels on the roof. The solar panels feed the battery. Battery storage is cheap."
    found = extract_keywords(text, "en", limit=3)
    assert found[0].lower() == "solar panels"
    assert all(phrase in text for phrase in found)
    assert len({word for phrase in found for word in phrase.lower().split()}) >= 3


def test_a_text_of_small_talk_has_no_keywords() -> None:
    assert extract_keywords("Hey, how are you? I am good, thanks. And you?", "en") == ()


def test_topics_begin_with_tags_and_draw_on_headings() -> None:
    text = "# Harbour dredging\n\n" + "The crew worked all day and all night. " * 12
    source = SourceText(
        text,
        "text/markdown",
        "markdown/1",
        (Segment(0, 18, "heading"), Segment(20, len(text), "prose")),
    )
    found = choose_topics(source, ("crew",), ("work-log",), "en")
    assert found == ("work log", "harbour dredging", "crew")


# --- importance -----------------------------------------------------------------------------------


def test_novelty_is_one_more_signal_and_the_sum_stays_exact() -> None:
    value, signals = score_importance(ImportanceInputs("Important: pay 300 by 3 May", dates=1))
    newer, with_it = with_novelty(signals, 0.37)
    assert "novelty" not in signals
    assert newer == sum(with_it.values()) > value


def test_everything_at_once_is_at_most_one() -> None:
    text = "remember urgent deadline important 1 2 3 4 5 6 7 8 9 10 " * 100
    _, signals = score_importance(ImportanceInputs(text, 99, 99, 99, 99))
    value, with_it = with_novelty(signals, 1.0)
    assert value == sum(with_it.values()) <= 1


@pytest.mark.parametrize(
    ("written", "iso"),
    [
        ("the fourth quarter of 2026", "2026-Q4"),
        ("septiembre. de 2026", "2026-09"),
        ("30th of september, de 2026", "2026-09-30"),
        ("2026年11月30日", "2026-11-30"),
    ],
)
def test_a_date_is_found_however_many_numbers_and_words_surround_it(written: str, iso: str) -> None:
    around = "12 rows of 3,400 values, 99 % of them fine; " * 40
    [span] = date_spans(f"{around}{written} {around}")
    assert (span.iso, span.start >= len(around)) == (iso, True)
    assert span.end <= len(around) + len(written)
