"""Secrets are taken out of text, and nothing else is."""

from __future__ import annotations

import re

import pytest
from bench.redaction.measure import cases, measured
from hypothesis import given
from hypothesis import strategies as st

from memctl.redaction import RULES, redact_query, redact_secrets, redact_with_offsets
from memctl.redaction.secret_rule import lower_same_length

SECRETS = [
    "sk-proj-" + "a1B2c3D4e5F6g7H8",
    "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a",
    "github_pat_" + "11ABCDEFG0123456789abcdef",
    "glpat-" + "abcDEF1234567890xyz",
    "xoxb-" + "123456789012-abcdefABCDEF",
    "AKIA" + "IOSFODNN7EXAMPLE",
    "AIza" + "SyA1234567890abcdefghijklmnopqrstuv",
    "hf_" + "abcdefghijABCDEFGHIJ1234",
    "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
    "d41d8cd98f00b204" + "e9800998ecf8427e",
    "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_what_has_the_shape_of_a_key_is_redacted(secret: str) -> None:
    assert redact_query(f"is {secret} still valid?") == "is [redacted] still valid?"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("login with password=hunter2!", "login with password=[redacted]"),
        ('the "api_key": "abcd1234"', 'the "api_key": "[redacted]"'),
        ("DB_PASSWORD: s3cret, please", "DB_PASSWORD: [redacted], please"),
        ("Authorization: Bearer abc123def456ghi", "Authorization: Bearer [redacted]"),
        ("postgres://ann:s3cret@db/notes", "postgres://ann:[redacted]@db/notes"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- ?", "[redacted] ?"),
    ],
)
def test_redaction_keeps_the_words_that_say_what_a_secret_is_for(text: str, left: str) -> None:
    assert redact_query(text) == left
    assert redact_query(left) == left, "and again changes nothing"


@pytest.mark.parametrize(
    "text",
    [
        "When does the lease for the Harbour Street workshop start?",
        "what is the door code, 4711 or 0815?",
        "the password of the wifi in the workshop",
        "who wrote 2026-03-24-lease-signed-with-quayside-estates-Final2.md?",
        "~/Documents/Taxes2025/Invoices/Quarter1/HarbourStreet/overview.pdf",
        "https://example.org/a/very/long/path/with/Many/Parts/and1/more2",
        "call +49 170 1234567 or mail ann.lee@example.org",
        "order d_4b20decdfb706d6c70095258 and q_64de54c7c1d1",
        "Donaudampfschifffahrtsgesellschaftskapitän",
        "the token economy: how does it work",
    ],
)
def test_ordinary_speech_is_not_redacted(text: str) -> None:
    assert redact_query(text) == text


# --- in documents --------------------------------------------------------------------------------


IN_DOCUMENTS = [
    ("export AWS_SECRET_ACCESS_KEY=" + "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalr"),
    ("aws_access_key_id = AKIA" + "IOSFODNN7EXAMPLE", "IOSFODNN"),
    ("the runner uses ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a for that", "16C7e42F"),
    ("OPENAI_API_KEY=sk-proj-" + "a1B2c3D4e5F6g7H8i9J0", "a1B2c3D4"),
    ("SLACK: xoxb-" + "123456789012-abcdefABCDEF", "123456789012"),
    (
        "Cookie: jwt=eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w",
        "doz",
    ),
    ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz\n-----END OPENSSH PRIVATE KEY-----", "b3Blb"),
    ("postgres://ann:correcthorse@db.example.org/notes", "correcthorse"),
    ("Router: user admin, password: Tr0ub4dor&3", "Tr0ub4dor"),
    ('{"client_secret": "8f3Kq-21aZ"}', "8f3Kq"),
    ("password=hunter2!", "hunter2"),
]
NO_SECRETS = [
    "The secret: never let the dough get warm.",
    "Password: see the envelope in the safe.",
    "password = os.environ['DB_PASSWORD']",
    "token = tokenizer.encode(text)[0]",
    "api_key=settings.endpoint.api_key2",
    "sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "commit d670460b4b4aece5915caf5c68d12f560a9fe3e4",
    "https://example.org:8443/@ann/notes",
    "Basic rules: 12 players a side.",
    "The token ring of 1985 had a token: 24 bits long.",
]


