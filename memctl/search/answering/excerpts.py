"""Excerpts and citations: how evidence is shown, in which order and with which headings."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from memctl.language.inline_tags import without_wikilinks
from memctl.patterns import lazy_regex
from memctl.records import Citation, Hit
from memctl.search.answering.evidence_parts import is_table_row

UNSURE = "Unsure. Closest in memory:"
"""Before an answer that may be none."""
INSIGHTS = "What is known in short:"
EVIDENCE = "Evidence:"
DOUBT = ", though nothing known clearly bears on the question"
_MARKERS = lazy_regex(r"^(?:[-*+•>]\s+|\d{1,3}[.)]\s+|\[[ xX]\]\s+)+")
_IN_WORDS = r"a|abbr|b|code|em|font|i|kbd|mark|s|small|span|strong|sub|sup|u"
_IN_BLOCKS = (
    r"blockquote|br|center|dd|details|div|dl|dt|figure|h[1-6]|hr|img|li|ol|p|picture|pre|source"
    r"|summary|table|tbody|td|th|thead|tr|ul"
)
_HTML_WORD = lazy_regex(rf"</?(?:{_IN_WORDS})(?:\s[^<>]*)?/?>", re.IGNORECASE)
_HTML_BLOCK = lazy_regex(rf"</?(?:{_IN_BLOCKS})(?:\s[^<>]*)?/?>|<!--+|--+>", re.IGNORECASE)
_FENCE = lazy_regex(r"^[ \t]*(?:```|~~~)[\w+-]*[ \t]*$", re.MULTILINE)
_BOLD = lazy_regex(r"(?<![\w*])\*\*(?=\S)([^*\n]+)(?<=\S)\*\*(?![\w*])")
_RST_ROLE = lazy_regex(r"(?<![\w`]):(?:[a-z]+:)?[a-z_]+:`([^`<\n]+?)(?:\s+<[^`>\n]*>)?`")
_RST_LITERAL = lazy_regex(
    r"(?<![\w`]):(?:samp|code|file|option|kbd|envvar|program|literal|math):`([^`\n]+)`"
)
"""What stands in such a role between ``<`` and ``>`` is no target of a link."""
_RST_CODE = lazy_regex(r"(?<!`)``([^`\n]+)``(?!`)")
_RST_DIRECTIVE = lazy_regex(
    r"^[ \t]*\.\. (?:code-block|highlight|only|parsed-literal|index|contents)::[^\n]*",
    re.MULTILINE,
)
_RULE = lazy_regex(r"[|:\s-]*-[|:\s-]*")
_HTML_ENTITY = lazy_regex(r"&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z]{2,8});", re.IGNORECASE)
_ANY_TIME = datetime.min.replace(tzinfo=UTC)
_SLASH = lazy_regex(r"[/\\]")


class HitExcerpt(Struct, frozen=True):
    """The part of a hit that is shown: ``hit.text[start:end]``."""

    hit: Hit
    start: int
    end: int

    @property
    def text(self) -> str:
        """The text shown."""
        return self.hit.text[self.start : self.end]

    @property
    def group(self) -> tuple[str, ...]:
        """What is read together: a conversation, or a document."""
        return conversation_of(self.hit) or self.hit.document

    @property
    def is_turn(self) -> bool:
        """Whether it is a turn of a conversation."""
        return self.hit.type == "turn" and self.hit.level == "evidence"

    @property
    def position(self) -> tuple[datetime, int, int]:
        """Its position in its group."""
        if conversation_of(self.hit):
            return self.hit.created_at, self.hit.turn or 0, self.offset
        return _ANY_TIME, 0, self.offset

    @property
    def offset(self) -> int:
        """Where the hit's text begins in the document; 0 if unknown."""
        return self.hit.start if _has_offsets(self.hit) and self.hit.start is not None else 0


def joined_by_passage(excerpts: Iterable[HitExcerpt]) -> list[HitExcerpt]:
    """Return one excerpt of each passage, from the first to the last of those given."""
    joined: dict[str, HitExcerpt] = {}
    for each in excerpts:
        first = joined.get(each.hit.memory_id, each)
        joined[each.hit.memory_id] = replace(first, end=each.end)
    return list(joined.values())


