"""Text without what looks like a key, a token or a password.

Patterns that seldom err: prefixes that providers give their keys, the shapes of tokens, what is
assigned to a name such as ``password`` or said after it, and kinds of files that have secrets.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import accumulate

from memctl.redaction.assigned_secrets import ASSIGNED
from memctl.redaction.secret_rule import Rule, Span, lower_same_length
from memctl.redaction.secret_shapes import BLOCKS, FILES, KEYS, RANDOM
from memctl.redaction.spoken_secrets import SPOKEN

MARK = "[redacted]"

RULES = (BLOCKS, KEYS, *FILES, *ASSIGNED, *SPOKEN)
_TRIGGERS = frozenset(word for rule in RULES for word in rule.triggers)


def redact_query(text: str) -> str:
    """Return ``text`` with ``[redacted]`` in place of what looks like a secret.

    That includes any long run of random letters and digits: no question is about a checksum.
    """
    text = RANDOM.sub(MARK, _without_any(text, (BLOCKS, KEYS)))
    return redact_secrets(_without_any(text, ASSIGNED))


def redact_secrets(text: str) -> str:
    """Return a text of a document with ``[redacted]`` in place of what surely is a secret.

    Checksums and ids stay, and so does an ordinary word that follows ``password:`` in a sentence.
    """
    return redact_with_offsets(text, ())[0]


def redact_name(name: str) -> str:
    """Return a name as :func:`redact_secrets` does; two that differ in a secret alone stay two.

    What tells them apart is a short hash of the whole.
    """
    clean = redact_secrets(name)
    whole = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return name if clean == name else f"{clean}#{whole[:16]}"


def redact_with_offsets(text: str, offsets: Sequence[int]) -> tuple[str, list[int]]:
    """Return a text as :func:`redact_secrets` does, and where the places in it are then.

    Args:
        text: Of a document.
        offsets: Places in it; one within a secret will be where its ``[redacted]`` begins.
    """
    moved, low = list(offsets), lower_same_length(text)
    for rule in _rules_for(low):
        spans = [s for m in rule.matches(text, low) if rule.is_sure(m) for s in rule.spans(m)]
        if spans:
            moved = _shift_offsets(moved, spans)
            text = _without(text, spans)
            low = lower_same_length(text)
    return text, moved


def _rules_for(low: str) -> Iterator[Rule]:
    """Yield the rules that may find something in a text, in lower case."""
    there = {word for word in _TRIGGERS if word in low}
    return (rule for rule in RULES if not rule.triggers or not there.isdisjoint(rule.triggers))


def _without_any(text: str, rules: Iterable[Rule]) -> str:
    """Return a text without whatever some rules find, sure or not."""
    for rule in rules:
        found = rule.matches(text, lower_same_length(text))
        text = _without(text, [span for match in found for span in rule.spans(match)])
    return text


def _without(text: str, spans: Sequence[Span]) -> str:
    kept, last = [], 0
    for start, end in spans:
        kept += [text[last:start], MARK]
        last = end
    return "".join([*kept, text[last:]])


def _shift_offsets(offsets: Iterable[int], spans: Sequence[Span]) -> list[int]:
    """Where places are after each span has become a mark."""
    starts = [start for start, _ in spans]
    growth = [0, *accumulate(len(MARK) - (end - start) for start, end in spans)]
    moved = []
    for offset in offsets:
        number = bisect_left(starts, offset)  # so many spans begin before it
        if number and offset < spans[number - 1][1]:
            moved.append(spans[number - 1][0] + growth[number - 1])
        else:
            moved.append(offset + growth[number])
    return moved
