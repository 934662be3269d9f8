"""Secrets are taken out of text, and nothing else is."""

from __future__ import annotations

import pytest

from memctl.redaction import redacted

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
    assert redacted(f"is {secret} still valid?") == "is [redacted] still valid?"


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
def test_what_a_secret_is_for_stays(text: str, left: str) -> None:
    assert redacted(text) == left
    assert redacted(left) == left, "and again changes nothing"


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
def test_what_people_just_say_stays(text: str) -> None:
    assert redacted(text) == text
