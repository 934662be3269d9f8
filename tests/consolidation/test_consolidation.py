"""Consolidation on real notes in a real store: what it tells, and that it tells it once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from memctl.consolidation.memory_pool import count_waiting
from memctl.records import Memory, Progress
from memctl.rows.row_lifecycle import erase_rows
from memctl.schema.arrow_tables import memories_table, relation_rows
from memctl.store.tables.filter_expressions import col

Note = Callable[..., Memory]


@pytest.fixture(scope="session")
def story(note: Note) -> list[Memory]:
    return [
        note(
            "Viewed a workshop on Harbour Street with Mara. The lease starts on 1 June 2026 and "
            "the rent is 1,200 EUR a month. There is room for the roaster and a small bar.",
            "2026-03-03", "harbour-street.md",
        ),
        note(
            "Hi Mara,\nthank you for your visit to Harbour Street. The lease for the workshop "
            "starts on 15 June 2026. The deposit is two months rent.\nBest regards, Jonas",
            "2026-04-10", "confirmation.eml",
        ),
        note("Beans: Huila Supremo from Colombia scores 86 points. Roast it light.",
             "2026-03-15", "cupping.txt"),
        note("Ordered a Probat roaster for Harbour Street. It holds 12 kg and arrives in May.",
             "2026-03-20", "orders.md"),
        note("The Probat roaster needs 3-phase power. The electrician Lena Vogt will install it "
             "at Harbour Street.", "2026-05-04", "delivery.md"),
        note("We decided to open the bar at Harbour Street only on weekends. The electrician Lena "
             "Vogt does the wiring.", "2026-04-22", "meeting.md"),
        note("Recipe: 500 g flour, 350 g water, 10 g salt. Fold every 30 minutes.",
             "2026-02-11", "bread.md"),
        note("The Huila Supremo sold out. Next delivery from Colombia comes in July.",
             "2026-06-20", "stock.md"),
        note("Dentist appointment moved. Bring the insurance card.", "2026-04-02", "misc.txt"),
    ]  # fmt: skip


LATER = "The lease for the workshop now starts on 1 July 2026."


def lease(insights: list[Memory]) -> Memory:
    """The insight on when the lease starts."""
    (found,) = [item for item in insights if "15 June 2026" in item.text]
    return found


def test_a_value_that_a_later_note_gives_anew_is_a_change_with_both_and_their_days(
    base: Any, story: list[Memory]
) -> None:
    base.add(*reversed(story))
    report = base.consolidator().run()
    (insight,) = [item for item in report.insights if "15 June 2026" in item.text]
    assert insight.kind == "change"
    assert "went from 1 June 2026 to 15 June 2026 (3 March → 10 April 2026). " in insight.text
    assert "The lease starts on 1 June 2026 and the rent is 1,200 EUR a month" in insight.text
    assert "The lease for the workshop starts on 15 June 2026. " in insight.text
    assert "(confirmation.eml, 10 April 2026)" in insight.text
    assert insight.importance > 0.6
    (connection,) = insight.connections
    assert (connection.relationship, connection.text) == ("follows", "1 June 2026 → 15 June 2026")


def test_what_is_said_on_one_day_in_two_ways_is_a_contradiction(base: Any, note: Note) -> None:
    text = "The lease for the workshop on Harbour Street starts on {} June 2026."
    base.add(
        note(text.format(1), "2026-03-03", "signed.md"),
        note(text.format(15), "2026-03-03", "letter.eml"),
        note("Bake the bread at 240 degrees.", "2026-03-02", "c.md"),
    )
    (insight,) = base.consolidator().run().insights
    assert insight.kind == "contradiction"
    assert "1 June 2026 or 15 June 2026, the sources do not agree. " in insight.text
    assert [item.relationship for item in insight.connections] == ["contradicts"]


def test_a_value_that_moves_twice_is_told_as_one_series(base: Any, note: Note) -> None:
    for day, amount in (("2024-03-02", 450), ("2024-04-09", 525), ("2025-01-20", 560)):
        base.add(note(f"The survey fee of Hale and Sons is now £{amount}.", day, f"{amount}.md"))
    base.add(note("Bake the bread at 240 degrees.", "2026-03-02", "c.md"))
    (insight,) = base.consolidator().run().insights
    days = "2 March 2024 → 9 April 2024 → 20 January 2025"
    assert f"went from £450 to £525 to £560 ({days}). " in insight.text


def test_what_a_gist_and_a_fact_of_one_document_say_alike_is_quoted_once(
    base: Any, note: Note
) -> None:
    first = note("The lease for the workshop starts on 1 June 2026.", "2026-03-03", "signed.md")
    said = "The lease for the workshop starts on 15 June 2026."
    more = "The electricians need longer than they promised. {} Bring the keys to the office."
    gist = note(more.format(said), "2026-04-10", "moved.eml", type_="gist")
    fact = note(said, "2026-04-10", "moved.eml", type_="fact")
    base.add(first, gist, fact)
    (insight,) = base.consolidator().run().insights
    assert set(insight.source_ids) == {first.id, fact.id}
    assert insight.text.count("“The lease for the workshop starts on 15 June 2026” (moved.eml") == 1


def test_what_shares_nothing_rare_stays_alone(base: Any, story: list[Memory]) -> None:
    base.add(*story)
    base.consolidator().run()
    sources = {base.memories()[id_].source for item in base.insights() for id_ in item.source_ids}
    assert not sources & {"/inbox/bread.md", "/inbox/misc.txt"}


def test_an_insight_can_be_found_and_followed(base: Any, story: list[Memory]) -> None:
    base.add(*story)
    base.consolidator().run()
    snapshot = base.store.snapshot()
    insight = lease(base.insights())
    (vector,) = base.embedder.embed(["when does the lease start"])
    near = snapshot.nearest(vector, col("level") == "insight", 1, ["id"])
    assert near["id"].to_pylist() == [insight.id]
    assert insight.id in snapshot.keyword(["leas", "went"])["id"].to_pylist()
    relations = relation_rows(snapshot.scan("relations"))
    (pair,) = [item for item in relations if item.relation_type == "follows"]
    assert {pair.source_id, pair.target_id} == set(insight.source_ids)
    assert insight.method == "builtin/2"
    assert insight.metadata["connections"][0]["relationship"] == "follows"


def test_the_members_are_marked_and_nothing_else_of_them_changes(
    base: Any, story: list[Memory]
) -> None:
    base.add(*story)
    before = base.memories()
    base.consolidator().run()
    after = base.memories()
    assert {id_: replace(after[id_], is_consolidated=False) for id_ in before} == before
    assert all(after[id_].is_consolidated for id_ in before)


def test_what_waits_is_counted_without_what_is_never_looked_at(
    base: Any, story: list[Memory], note: Note
) -> None:
    gist = note("The workshop on Harbour Street in one sentence.", "2026-03-01", "g", type_="gist")
    base.add(*story, gist, replace(story[0], id="m_first", document_id=gist.document_id))
    assert count_waiting(base.store.snapshot(), base.clock()) == len(story) + 1
    assert base.consolidator().run().examined == len(story) + 1
    assert count_waiting(base.store.snapshot(), base.clock()) == 0


def test_a_second_run_changes_nothing(base: Any, story: list[Memory]) -> None:
    base.add(*story)
    base.consolidator().run()
    versions = base.store.snapshot().versions
    report = base.consolidator().run()
    assert (report.examined, report.insights) == (0, ())
    assert base.store.snapshot().versions == versions


def test_a_dry_run_tells_the_same_and_writes_nothing(base: Any, story: list[Memory]) -> None:
    base.add(*story)
    versions = base.store.snapshot().versions
    report = base.consolidator().run(dry_run=True)
    assert base.store.snapshot().versions == versions
    assert report.dry_run
    assert report.insights == base.consolidator().run().insights


@pytest.mark.parametrize("batch_size", [1, 2, 3, 20])
def test_the_size_of_batches_does_not_change_what_is_told(
    base: Any, story: list[Memory], batch_size: int
) -> None:
    base.add(*story)
    base.consolidator(seconds_a_commit=0.0).run(batch_size=batch_size)
    (insight,) = base.insights()
    assert insight == lease([insight])


def test_a_run_that_was_stopped_is_finished_by_the_next(base: Any, story: list[Memory]) -> None:
    base.add(*story)

    def stop(progress: Progress) -> None:
        if progress.done >= 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        base.consolidator(seconds_a_commit=0.0).run(batch_size=2, progress=stop)
    done = [memory for memory in base.memories().values() if memory.is_consolidated]
    assert 0 < len(done) < len(story) + 3
    base.consolidator().run()
    assert [memory.id for memory in base.memories().values() if not memory.is_consolidated] == []
    assert lease(base.insights())


def test_a_later_note_brings_an_insight_up_to_date(
    base: Any, story: list[Memory], note: Note
) -> None:
    base.add(*story)
    base.consolidator().run()
    old = lease(base.insights())
    base.add(note(LATER, "2026-07-20", "signed.md"))
    report = base.consolidator().run()
    new = lease(base.insights())
    assert set(new.source_ids) > set(old.source_ids)
    assert new.version == 2
    ended = base.memories()[old.id]
    assert ended.superseded_by == new.id
    assert ended.valid_to is not None
    assert [item.id for item in report.insights] == [new.id]


def test_an_insight_of_before_names_no_successor_that_was_deleted(
    base: Any, story: list[Memory], note: Note
) -> None:
    base.add(*story)
    base.consolidator().run()
    signed = note(LATER, "2026-07-20", "signed.md")
    base.add(signed)
    base.consolidator().run()
    assert [item for item in base.memories().values() if item.superseded_by]
    with base.store.write() as transaction:
        erase_rows(transaction, "memories", [signed.id])
    assert not [item for item in base.memories().values() if item.superseded_by]
    base.consolidator().run()
    assert len(lease(base.insights()).source_ids) == 2


def test_an_insight_ends_with_what_it_rests_on(base: Any, story: list[Memory]) -> None:
    base.add(*story)
    base.consolidator().run()
    letter = next(m for m in base.memories().values() if m.source.endswith("confirmation.eml"))
    with base.store.write() as transaction:
        gone = replace(letter, valid_to=base.clock())
        transaction.upsert("memories", memories_table([gone], base.embedder.embed([letter.text])))
    base.consolidator().run()
    assert base.insights() == []


def test_an_insight_on_what_was_deleted_meanwhile_is_not_written(
    base: Any, story: list[Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    base.add(*story)
    (gone,) = (item.id for item in story if item.source.endswith("confirmation.eml"))
    begin = base.store.write

    def write(*arguments: Any) -> Any:
        """Delete a note just before the first insights are written."""
        with begin() as transaction:
            transaction.delete("memories", col("id") == gone)
        return begin(*arguments)

    monkeypatch.setattr(base.store, "write", write)
    base.consolidator().run()
    assert not any(gone in item.source_ids for item in base.insights())
    relations = relation_rows(base.store.snapshot().scan("relations"))
    assert not any(gone in (item.source_id, item.target_id) for item in relations)
    monkeypatch.undo()
    report = base.consolidator().run()  # looks again at what the insight was to rest on besides
    assert report.examined


def test_near_duplicates_are_linked_and_kept(base: Any, note: Note) -> None:
    text = "The Probat roaster at Harbour Street holds 12 kg and needs 3-phase power."
    base.add(
        note(text, "2026-03-01", "a.md"),
        note(text.replace("and needs", "and it needs"), "2026-03-02", "b.md"),
        note("Bake the bread at 240 degrees.", "2026-03-02", "c.md"),
    )
    report = base.consolidator().run()
    assert report.duplicates == 1
    assert report.insights == ()
    (relation,) = relation_rows(base.store.snapshot().scan("relations"))
    assert relation.relation_type == "near_duplicate"
    assert base.store.snapshot().count("memories") == 3


def test_alike_with_another_number_is_no_duplicate(base: Any, note: Note) -> None:
    text = "The Probat roaster at Harbour Street holds 12 kg of green beans."
    base.add(
        note(text, "2026-03-01", "a.md"),
        note(text.replace("12", "15"), "2026-03-02", "b.md"),
        note("Bake the bread at 240 degrees.", "2026-03-02", "c.md"),
    )
    report = base.consolidator().run()
    assert report.duplicates == 0
    assert [item.kind for item in report.insights] == ["change"]


def test_namespaces_are_never_connected(base: Any, story: list[Memory]) -> None:
    base.add(*(replace(item, namespace=f"user:{n}") for n, item in enumerate(story)))
    assert base.consolidator().run().insights == ()


def test_turns_and_passages_of_long_documents_are_left_out(
    base: Any, story: list[Memory], note: Note
) -> None:
    turns = [
        replace(note(f"See you at Harbour Street then, {n}", "2026-03-01", f"t{n}"), turn=n)
        for n in range(10)
    ]
    first = replace(story[0], id="m_long", document_id="d_long")
    rest = replace(first, id="m_rest", start=1200, end=2400)
    base.add(*turns, first, rest)
    report = base.consolidator().run()
    assert (report.examined, report.insights) == (0, ())


def test_boilerplate_connects_nothing(base: Any, note: Note) -> None:
    base.add(
        *(
            note(
                f"This message and any attachment are confidential. Order {n} has shipped.",
                f"2026-01-{n + 1:02}",
                f"mail{n}.eml",
            )
            for n in range(25)
        )
    )
    assert base.consolidator().run().insights == ()


def test_greetings_and_questions_are_not_told(base: Any, note: Note) -> None:
    base.add(
        note("Hey, are you coming to Central Perk? See you there!", "2026-01-01", "a"),
        note("Thanks for Central Perk, that was awesome! Let me know.", "2026-01-02", "b"),
        note("Shall we meet at Central Perk again?", "2026-01-03", "c"),
        note("Bake the bread at 240 degrees.", "2026-03-02", "d"),
    )
    assert base.consolidator().run().insights == ()


def test_progress_counts_up_to_what_was_examined(base: Any, story: list[Memory]) -> None:
    base.add(*story)
    seen: list[Progress] = []
    report = base.consolidator().run(batch_size=4, progress=seen.append)
    assert [progress.done for progress in seen] == [4, 8, 9]
    assert report.examined == 9


def test_an_empty_store_gives_an_empty_report(base: Any) -> None:
    report = base.consolidator().run()
    assert (report.examined, report.groups, report.insights) == (0, 0, ())


def test_an_expired_memory_is_not_looked_at(base: Any, story: list[Memory]) -> None:
    past = datetime(2026, 7, 1, tzinfo=UTC)
    base.add(*(replace(item, expires_at=past) for item in story))
    assert base.consolidator().run().examined == 0


def test_articles_that_define_different_things_do_not_contradict_each_other(
    base: Any, note: Note
) -> None:
    """Both once gave "sources disagree on the number, 46 km or 54 km"."""
    base.add(
        *(
            replace(
                note(
                    f"{name} is a satellite suburb of Melbourne, Victoria, {distance} km "
                    "south-east of the Central Business District. The creek has a watershed area "
                    f"of {distance} km.",
                    "2026-03-01",
                    name,
                ),
                title=f"{name}, Victoria",
            )
            for name, distance in (("Beaconsfield", 46), ("Officer", 54))
        ),
        note("Bake the bread at 240 degrees.", "2026-03-02", "c.md"),
    )
    report = base.consolidator().run()
    assert report.insights == ()


def test_who_talks_with_whom_is_not_told(base: Any, note: Note) -> None:
    """Gists of conversations begin so, and every group of them was once an insight."""
    base.add(
        *(
            note(
                f"Ann Lee, Ben Ott and others talk about Rosewood Park, weather and {topic}.",
                f"2026-03-0{day}",
                f"chat{day}",
                type_="gist",
            )
            for day, topic in enumerate(("garden", "plants", "music"), start=1)
        ),
        note("Bake the bread at 240 degrees.", "2026-03-02", "c.md"),
    )
    assert base.consolidator().run().insights == ()


def test_a_gist_and_a_fact_of_one_letter_tell_one_change(base: Any, note: Note) -> None:
    """The sentence stands in both, and both once made an insight of their own."""
    first = "The lease for the Harbour Street workshop starts on 1 June 2026."
    second = first.replace("1 June", "15 June")
    for number, (text, source) in enumerate(((first, "lease.md"), (second, "letter.eml")), 1):
        gist = f"{text} The deposit of 4,350 euros stays, and the keys are at the office."
        base.add(
            note(text, f"2026-03-0{number}", source, type_="fact"),
            note(gist, f"2026-03-0{number}", source, type_="gist"),
        )
    base.add(*(note(f"Bake loaf {n}.", "2026-03-02", f"bread{n}.md") for n in range(4)))
    report = base.consolidator().run()
    assert [item.kind for item in report.insights] == ["change"]


def test_words_in_common_are_no_insight(base: Any, note: Note) -> None:
    texts = (
        "rents the room above the ferry office", "paid for a new roof in autumn",
        "hired two carpenters from the island", "sells bread to the school kitchen",
        "closed for a week after the flood", "bought the old oven of the bakery",
    )  # fmt: skip
    for day, text in enumerate(texts, start=1):
        base.add(note(f"The cooperative Nordlicht Haus {text}.", f"2026-03-0{day}", f"{day}.md"))
    assert base.consolidator().run().insights == ()
