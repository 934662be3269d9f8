"""A user's own condition: checked to be one complete expression, so that it stays in its place.

The check is on characters and brackets alone; whether columns and types exist is the engine's to
say.  It has to be here because lance 13 stops reading a filter at the first thing that cannot
continue it: ``id = 'x') OR (1 = 1`` is accepted, and changes meaning inside brackets.
"""

from __future__ import annotations

import re

from memctl.errors import UsageError

LONGEST = 10_000
"""Characters; tens of thousands of operators would overflow the engine's stack."""

_HINT = "write one SQL condition, such as: importance > 0.7 AND type = 'decision'"
# Text may not touch a word: E'..', X'..' and such have other rules for what ends them.
_TOKEN = re.compile(
    r"""
      (?P<text>(?<![A-Za-z0-9_])'(?:[^']|'')*'(?![A-Za-z0-9_]))
    | (?P<name>`[A-Za-z_][A-Za-z0-9_]*`)
    | (?P<bad>--|/\*|\*/)
    | (?P<open>[(\[])
    | (?P<close>[)\]])
    | (?P<plain>[A-Za-z0-9_\s.,<>=!+\-*/%|:]) """,
    re.VERBOSE | re.ASCII,
)
_PAIRS = {")": "(", "]": "["}


def checked(text: str) -> str:
    """Return ``text`` when it is a complete condition on its own.

    Raises:
        UsageError: It is empty, too long, unbalanced, or has comments, several statements or
            characters that a condition does not need.
    """
    if not text.strip():
        raise UsageError("the condition is empty", _HINT)
    if len(text) > LONGEST:
        raise UsageError(f"the condition is longer than {LONGEST} characters", _HINT)
    _check_brackets(text, list(_tokens(text)))
    return text


def _tokens(text: str) -> list[re.Match[str]]:
    tokens, at = [], 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None or token.lastgroup == "bad":
            raise UsageError(_complaint(text, at), _HINT)
        tokens.append(token)
        at = token.end()
    return tokens


def _complaint(text: str, at: int) -> str:
    if text[at] == '"':
        return "double quotes in a condition: text stands in single quotes, names in backticks"
    if text[at] == "'":
        return f"a quote that is not closed, or touches a word, at character {at + 1}"
    return f"{text[at : at + 2].strip() or text[at]!r} is not allowed at character {at + 1}"


def _check_brackets(text: str, tokens: list[re.Match[str]]) -> None:
    opened: list[str] = []
    for token in tokens:
        if token.lastgroup == "open":
            opened.append(token.group())
        elif token.lastgroup == "close" and (not opened or opened.pop() != _PAIRS[token.group()]):
            raise UsageError(f"a bracket closes nothing at character {token.start() + 1}", _HINT)
    if opened:
        raise UsageError(f"a bracket is not closed in {text!r}", _HINT)
