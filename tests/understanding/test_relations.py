"""What a sentence states of two names, and what states nothing."""

from __future__ import annotations

import pytest

from memctl.records import SourceText
from memctl.understanding.builtin_understander import BuiltinUnderstander
from memctl.understanding.relation_extraction import (
    RELATION_TYPES,
    extract_relations,
    post_holders,
)


def relations(text: str) -> list[tuple[str, str, str]]:
    (found,) = BuiltinUnderstander().understand([SourceText(text, "text/plain", "text/1")])
    made = extract_relations(text, found.entities)
    assert {each.relation for each in made} <= set(RELATION_TYPES)
    return [(each.subject, each.relation, each.object) for each in made]


@pytest.mark.parametrize(
    ("text", "relation"),
    [
        ("Nora Weiss works at Kestrel.", ("Nora Weiss", "works_at", "Kestrel")),
        (
            "Our colleague Nora Weiss currently works as a nurse at Kestrel Hospital.",
            ("Nora Weiss", "works_at", "Kestrel Hospital"),
        ),
        ("Nora Weiss is an engineer at Kestrel.", ("Nora Weiss", "works_at", "Kestrel")),
        ("Nora Weiss is the CEO of Kestrel Ltd.", ("Nora Weiss", "manages", "Kestrel Ltd")),
        ("Nora Weiss, CEO of Kestrel Ltd, left.", ("Nora Weiss", "manages", "Kestrel Ltd")),
        ("Kestrel Ltd's CEO is Nora Weiss.", ("Nora Weiss", "manages", "Kestrel Ltd")),
        ("Kestrel Ltd is run by Nora Weiss.", ("Nora Weiss", "manages", "Kestrel Ltd")),
        ("Nora Weiss reports to Tom Baker.", ("Nora Weiss", "reports_to", "Tom Baker")),
        ("Nora Weiss's boss is Tom Baker.", ("Nora Weiss", "reports_to", "Tom Baker")),
        ("Nora Weiss lives alone in Porto.", ("Nora Weiss", "lives_in", "Porto")),
        ("Nora Weiss moved to Berlin in May.", ("Nora Weiss", "lives_in", "Berlin")),
        ("Kestrel Ltd is based in Berlin.", ("Kestrel Ltd", "located_in", "Berlin")),
        ("Kestrel Ltd was founded by Nora Weiss.", ("Nora Weiss", "founded", "Kestrel Ltd")),
        ("Nora Weiss co-founded Kestrel Ltd.", ("Nora Weiss", "founded", "Kestrel Ltd")),
        ("Nora Weiss is married to Tom Baker.", ("Nora Weiss", "married_to", "Tom Baker")),
        ("Nora Weiss's husband Tom Baker came.", ("Nora Weiss", "married_to", "Tom Baker")),
        ("Kestrel Ltd is owned by Heron Inc.", ("Heron Inc", "owns", "Kestrel Ltd")),
        ("Kestrel Ltd is a subsidiary of Heron Inc.", ("Kestrel Ltd", "part_of", "Heron Inc")),
        ("Project Atlas depends on Redis 7.", ("Project Atlas", "depends_on", "Redis 7")),
        ("Project Atlas costs 900 euros a month.", ("Project Atlas", "costs", "900 euros a month")),
        ("Project Atlas costs $5 and comes today.", ("Project Atlas", "costs", "$5")),
        ("Project Atlas starts on 3 May 2026.", ("Project Atlas", "starts_on", "3 May 2026")),
        ("[[Nora Weiss]] joined [[Heron Inc]] in May.", ("Nora Weiss", "member_of", "Heron Inc")),
    ],
)
def test_a_plain_statement_of_two_names_is_a_relation(
    text: str, relation: tuple[str, str, str]
) -> None:
    assert relations(text) == [relation]


@pytest.mark.parametrize(
    "said",
    [
        "costs $20 more than the Pro Plan",
        "costs $20 a month more than the Pro Plan",
        "costs $5 or $6",
        "costs $5, $6 or $7",
        "costs $5 and $6",
        "costs $5 to $10",
        "costs $5-10",
        "costs $5 off",
        "costs $5 at least",
        "starts on 5 May or 6 May",
        "starts on 5 May to 7 May",
        "starts on 5 May at the earliest",
    ],
)
def test_a_value_that_is_not_the_only_one_is_no_relation(said: str) -> None:
    assert relations(f"Project Atlas {said}.") == []


def test_names_that_are_joined_by_and_share_a_relation() -> None:
    assert relations("Nora Weiss and Tom Baker live in Porto.") == [
        ("Nora Weiss", "lives_in", "Porto"),
        ("Tom Baker", "lives_in", "Porto"),
    ]
    assert relations("Project Atlas uses Redis and PostgreSQL.") == [
        ("Project Atlas", "uses", "Redis"),
        ("Project Atlas", "uses", "PostgreSQL"),
    ]
    assert relations("Nora Weiss works at Kestrel, and Tom Baker sings.") == [
        ("Nora Weiss", "works_at", "Kestrel")
    ]


def test_a_first_name_means_the_one_who_has_it() -> None:
    text = "Nora Weiss came by. Nora lives in Porto. She is fine."
    assert relations(text) == [("Nora Weiss", "lives_in", "Porto")]
    assert relations(f"{text} Nora Baker came, too.") == [("Nora", "lives_in", "Porto")]


