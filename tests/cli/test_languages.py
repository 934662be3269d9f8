"""What memctl query finds in a knowledge base of several languages."""

from __future__ import annotations

import json

import pytest

from .conftest import Run

ENGLISH = [f"Invoice {n} was paid by the tenant of the flat in March." for n in range(120)]
HUNGARIAN = {
    "berlet": "A lakások szerződéseit a portán őrzik, és a kulcsok is ott vannak.",
    "kert": "A kertben a fák alatt ülni nagyon jó, és a virágok is szépek.",
}
MANY = {
    "de": "Die Verträge der Mieter liegen im Schrank, und der Schlüssel ist beim Pförtner.",
    "fr": "Les contrats des locataires sont dans l'armoire, et la clé est chez le gardien.",
    "es": "Los contratos de los inquilinos están en el armario, y la llave la tiene el portero.",
    "it": "I contratti degli inquilini sono nell'armadio, e la chiave è dal portiere.",
    "pt": "Os contratos dos inquilinos estão no armário, e a chave está com o porteiro.",
    "nl": "De contracten van de huurders liggen in de kast, en de sleutel is bij de portier.",
    "sv": "Hyresgästernas avtal ligger i skåpet, och nyckeln är hos den som vaktar porten.",
}


@pytest.fixture
def letters(memctl: Run) -> Run:
    """Mostly English, with a few records in Hungarian that have a namespace of their own."""
    english = [{"id": f"en{n}", "namespace": "en", "text": text} for n, text in enumerate(ENGLISH)]
    hungarian = [{"id": id, "namespace": "hu", "text": text} for id, text in HUNGARIAN.items()]
    lines = "\n".join(map(json.dumps, [*english, *hungarian]))
    assert memctl("ingest", "--jsonl", "-", stdin=lines).code == 0
    return memctl


def test_a_few_records_in_another_language_are_asked_in_it_by_their_namespace(letters: Run) -> None:
    words = ("query", "kulcsot", "--namespace", "hu", "--mode", "keyword")
    found = letters(*words, "-o", "json").json["hits"]
    assert [hit["external_id"] for hit in found] == ["berlet"]


def test_a_question_is_asked_in_more_than_four_languages(memctl: Run) -> None:
    lines = "\n".join(json.dumps({"id": id, "text": text}) for id, text in MANY.items())
    assert memctl("ingest", "--jsonl", "-", stdin=lines).code == 0
    found = memctl("query", "hyresgästerna", "--mode", "keyword", "-o", "json").json["hits"]
    assert [hit["external_id"] for hit in found] == ["sv"]
