"""``[[wikilinks]]`` and ``#tags`` in text, code left out."""

from __future__ import annotations

import re

_CODE = re.compile(r"^(```|~~~).*?^\1[^\n]*$|`[^`\n]+`", re.M | re.S)
_LINK = re.compile(r"\[\[([^\[\]|#\n]{1,200})(?:#[^\[\]|\n]*)?(?:\|[^\[\]\n]*)?\]\]")
_TAG = re.compile(r"(?<![^\s(\[{,;])#([^\W\d_][\w/-]*|\d+[\w/-]*[^\W\d_][\w/-]*)")
_COLOUR = re.compile(
    r"(?=.*\d)(?:[0-9a-fA-F]{3,4}|[0-9a-fA-F]{6}|[0-9a-fA-F]{8})$|[fF]{3}(?:[fF]{3})?$"
)


def without_code(text: str) -> str:
    """The text with code blocks and code spans taken out."""
    return _CODE.sub(" ", text)


def wikilinks(text: str) -> tuple[str, ...]:
    """Targets of wikilinks, without alias and heading, each once, in order."""
    return tuple(
        dict.fromkeys(m[1].strip() for m in _LINK.finditer(without_code(text)) if m[1].strip())
    )


def hashtags(text: str) -> tuple[str, ...]:
    """Tags without their ``#``, each once, in order; colours and numbers are none."""
    found = (match[1].rstrip("/-") for match in _TAG.finditer(without_code(text)))
    return tuple(dict.fromkeys(tag for tag in found if tag and not _COLOUR.match(tag)))