@pytest.mark.parametrize(
    "text",
    [
        "Nora Weiss does not work at Kestrel.",
        "Nora Weiss never lived in Porto.",
        "If Nora Weiss works at Kestrel, she knows.",
        "Perhaps Nora Weiss works at Kestrel.",
        "Nora Weiss would work at Kestrel.",
        "Does Nora Weiss work at Kestrel?",
        "Nora Weiss works at Kestrel, doesn't she?",
        "Tom Baker thinks that Nora Weiss works at Kestrel.",
        'Tom Baker wrote: "Nora Weiss works at Kestrel."',
        "Nora Weiss used to work at Kestrel.",
        "The yard is in Porto, Ohio, a suburb of Cleveland.",
        "The film has Nora Weiss as Ruth Baker, leader of Heron Inc.",
        "Nora Weiss is a former member of Heron Inc.",
        "Nora Weiss is the head of Heron Inc for Marine Affairs.",
        "Nora Weiss works at Kestrel no longer.",
        "The brother of Nora Weiss works at Kestrel.",
        "Nora Weiss manages the Porto office.",
        "Nora Weiss works at Kestrel's rival.",
        "> Nora Weiss works at Kestrel.",
    ],
)
def test_what_is_doubted_asked_quoted_or_about_something_else_is_none(text: str) -> None:
    assert relations(text) == []


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("Our agent at the harbour is Ian Holt.", "Ida Mehl takes over from Ian as our agent at "
         "the harbour in May."),
        ("Secretary: Ian", "- New secretary: Ida Mehl (from June)"),
        ("Ian does the ironing, ask him.", "Ian's gone, Ida does the ironing now"),
        ("Ian runs the choir.", "Ida takes over the choir from Ian."),
        ("Head of sales is Ian Holt.", "Ian Holt left and was replaced as head of sales by Ida."),
        ("Ian is our dentist.", "Our dentist is now Ida Mehl."),
        ("Ian is the chair of the board.", "Ida succeeds Ian as chair of the board."),
    ],
)  # fmt: skip
def test_who_gets_a_post_succeeds_who_had_it(earlier: str, later: str) -> None:
    (old,), (new,) = post_holders(earlier), post_holders(later)
    assert new.succeeds(old)
    assert not old.succeeds(new)


@pytest.mark.parametrize(
    ("earlier", "later", "is_one"),
    [
        ("Choir committee", "Minutes of the choir committee, 3 May", True),
        ("Choir", "Choir: concert", True),
        ("Treasurer", "New treasurer Ida", True),
        ("Choir committee", "Allotment committee", False),
    ],
)
def test_titles_tell_whether_two_posts_of_a_name_are_one(
    earlier: str, later: str, *, is_one: bool
) -> None:
    (old,) = post_holders("Ian is our treasurer.", titles=earlier)
    (new,) = post_holders("Ida is our new treasurer.", titles=later)
    assert new.succeeds(old) is is_one
    (named,) = post_holders("Ida takes over from Ian as our treasurer.", titles=later)
    assert named.succeeds(old)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("Secretary: Ian", "Secretary: Ida"),  # of another club, perhaps
        ("Secretary: Ian", "New treasurer: Ida"),
        ("Ian is our agent at the harbour.", "Ida is now our agent at the mill."),
        ("Ian is our dentist.", "Maybe Ida is our new dentist."),
        ("Ian is our dentist.", "Ida takes over from Piet as our dentist."),
        ("Ian Holt is our dentist.", "Ian is now our dentist."),
    ],
)
def test_who_only_may_have_got_a_post_succeeds_nobody(earlier: str, later: str) -> None:
    (old,) = post_holders(earlier)
    assert not any(new.succeeds(old) for new in post_holders(later))


@pytest.mark.parametrize(
    "text", ["Anna-" * 2000, "Ana's'" * 2000, f"Ian is our chef{' and so' * 60}"]
)
def test_what_is_too_long_for_a_sentence_gives_no_post(text: str) -> None:
    assert post_holders(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "Nobody is our new chair.",
        "Somebody does the dishes.",
        "I heard Ben is our chair; that is false.",
        "Anna denied Ben is our new chair.",
        "Deadline: Friday",
        "New deadline: June",
        "Clara takes over from Anna as our treasurer once the lease is signed.",
    ],
)
def test_what_names_nobody_or_is_doubted_gives_no_holder_of_a_post(text: str) -> None:
    assert post_holders(text) == ()


@pytest.mark.parametrize("time", ["Every Friday", "On Fridays", "In May", "Today"])
def test_a_time_before_a_name_is_no_part_of_it(time: str) -> None:
    (holder,) = post_holders(f"{time} Ben does the dishes.")
    assert holder.name == "Ben"


@pytest.mark.parametrize(
    "text",
    [
        "In 1998 Walter was our new secretary, and he typed every letter twice.",
        "In 1998 Walter is our new secretary.",
        "Walter was our new secretary.",
        "Walter became our secretary.",
        "Walter took over as our secretary.",
    ],
)
def test_who_had_a_post_in_the_past_does_not_have_it_now(text: str) -> None:
    (holder,) = post_holders(text, 2025)
    assert (holder.is_past, holder.is_new) == (True, False)


@pytest.mark.parametrize(
    ("text", "is_new"),
    [
        ("Ida is our new secretary from May 2025.", True),
        ("Ida is our new secretary from 2026.", True),
        ("Since May 2019 Ida is our new secretary.", False),
    ],
)
def test_only_who_gets_a_post_about_when_it_is_told_is_new(text: str, *, is_new: bool) -> None:
    (holder,) = post_holders(text, 2025)
    assert (holder.name, holder.is_new) == ("Ida", is_new)
