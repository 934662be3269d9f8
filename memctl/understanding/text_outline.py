"""A document as the lines that understanding looks at: its sentences, each with kind and speaker.

Tables and code are not sentences and have no lines here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from msgspec import Struct

from memctl.language.inline_tags import code_in
from memctl.language.sentence_splitting import has_empty_line, split_sentences
from memctl.language.word_lists import word_set
from memctl.patterns import lazy_regex
from memctl.records import Segment, SegmentKind, SourceText

ROLES = frozenset(("user", "human", "agent", "assistant", "ai", "bot", "system", "tool"))
"""What a speaker may be called who has no name."""
WITHOUT_SENTENCES: frozenset[SegmentKind] = frozenset({"table", "code", "properties"})

_NAME = r"[^\W\d_a-z][\w.'’-]{0,24}(?: [^\W\d_a-z][\w.'’-]{0,24}){0,3}"
_SPOKEN = lazy_regex(rf"(?P<name>{_NAME}|[a-z]{{3,15}}): +(?=\S)")
_PREFIX = lazy_regex(r"[^:>\n]{1,60}(?::|>)(?:\*\*|__)?\s*")
_NOT_NAMES = word_set(
    """note notes nb ps important remember reminder decision decided decisions todo action actions
    plan plans fact facts warning caution attention deadline due budget address phone date time
    subject re from to cc bcc title summary agenda next question answer q a example idea tip
    step status price cost total result results present apologies update edit source see also
    ingredients location where when who what why how wall goal goals problem solution
    conclusion context outcome debug error notice trace fatal critical http https file
    log output input usage returns raises args type default today tomorrow monday tuesday
    wednesday thursday friday saturday sunday lesson observation finding blood name names
    birthday email tel web url hint info"""
)
_DAY = r"\d{1,2} [A-Z]\w+ \d{4}"
DATED_PREFIX = lazy_regex(rf"(?P<alone>{_DAY}: )|[^\n]{{0,250}}?(?P<titled> ?\({_DAY}\)): ")
"""The day that a statement was given to stand alone, perhaps after its title."""
_CONVERSING = lazy_regex(r"\b(?:I|I['’]\w+|you|my|your|me|we|our|us|i|im|u)\b|[!?]")


class Line(Struct, frozen=True):
    """One sentence: ``text[start:end]``, without the name of who said it."""

    start: int
    end: int
    kind: SegmentKind = "prose"
    speaker: str | None = None
    said_at: datetime | None = None
    heading: str = ""


def text_outline(source: SourceText) -> list[Line]:
    """Return the sentences of a document, in order."""
    text = source.text
    if source.segments:
        return [line for segment in source.segments for line in _segment_lines(text, segment)]
    spans = split_sentences(text)
    if ": " not in text:
        return [Line(*span) for span in spans]
    return _one_turn(text, spans) if "\n" not in text else list(_with_speakers(text, spans))


def body_text(source: SourceText, lines: Sequence[Line]) -> str:
    """Return what a document says, without front matter, headers and other properties of it.

    Data without a sentence is nothing but its values, and a document without lines all its text.
    """
    if not lines or not source.segments:
        return source.text
    parts = [part for part in source.segments if part.kind != "properties"]
    return "\n\n".join(source.text[part.start : part.end] for part in parts)


def code_spans(source: SourceText) -> list[tuple[int, int]]:
    """Return where the document's code stands."""
    return [(part.start, part.end) for part in source.segments if part.kind == "code"]


def speaker_of(turn: str) -> str | None:
    """Return who says a turn of a conversation, where it begins with a name and a colon."""
    said = _SPOKEN.match(turn) if ": " in turn else None
    return said["name"] if said and _is_speaker(said["name"]) else None


def with_speaker(turn: str, speaker: str | None) -> str:
    """Return a turn after the name of who says it, as chats are written down; a role is no name."""
    if speaker is None or speaker.casefold() in ROLES or turn.startswith(speaker):
        return turn
    return f"{speaker}: {turn}"


def spoken_text(text: str, level: str, speaker: str | None) -> str:
    """Return what finds a memory: evidence after the name of who says it, else the text alone.

    The day that a statement begins with is the date of its row, where periods are looked for.
    """
    if level == "evidence":
        return with_speaker(text, speaker)
    dated = DATED_PREFIX.match(text)
    if dated is None:
        return text
    start, end = dated.span("alone" if dated["alone"] else "titled")
    return f"{text[:start]}{text[end:]}"


def _segment_lines(text: str, segment: Segment) -> Iterator[Line]:
    if segment.kind in WITHOUT_SENTENCES:
        return
    start = segment.start
    if segment.speaker:
        start = _after_prefix(text, segment)
    said = text[start : segment.end]
    code = code_in(said) if "```" in said else []
    for begin, end in split_sentences(said):
        if any(first <= begin and end <= last for first, last in code):
            continue
        yield Line(
            start + begin,
            start + end,
            segment.kind,
            segment.speaker,
            segment.said_at,
            segment.heading,
        )


def _after_prefix(text: str, segment: Segment) -> int:
    """Where the words of a turn begin, after a stamp and the speaker's name."""
    speaker = segment.speaker or ""
    named = text.find(speaker, segment.start, min(segment.end, segment.start + 100))
    if named < 0:
        return segment.start
    prefix = _PREFIX.match(text, named, segment.end)
    return prefix.end() if prefix else segment.start


def _one_turn(text: str, spans: list[tuple[int, int]]) -> list[Line]:
    """A single line may be what one person said: ``Ann: I prefer tea``."""
    said = _SPOKEN.match(text)
    if not said or not _is_speaker(said["name"]) or not _CONVERSING.search(text, said.end()):
        return [Line(*span) for span in spans]
    start = said.end()
    return [
        Line(max(begin, start), end, "turn", said["name"]) for begin, end in spans if end > start
    ]


def _is_speaker(name: str) -> bool:
    plain = name.lower()
    return plain not in _NOT_NAMES and plain.partition(" ")[0] not in _NOT_NAMES


def _with_speakers(text: str, spans: Iterable[tuple[int, int]]) -> Iterator[Line]:
    """Take ``Name: `` at the start of a line for its speaker where the text is a conversation."""
    spans = list(spans)
    names = _speakers(text, spans)
    speaker: str | None = None
    previous = 0
    for start, end in spans:
        said = _SPOKEN.match(text, start, end)
        if said and said["name"] in names:
            speaker, start = said["name"], said.end()
        elif has_empty_line(text[previous:start]):
            speaker = None
        yield Line(start, end, "turn" if speaker else "prose", speaker)
        previous = end


def _speakers(text: str, spans: list[tuple[int, int]]) -> frozenset[str]:
    """Names that open line after line."""
    found = Counter(
        said["name"]
        for start, end in spans
        if (said := _SPOKEN.match(text, start, end)) and _is_speaker(said["name"])
    )
    if not found:
        return frozenset()
    lines = text.strip().count("\n") + 1
    spoken = sum(found.values())
    is_chat = 2 * spoken >= lines and (max(found.values()) > 1 or _CONVERSING.search(text))
    return frozenset(found) if is_chat else frozenset()