def conversation_of(hit: Hit) -> tuple[str, ...] | None:
    """Return the conversation that a hit is a turn of; None if it is no turn."""
    if hit.level != "evidence" or hit.type != "turn" or hit.session_id is None:
        return None
    return hit.kb, hit.namespace, hit.session_id


class SharedOrigin(Struct, frozen=True):
    """What all evidence of a context has in common, which is said once."""

    name: str = ""
    """The title, or else the file, that all of it is from."""
    day: str = ""
    """The day that all of it is from."""
    in_doubt: bool = False
    """Whether it may have nothing to do with the question."""

    @property
    def heading(self) -> str:
        """The line above the evidence."""
        known = [f"from {self.name}" if self.name else "", self.day]
        text = f"{EVIDENCE[:-1]} {', '.join(filter(None, known))}".rstrip()
        return f"{text}{DOUBT if self.in_doubt else ''}:"

    def origin(self, hit: Hit) -> str:
        """Return in one line where a hit is from, apart from what all have in common."""
        parts = ["" if self.name else _name(hit), hit.heading]
        parts.append(f"page {hit.page}" if hit.page is not None else "")
        parts.append(f"row {hit.row}" if hit.row is not None else "")
        parts.append(f"at {hit.time_start:.0f} s" if hit.time_start is not None else "")
        parts.append("" if self.day else _day(hit))
        return ", ".join(" ".join(part.split()) for part in parts if part)


def plain_quote(text: str) -> str:
    """Return a quote in one line, without marks of lists, bold type, links to notes, RST and HTML.

    Addresses of links stay: they may be what is asked for.
    """
    shown = _BOLD.sub(r"\1", without_html(without_wikilinks(_FENCE.sub("", text))))
    without_rst = _RST_LITERAL.sub(r"``\1``", _RST_DIRECTIVE.sub("", shown))
    without_rst = _RST_ROLE.sub(r"\1", without_rst)
    shown = _RST_CODE.sub(r"`\1`", without_rst) if without_rst.strip() else shown
    return " ".join(_MARKERS.sub("", shown).split())


def without_html(text: str) -> str:
    """Return the words of a text in which tags of HTML stand, as Markdown often has them."""
    if "<" in text:
        plain = _HTML_BLOCK.sub(" ", _HTML_WORD.sub("", text))
        text = plain if any(map(str.isalnum, plain)) else text
    return _HTML_ENTITY.sub(lambda found: html.unescape(found.group()), text)


NO_SHARED_ORIGIN = SharedOrigin()


def shared_origin(hits: Iterable[Hit]) -> SharedOrigin:
    """Return what several hits have in common; nothing for a single one."""
    evidence = [hit for hit in hits if hit.level != "insight"]
    if len(evidence) < 2:
        return NO_SHARED_ORIGIN
    names, days = {_name(hit) for hit in evidence}, {_day(hit) for hit in evidence}
    return SharedOrigin(
        " ".join(names.pop().split()) if len(names) == 1 else "",
        days.pop() if len(days) == 1 else "",
    )


def render_excerpts(
    items: Sequence[HitExcerpt], shared: SharedOrigin
) -> tuple[str, tuple[Citation, ...]]:
    """Return excerpts as text, insights first, with a citation of each."""
    in_order = number_excerpts(items)
    insights = [pair for pair in in_order if pair[1].hit.level == "insight"]
    parts: list[str] = []
    for heading, group, origin in (
        (INSIGHTS, insights, NO_SHARED_ORIGIN),
        (shared.heading, in_order[len(insights) :], shared),
    ):
        if group:
            parts.append("\n\n".join([heading, *_blocks(group, origin)]))
    return "\n\n".join(parts), tuple(cite(number, item) for number, item in in_order)


def number_excerpts(items: Sequence[HitExcerpt]) -> list[tuple[int, HitExcerpt]]:
    """Return excerpts in reading order, with the numbers to cite them by."""
    insights = [item for item in items if item.hit.level == "insight"]
    return list(enumerate([*insights, *_without_overlaps(_reading_order(items))], start=1))


def _reading_order(items: Sequence[HitExcerpt]) -> list[HitExcerpt]:
    evidence = [item for item in items if item.hit.level != "insight"]
    groups: dict[tuple[str, ...], int] = {}
    for item in sorted(evidence, key=lambda item: item.hit.rank):
        groups.setdefault(item.group, len(groups))
    return sorted(evidence, key=lambda item: (groups[item.group], *item.position, item.hit.rank))


