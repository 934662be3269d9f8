"""Tags, and links to other pages, that an author wrote into a text."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from operator import attrgetter, itemgetter
from urllib.parse import unquote

from msgspec import Struct

from memctl.ids import tag_name
from memctl.patterns import lazy_regex

_TAG = lazy_regex(r"(?<![\w#/&.:?=\[@-])(?<!\]\()#(?P<tag>[^\W\d_](?:[\w/-]{0,48}\w)?)(?![\w#])")
_SIGNED = lazy_regex(r"(?<![\w#/&.:?=\[@-])@(?P<tag>beto_[^\W_](?:[\w/-]{0,48}\w)?)(?![\w@])", re.I)
"""A tag with the other sign, which is a tag only with the prefix."""
_PREFIXED = lazy_regex(r"[#@]beto_", re.I)
"""Begins a tag that is no word."""
_NEEDED_AFTER = lazy_regex(
    r"(?<![\w#@/-])(?:the|an?|of|in|on|at|for|to|from|with|by|about|into|over|under|via|through"
    r"|our|my|your|his|her|their|its|is|are|was|were|be|been|has|have|had|and|or|not|than|as"
    r"|use[sd]?|using|called|named|channels?|rooms?|hashtags?|tags?|tell|told|ask|asked|see|join"
    r"|joined|i|we|you|they|der|die|das|de[mnrs]|im|zu|zu[mr]|von|mit|für|und|oder|auf|bei|ist"
    r"|sind|hei(?:ß|ss)t|les?|la|du|des|dans|sur|et|ou|pour|avec|chez|est|sont|el|los|las|en|del"
    r"|[yoe]|por|para|con|es|son|il|lo|gli|nel|di|per|è|sono)\s+$",
    re.IGNORECASE,
)
"""Before a tag that is a word of its sentence."""
_OPEN = lazy_regex(r"[:,=/&+<>|(\[{–—-]\s*$")
"""Before tags at the end that the sentence goes on with."""
_LOOK_BACK = 40
"""Characters: the longest of those words, and the space after it."""
_NEEDED_BEFORE = lazy_regex(
    r"[^\S\n]*(?:[.,;:/+=&%<>|)\]}…–—-]|['’]s\b|(?:and|or|of|can|will|shall|would|could|should|may"
    r"|must|might|are|were|have|do|und|oder|et|ou|y|e|est|es|ist|sind|sono|hat)\b|\w+n['’]t\b"
    r"|(?!(?:always|this|its|his|us|\w+ss)\b)[a-z]\w*(?:s|ed)\b)"
)
"""After tags at the beginning that their sentence is about."""
_DIRECTIVE = lazy_regex(r"#(?:include|define|undef|if|ifn?def|elif|else|endif|pragma|region)")
"""A line of a program, which only looks like a tag."""
_BETWEEN_TAGS = lazy_regex(r"[\s,]*")
_AFTER_TAGS = lazy_regex(r"[\s.!?…]*")
_SENTENCE_GOES_ON = lazy_regex(r"[ \t]*(?![.,;:!?](?:\s|$)|\n|$)")
_LINK = lazy_regex(
    r"(?<!\\)\[\[(?!:[a-z]+:\]\])(?P<target>[^\[\]|#^\n]{1,200})(?P<anchor>[#^][^\[\]|\n]*)?"
    r"(?:\|(?P<text>[^\[\]\n]*))?\]\]"
)
"""Not ``[[:alnum:]]``, a class of characters."""
_SHOWN_LINK = lazy_regex(
    r"(?<!\\)!?\[\[(?!:[a-z]+:\]\])(?P<target>[^\[\]|#^\n]{1,200})?(?P<anchor>[#^][^\[\]|\n]+)?"
    r"(?:\|(?P<text>[^\[\]\n]*))?\]\]"
)
"""A wikilink, one to a part of its own page, or one whose page is shown in its place."""
_BLOCK_ID = lazy_regex(r"[^\S\n]+\^(?=[\w-]*[^\W\d_])[\w-]{2,40}[^\S\n]*$", re.ASCII | re.MULTILINE)
_MIN_IN_A_ROW = 2
_FILE_LINK = lazy_regex(
    r"(?<![!\\])\[(?P<text>[^\[\]\n]*)\]\("
    r"(?:<(?P<quoted>[^<>\n:]{1,200}\.md)(?P<part>#[^<>\n]*)?>|(?P<bare>[^()<>\s#:]{1,200}\.md)"
    r"(?P<anchor>#[^()<>\s]*)?)(?:\s+\"[^\"\n]*\")?\)",
    re.IGNORECASE,
)
_FOLDERS_ABOVE = lazy_regex(r"^(?:\.{0,2}/)+")
"""How a path begins that is relative to the file with the link, or to the root of the vault."""
_COLOUR = lazy_regex(r"(?:[0-9a-fA-F]{3,4}|[0-9a-fA-F]{6}|[0-9a-fA-F]{8})")
_FENCE = lazy_regex(r"^(?:```|~~~).*?^(?:```|~~~)[^\n]*$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_COLOUR_BEFORE = lazy_regex(r"(?:colou?r|background|fill|stroke|border)\W{0,3}$", re.IGNORECASE)

Span = tuple[int, int]


def find_hashtags(text: str, code: Sequence[Span] = ()) -> tuple[str, ...]:
    """Return the tags of a text outside code, each once in order: ``#name``, ``@beto_name``.

    They come without the sign and without the prefix ``beto_``.  Not tags: headings (``# Plan``),
    numbers (``#12``), colours (``#fff``), parts of a URL.
    """
    return _unique(tag_name(match["tag"]) for match in _tags(text, code))


def without_inline_tags(text: str) -> str:
    """Return a message without the tags at its beginning and end that no sentence needs.

    Others stay, but lose their ``#`` within a sentence after a word such as "the". Those with the
    prefix ``beto_`` leave a sentence too, as they are no words.
    """
    parts: list[str] = []
    position = 0
    for start, end, word in _removals(text):
        before = text[position:start]
        if not word:
            goes_on = _SENTENCE_GOES_ON.match(text, end)
            before = before if goes_on else before.rstrip(" \t")
            end = goes_on.end() if goes_on else end
        parts += before, word
        position = end
    return "".join([*parts, text[position:]]).strip()


def _removals(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield where tags leave a message, several at once as one, and the word that stays of each."""
    tags = [match for match in _tags(text) if not _DIRECTIVE.fullmatch(match[0])]
    first, last = _leading(text, tags), _trailing(text, tags)
    is_end_needed = last < len(tags) and (
        _is_needed(text, tags[last]) or _follows(_OPEN, text, tags[last])
    )
    pending: tuple[int, int, str] | None = None
    for place, match in enumerate(tags):
        start, end = match.span()
        is_word = not _PREFIXED.match(match[0])
        word = ""
        if place >= max(first, last):
            stays = is_end_needed and (is_word or place == last)
        elif place >= first and _is_needed(text, match):
            stays, word = False, tag_name(match["tag"])
        else:
            stays = place >= first and is_word
        if stays:
            continue
        if pending and not (pending[2] or word) and _are_adjacent(text, pending[1], start):
            start = pending[0]
        elif pending:
            yield pending
        pending = (start, end, word)
    if pending:
        yield pending


def _leading(text: str, tags: Sequence[re.Match[str]]) -> int:
    """Return how many tags stand at the beginning, if no sentence needs them."""
    count = end = 0
    for match in tags:
        if not _are_adjacent(text, end, match.start()):
            break
        count, end = count + 1, match.end()
    return 0 if _NEEDED_BEFORE.match(text, end) else count


def _trailing(text: str, tags: Sequence[re.Match[str]]) -> int:
    """Return which tag is the first of those at the end."""
    place, start, gap = len(tags), len(text), _AFTER_TAGS
    while place and gap.fullmatch(text, tags[place - 1].end(), start):
        place, gap = place - 1, _BETWEEN_TAGS
        start = tags[place].start()
    return place


def _are_adjacent(text: str, end: int, start: int) -> bool:
    """Return whether nothing but spaces and commas stands between two tags."""
    return _BETWEEN_TAGS.fullmatch(text, end, start) is not None


def _is_needed(text: str, tag: re.Match[str]) -> bool:
    """Return whether a tag is a word of its sentence because of the word before it."""
    return _follows(_NEEDED_AFTER, text, tag)


def _follows(pattern: re.Pattern[str], text: str, tag: re.Match[str]) -> bool:
    start = tag.start()
    return pattern.search(text, max(0, start - _LOOK_BACK), start) is not None


def _tags(text: str, code: Sequence[Span] = ()) -> list[re.Match[str]]:
    if "#" not in text and "@" not in text:
        return []
    hidden = _code_spans(text, code)
    found = [*_TAG.finditer(text), *_SIGNED.finditer(text)]
    return sorted(
        (
            match
            for match in found
            if not _is_hidden(match.start(), hidden) and not _is_colour(text, match)
        ),
        key=lambda match: match.start(),
    )


class PageLink(Struct, frozen=True):
    """A link to another page: ``[[Page#part|text]]``, or ``[text](page.md#part)``."""

    target: str
    """The page as it is named there, without ``./``, ``../`` or ``/`` before it; of a Markdown link
    also without ``.md``."""
    anchor: str
    """The heading, or ``^`` and the id of a block, that it leads to; "" for the whole page."""
    text: str
    """What a reader sees."""
    start: int
    end: int
    written: str


def page_links(text: str, code: Sequence[Span] = ()) -> list[PageLink]:
    """Return the links to other pages outside code and comments, in their order.

    What a template has in place of a name (``[[{{date}}]]``) is none.
    """
    if "[" not in text:
        return []
    found = [_wikilink(match) for match in _LINK.finditer(text)] if "[[" in text else []
    if "](" in text:
        found += map(_file_link, _FILE_LINK.finditer(text))
        found.sort(key=attrgetter("start"))
    if not found:
        return []
    hidden = _with_comments(text, _code_spans(text, code))
    return [
        link
        for link in found
        if link.target and "{{" not in link.target and not _is_hidden(link.start, hidden)
    ]


def _wikilink(match: re.Match[str]) -> PageLink:
    written = match["target"].rstrip("\\").strip()  # in a table the bar is written "\|"
    target = _FOLDERS_ABOVE.sub("", written)
    anchor = (match["anchor"] or "").removeprefix("#").rstrip("\\").strip()
    return PageLink(target, anchor, _words_shown(match), match.start(), match.end(), match[0])


def _file_link(match: re.Match[str]) -> PageLink:
    path = unquote(match["bare"] or match["quoted"])[: -len(".md")].strip()
    path = _FOLDERS_ABOVE.sub("", path)
    anchor = unquote(match["anchor"] or match["part"] or "").removeprefix("#").strip()
    return PageLink(path, anchor, match["text"].strip(), match.start(), match.end(), match[0])


def find_wikilinks(text: str, code: Sequence[Span] = ()) -> tuple[str, ...]:
    """Return the pages that a text links to outside code, each spelling once."""
    return _unique(link.target for link in page_links(text, code))


def without_wikilinks(text: str) -> str:
    """Return a text as a reader sees it, outside code.

    Each ``[[link]]`` becomes the words that it shows, and the ids of blocks (``^id``) are left out.
    """
    if "[[" not in text and "^" not in text:
        return text
    hidden = _code_spans(text, ())

    def shown(match: re.Match[str]) -> str:
        """Return the words of a link."""
        if _is_hidden(match.start(), hidden) or not (match["target"] or match["anchor"]):
            return match[0]
        return _words_shown(match)

    def unmarked(match: re.Match[str]) -> str:
        """Return nothing for the id of a block."""
        return match[0] if _is_hidden(match.start(), hidden) else ""

    return _SHOWN_LINK.sub(shown, _BLOCK_ID.sub(unmarked, text))


def is_navigation(text: str) -> bool:
    """Tell whether a line does nothing but lead to other pages: ``<< [[Monday]] | [[Wednesday]]``.

    A list of links says something; a row of them does not.
    """
    line = text.strip()
    if "\n" in line or line[:2] in ("- ", "* ", "+ "):
        return False
    left, links = _LINK.subn("", line)
    says = any(each.isalnum() or each == "," for each in left)
    return links >= _MIN_IN_A_ROW and not says


def _words_shown(match: re.Match[str]) -> str:
    if text := (match["text"] or "").strip():
        return text
    target = (match["target"] or "").rstrip("\\").strip()
    anchor = (match["anchor"] or "").removeprefix("#").rstrip("\\").strip()
    if anchor.startswith("^") and target:
        return target  # the id of a block is for programs
    return " > ".join(filter(None, (target, anchor)))


def code_in(text: str) -> list[Span]:
    """Return where the code of a text stands: between fences, and between back quotes."""
    return _code_spans(text, ())


def code_spans(text: str) -> list[Span]:
    """Return where a text has code, between fences or back quotes, and comments."""
    return _with_comments(text, _code_spans(text, ()))


def _with_comments(text: str, code: Sequence[Span]) -> list[Span]:
    return _sort_spans([*code, *_comments(text, code)])


def _comments(text: str, code: Sequence[Span]) -> Iterator[Span]:
    """Yield where comments of HTML and of Obsidian stand, outside code."""
    for opening, closing in (("<!--", "-->"), ("%%", "%%")):
        start = text.find(opening)
        while start >= 0:
            after = start + len(opening)
            if not _is_hidden(start, code):
                end = text.find(closing, after)
                if end < 0:
                    break
                after = end + len(closing)
                yield start, after
            start = text.find(opening, after)


def _code_spans(text: str, code: Sequence[Span]) -> list[Span]:
    """Where code stands, each span ending no earlier than those before it."""
    fenced = (match.span() for match in _FENCE.finditer(text))
    return _sort_spans([*code, *(fenced if "`" in text or "~~~" in text else ())])


def _sort_spans(spans: Iterable[Span]) -> list[Span]:
    spans = sorted(spans)
    ends = accumulate((end for _, end in spans), max)
    return [(start, end) for (start, _), end in zip(spans, ends, strict=True)]


def _is_hidden(position: int, hidden: Sequence[Span]) -> bool:
    place = bisect_right(hidden, position, key=itemgetter(0))
    return place > 0 and position < hidden[place - 1][1]


def _is_colour(text: str, match: re.Match[str]) -> bool:
    written = match["tag"]
    if not _COLOUR.fullmatch(written):
        return False
    has_digit = any(map(str.isdigit, written))
    before = text[max(0, match.start() - 14) : match.start()]
    return has_digit or written.lower() in ("fff", "ffffff") or bool(_COLOUR_BEFORE.search(before))


def _unique(tags: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item for item in tags if item))
