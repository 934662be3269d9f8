"""Lines as they stand on printed pages become paragraphs.

What a page repeats at its edges goes, words cut at line ends are put together again, and lines
that were broken for want of room are joined.  Knows nothing of the format that pages come from.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence

Lines = list[str]
Key = tuple[str, int | None]

_EDGE = 3
"""Lines at the top and the bottom of a page that may be repeated ones."""
_EDGE_SHARE = 4
_MIN_REPEATS = 3
_FULL_SHARE = 0.7
_MIN_FULL_LENGTH = 30

_HYPHENS = "-\u00ad\u2010"
_INVISIBLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2060\ufeff]")
_SOFT_HYPHEN = re.compile("\u00ad(?=[^\\n])")
_NUMBER = re.compile(r"(?<![\d.,])\d{1,5}(?![\d.,]*\d)")
_PAGE_WORDS = re.compile(
    r"[\W_]*(?:page|p|pg|seite|s|página|pagina|pág|pag|sida|sivu|side|strona|стр|страница)?[\W_]*#"
    r"(?:[\W_]*(?:of|von|de|di|av|van|z|из|/)?[\W_]*\d{1,5})?[\W_]*",
    re.IGNORECASE,
)
_PAGE_LABEL = re.compile(
    r"(?:^|\| )(?:page|seite|página|pagina) \d+ ?(?:of|von|de|di|/) ?\d+$", re.I
)
_RUNNING_TITLE = re.compile(r"#[\W_]*\S+ .{8,}|\S+ .{8,}[\W_]#")
_COMPOUND = re.compile(r"[^\W\d_]+-[^\W\d_]+")
_LAST_WORD = re.compile(r"[^\W\d_]+$")
_FIRST_WORD = re.compile(r"[^\W\d_]+")
_ITEM = re.compile(
    r"(?:[-*+•◦▪‣–—●○■□➢✓]|\(?\d{1,3}(?:\.\d{1,3})*[.)]|\d{1,3}(?:\.\d{1,3})+|\(?[a-zA-Z][.)])(?:\s|$)"
)
_LEADERS = re.compile(r"(?: ?[.…]){4,}")
_ENDS = (".", "!", "?", ":", "…", "”", '."', "。", "！", "？")


def clean_pages(pages: Sequence[str]) -> list[str]:
    """The pages' texts in paragraphs, without page numbers and running titles.

    A line that half the pages (at least three) have at their edge is kept where it stands first;
    one with a number that counts along with the pages is a page number and goes everywhere.
    """
    lines = _without_furniture([_drop_label(_lines(page)) for page in pages])
    compounds = {
        word.lower() for page in lines for line in page for word in _COMPOUND.findall(line)
    }
    return ["".join(_flow(page, compounds)) for page in lines]


def _lines(page: str) -> Lines:
    """Lines in compatibility form (ligatures as letters), blanks and dotted leaders made short."""
    text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", page))
    text = _SOFT_HYPHEN.sub("", text)
    return [" ".join(_LEADERS.sub(" … ", line).split()) for line in text.split("\n")]


def _drop_label(page: Lines) -> Lines:
    """The page without a label such as ``Page 2 of 9`` at its edge, alone or beside a title."""
    lines = list(page)
    for place in _edges(page):
        lines[place] = _PAGE_LABEL.sub("", page[place]).strip(" |")
    return lines


# --- what every page repeats ---------------------------------------------------------------------


def _without_furniture(pages: list[Lines]) -> list[Lines]:
    counts = Counter(key for number, page in enumerate(pages) for key in _page_keys(page, number))
    needed = max(_MIN_REPEATS, (len(pages) + 1) // 2)
    repeated = {key for key, count in counts.items() if count >= needed}
    if not repeated:
        return pages
    furniture: set[Key] = set()
    return [_stripped_page(page, number, repeated, furniture) for number, page in enumerate(pages)]


def _stripped_page(page: Lines, number: int, repeated: set[Key], furniture: set[Key]) -> Lines:
    """The page without its repeated lines, but with each running title where it comes first."""
    edges = set(_edges(page))
    return [
        line
        for place, line in enumerate(page)
        if place not in edges or not _is_repeated(line, number, repeated, furniture)
    ]


def _is_repeated(line: str, number: int, repeated: set[Key], furniture: set[Key]) -> bool:
    found = [key for key in _keys(line, number) if key in repeated]
    if not found or found[-1][1] is not None or found[-1] in furniture:
        return bool(found)
    furniture.update(found)
    return False


def _page_keys(page: Lines, number: int) -> set[Key]:
    return {key for place in _edges(page) for key in _keys(page[place], number)}


def _edges(page: Lines) -> list[int]:
    """Places of the lines at the top and the bottom, fewer of them on a page of few lines."""
    filled = [place for place, line in enumerate(page) if line]
    edge = min(_EDGE, max(1, len(filled) // _EDGE_SHARE))
    return sorted({*filled[:edge], *filled[-edge:]})


def _keys(line: str, page: int) -> Iterator[Key]:
    """The line as it is; where it may hold a page number, how far that is from the page's own."""
    yield line, None
    for match in _NUMBER.finditer(line):
        pattern = f"{line[: match.start()]}#{line[match.end() :]}"
        if _PAGE_WORDS.fullmatch(pattern) or _RUNNING_TITLE.fullmatch(pattern):
            yield pattern, int(match[0]) - page


