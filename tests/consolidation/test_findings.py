"""What follows from notes of several days, one kind after another, in a real store."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import permutations
from typing import Any

import pytest
from msgspec.structs import replace

from memctl.consolidation import changes, insight_plan, totals, value_pairs
from memctl.consolidation.insight_drafts import Draft
from memctl.consolidation.known_insights import KnownInsight
from memctl.consolidation.statements import StemWeights, slots_of, statements
from memctl.consolidation.value_pairs import differing_pairs
from memctl.records import Memory

Note = Callable[..., Memory]
OTHERS = ("Bake the bread at 240 degrees.", "The cat sleeps on the stove.", "Read about moss.")


@pytest.fixture
def insights_of(base: Any, note: Note) -> Callable[..., dict[str, str]]:
    """Adds notes among others and returns the insights on them of a day, by kind."""

    def tell(*notes: Memory, today: str = "") -> dict[str, str]:
        if today:
            base.clock.now = datetime.fromisoformat(today).replace(tzinfo=UTC)
        others = [note(text, "2024-01-01", f"other{n}.md") for n, text in enumerate(OTHERS)]
        base.add(*notes, *others)
        return {item.kind: item.text for item in base.consolidator().run().insights}

    return tell


def fact(note: Note, text: str, day: str, source: str, **more: Any) -> Memory:
    return note(text, day, source, type_="fact", **more)


def rows(note: Note) -> list[Memory]:
    """A table of what was spent, as the reader of tables gives it."""
    lines = (
        "date: 2024-02-20; what: licence; category: rights; amount: 640.00",
        "date: 2024-03-02; what: timber; category: set; amount: 1,212.40",
        "date: 2024-05-02; what: paint; category: set; amount: 388.10",
    )
    table = note("\n".join(lines), "2024-06-01", "spring tour.csv")
    return [replace(table, row=1, title="spring tour")]


def test_a_table_that_comes_to_more_than_a_budget_is_told_with_both(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    budget = fact(note, "The budget for the spring tour is £2,000.", "2024-01-15", "plan.md")
    text = insights_of(*rows(note), budget)["total"]
    days = "20 February → 2 May 2024"
    assert f"3 entries come to 2,240.50 ({days}), over the budget of £2,000 by 240.50. " in text
    assert "“The budget for the spring tour is £2,000” (plan.md, 15 January 2024)" in text


def test_the_balance_of_a_bill_is_no_balance_of_the_table(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    (table,) = rows(note)
    paid = "date: 2024-05-09; what: balance; category: rights; amount: 10.00"
    carried = "what: balance; amount: 999.00"
    budget = fact(note, "The budget for the spring tour is £2,000.", "2024-01-15", "plan.md")
    text = insights_of(replace(table, text="\n".join((table.text, paid, carried))), budget)["total"]
    assert "4 entries come to 2,250.50 " in text


def test_a_category_has_a_limit_of_its_own(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    limit = fact(note, "The set must stay under 1,400.", "2024-01-15", "plan.md")
    assert (
        "Spring tour, set: 2 entries come to 1,600.50 " in insights_of(*rows(note), limit)["total"]
    )


def test_a_table_within_its_budget_is_not_told(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    budget = fact(note, "The budget for the spring tour is £2,500.", "2024-01-15", "plan.md")
    assert "total" not in insights_of(*rows(note), budget)


def test_a_budget_in_words_is_one_too(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    plan = fact(note, "For the spring tour the plan said two thousand.", "2024-01-15", "plan.md")
    assert ", over the plan of 2,000 by 240.50. " in insights_of(*rows(note), plan)["total"]


def hosting(note: Note, months: int, year: int = 2026) -> Memory:
    """What is paid for servers every month."""
    lines = (
        f"date: {year}-{month:02}-05; vendor: Nordwolke; what: servers; amount: 500.00"
        for month in range(1, months + 1)
    )
    other = f"date: {year}-02-07; vendor: Kartenhaus; what: tiles; amount: 90.00"
    table = note("\n".join((*lines, other)), f"{year}-07-20", "tools.csv")
    return replace(table, row=1, title="tools")


OF_THE_YEAR = "Nordwolke: the budget is 5,400 for the year."


@pytest.mark.parametrize(
    "said",
    [OF_THE_YEAR, "Nordwolke, the annual budget: 5,400.", "Nordwolke: at most 5,400 euros a year."],
)
def test_what_a_monthly_payment_comes_to_by_the_end_of_the_year_may_be_over_its_budget(
    insights_of: Callable[..., dict[str, str]], note: Note, said: str
) -> None:
    budget = fact(note, said, "2026-07-09", "talk.md")
    text = insights_of(hosting(note, 7), budget)["total"]
    assert "7 entries come to 3,500 (5 January → 5 July 2026); if it goes on at 500 a " in text
    assert "month, it will be 6,000 at the end of 2026, over the " in text


@pytest.mark.parametrize(("months", "year"), [(7, 2025), (4, 2026)])
def test_a_payment_that_may_have_stopped_is_not_told(
    insights_of: Callable[..., dict[str, str]], note: Note, months: int, year: int
) -> None:
    budget = fact(note, OF_THE_YEAR, f"{year}-07-09", "talk.md")
    assert "total" not in insights_of(hosting(note, months, year), budget)


@pytest.mark.parametrize(
    "said",
    [
        "Nordwolke: the budget is 5,400 in all.",
        "Nordwolke: the budget is 6,000 for the year.",
        "Nordwolke: the budget is 5,400 euros, decided at the annual meeting for the year.",
        "Nordwolke: the budget of the annual meeting is 5,400 euros.",
    ],
)
def test_a_payment_that_keeps_to_its_budget_is_not_told(
    insights_of: Callable[..., dict[str, str]], note: Note, said: str
) -> None:
    assert "total" not in insights_of(hosting(note, 7), fact(note, said, "2026-07-09", "talk.md"))


def test_a_table_of_two_years_tells_what_each_came_to(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    lines = [
        f"when: {year}-{month:02}-04; what: mooring; £: {amount}"
        for year, amount in ((2024, 100), (2025, 120))
        for month in (1, 3, 5, 7, 9)
    ]
    table = replace(note("\n".join(lines), "2025-10-01", "costs.csv"), row=1, title="boat costs")
    assert insights_of(table)["total"].startswith(
        "Boat costs: 5 entries of 2024 come to £500 (the last on 4 September 2024) and 5 entries "
        "of 2025 come to £600 (the last on 4 September 2025). "
    )
    mixed = replace(table, text=table.text.replace("£: 120", "£: 120; currency: EUR"))
    part = replace(table, text="\n".join(lines[:7]))
    assert "total" not in insights_of(mixed) | insights_of(part)


@pytest.mark.parametrize(
    ("title", "cells"),
    [
        ("sensor", "sensor: cellar; value: {}"),
        ("net worth", "what: all accounts; amount: {}"),
        ("savings", "account: giro; amount: {}"),
        ("shares", "what: Orion; price: {}"),
    ],
)
def test_what_is_no_payment_is_not_added_up_by_year(
    insights_of: Callable[..., dict[str, str]], note: Note, title: str, cells: str
) -> None:
    lines = [
        f"date: {year}-{month:02}-04; {cells.format(year + month)}"
        for year in (2024, 2025)
        for month in (1, 3, 5, 7, 9)
    ]
    table = replace(note("\n".join(lines), "2025-10-01", "table.csv"), row=1, title=title)
    assert "total" not in insights_of(table)


PRICES = (
    "item: sourdough; size: {}; price: {}",
    "item: rolls; price: 0.45",
    "item: bloomer; price: 2.10",
    "item: stollen; price: 10.00",
    "item: scone; price: 1.60",
)


def invoices_with(note: Note, rates: str) -> Memory:
    """A table of invoices, one a month, with the rate of each."""
    jobs = ("opera rigging", "conference sound", "choir microphones", "circus winches",
            "lecture projector", "ballet floor")  # fmt: skip
    lines = [
        f"date: 2024-0{month}-01; client: Harrow Hall; what: {job}; rate: {rate}"
        for month, (job, rate) in enumerate(zip(jobs, rates.split(), strict=False), 1)
    ]
    table = note("\n".join(lines), "2024-09-30", "invoices.csv")
    return replace(table, row=1, title="Invoices")


def test_a_rate_that_went_up_in_a_table_is_a_change(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    text = insights_of(invoices_with(note, "230 230 245 245 245 260"))["change"]
    days = "1 January → 1 March → 1 June 2024"
    assert text.startswith(f"Invoices: rate of Harrow Hall went from 230 to 245 to 260 ({days}). ")


@pytest.mark.parametrize("rates", ["230 245 260", "230 245 230 245", "0 0 245 245"])
def test_rates_of_different_jobs_are_no_change(
    insights_of: Callable[..., dict[str, str]], note: Note, rates: str
) -> None:
    assert "change" not in insights_of(invoices_with(note, rates))


def purchases(note: Note, *rows: str, columns: str = "supplier; item; price") -> Memory:
    """A table of what was bought, one row a month."""
    names = ("date", *columns.split("; "))
    lines = (
        "; ".join(
            f"{name}: {value}"
            for name, value in zip(names, (f"2024-0{month}-01", *row.split(", ")), strict=True)
        )
        for month, row in enumerate(rows, 1)
    )
    table = note("\n".join(lines), "2024-09-30", "purchases.csv")
    return replace(table, row=1, title="Purchases")


BOARDS, HINGES = "Brandt Stores, Oak boards, 40", "Brandt Stores, Brass hinges, 85"
PAINT = "Kelm Paints, Blue paint, {}"


@pytest.mark.parametrize(
    "rows",
    [
        (BOARDS, BOARDS, HINGES, HINGES, PAINT.format(12), PAINT.format(12)),
        (BOARDS, BOARDS.replace("Oak", "Elm"), HINGES, HINGES.replace("Brass", "Steel")),
    ],
)
def test_prices_of_different_items_of_one_supplier_are_no_change(
    insights_of: Callable[..., dict[str, str]], note: Note, rows: tuple[str, ...]
) -> None:
    assert "change" not in insights_of(purchases(note, *rows))


def test_a_price_of_one_of_several_items_of_a_supplier_is_a_change(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    dearer = BOARDS.replace("40", "44")
    text = insights_of(purchases(note, BOARDS, BOARDS, HINGES, HINGES, dearer, dearer))["change"]
    assert text.startswith("Purchases: price of Brandt Stores, Oak boards went from 40 to 44 ")


@pytest.mark.parametrize(
    ("column", "mark", "is_told"),
    [
        ("hours per week", "", False),
        ("heart rate", "", False),
        ("per week", "£", True),
        ("EUR per week", "", True),
        ("hourly rate", "", True),
    ],
)
def test_only_a_rate_of_money_is_told(
    insights_of: Callable[..., dict[str, str]], note: Note, column: str, mark: str, *, is_told: bool
) -> None:
    jobs = zip(("rigging", "microphones", "winches", "projector"), (10, 10, 25, 25), strict=True)
    lines = [f"Harrow Hall, {job}, {mark}{amount}" for job, amount in jobs]
    found = insights_of(purchases(note, *lines, columns=f"customer; task; {column}"))
    assert (f"{column} of Harrow Hall went from {mark}10 " in found.get("change", "")) is is_told


def test_what_became_of_invoices_does_not_part_their_rates(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    lines = [
        f"Harrow Hall, {said}" for said in ("paid, 230", "paid, 230", "open, 245", "open, 245")
    ]
    table = purchases(note, *lines, columns="client; status; rate")
    assert "rate of Harrow Hall went from 230 to 245 " in insights_of(table)["change"]


def price_lists(note: Note, one: str, other: str) -> list[Memory]:
    """Two lists with titles, of which the second has other prices, a new and a missing entry."""
    texts = (
        "\n".join((*PRICES, "item: bun; price: 1.10")).format("large", "3.90"),
        "\n".join((*PRICES, "item: bagel; price: 1.20")).format("large", "4.20"),
    )
    days = ("2025-01-02", "2025-01-01")
    return [
        replace(note(text, day, f"{title}.csv"), row=1, title=title)
        for text, day, title in zip(texts, days, (one, other), strict=True)
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("prices 2024", "prices 2025"),
        ("prices v9", "prices v10"),
        ("prices Feb 2025", "prices Sept 2025"),
    ],
)
def test_two_lists_of_prices_tell_what_is_new(
    insights_of: Callable[..., dict[str, str]], note: Note, one: str, other: str
) -> None:
    assert insights_of(*price_lists(note, one, other))["change"].startswith(
        f"1 of 5 entries that both have differ in numbers between {one}.csv and {other}.csv: "
        "sourdough 3.90 → 4.20; new: bagel; gone: bun. "
    )


def test_a_new_list_of_prices_is_compared_with_one_that_was_looked_at(
    base: Any, note: Note
) -> None:
    older, newer = price_lists(note, "prices 2024", "prices 2025")
    base.add(older)
    assert base.consolidator().run().examined == 1
    base.add(newer)
    assert [each.kind for each in base.consolidator().run().insights] == ["change"]


def drawn_list(note: Note, day: str, source: str, *rows: str, names: str = "who | dose") -> Memory:
    """A table that is drawn with bars below a heading, as in a note."""
    rule = "|".join("---" for _ in names.split("|"))
    text = "\n".join(["# What she takes", "", *(f"| {row} |" for row in (names, rule, *rows))])
    return replace(note(text, day, source), row=1, title="What she takes", doc_type="markdown")


def test_a_row_of_a_drawn_table_is_compared_with_that_of_a_newer_one(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    rows = ["apixaban | 5 mg", "ramipril | 2.5 mg", "statin | **40 mg**"]
    found = insights_of(
        drawn_list(note, "2026-01-04", "tablets Jan 2026.md", *rows),
        drawn_list(note, "2026-03-12", "tablets March 2026.md", "apixaban | 2.5 mg", *rows[1:]),
    )
    assert found["change"].startswith(
        "“apixaban, dose”: went from 5 mg to 2.5 mg (4 January → 12 March 2026). "
    )


@pytest.mark.parametrize(
    ("one", "other", "names", "before", "after"),
    [
        ("bread", "cake", "ingredient | amount", "flour | 500 g", "flour | 250 g"),
        ("trip to Rome", "trip to Oslo", "what | how long", "hotel | 3 nights", "hotel | 5 nights"),
        ("legs", "arms", "who | lifted", "Bob | 80 kg", "Bob | 81 kg"),
    ],
)
def test_rows_of_tables_of_two_things_are_no_change(
    insights_of: Callable[..., dict[str, str]],
    note: Note,
    one: str,
    other: str,
    names: str,
    before: str,
    after: str,
) -> None:
    tables = (
        drawn_list(note, "2026-01-04", f"{one}.md", before, "salt | 10 g", names=names),
        drawn_list(note, "2026-03-12", f"{other}.md", after, "salt | 5 g", names=names),
    )
    titled = (replace(each, title=name) for each, name in zip(tables, (one, other), strict=True))
    assert "change" not in insights_of(*titled)


def test_the_names_of_many_tables_are_read_once_each(
    note: Note, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[object] = []
    names = totals.names_and_versions
    monkeypatch.setattr(totals, "names_and_versions", lambda each: read.append(each) or names(each))
    tables = [
        drawn_list(note, "2026-01-04", f"pump {n}.md", "oil | 5 l", "water | 2 l")
        for n in range(50)
    ]
    found = statements(tables)
    totals.find_new_prices(found, StemWeights(found))
    assert len(read) <= 2 * len(tables)


def test_two_versions_of_a_drawn_table_tell_what_is_new_where_they_have_other_columns(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    rows = (
        "apixaban | {} mg | clots of the blood",
        "statin | 40 mg | too much fat in the arteries",
    )
    new = ("apixaban | 2.5 mg | halved, she is over eighty", "statin | 40 mg | as it was before")
    found = insights_of(
        drawn_list(
            note, "2026-01-04", "tablets.md", *(row.format(5) for row in rows),
            names="who | dose | what for",
        ),
        drawn_list(
            note, "2026-03-12", "tablets v2.md", *new, "losartan | 25 mg | instead",
            names="who | dose | is it new?",
        ),
    )  # fmt: skip
    assert found["change"].startswith(
        "1 of 2 entries that both have differ between tablets.md and tablets v2.md: "
        "apixaban 5 mg → 2.5 mg; new: losartan. "
    )


@pytest.mark.parametrize(
    ("names", "before", "after"),
    [
        ("who | taken with", "apixaban | water and bread", "apixaban | milk"),
        ("day | dose", "4 Jan | 5 mg", "4 Jan | 2.5 mg"),
        ("what | amount", "apixaban | 12.50", "apixaban | 19.20"),
        ("who | dose", "apixaban | 5 mg | more", "apixaban | 2.5 mg"),
    ],
)
def test_what_is_no_value_of_a_row_of_a_drawn_table_has_not_changed(
    insights_of: Callable[..., dict[str, str]], note: Note, names: str, before: str, after: str
) -> None:
    found = insights_of(
        drawn_list(note, "2026-01-04", "tablets Jan.md", before, "tea | 1", "tin | 1", names=names),
        drawn_list(note, "2026-03-12", "tablets Mar.md", after, "tea | 1", "tin | 1", names=names),
    )
    assert "change" not in found


@pytest.mark.parametrize(
    ("said", "is_new"),
    [
        ("They have halved the ramipril, so it's 1.25 now.", True),
        ("They have halved the apixaban and the ramipril, so it's 1.25 now.", False),
        ("If it gets worse the ramipril goes down, then it is 1.25 instead.", False),
        ("The ramipril has changed its box, 30 tablets in each now.", False),
    ],
)
def test_a_newer_note_on_a_row_of_a_list_says_that_its_value_has_changed(
    insights_of: Callable[..., dict[str, str]], note: Note, said: str, is_new: bool
) -> None:
    rows = ["apixaban | 5 mg", "ramipril | 2.5 mg", "statin | 40 mg"]
    found = insights_of(
        drawn_list(note, "2026-01-04", "tablets.md", *rows), note(said, "2026-04-20", "monday.md")
    )
    assert ("change" in found) is is_new
    if is_new:
        assert found["change"].startswith(
            "“ramipril, dose”: went from 2.5 mg to 1.25 (4 January → 20 April 2026); "
            "the list in tablets.md has the old value. "
        )


@pytest.mark.parametrize(
    ("entry", "names", "said", "is_new"),
    [
        ("Anna | 40", "name | age", "Anna's age is 41 now.", True),
        ("Anna | 40", "name | age", "Anna has a new flat, the rent rose and is 80 now.", False),
        ("Anna | 40", "name | desk", "Anna moved, her office is at 20 now.", False),
        ("paprika | 12", "what | boxes", "The paprika went up, the bag costs 8 now.", False),
        ("paprika | 12", "what | boxes", "The paprika went up, it's 14 now.", False),
        ("paprika | 3 €", "what | price", "The paprika went up, it costs 4 € now.", True),
        ("paprika | 3 €", "what | price", "The paprika knife went up, it's 4 € now.", False),
        ("paprika | 3 €", "what | price", "The paprika is 2 € off now.", False),
        ("paprika | 40", "plant | days", "The price of the paprika went up, it is 35 now.", False),
    ],
)
def test_a_value_of_something_else_in_a_note_is_none_of_an_entry(
    note: Note, entry: str, names: str, said: str, *, is_new: bool
) -> None:
    rows = (entry, "Bert | 7", "Carl | 9")
    found = statements(
        [
            drawn_list(note, "2026-01-04", "list.md", *rows, names=names),
            note(said, "2026-04-20", "monday.md"),
        ]
    )
    assert bool(totals.find_outdated_entries(found, StemWeights(found))) is is_new


def test_lists_of_two_shops_are_no_change(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    assert "change" not in insights_of(*price_lists(note, "bakery north", "bakery south"))


def test_what_happens_on_three_days_is_told_with_what_is_the_same(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    texts = (
        ("The dimmer rack tripped again when the fog machine came on.", "2024-01-15"),
        ("The dimmer rack tripped in scene three, fog machine running.", "2024-03-09"),
        ("Blackout, the dimmer rack is out again because of the fog machine.", "2024-05-18"),
    )
    text = insights_of(*(fact(note, said, day, f"{day}.md") for said, day in texts))["recurring"]
    assert text.startswith(
        "It happened on 3 days (15 January 2024, 9 March 2024 and 18 May 2024), "
    )
    assert "each time with “dimmer rack” and “fog machine”. " in text


@pytest.mark.parametrize(
    ("last", "happened"),
    [
        ("Will wrote that the dimmer rack tripped again, fog machine on.", True),
        ("The can of fog fluid by the fog machine fell and the dimmer rack tripped again.", True),
        ("Without the fog machine we can try the dimmer rack again.", False),
        ("With the fog machine on, the dimmer rack will trip again.", False),
    ],
)
def test_what_may_happen_again_has_not_happened_unless_a_name_or_noun_says_may(
    insights_of: Callable[..., dict[str, str]], note: Note, last: str, *, happened: bool
) -> None:
    texts = (
        ("The dimmer rack tripped when the fog machine came on.", "2024-01-15"),
        ("The dimmer rack tripped in scene three, fog machine running.", "2024-03-09"),
        (last, "2024-05-18"),
    )
    found = insights_of(*(fact(note, said, day, f"{day}.md") for said, day in texts))
    assert ("recurring" in found) is happened


def test_what_was_promised_and_is_still_missing_is_overdue_until_it_comes(
    insights_of: Callable[..., dict[str, str]], base: Any, note: Note
) -> None:
    promise = "Milly promised to send the programme proofs by 20 March."
    text = insights_of(
        fact(note, promise, "2024-03-09", "call.md"),
        fact(note, "Still no programme proofs from the printer.", "2024-03-26", "chat.md"),
    )["overdue"]
    days = "was spoken of on 9 March 2024 and is still open on 26 March 2024. "
    assert text.startswith(f"“programme proofs” {days}")
    assert promise.rstrip(".") in text


def test_what_has_come_is_not_overdue(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    texts = (
        ("Milly promised to send the programme proofs by 20 March.", "2024-03-09"),
        ("Still no programme proofs from the printer.", "2024-03-26"),
        ("The programme proofs arrived this morning.", "2024-03-28"),
    )
    assert "overdue" not in insights_of(
        *(fact(note, said, day, f"{day}.md") for said, day in texts)
    )


def insurance_of_a_van(note: Note) -> tuple[Memory, Memory]:
    """A day that is due, and a later note on something else."""
    due = "The van insurance with Towergate runs out on 31 July 2024."
    return (
        fact(note, due, "2024-04-02", "insurance.md"),
        fact(note, "The stage floor was painted black.", "2024-06-03", "later.md"),
    )


@pytest.mark.parametrize(
    ("day", "said"), [("2024-07-20", "is coming up"), ("2024-07-31", "is today")]
)
def test_a_day_that_is_due_is_a_deadline_up_to_that_day(
    insights_of: Callable[..., dict[str, str]], note: Note, day: str, said: str
) -> None:
    text = insights_of(*insurance_of_a_van(note), today=day)["deadline"]
    assert f"31 July 2024 {said} (as of" in text


def test_a_day_that_passed_without_a_word_is_overdue(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    text = insights_of(*insurance_of_a_van(note), today="2024-09-12")["overdue"]
    assert "31 July 2024 has passed with no later word on it (as of 12 September 2024)" in text


@pytest.mark.parametrize(
    ("due", "later", "day"),
    [
        ("Odette Brisson returns the kiln shelves by 6 May.", "Odette Brisson is ill.", "05-20"),
        (
            "The post of caretaker is taken by Odette Brisson from 6 May.",
            "The sky is grey.",
            "05-20",
        ),
        ("Her place is filled until 6 May by Odette Brisson.", "The sky is grey.", "05-20"),
    ],
)
def test_a_later_word_on_whom_a_day_is_about_and_a_change_of_staff_leave_nothing_overdue(
    insights_of: Callable[..., dict[str, str]], note: Note, due: str, later: str, day: str
) -> None:
    said = fact(note, due, "2024-04-02", "studio.md"), fact(note, later, f"2024-{day}", "diary.md")
    assert "overdue" not in insights_of(*said, today="2024-06-01")


@pytest.mark.parametrize("text", ["Due 28 September 2024.", "Sorry, due by 28 September 2024."])
def test_a_deadline_of_nothing_is_not_told(
    insights_of: Callable[..., dict[str, str]], note: Note, text: str
) -> None:
    assert insights_of(fact(note, text, "2024-09-12", "a.md"), today="2024-09-12") == {}


@pytest.mark.parametrize(
    "text", ["- Passport expires on 28 September 2024.", "rent due by 28 September 2024"]
)
def test_one_word_says_what_is_due(
    insights_of: Callable[..., dict[str, str]], note: Note, text: str
) -> None:
    found = insights_of(fact(note, text, "2024-09-12", "a.md"), today="2024-09-12")
    assert "is coming up" in found["deadline"]


REQUEST = "Your lease ends on 31 March 2026. Please {} by 15 November."


@pytest.mark.parametrize(
    ("asked", "sender", "subject", "is_open"),
    [
        ("answer", "Thea Brandvold", "Re: Lease of the yard", False),
        ("answer", "Anselm Kober", "Re: Lease of the yard", True),
        ("answer", "Thea Brandvold", "Window cleaning", True),
        ("pay the deposit", "Thea Brandvold", "Re: Lease of the yard", True),
    ],
)
def test_a_request_for_an_answer_is_met_by_a_later_mail_of_somebody_else_in_its_thread(
    insights_of: Callable[..., dict[str, str]],
    note: Note,
    asked: str,
    sender: str,
    subject: str,
    is_open: bool,
) -> None:
    request = mail(note, REQUEST.format(asked), "2025-10-20", "Anselm Kober", "Lease of the yard")
    answer = mail(note, "725 is too much for me.", "2025-10-21", sender, subject)
    assert ("overdue" in insights_of(*request, *answer, today="2025-12-03")) is is_open


def mail(note: Note, text: str, day: str, sender: str, subject: str) -> list[Memory]:
    """A mail as its reader gives it: its head, its text, and a memory of that."""
    head = f"From: {sender} <a@example.org>\nDate: {day}\nSubject: {subject}\n"
    source = f"{day}.eml"
    whole = note(text, day, source)
    start = len(head) + 1
    parts = (
        note(head, day, source),
        replace(whole, start=start, end=start + len(text)),
        replace(fact(note, text, day, source), start=start, end=start + len(text)),
    )
    return [replace(part, title=subject) for part in parts]


def test_who_did_not_come_is_overdue(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    text = insights_of(
        fact(
            note, "Barry Noakes was to inspect the winches on Wednesday.", "2024-04-20", "april.md"
        ),
        fact(
            note,
            "Winches: Barry did not come, he didn't show in May either.",
            "2024-06-14",
            "june.md",
        ),
        note("The invoice for the chipper went to Barry Noakes.", "2024-03-01", "march.md"),
    )["overdue"]
    assert "was spoken of on 20 April 2024 and is still open on 14 June 2024" in text


def test_a_day_that_a_later_note_tells_of_is_not_overdue(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    later = fact(note, "- 31 July: new cover, number BF-417", "2024-08-03", "august.md")
    assert "overdue" not in insights_of(*insurance_of_a_van(note), later)


def test_names_of_different_documents_that_somebody_ties_are_a_connection(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    text = insights_of(
        fact(note, "The secretary of the club is Gwen Pryce.", "2024-02-01", "club.md"),
        fact(note, "The lamps came from Tom Skelhorn at Stagelight.", "2024-06-26", "mail.eml"),
        fact(
            note, "Gwen Pryce's nephew Tom Skelhorn will run the lights.", "2024-05-30", "diary.md",
            entities=["Gwen Pryce", "Tom Skelhorn"],
        ),
    )["connection"]  # fmt: skip
    assert text.startswith("Gwen Pryce and Tom Skelhorn, both known from elsewhere (club.md and ")


@pytest.mark.parametrize(
    "text",
    [
        "2024-03-09 19:42:11 WARN dimmer[2] channel={} overcurrent",
        "See /usr/share/doc/dimmer/{} for the list of channels.",
        "def channel_{}(dimmer): return overcurrent",
        "dimmer version 1.{}.4 fixes the overcurrent of the channel",
    ],
)
def test_machines_tell_nothing(
    insights_of: Callable[..., dict[str, str]], note: Note, text: str
) -> None:
    numbers = zip((14, 16, 19), ("2024-01-15", "2024-03-09", "2024-05-18"), strict=True)
    assert insights_of(*(fact(note, text.format(n), day, f"{n}.md") for n, day in numbers)) == {}


def test_a_value_that_a_sentence_says_was_another_one_is_a_change(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    text = insights_of(
        fact(note, "Paid £574 to Harcourt for the marquee insurance.", "2023-05-02", "may.md"),
        fact(
            note, "The marquee insurance with Harcourt is £612, last year it was £574.",
            "2024-05-06", "renewal.eml",
        ),
    )["change"]  # fmt: skip
    assert "went from £574 to £612 (2 May 2023 → 6 May 2024). " in text
    assert "(may.md, 2 May 2023); " in text


def test_a_post_that_somebody_else_has_got_is_a_change(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    held = fact(note, "Our contact at the bank is Marek Holt.", "2024-01-15", "a.md")
    new = fact(note, "Ida takes over from Marek as our contact at the bank.", "2024-05-02", "b.md")
    text = insights_of(held, new)["change"]
    days = "15 January → 2 May 2024"
    assert text.startswith(f"“Contact at the bank”: went from Marek Holt to Ida ({days}). ")


def test_a_post_that_several_have_at_a_time_has_not_changed(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    texts = ("Waiter: Peter", "Waiter: Maria", "New waiter: Sarah")
    days = ("2024-01-15", "2024-01-15", "2024-05-02")
    notes = [fact(note, text, day, f"{text}.md") for text, day in zip(texts, days, strict=True)]
    assert "change" not in insights_of(*notes)


POSTS = [
    (("Gym", "Julia leads the warm-up."), ("Running group", "Peter leads the warm-up now.")),
    (
        ("Parents' evening", "Sarah does the shopping on Mondays."),
        ("Party plan", "Simon does the shopping from now on to the party."),
    ),
    (("Choir committee", "Anna is our treasurer."), ("Allotment", "Ben is our new treasurer.")),
    (("", "At Kestrel Anna is our trainer."), ("", "At Heron Ltd Ben is our new trainer.")),
    (
        ("Bowls club", "Ida is our new secretary."),
        ("Memories of grandfather", "In 1998 Walter was our new secretary, and he typed it all."),
    ),
]


def titled(note: Note, text: str, day: str, title: str, source: str) -> Memory:
    return replace(fact(note, text, day, source), title=title, heading=title)


@pytest.mark.parametrize(("earlier", "later"), POSTS)
def test_a_post_of_something_else_is_another_one(
    insights_of: Callable[..., dict[str, str]],
    note: Note,
    earlier: tuple[str, str],
    later: tuple[str, str],
) -> None:
    held = titled(note, earlier[1], "2024-01-15", earlier[0], "a.md")
    assert "change" not in insights_of(held, titled(note, later[1], "2025-05-02", later[0], "b.md"))


@pytest.mark.parametrize(
    ("title", "text", "others", "words"),
    [
        ("Minutes of the choir", "Ben is our new treasurer.", (), "from Anna to Ben"),
        ("News of May", "Ben is our new treasurer.", (), "from Anna to Ben"),
        ("Allotment", "Ben takes over from Anna as treasurer.", (), "from Anna to Ben"),
        ("Allotment", "Ben is our new treasurer.", ("Ida",), "from Ida to Ben"),
        ("News of May", "Ben is our new treasurer.", ("Ida",), ""),  # of which of them?
    ],
)
def test_posts_of_one_name_are_told_apart_by_what_their_titles_are_about(
    insights_of: Callable[..., dict[str, str]],
    note: Note,
    title: str,
    text: str,
    others: tuple[str, ...],
    words: str,
) -> None:
    notes = [
        titled(note, "Anna is our treasurer.", "2024-01-15", "Choir", "a.md"),
        titled(note, text, "2024-05-02", title, "b.md"),
    ]
    for name in others:
        other = f"{name} is our treasurer."
        notes.append(titled(note, other, "2024-02-02", "Allotment", f"{name}.md"))
    said = insights_of(*notes).get("change", "")
    assert words in said
    assert bool(words) == bool(said)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("The bins go out on Mondays.", "Bins are Tuesdays now.", "“Bins”: went from Monday to T"),
        (
            "Bin day is Monday.",
            "They have changed the bin day to Tuesday.",
            "“Bin”: went from Monday to Tuesday (",
        ),
        (
            "The house insurance is with Larkfield.",
            "The house insurance is with Aviva now.",
            "“House insurance”: went from Larkfield to Aviva (",
        ),
        (
            "We buy our flour from Miller & Sons.",
            "We get our flour from Hargreave instead of Miller & Sons.",
            "“Flour”: went from Miller & Sons to Hargreave (",
        ),
        (
            "The jobs all run over RabbitMQ.",
            "We switched the jobs from RabbitMQ to NATS last week.",
            "“Jobs”: went from RabbitMQ to NATS (",
        ),
        (
            "The tools are kept in the shed.",
            "The tools are kept in the cellar now.",
            "“Tools kept”: went from shed to cellar (",
        ),
        ("The bins go out on Mondays.", "The nurse comes on Tuesdays now.", ""),
        ("Swimming is on Mondays.", "Swimming for the little ones is on Fridays now.", ""),
        ("The house insurance is with Larkfield.", "The car insurance is with Aviva now.", ""),
        ("The jobs run over RabbitMQ.", "We could switch the jobs from RabbitMQ to NATS.", ""),
        ("The tools are kept in the shed.", "The tools are in a bad state now.", ""),
        ("The nurse comes every Wednesday.", "The nurse is off on Friday this week now.", ""),
        ("The jobs all run over RabbitMQ.", "The jobs don't run over NATS, not now.", ""),
        ("The jobs all run over RabbitMQ.", "None of the jobs run over NATS now.", ""),
        ("Yoga is on Mondays.", "We also have yoga on Thursdays now.", ""),
        ("Yoga is on Mondays.", "There is yoga on Thursdays now.", ""),
        ("The app runs on Linux.", "The app runs on Windows now, too.", ""),
        ("Our flight goes to Lisbon.", "Our flight is with Ryanair now.", ""),
        ("The server runs on Debian.", "The server runs at Hetzner now.", ""),
        ("The parcel comes from Berlin.", "The parcel comes from Larkfield now.", ""),
        ("The bins of Aunt Rosa go out on Mondays.", "The bins go out on Tuesdays now.", ""),
        (
            "Our flight is with Ryanair.",
            "Our flight is with Lufthansa now.",
            "“Flight”: went from Ryanair to Lufthansa (",
        ),
    ],
)
def test_a_weekday_a_firm_or_a_place_that_is_another_one_now_has_changed(
    insights_of: Callable[..., dict[str, str]], note: Note, before: str, after: str, said: str
) -> None:
    notes = (fact(note, before, "2025-01-15", "a.md"), fact(note, after, "2025-05-02", "b.md"))
    found = insights_of(*notes).get("change", "")
    assert bool(found) == bool(said)
    assert found.startswith(said)


def test_a_sentence_on_what_is_new_is_compared_with_those_on_the_same_thing_alone(
    note: Note, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []
    is_replaced = changes._is_replaced
    monkeypatch.setattr(
        changes, "_is_replaced", lambda *given: seen.append(given) or is_replaced(*given)
    )
    days = ((n, f"2025-{1 + n % 12:02}-{1 + n % 28:02}") for n in range(100))
    found = statements(
        fact(note, f"The club x{n} is on Mondays now.", day, f"{n}.md") for n, day in days
    )
    changes.find_resettled(found, StemWeights(found))
    assert len(seen) <= 2 * len(found)


def test_it_is_not_known_which_of_two_firms_a_later_one_replaces(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    texts = (
        "The house insurance is with Larkfield.",
        "The car insurance is with Parrot Mutual.",
        "The insurance is with Aviva now.",
    )
    days = ("2025-01-15", "2025-01-16", "2025-05-02")
    notes = [fact(note, text, day, f"{day}.md") for text, day in zip(texts, days, strict=True)]
    assert "change" not in insights_of(*notes)


def test_what_one_sentence_says_by_itself_is_no_insight(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    text = "The marquee insurance with Harcourt is £612, last year it was £574."
    assert insights_of(fact(note, text, "2024-05-06", "renewal.eml")) == {}


def test_a_day_that_was_put_off_is_no_deadline(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    texts = (
        "The deadline of the Orion tender is 5 June 2024.",
        "The deadline of the Orion tender was postponed from 5 June 2024 to 19 June 2024.",
    )
    notes = (replace(fact(note, text, "2024-05-28", "call.md"), importance=0.9) for text in texts)
    assert "deadline" not in insights_of(*notes)


@pytest.mark.parametrize(
    ("words", "value", "title"),
    [
        ("The rent is going up to 71 from October", "71", "rent"),
        ("fee goes", "12", "fee"),
        ("will honour their price of £760 if signed in", "£760", "honour their price"),
        ("the harbour fee paid each month", "£12", "harbour fee"),
        ("250 a month not 200", "250", "250 a month not 200"),
        ("It is now", "4", "It is now"),
    ],
)
def test_a_change_is_called_by_what_changed_and_not_by_the_sentence_of_its_value(
    words: str, value: str, title: str
) -> None:
    assert changes._without_values(words, [value], "en") == title


def test_a_price_is_not_compared_with_a_bare_number_unless_it_is_said_to_be_new(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    bare = fact(note, "Granny Ottilie 90 is on Friday at the hall.", "2025-06-15", "a.md")
    won = fact(note, "Granny Ottilie won 41 euros off me at cards.", "2025-09-01", "b.md")
    assert "change" not in insights_of(bare, won)


def test_a_day_that_would_have_been_due_is_not_overdue(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    lapse = "Your contract as a lecturer would have run out on 30 June 2026, so it must be new."
    later = note("The geese came back to the weir.", "2026-07-12", "b.md")
    assert "overdue" not in insights_of(fact(note, lapse, "2026-05-02", "a.md"), later)


def test_a_speaker_is_not_whom_she_calls_her(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    said = "Helga: She moves to Porto because of her sister Ludmila, a baker."
    names = ("Helga", "Ludmila")
    notes = [fact(note, said, "2024-01-05", "a.md", entities=names)]
    notes.append(note("A letter from Helga came.", "2024-02-05", "b.md", entities=names[:1]))
    notes.append(note("The oven of Ludmila is new.", "2024-03-05", "c.md", entities=names[1:]))
    assert "connection" not in insights_of(*notes)


def test_the_measures_of_a_thing_are_no_values_of_their_own() -> None:
    found = slots_of("Beam B1 is 203 x 133, not 203 x 203 mm: 4 x 2.5 m for £385, 12 bolts")
    assert [slot.value.text for slot in found] == ["£385", "12 bolts"]


def test_a_value_that_is_said_again_has_not_changed(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    bill = fact(note, "The vet's bill is below the insurer's excess of 350.", "2024-05-06", "a.md")
    letter = "The insurer's renewal: premium £341, excess £350, vet's fees covered."
    assert "change" not in insights_of(bill, fact(note, letter, "2025-05-06", "b.md"))


def test_a_price_that_a_closely_related_sentence_replaces_has_changed(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    books = "Books of ten visitor vouchers cost £14, at most six books a year."
    text = insights_of(
        fact(note, books, "2024-04-01", "terms.html"),
        fact(note, "Visitor vouchers go to £16 a book.", "2025-01-16", "minutes.txt"),
    )["change"]
    assert "went from £14 to £16 (1 April 2024 → 16 January 2025). " in text


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Front brake pads for the van cost £40.", "Rear brake pads for the van cost £48."),
        ("The Vexham deposit is £900.", "The Vexham rent is £450."),
        ("The small mower costs £300 to hire.", "The large mower costs £420 to hire."),
        ("The winter price of the hall is £30.", "The summer price of the hall is £42."),
    ],
)
def test_a_price_of_something_else_is_not_surely_a_change(
    note: Note, first: str, second: str
) -> None:
    notes = fact(note, first, "2024-04-01", "a.md"), fact(note, second, "2025-01-16", "b.md")
    found = statements(notes)
    [pair] = [
        pair
        for pair in differing_pairs(found, StemWeights(found))
        if pair.earlier is not pair.later
    ]
    assert changes._has_replaced_word(pair)


def test_a_stay_from_one_day_to_another_is_no_change(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    text = "From now on Milly answers the phone. Rhys is in Tenby from 10 July to 2 August."
    assert "change" not in insights_of(fact(note, text, "2024-06-02", "june.md"))


def test_a_day_that_is_put_off_twice_is_told_as_one_series(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    text = insights_of(
        fact(note, "The trapdoor inspection is on 4 March.", "2024-02-01", "plan.md"),
        fact(note, "Trapdoor inspection put off to 8 April, he is ill.", "2024-03-01", "call.md"),
        fact(note, "Trapdoor inspection not on 8 April either, now 20 May.", "2024-04-05", "b.md"),
    )["change"]
    days = "1 February → 1 March → 5 April 2024"
    assert f"went from 4 March to 8 April to 20 May ({days}). " in text


VISIT = "Hollins stables is on Tuesday, {} 2024, from 08:30 to 15:00."


def test_two_visits_are_no_change_unless_the_first_is_called_off(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    first = fact(note, VISIT.format("24 February"), "2024-02-24", "a.ics")
    second = fact(note, VISIT.format("31 March"), "2024-03-31", "b.ics")
    assert "change" not in insights_of(first, second)


def chat(note: Note, *turns: tuple[str, str]) -> list[Memory]:
    """The turns of one chat, each with its day."""
    return [
        replace(note(f"Ann: {text}", day, "chat.txt"), id=f"m_{n}", turn=n, speaker="Ann")
        for n, (day, text) in enumerate(turns)
    ]


def test_a_new_day_in_a_chat_moves_the_only_one_that_was_ahead(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    had = ("2025-02-10", "He has his date for the knee: Thursday 6 March, at the clinic.")
    new = ("2025-03-03", "He has a fever, so they sent him home. New date is the 27th.")
    text = insights_of(*chat(note, had, new))["change"]
    assert text.startswith("“date for the knee”: went from 6 March to the 27th (")
    assert "”: went from 6 March to the 27th " in text


def test_a_new_day_in_a_chat_of_two_plans_may_be_of_either(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    had = ("2025-02-10", "He has his date for the knee: Thursday 6 March, at the clinic.")
    other = ("2025-02-12", "The boiler gets its service on 20 March.")
    new = ("2025-03-03", "He has a fever, so they sent him home. New date is the 27th.")
    assert "change" not in insights_of(*chat(note, had, other, new))


def test_the_days_of_a_long_chat_are_read_once_each(
    note: Note, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[object] = []
    day_of = value_pairs._day_of
    monkeypatch.setattr(value_pairs, "_day_of", lambda *given: read.append(given) or day_of(*given))
    turns = [
        (f"2026-0{month}-{day:02}", f"Delivery {day} was moved to {day} October 2026.")
        for month in range(1, 7)
        for day in range(1, 28)
    ]
    list(value_pairs.rescheduled_pairs(statements(chat(note, *turns))))
    assert len(read) <= 4 * len(turns)


KNEE = ("2026-04-01", "Dad has his knee operation on 20 April 2026 at the Weston clinic.")


def memories_of_chat(note: Note, *turns: tuple[str, str]) -> list[Memory]:
    """Turns that were kept as memories."""
    return [replace(each, level="memory", type="fact") for each in chat(note, *turns)]


def test_a_new_day_of_something_else_in_a_chat_moves_no_other(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    new = ("2026-04-05", "The car service got postponed, it is on the 27th now.")
    assert "change" not in insights_of(*memories_of_chat(note, KNEE, new))


def test_a_day_that_moved_is_called_by_what_is_on_it_and_not_by_who_says_so(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    new = ("2026-04-05", "The knee operation got postponed, it is on the 27th now.")
    text = insights_of(*memories_of_chat(note, KNEE, new))["change"]
    assert text.startswith("“knee operation”: went from 20 April 2026 to the 27th ")


def letter(note: Note, day: str, sender: str, to: str, subject: str, text: str) -> list[Memory]:
    """The head and the body of a mail."""
    head = f"From: {sender} <{sender.lower()}@example.org>\nTo: {to}@example.org\n"
    head += f"Subject: {subject}"
    whole = replace(note(f"{head}\n\n{text}", day, f"{day}.eml"), title=subject)
    start, end = len(head) + 2, len(whole.text)
    return [
        replace(whole, id=f"{whole.id}a", text=head, end=len(head)),
        replace(whole, id=f"{whole.id}b", text=text, start=start, end=end),
    ]


EXAM = "Hello, the violin exam will take place on 20 March 2026 in Leeds. Can you drive me?"


@pytest.mark.parametrize("sender", ["Carl", "Ann"])
def test_a_mail_that_is_sorry_about_something_else_moves_no_day(
    insights_of: Callable[..., dict[str, str]], note: Note, sender: str
) -> None:
    text = "Hello, sorry, I am on holiday until 25 March 2026 so the tax form has to wait."
    asked = letter(note, "2026-03-02", "Ann", "bob", "Question", EXAM)
    told = letter(note, "2026-03-05", sender, "bob", "Re: Question", text)
    assert "change" not in insights_of(*asked, *told)


def test_mails_of_one_subject_between_other_people_move_no_day(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    text = "Hello, the new date is 25 March 2026."
    asked = letter(note, "2026-03-02", "Ann", "bob", "Question", EXAM)
    told = letter(note, "2026-03-05", "Carl", "bob", "Re: Question", text)
    assert "change" not in insights_of(*asked, *told)


@pytest.mark.parametrize(
    ("sender", "to", "text"),
    [
        ("Ann", "bob", "Hello, the new date is 25 March 2026."),
        ("Bob", "ann", "Sorry, they say that the exam will be on 25 March 2026."),
    ],
)
def test_a_mail_moves_the_day_of_one_between_the_same_people(
    insights_of: Callable[..., dict[str, str]], note: Note, sender: str, to: str, text: str
) -> None:
    asked = letter(note, "2026-03-02", "Ann", "bob", "Question", EXAM)
    told = letter(note, "2026-03-05", sender, to, "Re: Question", text)
    said = insights_of(*asked, *told)["change"]
    assert "went from 20 March 2026 to 25 March 2026" in said
    assert not said.startswith("“Hello”")


def test_days_from_which_prices_hold_are_no_day_that_moved(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    old = fact(note, "From 1 March 2026 a leech costs £9.95.", "2026-02-12", "a.md")
    new = fact(
        note, "New price: £10.60 per leech from 14 September 2026.", "2026-02-20", "b.md"
    )  # fmt: skip
    text = insights_of(old, new)["change"]
    assert "went from £9.95 to £10.60" in text
    assert "went from 1 March" not in text


@pytest.mark.parametrize(
    ("title", "is_compared"), [("New owner of Starlite", True), ("Kegel Corner", False)]
)
def test_values_of_two_customers_are_not_compared(
    note: Note, title: str, is_compared: bool
) -> None:
    old = fact(note, "Contract on pinsetters: 480 a month.", "2025-01-15", "a.md")
    new = fact(note, "With the new prices the contract on pinsetters is 520.", "2025-06-17", "b.md")
    visits = note("We drove to Starlite Lanes and then to Kegel Corner.", "2025-03-01", "c.md")
    found = statements([replace(old, title="Starlite Lanes"), replace(new, title=title), visits])
    assert bool(differing_pairs(found, StemWeights(found))) is is_compared


@pytest.mark.parametrize(
    ("about", "is_same"), [("number contract", False), ("number code", True), ("number", False)]
)
def test_insights_on_one_kind_of_value_are_not_the_same_for_that(
    note: Note, about: str, is_same: bool
) -> None:
    source = fact(note, "Contract: 480 a month. The code is 3391.", "2025-01-15", "a.md")
    parts = ("change", about, "", "", (source,), (), 0.5, 0.5, "", False)
    known = KnownInsight(
        "i", "change", "number code lockbox", "", "", frozenset({source.id}), 1, False
    )
    assert insight_plan._same_thing(known, Draft(*parts)) is is_same


def test_a_change_that_a_sentence_states_is_confirmed_by_the_former_value_with_its_currency(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    old = fact(note, "Callout fee: 85 euros, with the first half hour.", "2025-01-10", "a.md")
    new = fact(
        note, "From 1 June the callout fee goes up from 85 to 98 euros.", "2025-05-02", "b.md"
    )
    assert "went from 85 euros to 98 euros" in insights_of(old, new)["change"]


def test_a_visit_that_was_called_off_has_moved(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    gone = f"{VISIT.format('24 February')} Status of Hollins stables: cancelled."
    first = fact(note, gone, "2024-02-24", "a.ics")
    second = fact(note, VISIT.format("31 March"), "2024-03-31", "b.ics")
    assert "went from 24 February 2024 to 31 March 2024" in insights_of(first, second)["change"]


def test_two_things_that_both_go_from_one_value_to_another_are_no_series(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    rent = "From 1 January Unit 7 goes from 465 to 510 a month, that includes the service charge."
    loan = (
        "Imogen Fell on the phone: our 1.89 runs out on 31 October and the best she can hold for "
        "us today is 4.39, so the payment goes from £812 to £1,046."
    )
    told = insights_of(
        fact(note, rent, "2024-10-22", "rent.md"), fact(note, loan, "2025-06-02", "loan.md")
    )
    assert "£812" not in told.get("change", "")


def entry(note: Note, text: str, day: str, title: str) -> Memory:
    """An entry of a calendar, as its reader gives it."""
    return replace(fact(note, text, day, f"{day}.ics"), title=title, doc_type="other")


def test_an_entry_that_is_called_off_moves_to_the_only_other_one_of_its_title(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    entries = [
        entry(note, f"{title} is on Wednesday, {day}, at 07:30.", iso, title)
        for title, day, iso in (
            ("Sandhu oak - CANCELLED bats", "8 October 2025", "2025-10-08"),
            ("Sandhu oak (platform)", "5 November 2025", "2025-11-05"),
        )
    ]
    told = insights_of(*entries)["change"]
    assert told.startswith("“Sandhu oak”: went from 8 October 2025 to 5 November 2025")


def test_a_lesson_that_is_called_off_is_not_moved_to_the_next_one(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    entries = [
        entry(note, f"{title} is on Wednesday, {day} October 2025, at 07:30.", iso, title)
        for title, day, iso in (
            ("Sculling lesson - cancelled", "8", "2025-10-08"),
            ("Sculling lesson", "15", "2025-10-15"),
            ("Sculling lesson", "22", "2025-10-22"),
        )
    ]
    assert "change" not in insights_of(*entries)


STAY = "Nationals is from Friday, 17 July 2026 to Sunday, 19 July 2026, at Holme Pierrepont."


@pytest.mark.parametrize(
    ("one", "other", "is_told"),
    [
        (STAY, "Bloods is on Friday, 17 July 2026, at 14:00.", True),
        (STAY, "Bloods is on Friday, 17 July 2026, at 14:00, at Holme Pierrepont.", False),
        (STAY, "Bloods is on Monday, 20 July 2026, at 14:00.", False),
        (STAY.replace(", at Holme Pierrepont", ""), "Bloods is on 17 July 2026, at 14:00.", False),
        (
            "Nationals is on Friday, 17 July 2026, from 13:00 to 15:00 (Europe/London).",
            "Bloods is on Friday, 17 July 2026, at 14:00 (Europe/London).",
            True,
        ),
        (
            "Nationals is on Friday, 17 July 2026, from 13:00 to 14:00.",
            "Bloods is on Friday, 17 July 2026, at 14:00.",
            False,
        ),
        (STAY, "Bloods is on Friday, 17 July 2026, at 14:00.\nStatus of Bloods: cancelled.", False),
    ],
)
def test_entries_of_a_calendar_that_are_ahead_at_one_time_are_told(
    insights_of: Callable[..., dict[str, str]], note: Note, one: str, other: str, is_told: bool
) -> None:
    told = insights_of(
        entry(note, one, "2026-07-17", "Nationals"),
        replace(entry(note, other, "2026-07-17", "Bloods"), id="m_2", document_id="d_2"),
        today="2026-07-01",
    )
    said = told.get("connection", "")
    assert said.startswith("Two entries of the calendar are at one time") == is_told


def test_days_in_the_minutes_of_one_committee_are_no_series(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    items = (
        ("Winifred applies to the trust, deadline 30 November.", "2023-10-14"),
        ("Squirrel survey booked for 10 December.", "2023-12-02"),
        ("Scaffolding starts now on Monday 23 February.", "2024-01-15"),
    )
    minutes = [
        replace(fact(note, text, day, f"{day}.md"), title="Belfry Repair Subgroup of St Milburga")
        for text, day in items
    ]
    assert "change" not in insights_of(*minutes)


def test_a_title_begins_and_ends_with_whole_words(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    barn = "The barn is free for the bells from the 28th but must be empty by 1 June."
    said = replace(fact(note, barn, "2024-05-14", "barn.md"), importance=0.9)
    text = insights_of(said, today="2024-05-14")["deadline"]
    assert text.split("”")[0].removeprefix("“") in barn
    assert not text.split("”")[0].endswith(" th")


def test_the_day_of_an_entry_is_not_what_changed_in_it(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    before = "3 March 2024: The lease of the office ends on 31 May 2024."
    after = "9 May 2024: The lease of the office now ends on 30 June 2024."
    notes = (fact(note, before, "2024-03-03", "a.md"), fact(note, after, "2024-05-09", "b.md"))
    text = insights_of(*notes)["change"]
    assert "went from 31 May 2024 to 30 June 2024 " in text


def test_what_was_the_same_each_time_may_stand_in_the_next_sentence(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    texts = (
        ("The cellar flooded after the storm. Gale from the estuary all night.", "2024-01-15"),
        (
            "The cellar flooded again after a storm, pumped till noon. The gale came up the"
            " estuary.",
            "2024-03-09",
        ),
        ("Estuary gale. After the storm we found the cellar flooded.", "2024-05-18"),
    )
    text = insights_of(*(fact(note, said, day, f"{day}.md") for said, day in texts))["recurring"]
    assert "“Estuary gale”" in text.partition(". “")[0]


def test_what_stems_weigh_together_does_not_depend_on_their_order() -> None:
    stems = ("cellar", "flood", "estuari", "gale", "morn")
    weights = StemWeights(())
    assert len({weights.sum(order) for order in permutations(stems)}) == 1


def test_who_only_tells_that_somebody_is_married_is_not_connected(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    found = insights_of(
        note("The meeting was chaired by Ned Astley.", "2024-01-02", "minutes.md"),
        note("The keys for the hall came from Lynne Parry.", "2024-01-03", "keys.md"),
        fact(note, "Lynne told me he is married to Ned Astley's cousin.", "2024-02-03", "diary.md"),
    )
    assert "connection" not in found


def test_whose_aunt_somebody_is_may_be_said_by_a_pronoun(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    text = insights_of(
        fact(note, "Carys Bevan mends the curtains.", "2024-02-01", "curtains.md"),
        fact(note, "The piano tuner is Osian.", "2024-06-26", "piano.md"),
        fact(
            note, "Spoke to Carys Bevan about the hem. Her uncle is Osian, of all people.",
            "2024-07-30", "diary.md", entities=["Carys Bevan", "Osian"],
        ),
    )["connection"]  # fmt: skip
    assert text.startswith("Carys Bevan and Osian, both known from elsewhere (")


def test_my_sister_is_that_of_who_sent_the_mail(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    head = "From: Rhodri Pugh <rhodri@example.org>\nTo: us@example.org\nSubject: keys"
    text = "My sister Nerys has the keys to the store."
    mail = fact(note, text, "2024-05-30", "keys.eml", entities=["Nerys", "Rhodri Pugh"])
    evidence = note(f"{head}\n", "2024-05-30", "keys.eml")
    said = replace(mail, level="evidence", type="passage", id=f"{mail.id}p", start=100, end=160)
    connection = insights_of(
        evidence,
        said,
        fact(note, "Nerys sews the costumes.", "2024-02-01", "costumes.md"),
        fact(note, "Rhodri Pugh sells us timber.", "2024-03-01", "timber.md"),
    )["connection"]
    assert connection.startswith("Rhodri Pugh and Nerys, both known from elsewhere (")


def test_a_newsletter_yields_no_insight(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    head = "From: Stage News <news@example.org>\nTo: us@example.org\nSubject: offers\n"
    offers = [
        note(f"{head}\nFog fluid is now £{price} a can. Unsubscribe here.", day, f"{price}.eml")
        for price, day in ((31, "2024-01-15"), (35, "2024-03-09"), (38, "2024-05-18"))
    ]
    passages = [
        replace(each, id=f"{each.id}{part}", text=text, start=start, end=start + len(text))
        for each in offers
        for part, start, text in (
            ("a", 0, head.strip()),
            ("b", len(head) + 1, each.text[len(head) + 1 :]),
        )
    ]
    assert insights_of(*passages) == {}


def test_words_that_every_text_has_make_nothing_one_thing(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    text = insights_of(
        fact(note, "The people next door will come without asking.", "2024-02-01", "a.md"),
        fact(note, "Still no people here without a ticket.", "2024-03-01", "b.md"),
    )
    assert text == {}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            "The quince jam and the walnut bread will be at the harvest supper.",
            "The walnut bread has not had quince in it since the fire.",
        ),
        (
            "Rosa wants the oak lectern for the chapel by Easter.",
            "The oak in the chapel is not ours, the lectern is.",
        ),
        (
            "The tram rails in Jahn Street should be sanded by October.",
            "Still no riders on wet days, the tram rails in Jahn Street are too slick.",
        ),
    ],
)
def test_statements_that_only_share_words_leave_nothing_open(
    insights_of: Callable[..., dict[str, str]], note: Note, first: str, second: str
) -> None:
    notes = (fact(note, first, "2024-03-09", "a.md"), fact(note, second, "2024-05-26", "b.md"))
    assert "overdue" not in insights_of(*notes)


@pytest.mark.parametrize(
    "text",
    [
        "We now play from 22 April to 3 May, same house, same hours.",
        "The notice should be with us before 28 November, and it runs out on 28 February.",
        "They came down from Ely each year from 1908 to 1934.",
        "Scald 800 g of it the night before 1500 g of levain goes in.",
        "2.4 by 4 metres, not over 2.1 high, or the permission lapses.",
    ],
)
def test_two_values_of_a_sentence_are_no_change_unless_it_says_so(
    insights_of: Callable[..., dict[str, str]], note: Note, text: str
) -> None:
    assert "change" not in insights_of(fact(note, text, "2024-03-09", "a.md"))


def test_readings_that_go_up_and_down_are_no_change(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    days = zip(("02", "03", "05", "09", "12"), (41, 39, 43, 38, 42), strict=True)
    notes = [
        fact(
            note, f"The kiln door was at {degrees} degrees at noon.", f"2024-03-{day}", f"{day}.md"
        )
        for day, degrees in days
    ]
    assert "change" not in insights_of(*notes)


def test_what_may_still_be_open_is_not_said_to_be(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    asked = "The last instalment for the Hafod residential has to be paid by 25 April."
    told_all = "If the last instalment for the Hafod residential is still to come, see the office."
    notes = fact(note, asked, "2025-01-16", "a.md"), fact(note, told_all, "2025-05-02", "b.md")
    assert "overdue" not in insights_of(*notes)


def test_readings_in_a_table_are_no_change(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    temperatures = ((4, 3.1, 4.0, 5.1, "BO"), (5, 3.2, 4.1, 5.0, "BO"), (7, 3.3, 4.8, 5.2, "TW"))
    lines = (
        f"date: 2025-11-{day:02}; fridge am: {one}; fridge pm: {two}; retarder: {three}; by: {who}"
        for day, one, two, three, who in temperatures
    )
    log = replace(note("\n".join(lines), "2025-11-08", "fridge.csv"), row=1, title="fridge log")
    assert "change" not in insights_of(log)


def test_what_would_hold_on_a_condition_is_no_change(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    paid = "The bill comes to £318 with the anaesthetic, and the dog is well."
    reckoned = "If you can now bill 200 days the bill comes to £248 with the overheads."
    assert "change" not in insights_of(
        fact(note, paid, "2024-10-29", "vet.md"), fact(note, reckoned, "2025-01-10", "rate.md")
    )


def test_two_versions_of_a_plan_are_not_the_same_thing_again(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    texts = (
        ("Tuesday: dry run with the courier firm at the depot again, 10:00.", "2025-08-27"),
        ("Tuesday: dry run with the courier firm at the depot again, 11:00.", "2025-09-04"),
        ("The dry run with the courier firm at the depot went well again.", "2025-10-20"),
    )
    assert "recurring" not in insights_of(
        *(fact(note, said, day, f"{day}.md") for said, day in texts)
    )


def test_a_day_that_passed_is_told_with_what_is_due_by_it(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    text = "Try spelt for the fair; entry form for the fair by 21 July, class 112."
    found = insights_of(fact(note, text, "2024-06-16", "bread.md"), today="2024-08-12")["overdue"]
    assert found.startswith("“entry form for the fair by 21 July”: 21 July 2024 has passed")


INVOICES = (
    "no: 24-01; customer: Amory Ltd; amount: 480.00; due: 2024-02-01; paid on: 2024-02-20",
    "no: 24-02; customer: Amory Ltd; amount: 90.00; due: 2024-03-01; paid on: 2024-05-01",
    "no: 24-03; customer: Bates; amount: 70.00; due: 2024-03-01; paid on: 2024-02-25",
    "no: 24-04; customer: Bates; amount: 1,500.00; due: 2024-04-15",
    "no: 24-05; customer: Bates; amount: 20.00; due: 2024-07-15",
    "no: 24-06; customer: Bates; amount: 0.00; due: 2024-04-15",
)


def test_a_table_of_invoices_tells_what_is_open_and_who_pays_late(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    table = note("\n".join(INVOICES), "2024-06-01", "invoices.csv")
    found = insights_of(replace(table, row=1, title="invoices"), today="2024-06-01")
    assert found["overdue"].startswith(
        "Invoices: not paid as of 1 June 2024: 24-04, Bates, 1,500 (due on 15 April 2024). "
    )
    assert found["recurring"].startswith("Amory Ltd paid 2 of 2 invoices late, by 19 and 61 days. ")


def test_an_invoice_that_is_marked_as_open_has_been_so_for_a_month(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    lines = (
        "no: 7; date: 2024-01-03; client: Kern; amount: 980; status: paid; paid on: 2024-01-11",
        "no: 8; date: 2024-02-16; client: Fell; amount: 1500; status: OPEN",
        "no: 9; date: 2024-05-20; client: Fell; amount: 300; status: OPEN",
    )
    table = note("\n".join(lines), "2024-06-01", "bills.csv")
    found = insights_of(replace(table, row=1, title="bills"), today="2024-06-01")["overdue"]
    assert "8, Fell, 1,500 (open since 16 February 2024). " in found
    assert "9, Fell" not in found.partition(". ")[0]


def test_a_value_is_that_of_the_entry_beside_it_and_of_no_other_one(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    listed = "- Choir: 30 EUR per seat per year.\n- Nave: 44 EUR per seat per year."
    raised = (
        "The nave ticket now costs 48 EUR per seat per year (was 44 EUR). Choir stays at 30 EUR."
    )
    text = insights_of(
        fact(note, listed, "2024-01-10", "seats.md"), fact(note, raised, "2024-06-02", "news.md")
    )["change"]
    assert "went from 44 EUR to 48 EUR" in text
    assert "30 EUR to" not in text


def test_prices_of_two_firms_that_write_to_one_customer_are_no_change(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    offers = (
        ("From May the beeswax goes up to £14.10 a kilo.", "2024-03-01", "Ida <ida@hives.example>"),
        ("We now offer beeswax at £12.75 a kilo.", "2024-05-02", "Rolf <rolf@comb.example>"),
    )
    mails = []
    for text, day, sender in offers:
        sent = mail(note, text, day, "X", "Beeswax")
        head = f"From: {sender}\nTo: shop@wick.example\nDate: {day}\nSubject: Beeswax\n"
        shift = len(head) - len(sent[0].text)
        mails += [
            replace(sent[0], text=head),
            *(replace(each, start=each.start + shift, end=each.end + shift) for each in sent[1:]),
        ]
    assert "change" not in insights_of(*mails)


def test_hours_of_two_weeks_are_no_change(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    lines = "week: 2024-03-04; who: Ilse; hours: 38\nweek: 2024-03-11; who: Ilse; hours: 40"
    sheet = replace(note(lines, "2024-04-01", "hours.csv"), row=1, title="hours")
    assert "change" not in insights_of(sheet)


def test_words_of_one_stem_that_mean_two_things_are_nothing_that_happens_again(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    said = (
        ("The parcel of glaze was held up in customs again.", "2024-02-01"),
        ("The customers asked for the parcel of glaze again.", "2024-03-03"),
        ("A customer brought the parcel of glaze back again.", "2024-04-05"),
    )
    found = insights_of(*(fact(note, text, day, f"{day}.md") for text, day in said))
    assert "custom" not in found.get("recurring", "").partition(". ")[0]


def test_a_line_that_begins_with_since_when_something_holds_is_of_the_day_of_its_note(
    note: Note,
) -> None:
    said = note("From 1 July 2024 the pool opens at eight.", "2024-06-03", "pool.md")
    assert [each.day for each in statements([said])] == [said.created_at.date()]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            "We plan a second oven at the Harbour market for the summer.",
            "Jo and I decided to drop the second oven at the Harbour market.",
            "“Second oven at the Harbour market”: spoken of on 12 March 2024, given up on ",
        ),
        (
            "Spring: a pilot of pottery lessons for schools.",
            "We stop the pottery lessons. Nobody came.",
            "“Pottery lessons”: spoken of on 12 March 2024, given up on 3 May 2024",
        ),
        ("Spring: a pilot of pottery lessons.", "We could drop the pottery lessons.", ""),
        ("Spring: a pilot of pottery lessons.", "We did not stop the pottery lessons.", ""),
        ("Spring: a pilot of pottery lessons.", "We stop the dancing lessons.", ""),
        (
            "The bookings run through Calendra.",
            "We replace Calendra by Openslot.",
            "“Calendra”: replaced by Openslot (12 March → 3 May 2024)",
        ),
        ("The bookings run through Calendra.", "We might replace Calendra by Openslot.", ""),
        ("Oona Fell holds 30% of the boat.", "Oona Fell sold her 30% to Rafe Lund.",
         "“Oona Fell’s 30%”: went from Oona Fell to Rafe Lund (12 March → 3 May 2024)"),
        (
            "The yard in Quay Street is rented from Orrin Estates.",
            "Bexley Homes has bought the yard in Quay Street from Orrin Estates.",
            "“The yard in Quay Street”: went from Orrin Estates to Bexley Homes (12 March → ",
        ),
        ("Jonas owns 20 shares of Nordlicht.", "Jonas sold 20 chairs to Peter.", ""),
        ("Marta holds 5 % of the pub.", "Marta sold 5 % of the cake to Ines.", ""),
        ("Ines owns the pub that Marta likes.", "Marta sold the pub to Peter.", ""),
        ("Our landlord in the pub is Marta.", "Marta sold the pub to Peter.",
         "“The pub”: went from Marta to Peter (12 March → 3 May 2024)"),
        ("We get our bolts from Orrin Steel.", "Jo bought the bolts from Orrin Steel.", ""),
    ],
)  # fmt: skip
def test_what_is_given_up_or_passes_to_another_one_is_a_change(
    insights_of: Callable[..., dict[str, str]], note: Note, before: str, after: str, said: str
) -> None:
    notes = (fact(note, before, "2024-03-12", "a.md"), fact(note, after, "2024-05-03", "b.md"))
    text = insights_of(*notes).get("change", "")
    assert text.startswith(said)
    assert bool(text) is bool(said)


@pytest.mark.parametrize(
    ("after", "is_told"),
    [
        (
            "After the review, the rent for the mill in Weir Lane will be £695 a month from 1 May.",
            True,
        ),
        ("The insurance for Mill Weir will be £695 a month from 1 May 2024.", False),
    ],
)
def test_a_new_amount_that_whom_it_is_paid_to_announces_is_a_change(
    insights_of: Callable[..., dict[str, str]], note: Note, after: str, is_told: bool
) -> None:
    paid = fact(note, "Rent is £640 a month to Halden Estates.", "2024-01-08", "firm.md")
    letter = mail(note, after, "2024-03-15", "Halden Estates", "Mill: rent review")
    told = insights_of(replace(paid, title="Brooks & Daw"), *letter).get("change", "")
    assert ("went from £640 to £695" in told) is is_told


def test_a_list_without_a_day_tells_who_had_a_post_before_somebody_becomes_its_holder(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    listed = fact(
        note, 'Anna Rook ("Annie"): head gardener, started 2 May 2023', "2024-05-01", "a.md"
    )
    listed = replace(listed, created_at=listed.created_at.replace(microsecond=1))
    left = fact(note, "Ben Lowe becomes head gardener on 1 July.", "2024-04-02", "b.md")
    text = insights_of(listed, left)["change"]
    assert text.startswith("“Head gardener”: went from Anna Rook to Ben Lowe (2 April 2024). ")


def test_a_day_without_its_month_is_moved_with_the_entry_of_a_calendar(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    told = insights_of(
        entry(note, "Plant sale in the yard is on Sunday, 9 June 2024, at 10:00.", "2024-06-09",
              "Plant sale in the yard"),
        fact(note, "The plant sale moves from 9 to 16 June.", "2024-05-02", "minutes.md"),
    )["change"]  # fmt: skip
    assert told.startswith("“Plant sale in the yard”: went from ")
    assert "9 June 2024 to 16 June" in told


def test_a_table_without_days_of_payment_tells_what_it_marks_as_unpaid(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    lines = (
        "ordered: 2024-01-03; who: Kern; amount: 980; status: paid",
        "ordered: 2024-02-16; who: Fell; amount: 1500; status: unpaid",
        "ordered: 2024-02-20; who: Moss; amount: 700; status: open",
    )
    table = note("\n".join(lines), "2024-06-01", "orders.csv")
    found = insights_of(replace(table, row=1, title="orders"), today="2024-06-01")["overdue"]
    assert found.startswith(
        "Orders: not paid as of 1 June 2024: Fell, 1,500 (open since 16 February 2024). "
    )


@pytest.mark.parametrize(
    ("row", "is_told"),
    [
        ("title: Emma; member: Kern; price: 12.50; due: 2024-02-03; status: overdue", False),
        ("item: bench; place: hall; price: 90.00; status: outstanding", False),
        ("invoice: 7; place: hall; price: 90.00; status: outstanding", True),
        ("no: A7; customer: Kern; amount: 90.00; due: 2024-02-03; status: overdue", True),
        ("order: A7; place: hall; amount: 90.00; status: not paid", True),
    ],
)
def test_only_what_speaks_of_payment_is_an_invoice_that_is_not_paid(
    insights_of: Callable[..., dict[str, str]], note: Note, row: str, is_told: bool
) -> None:
    other = re.sub(r"Emma|bench|7", "B8", row).replace(row.rpartition(": ")[2], "fine")
    table = note(f"{row}\n{other}", "2024-02-01", "list.csv")
    found = insights_of(replace(table, row=1, title="list"), today="2024-06-01")
    assert ("not paid" in found.get("overdue", "")) is is_told


@pytest.mark.parametrize(
    ("said", "is_told"),
    [
        ("I am sorry to say that from 1 March the beeswax goes up to £21.10 a kilo.", True),
        ("I am sorry to say that from 1 March the beeswax goes up to £21.10 a box.", False),
    ],
)
def test_a_price_in_a_list_is_raised_by_a_letter_that_names_its_unit(
    insights_of: Callable[..., dict[str, str]], note: Note, said: str, is_told: bool
) -> None:
    rows = ("beeswax | £18.40 | kg", "wick | £3.00 | metre")
    listed = drawn_list(note, "2024-01-04", "prices.md", *rows, names="what | price | unit")
    told = insights_of(listed, fact(note, said, "2024-02-13", "letter.md")).get("change", "")
    assert ("“beeswax, price”: went from £18.40 to £21.10" in told) is is_told


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            "rent stays 340/month till end of August he says",
            "New rent from 1 September 2025: £395 a month (was 340).",
            "340 to £395",
        ),
        (
            "The weekly fee is £1,010 and includes laundry.",
            "The weekly fee for your mother, Mrs Hale, room 12, will be £1,085 from 6 April 2026. "
            "It has been £1,010 since April 2025.",
            "“weekly fee for your mother”: went from £1,010 to £1,085 (",
        ),
        (
            "7 Apr - Pallister, pitch raise, 95 quid.",
            "Prices from January: tuning £82 (was £75), pitch raise £105 (was £95).",
            "“pitch raise”: went from 95 quid to £105 (",
        ),
        (
            "Rothbury Motors rang, price is going up to 6,240 because of the ferry.",
            "As discussed by phone the revised price for booking 7731 of Rothbury Motors is £6,240 "
            "(previously £5,980), due to the new ferry tariff.",
            "",
        ),
        (
            "The fee of the choir stays at £60 a year.",
            "The fee of the choir is to be raised to £75 from January. "
            "The motion to raise the fee to £75 was lost.",
            "",
        ),
    ],
)
def test_a_change_is_of_what_stands_beside_both_values(
    insights_of: Callable[..., dict[str, str]], note: Note, before: str, after: str, said: str
) -> None:
    notes = (fact(note, before, "2025-03-15", "a.md"), fact(note, after, "2025-10-02", "b.md"))
    found = insights_of(*notes).get("change", "")
    assert bool(found) == bool(said)
    assert said in found


def test_notes_without_marks_are_set_apart_in_a_quote(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    before = "rent stays 340/month till end of August he says\ndeposit 680 paid in 2019"
    after = "New rent from 1 September 2025: £395 a month (was 340)."
    notes = (note(before, "2025-03-15", "a.md"), note(after, "2025-10-02", "b.md"))
    assert "August he says / deposit 680 paid" in insights_of(*notes)["change"]


@pytest.mark.parametrize(
    ("before", "after", "is_told"),
    [
        ("1,100 EUR", "now 1,250 EUR a month; the objection of the tenants was rejected.", True),
        ("1,100 EUR", "now 1,250 EUR a month, because the discount was withdrawn.", True),
        ("1,400 EUR", "now lower and has declined to 1,250 EUR a month.", True),
        (
            "1,100 EUR",
            "now 1,250 EUR a month. The objection to a rent of 1,250 EUR was rejected.",
            True,
        ),
        ("500 EUR", "now 600 EUR a month, and the deposit of the workshop is 500 EUR.", True),
        ("500 EUR", "now 600 EUR a month (before: 500 EUR).", True),
        ("500 EUR", "now 600 EUR a month (previously: EUR 500).", True),
        ("600 EUR", "now 600 EUR a month (previously 500 EUR).", False),
        ("1,100 EUR", "to be raised to 1,250 EUR. The board rejected 1,250 EUR of rent.", False),
        ("1,100 EUR", "to be new. The proposal of a rent of 1,250 EUR now was rejected.", False),
    ],
)
def test_a_change_is_told_unless_its_own_value_was_turned_down(
    insights_of: Callable[..., dict[str, str]], note: Note, before: str, after: str, is_told: bool
) -> None:
    rent = "The rent of the Harbour Street workshop is"
    old = fact(note, f"{rent} {before} a month.", "2026-03-15", "a.md")
    new = fact(note, f"{rent} {after}", "2026-05-02", "b.md")
    assert ("change" in insights_of(old, new)) is is_told


def test_a_day_is_moved_though_the_earlier_one_was_rejected(
    insights_of: Callable[..., dict[str, str]], note: Note
) -> None:
    opening = "The opening of the Harbour Street workshop is"
    old = fact(note, f"{opening} on 3 June 2026.", "2026-03-15", "a.md")
    said = "now on 17 June 2026, since the earlier date was rejected by the board."
    new = fact(note, f"{opening} {said}", "2026-05-02", "b.md")
    assert "went from 3 June 2026 to 17 June 2026" in insights_of(old, new)["change"]
