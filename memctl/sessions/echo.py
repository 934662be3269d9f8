"""What was put into a prompt from memory comes back in replies, and is no new evidence.

Each sentence of a text that goes into a prompt is noted as a hash.  A sentence of a turn with one
of these hashes is left out of what is taken over into the tables; the turn itself stays as it was
said.  What a user says counts as new, unless it stands there with the number it was cited by.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from memctl.language.sentence_splitting import split_sentences

if TYPE_CHECKING:
    from memctl.store.ledger.ledger import Ledger

REMEMBERED = timedelta(days=30)
"""How long what was put into a prompt may come back."""
SHORTEST = 24
"""Characters; what is shorter is said by chance."""
_MARK = re.compile(r"\s*(?:[-*>•]\s+)*(?P<number>\[\d+\]\s*)?(?:\([^()\n]{4,40}\):?\s*)?")
_SPEAKER = re.compile(r"[^\W\d_][\w.'’-]{0,30}(?: [A-Z][\w.'’-]{0,30}){0,2}: ")
_WORD = re.compile(r"\w+")


def note_injected(ledger: Ledger, text: str, at: datetime) -> None:
    """Record that a text goes into a prompt; does nothing where this process may only read."""
    lines = text.splitlines(keepends=True)
    digests = {_digest(said) for line in lines for _, _, said in _sentences(line)}
    if digests and ledger.is_writable:
        ledger.injected.note(sorted(digests), at)


def without_echo(ledger: Ledger, text: str, at: datetime, *, by_user: bool) -> str:
    """Return what a turn says without what comes from memory.

    Args:
        ledger: Knows what was put into prompts.
        text: What was said.
        at: When it was said.
        by_user: Whether a user says it: only what is marked as cited comes from memory then.
    """
    lines = text.splitlines(keepends=True)
    found = {_digest(said) for line in lines for _, _, said in _sentences(line)}
    known = ledger.injected.known(found, at - REMEMBERED) if found else frozenset()
    if not known:
        return text
    return "".join(
        _without_echoes(line, lambda said: _digest(said) in known, by_user) for line in lines
    )


def _without_echoes(line: str, is_known: Callable[[str], bool], by_user: bool) -> str:
    mark = _MARK.match(line)
    if by_user and not (mark and mark["number"]):
        return line
    sentences = list(_sentences(line))
    echoes = [(start, end) for start, end, said in sentences if is_known(said)]
    if not echoes:
        return line
    if len(echoes) == len(sentences):
        return ""
    kept, position = "", 0
    for start, end in echoes:
        kept += line[position:start]
        position = end
    return kept + line[position:]


def _sentences(line: str) -> Iterator[tuple[int, int, str]]:
    """Yield where the sentences of a line stand, without the mark before the first one."""
    mark = _MARK.match(line)
    begin = mark.end() if mark else 0
    if speaker := _SPEAKER.match(line, begin):
        begin = speaker.end()
    for start, end in split_sentences(line[begin:].rstrip()):
        said = line[begin + start : begin + end]
        if len(said) >= SHORTEST:
            yield begin + start, begin + end, said


def _digest(said: str) -> str:
    words = " ".join(_WORD.findall(said.casefold()))
    return hashlib.blake2b(words.encode("utf-8", "replace"), digest_size=12).hexdigest()