@pytest.mark.parametrize(("text", "secret"), IN_DOCUMENTS)
def test_a_secret_in_a_document_is_redacted(text: str, secret: str) -> None:
    assert secret not in redact_secrets(text)
    assert "[redacted]" in redact_secrets(text)
    assert redact_secrets(redact_secrets(text)) == redact_secrets(text)


@pytest.mark.parametrize("text", NO_SECRETS)
def test_text_that_only_looks_like_a_secret_is_not_redacted_in_a_document(text: str) -> None:
    assert redact_secrets(text) == text


@given(
    st.lists(
        st.sampled_from([*(text for text, _ in IN_DOCUMENTS), *NO_SECRETS, "plain"]), max_size=8
    )
)
def test_places_in_a_redacted_document_are_those_of_the_same_words(lines: list[str]) -> None:
    text = "\n".join(["begin", *lines, "the end"])
    starts = [match.start() for match in re.finditer("begin|the end|plain", text)]
    clean, moved = redact_with_offsets(text, [*starts, len(text)])
    assert moved == sorted(moved)
    assert moved[-1] == len(clean)
    for before, after in zip(starts, moved, strict=False):
        assert clean[after : after + 5] == text[before : before + 5]


def test_every_secret_of_a_labelled_sample_is_found_and_nothing_else() -> None:
    sample = list(cases())
    precision, recall = measured(sample)
    assert len(sample) > 400
    assert precision == 1.0, [
        case.text for case in sample if not case.secret and not case.is_untouched
    ]
    assert recall == 1.0, [case.text for case in sample if case.secret and not case.is_found]


def test_a_key_that_is_cut_off_takes_its_own_lines_and_not_the_rest() -> None:
    begun = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n" * 2
    text = f"Before.\n{begun}\nAfter that the ferry leaves at nine.\n"
    assert redact_secrets(text) == "Before.\n[redacted]\n\nAfter that the ferry leaves at nine.\n"


@given(st.lists(st.sampled_from([case.text for case in cases()]) | st.text(max_size=9)))
def test_patterns_find_what_they_find_though_they_are_tried_where_they_may_begin_alone(
    pieces: list[str],
) -> None:
    for text in (" ".join(pieces), "".join(pieces)):
        low = lower_same_length(text)
        for rule in RULES:
            found = list(rule.pattern.finditer(text))
            assert [match.span() for match in rule.matches(text, low)] == [m.span() for m in found]
            if any(map(rule.is_sure, found)) and rule.triggers:
                assert any(word in low for word in rule.triggers)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (
            "data:\n  user: YWRtaW4=\n  dsn: cG9zdGdyZXM=\nkind: Secret\nmetadata:\n  name: db\n",
            "data:\n  user: [redacted]\n  dsn: [redacted]\nkind: Secret\nmetadata:\n  name: db\n",
        ),
        (
            '{"kind": "Secret", "data": {"user": "YWRtaW4=", "dsn": "cG9zdGdyZXM="}}',
            '{"kind": "Secret", "data": {"user": "[redacted]", "dsn": "[redacted]"}}',
        ),
        (
            "kind: Secret\ndata:\n  key: YWRtaW4=\n---\nkind: Other\ndata:\n  mode: cHJvZA==\n",
            "kind: Secret\ndata:\n  key: [redacted]\n---\nkind: Other\ndata:\n  mode: cHJvZA==\n",
        ),
        (
            f"Cookie: theme=dark; id={'a1' * 12}; csrf={'b2' * 12}; lang=en",
            "Cookie: theme=dark; id=[redacted]; csrf=[redacted]; lang=en",
        ),
        (
            '"passwords": ["owl-Barn-1", "apple", "owl9"]',
            '"passwords": ["[redacted]", "apple", "owl9"]',
        ),
    ],
    ids=["manifest", "manifest as JSON", "the next one", "cookies", "a list"],
)
def test_of_several_in_one_place_each_goes_and_what_is_between_stays(text: str, left: str) -> None:
    assert redact_secrets(text) == left