# --- lines to paragraphs -------------------------------------------------------------------------


def _flow(lines: Lines, compounds: set[str]) -> Iterator[str]:
    """The page's text piece by piece: each line and what joins it to the next."""
    filled = [line for line in lines if line]
    full = _full_length(filled)
    for place, line in enumerate(lines):
        following = lines[place + 1] if place + 1 < len(lines) else ""
        if not line:
            continue
        if not following:
            yield line + "\n\n"
        elif line[-1] in _HYPHENS and _LAST_WORD.search(line[:-1]):
            yield _join_hyphenated(line, following, compounds)
        elif _wraps(line, following, full):
            yield line + " "
        else:
            yield line + ("\n\n" if _parts(line, following, full) else "\n")


def _full_length(lines: Lines) -> float:
    """The length from which on a line was broken because the next word had no room."""
    lengths = sorted(len(line) for line in lines)
    widest = lengths[int(0.9 * (len(lengths) - 1))] if lengths else 0
    return max(_MIN_FULL_LENGTH, _FULL_SHARE * widest)


def _parts(line: str, following: str, full: float) -> bool:
    """Return whether a paragraph ends here: after a short last line, and beside a title."""
    if " | " in line:
        return " | " not in following
    if line.endswith(_ENDS):
        return not _ITEM.match(following)
    return _may_be_title(line, full) and len(following) >= full and following[0].isupper()


def _may_be_title(line: str, full: float) -> bool:
    is_short = len(line) < full and not line.endswith((*_ENDS, ",", ";"))
    return is_short and (line[0].isupper() or line[0].isdecimal()) and not _is_broken_up(line)


def _is_broken_up(line: str) -> bool:
    """Return whether the line is a row of cells or an entry in a table of contents."""
    return " | " in line or " … " in line


def _wraps(line: str, following: str, full: float) -> bool:
    if _ITEM.match(following) or (_is_row(line) and _is_row(following)):
        return False
    if _is_broken_up(line) or _is_broken_up(following):
        return False
    if line.endswith(_ENDS) and _may_be_title(following, full):
        return False
    if following[0].islower() and not line.endswith((".", "!", "?", ":")):
        return len(line) >= full / 2
    return len(line) >= full


def _is_row(line: str) -> bool:
    """Return whether this looks like a row of a table: every third word or more is a number."""
    words = line.split()
    return 3 * sum(any(c.isdecimal() for c in word) for word in words) >= len(words)


def _join_hyphenated(line: str, following: str, compounds: set[str]) -> str:
    """The line without its hyphen, but with it where the word is written so elsewhere."""
    before, after = _LAST_WORD.search(line[:-1]), _FIRST_WORD.match(following)
    if before is None or after is None or not following[0].islower():
        return line if line[-1] == "-" and following[0].isalnum() else line + " "
    known = f"{before[0]}-{after[0]}".lower() in compounds and line[-1] != "\u00ad"
    return line if known else line[:-1]
