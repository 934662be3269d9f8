"""What recall gives a model to answer from, and in which order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from set_clock import Clock, home_at

from memctl.config import load_config
from memctl.home import Home
from memctl.operations.finding import RecallParameters, recall
from memctl.operations.operation_context import OperationContext

HEADER = """From: Ida Holm <ida@example.org>
To: Rui Santos <rui@example.org>
Cc: Ann Lee <ann@example.org>
Date: Mon, 4 May 2026 10:00:00 +0000
Subject: Roof contractor offer
"""
BODY = "\n\n".join(
    f"Row {row}: the contractor asks {row * 13} euros for the tiles of row {row}, which arrive in"
    f" week {row}; before anybody climbs, the scaffold and the weather are looked at."
    for row in range(1, 16)
)


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OperationContext]:
    """A home with a mail whose header is a passage of its own."""
    folder = tmp_path_factory.mktemp("recall")
    mail = folder / "offer.eml"
    mail.write_text(f"{HEADER}Content-Type: text/plain\n\nHello Rui,\n\n{BODY}\n")
    home = Home(load_config({"home": str(folder / "home")}, {}))
    home.create("default")
    with home.open("default") as base:
        base.ingest([mail])
        passages = base.memories.list().to_pylist()
        assert any(row["text"].strip().endswith("Roof contractor offer") for row in passages)
    with OperationContext.of(home) as made:
        yield made


@pytest.mark.parametrize(
    "question",
    ["What did Ida Holm write to Rui about the roof contractor offer?", "roof contractor offer"],
)
def test_what_a_mail_says_comes_before_its_header(context: OperationContext, question: str) -> None:
    quotes = [each.quote for each in recall(context, RecallParameters(question=question)).citations]
    assert quotes
    assert "euros for the tiles" in quotes[0]
    headers = [quote.startswith("From: ") for quote in quotes]
    assert headers == sorted(headers), "headers come last"


@pytest.mark.parametrize(
    ("question", "older", "newer", "first"),
    [
        ("What is the code of the safe?", "The code of the safe is 4711.",
         "The code of the safe is 9933.", "newer"),
        ("What is the budget of Lyra?", "The budget of the Lyra project is 40,000 euros.",
         "The budget of the Lyra project was raised to 55,000 euros.", "newer"),
        ("How much was the January invoice?", "The January invoice of Ardent is 120 euros.",
         "The March invoice of Ardent is 90 euros.", "older"),
    ],
)  # fmt: skip
def test_of_two_statements_that_conflict_the_newer_one_comes_first(
    tmp_path: Path, question: str, older: str, newer: str, first: str
) -> None:
    clock = Clock()
    home = home_at(tmp_path, clock)
    with home.open("default") as base:
        for text in (older, newer):
            base.memories.add(text)
            clock.forward(days=20)
    with OperationContext.of(home) as context:
        found = recall(context, RecallParameters(question=question)).citations
    expected = [newer, older] if first == "newer" else [older, newer]
    assert [each.quote for each in found] == expected
