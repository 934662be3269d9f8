"""Whether a sentence of a model stands in the memories that it cites."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memctl.understanding.evidence_support import Evidence, measure_support

SAID = datetime(2026, 3, 2, tzinfo=UTC)
ENGLISH = Evidence(
    "Aurora plan\nWe decided to launch Aurora on 2026-05-12. Its budget is 40,000 euros."
    " Ann Lee signs tomorrow, and three people help her at 9:30.",
    SAID,
)
GERMAN = Evidence("Der Start von Aurora ist am 12. Mai 2026. Das Budget ist 40.000 Euro.", SAID)


@pytest.mark.parametrize(
    "sentence",
    [
        "Aurora launches on 12 May 2026.",
        "The launch is on May 12th, a Tuesday.",
        "The budget is €40,000.",
        "Ann signs on 3 March 2026.",
        "As of 2 March 2026, 3 people help Ann Lee's team at 9:30.",
        "Yes, the launch of Aurora was decided.",
        "Yes.",
    ],
)
def test_what_the_evidence_says_in_other_words_is_supported(sentence: str) -> None:
    assert measure_support(sentence, [ENGLISH], ("en",)).is_enough


@pytest.mark.parametrize(
    ("sentence", "missing"),
    [
        ("Aurora launches on 13 May 2026.", "13"),
        ("2026-05-13 is the launch of Aurora.", "2026-05-13"),
        ("Boreas launches on 12 May.", "Boreas"),
        ("The budget is 41,000 euros.", "41,000"),
        ("Its budget of 40,000 euros was signed by Bob.", "Bob"),
        ("Four people help her at 9:45.", "9:45"),
    ],
)
def test_a_number_or_a_name_that_the_evidence_lacks_is_told(sentence: str, missing: str) -> None:
    found = measure_support(sentence, [ENGLISH], ("en",))
    assert missing in found.missing
    assert not found.is_enough


def test_a_sentence_of_other_words_is_not_supported() -> None:
    found = measure_support("It will be warm and pleasant at the harbour.", [ENGLISH], ("en",))
    assert found.share < 0.5
    assert not found.is_enough


def test_several_memories_support_a_sentence_together() -> None:
    sentence = "Aurora launches on 12 May 2026, and Bob pays."
    assert not measure_support(sentence, [ENGLISH], ("en",)).is_enough
    assert measure_support(sentence, [ENGLISH, Evidence("Bob pays.", SAID)], ("en",)).is_enough


def test_german_nouns_are_no_names() -> None:
    assert measure_support(
        "Der Starttermin für Aurora ist der 12. Mai.", [GERMAN], ("de", "en")
    ).is_enough
    assert not measure_support("Aurora startet am 13. Mai 2026.", [GERMAN], ("de", "en")).is_enough