def _without_overlaps(ordered: Sequence[HitExcerpt]) -> Iterator[HitExcerpt]:
    """Cut from each passage what the one before it in the document has already."""
    ends: dict[tuple[str, str], int] = {}
    for item in ordered:
        if not _has_offsets(item.hit):
            yield item
            continue
        end = ends.get(item.hit.document, 0)
        start = max(item.start, end - item.offset)
        ends[item.hit.document] = max(end, item.offset + item.end)
        if start < item.end and item.hit.text[start : item.end].strip():
            yield replace(item, start=start)


def _blocks(pairs: Iterable[tuple[int, HitExcerpt]], shared: SharedOrigin) -> Iterator[str]:
    """Yield the blocks of text; the turns of one conversation and day are one block."""

    def heading(pair: tuple[int, HitExcerpt]) -> tuple[bool, tuple[str, ...], str]:
        return pair[1].is_turn, pair[1].group, shared.origin(pair[1].hit)

    for (is_turn, _, origin), group in groupby(pairs, heading):
        items = list(group)
        if is_turn and len(items) > 1:
            yield "\n".join([f"{origin}:"] * bool(origin) + [render_line(*pair) for pair in items])
        else:
            yield from (render_block(number, item, shared) for number, item in items)


def render_line(number: int, item: HitExcerpt) -> str:
    """Return a turn below a heading: its words on one line."""
    words = " ".join(without_wikilinks(item.text).split())
    return "\n".join([f"[{number}] {words}", *_ended_facts(item)])


def render_block(number: int, item: HitExcerpt, shared: SharedOrigin = NO_SHARED_ORIGIN) -> str:
    """Return an excerpt that stands alone: its number, its origin and its text."""
    origin = shared.origin(item.hit)
    text = "\n".join([without_wikilinks(item.text).strip(), *_ended_facts(item)])
    return f"[{number}] {origin}\n{text}" if origin else f"[{number}] {text}"


def _ended_facts(item: HitExcerpt) -> Iterator[str]:
    """Yield a line for each fact in an excerpt that has ended."""
    offset, text = item.offset, item.hit.text
    for fact in item.hit.ended:
        start, end = max(fact.start - offset, item.start), min(fact.end - offset, item.end)
        if start < end:
            words = " ".join(text[start:end].split())
            yield f"(known since {fact.at.date().isoformat()} to hold no longer: “{words}”)"


def _name(hit: Hit) -> str:
    return hit.title or _SLASH.split(hit.source)[-1]


def _day(hit: Hit) -> str:
    return hit.created_at.date().isoformat()


def cite(number: int, item: HitExcerpt) -> Citation:
    """Return the citation of an excerpt; without offsets unless its text is that of a document."""
    hit = item.hit
    begin = hit.start if _has_offsets(hit) else None
    return Citation(
        number=number,
        kb=hit.kb,
        memory_id=hit.memory_id,
        document_id=hit.document_id,
        source=hit.source,
        title=hit.title,
        quote=item.text,
        start=None if begin is None else begin + item.start,
        end=None if begin is None else begin + item.end,
        page=hit.page,
        row=_row_of(item),
        time_start=hit.time_start,
        created_at=hit.created_at,
    )


def _row_of(item: HitExcerpt) -> int | None:
    """Return the row of a table, or the line of a log, that an excerpt begins in.

    It is that of the whole hit where a row has several lines, as a very long one has.
    """
    hit = item.hit
    if hit.row is None:
        return None
    heading = hit.text[: len(hit.heading)] == hit.heading
    text = hit.text[len(hit.heading) if heading else 0 : item.start].lstrip("\n")
    before = text.split("\n")[:-1]
    if len(before) > 1 and _RULE.fullmatch(before[1]):
        before = before[2:]  # the names of the columns, and what sets them off
    label = before[0].partition(":")[0] + ":" if before else ""
    are_rows = hit.source.lower().endswith(".log") or all(
        is_table_row(line) or line.startswith(("|", label)) for line in before
    )
    return hit.row + len(before) if are_rows and all(map(str.strip, before)) else hit.row


def _has_offsets(hit: Hit) -> bool:
    """Return whether a hit's text is that of its document between its offsets."""
    return hit.start is not None and hit.end is not None and hit.end - hit.start == len(hit.text)
