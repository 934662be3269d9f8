"""What a tier can hold: keys, values of JSON, and how long they last.

Knows nothing of where they are kept.
"""

from __future__ import annotations

import json
import math
from datetime import datetime, timedelta
from typing import Any

from memctl.errors import UsageError
from memctl.ids import storable
from memctl.pools import pool_values
from memctl.readers.data_files.nested_values import fields_of
from memctl.store.ledger.pool_repositories import encode_json

LARGEST_VALUE = 1 << 20
"""Bytes of a value as JSON."""
LONGEST_TTL = timedelta(days=366)
LONGEST_MEMORY = timedelta(days=36_525)
LONGEST_KEY = 500
"""Characters of a key."""


def checked_key(key: str) -> str:
    """Return a key as it is stored.

    Raises:
        UsageError: It is blank, too long, or has characters that cannot be shown.
    """
    if not key.strip():
        raise UsageError("a key is empty", "name what the value is, like next_step")
    if len(key) > LONGEST_KEY:
        raise UsageError(f"a key has at most {LONGEST_KEY} characters, not {len(key):,}")
    if not key.isprintable():
        raise UsageError(f"the key {key[:40]!r} has characters that cannot be shown")
    return key


def parse_value(text: str, *, as_text: bool = False) -> Any:
    """Return what a user writes as a value: JSON, else a text as it stands.

    Raises:
        UsageError: It begins like an object, a list or a quoted text of JSON, and is none.
    """
    if as_text:
        return text
    if text.lstrip()[:1] in ("{", "[", '"'):
        return pool_values.parse_json(text)
    try:
        return json.loads(text)
    except ValueError:
        return text


def checked_value(value: object, *, redacts: bool = False) -> tuple[Any, int]:
    """Return a value as JSON has it, and its size in bytes.

    Args:
        value: Anything that JSON has.
        redacts: Whether keys and passwords are taken out of its texts.

    Raises:
        UsageError: JSON has no such value, it is nested too deep, or too big.
    """
    plain = pool_values.checked_value(value)
    if redacts:
        plain = pool_values.without_secrets(plain)
    size = len(encode_json(plain).encode())
    if size > LARGEST_VALUE:
        raise UsageError(
            f"the value has {size:,} bytes, and a tier keeps at most {LARGEST_VALUE:,} in one",
            "keep it in a file, have memctl ingest take that in, and store its id",
        )
    return plain, size


def checked_ttl(
    ttl: float | None, default: float, *, minimum: float = 1, longest: timedelta = LONGEST_TTL
) -> float:
    """Return for how many seconds something lasts.

    Args:
        ttl: What was asked for; None for the default.
        default: What the settings say.
        minimum: The shortest time.
        longest: The longest time.

    Raises:
        UsageError: It is too short, too long, or no number.
    """
    wanted = default if ttl is None else ttl
    if not math.isfinite(wanted) or wanted < minimum:
        raise UsageError(
            f"nothing can be kept for {wanted:g} seconds", "give a time to live of 1 second or more"
        )
    if wanted > longest.total_seconds():
        raise UsageError(
            f"{wanted:,.0f} seconds are more than the {longest.days:,} days that a value lasts",
            "what is to stay is written to the tier long_term without a time to live",
        )
    return wanted


def end_of(now: datetime, ttl: float | None) -> datetime | None:
    """Return when something is over; None where it lasts as long as its session."""
    return None if ttl is None else now + timedelta(seconds=ttl)


def text_of(value: Any) -> str:
    """Return a value as text to search: as it is, or flattened to lines ``path: value``."""
    if isinstance(value, str):
        return storable(value)
    lines = (text if path == "value" else f"{path}: {text}" for path, text in fields_of(value))
    return storable("\n".join(lines))
