"""What a gist, topics and keywords say, and what they leave out."""

from __future__ import annotations

from pathlib import Path

from memctl.readers import read
from memctl.records import Segment, SourceText, Understanding
from memctl.understanding.builtin_understander import BuiltinUnderstander


def understood(text: str, segments: tuple[Segment, ...] = (), title: str = "") -> Understanding:
    source = SourceText(text, "text/plain", "text/1", segments=segments, title=title)
    return BuiltinUnderstander().understand([source])[0]


def segment(text: str, part: str, kind: str, heading: str = "") -> Segment:
    start = text.index(part)
    return Segment(start, start + len(part), kind, heading=heading)  # type: ignore[arg-type]


def test_front_matter_and_headings_stay_out_of_a_short_gist() -> None:
    text = "---\ntitle: Beekeeping\nauthor: Iris\n---\n# Bees\n\nWe decided to move the hives."
    found = understood(
        text,
        (
            segment(text, "# Bees", "heading"),
            segment(text, "We decided to move the hives.", "prose"),
        ),
        "Beekeeping",
    )
    assert found.gist == "We decided to move the hives."
    assert "iris" not in " ".join([*found.keywords, *found.topics]).lower()


def test_mail_headers_are_neither_gist_nor_keywords() -> None:
    head = "From: Jo Groot <jg@ex.org>\nTo: Ann Lee <ann@ex.org>\nSubject: Fence"
    body = "The fence at the lower field is broken."
    text = f"{head}\n\n{body}"
    found = understood(text, (segment(text, head, "properties"), segment(text, body, "prose")))
    assert found.gist == body
    assert not {"subject", "ex.org"} & {word.lower() for word in (*found.keywords, *found.topics)}


def test_a_document_of_properties_only_still_has_a_gist() -> None:
    text = "Artist: Ann\nDate: 2026-04-28"
    assert "Ann" in understood(text, (Segment(0, len(text), "properties"),)).gist


def test_a_title_line_is_not_glued_to_the_sentence_below() -> None:
    title = "Fit-out budget for Harbour Street"
    body = (
        "Prepared by Priya Nair for the owners of the workshop. The budget for Harbour Street "
        "holds a flue, a new floor and a bar for the workshop. The flue of the workshop costs "
        "6,200 euros. The new floor of Harbour Street costs half of the budget. Lunch was late."
    )
    text = f"{title}\n\n{body}"
    gist = understood(text, (Segment(0, len(text), "prose"),), title).gist
    assert f"{title} Prepared" not in gist
    assert "Harbour Street" in gist


def test_lines_without_a_mark_at_their_end_are_kept_apart() -> None:
    assert understood("# Shop\n- Oak boards\n- Two hinges").gist == "Oak boards. Two hinges"


def test_the_gist_of_several_sheets_names_each() -> None:
    stock = "item: honey; qty: 3\nitem: wax; qty: 4"
    people = "who: Ann; phone: 123"
    text = f"{stock}\n\n{people}"
    tables = (segment(text, stock, "table", "stock"), segment(text, people, "table", "People"))
    gist = understood(text, tables, "stock").gist
    assert gist == "stock: 2 rows of item, qty; People: 1 row of who, phone."


def test_topics_leave_out_dates_and_long_titles() -> None:
    text = "The flue is too short. " * 30
    found = understood(text, (Segment(0, len(text), "prose"),), "2026-05-13 team chat")
    assert "team chat" in found.topics
    assert not any("2026" in topic for topic in found.topics)
    long = understood(text, (Segment(0, len(text), "prose"),), "Site visit Harbour Street")
    assert "site visit harbour" not in long.topics


def test_phrases_hold_no_verbs() -> None:
    found = understood("Ann Lee prefers acacia honey. Mill Lane ends at Dock Road.")
    assert {"Ann Lee", "Mill Lane"} <= set(found.keywords)
    assert not any("prefers" in phrase or "ends" in phrase for phrase in found.keywords)


def test_a_row_that_takes_several_lines_is_counted_once(tmp_path: Path) -> None:
    table = tmp_path / "wide.csv"
    head = ",".join(f"column {number}" for number in range(120))
    row = ",".join(f"value {number}" for number in range(120))
    table.write_text("\n".join([head, *[row] * 7]))
    (source,) = read(table)
    assert source.text.count("\n") > 20
    assert BuiltinUnderstander().understand([source])[0].gist.startswith("7 rows of wide: ")
