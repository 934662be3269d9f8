"""HTML as it is found on the web, however broken, becomes a flat list of blocks of text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import unescape
from itertools import islice
from typing import Literal

from msgspec import Struct, field

from memctl.language.word_lists import word_set

BlockKind = Literal["prose", "heading", "code", "table", "caption", "item", "term"]

MAX_DEPTH = 400
"""Elements nested deeper than this are read as if they were not nested."""
MAX_TERMS = 8
"""What lists of definitions define that are nested deeper than this stands under those above."""


_VOID = word_set("area base br col embed hr img input link meta param source track wbr")
_SKIPPED = word_set(
    "script style noscript template svg math iframe object canvas select button textarea audio "
    "video map datalist dialog"
)
_SELF_CLOSING = word_set("p li td th tr dt dd option thead tbody tfoot")
_BLOCKS = word_set(
    "p div section article main header footer nav aside ul ol li dl dt dd table tr td th thead "
    "tbody tfoot caption blockquote pre h1 h2 h3 h4 h5 h6 hr form fieldset figure figcaption "
    "address details summary body html center title"
)
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
_BOILERPLATE = word_set("nav footer aside header")
_BOILERPLATE_ROLES = word_set(
    "navigation banner contentinfo search complementary menu menubar toolbar dialog"
)
_QUOTED_NAME = re.compile(
    r"\b(?:gmail_(?:quote|attr)|moz-cite-prefix|yahoo_quoted|divRplyFwdMsg|protonmail_quote)"
)
_SIGNATURE_NAME = re.compile(r"\b(?:gmail_signature|moz-signature|protonmail_signature_block)")
_BOILERPLATE_NAME = re.compile(
    r"(?:^|[\s_-])(?:menu|side-?bar|footer|cookies?|share|sharing|social|ads?|advert(?:isement)?|promo|"
    r"related|subscribe|newsletter|popup|modal|banner|masthead)(?:$|[\s_-])",
    re.I,
)
_NAVIGATION_NAME = re.compile(
    r"(?:^|[\s_-])(?:nav(?:bar|igation|header|footer)?|(?:top|sub|bottom)-?nav|breadcrumbs?|"
    r"skip-?link|pagination|toc)(?:$|[\s_-])",
    re.I,
)
_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.I)
_FOREIGN = frozenset(("svg", "math", "script", "a", "iframe"))
"""Elements that ``/>`` closes; on others HTML ignores it."""

_BREAK = "\v"

Attributes = Mapping[str, str]


class Block(Struct):
    """A paragraph, heading, list item, code block, caption, table or defined term of a page."""

    kind: BlockKind
    text: str
    level: int = 0
    """1 to 6 for a heading."""
    rows: list[list[str]] = field(default_factory=list)
    header: bool = False
    """Whether the first row of the table is marked as its header."""
    is_labelled: bool = False
    """Whether the first cell of every row is marked as the head of the others."""
    link_characters: int = 0
    boilerplate: bool = False
    main: bool = False
    quoted: bool = False
    """Whether it is the message that an e-mail answers, or what introduces one."""
    signature: bool = False
    """Whether a mail program marks it as what signs a message."""
    is_emphasised: bool = False
    """Whether all of it is set in bold."""
    terms: tuple[str, ...] = ()
    """In a list of definitions, what it defines; from the outside in where they are nested."""

    @property
    def characters(self) -> int:
        """How much there is to read in it."""
        return len(self.text) + sum(len(cell) for row in self.rows for cell in row)


class Page(Struct):
    """What was found in a page, in its order."""

    blocks: list[Block] = field(default_factory=list)
    title: str = ""
    meta: dict[str, list[str]] = field(default_factory=dict)
    times: list[str] = field(default_factory=list)
    linked_data: list[str] = field(default_factory=list)
    language: str = ""


class _OpenElement(Struct, frozen=True):
    """An element that is open, with what it means for the text in it."""

    tag: str
    skipped: bool = False
    boilerplate: bool = False
    main: bool = False
    quoted: bool = False
    signature: bool = False


class _DefinitionList(Struct):
    """A list of definitions that is open."""

    defined: str = ""
    """What the definition at hand is of."""
    is_in_term: bool = False
    has_text: bool = False
    """Whether the term at hand has words already."""
    waiting: list[Block] = field(default_factory=list)
    """Terms without a definition so far."""


class _Table(Struct):
    rows: list[list[str]] = field(default_factory=list)
    cells: list[list[str]] = field(default_factory=list)
    """The tags of each row's cells, blank ones included."""
    in_cell: bool = False
    is_layout: bool = False


def _begins_with_its_head(cells: list[str]) -> bool:
    """Return whether a row has one cell that is a head, and others after it."""
    return cells[0] == "th" and len(cells) > 1 and "th" not in cells[1:]


def parse_page(text: str) -> Page:
    """Cut a page into blocks; never raises for broken HTML."""
    parser = _PageParser()
    for token in tokenize(text):
        parser.take(token)
    parser.finish()
    return parser.page


class _PageParser:
    def __init__(self) -> None:
        self.page = Page()
        self._open: list[_OpenElement] = []
        self._buffer: list[str] = []
        self._link_characters = 0
        self._links = 0
        self._bold = 0
        self._has_plain = False
        self._lists: list[int | None] = []
        self._definitions: list[_DefinitionList] = []
        self._item = ""
        self._pre = 0
        self._level = 0
        self._caption = False
        self._tables: list[_Table] = []
        self._capture: list[str] | None = None

    # --- what the page is made of -----------------------------------------------------------------

    def take(self, token: Token) -> None:
        """Take in the next tag or run of text."""
        match token:
            case StartTag(name, attributes, closed):
                self._start(name, attributes)
                if closed and name not in _VOID and name in _FOREIGN:
                    self._end(name)
            case EndTag(name):
                self._end(name)
            case str():
                self._text(token)

    def _start(self, tag: str, attributes: Attributes) -> None:
        if tag in _VOID:
            self._void(tag, attributes)
            return
        if tag in _BLOCKS and not self._in_cell(tag):
            self._flush()
            self._end_term(tag)
        if tag not in _SELF_CLOSING and len(self._open) < MAX_DEPTH:
            self._open.append(self._open_element(tag, attributes))
        self._enter(tag, attributes)

    def _end(self, tag: str) -> None:
        if tag in _BLOCKS and not self._in_cell(tag):
            self._flush()
        self._leave(tag)
        for place in range(len(self._open) - 1, -1, -1):
            if self._open[place].tag == tag:
                del self._open[place:]
                break

    def _text(self, text: str) -> None:
        if self._capture is not None:
            self._capture.append(text)
        elif not (self._open and self._open[-1].skipped):
            self._buffer.append(text if self._pre else text.replace(_BREAK, " "))
            if self._links:
                self._link_characters += len(text.strip())
            self._has_plain = self._has_plain or (not self._bold and bool(text.strip()))

    def finish(self) -> None:
        """Close whatever the page left open."""
        self._end_capture("")
        self._flush()
        while self._tables:
            self._end_table()

    # --- elements ---------------------------------------------------------------------------------

    def _open_element(self, tag: str, attributes: Attributes) -> _OpenElement:
        parent = self._open[-1] if self._open else _OpenElement("")
        main = parent.main or tag in ("main", "article") or attributes.get("role") == "main"
        return _OpenElement(
            tag,
            parent.skipped or tag in _SKIPPED or _is_hidden(attributes),
            parent.boilerplate or _is_boilerplate(tag, attributes, parent.main),
            main,
            parent.quoted or tag == "blockquote" or _is_named(attributes, _QUOTED_NAME),
            parent.signature or _is_named(attributes, _SIGNATURE_NAME),
        )

    def _void(self, tag: str, attributes: Attributes) -> None:
        if tag == "meta":
            key = attributes.get("property") or attributes.get("name") or attributes.get("itemprop")
            if key and attributes.get("content"):
                self.page.meta.setdefault(key.lower(), []).append(attributes["content"])
        elif tag == "br":
            self._buffer.append("\n" if self._pre else _BREAK)
        elif tag == "hr":
            self._flush()
        elif tag == "img" and len(attributes.get("alt", "").split()) >= 3:
            self._picture(attributes["alt"])

    def _picture(self, alt: str) -> None:
        if self._open and self._open[-1].skipped:
            return
        if self._buffer or self._in_cell("img"):
            self._buffer.append(f" [{alt}] ")
        else:
            self._add(Block("caption", f"Image: {' '.join(alt.split())}"))

    def _enter(self, tag: str, attributes: Attributes) -> None:
        match tag:
            case "html":
                self.page.language = attributes.get("lang", "")[:2].lower()
            case "a":
                self._links += 1
            case "b" | "strong":
                self._bold += 1
            case "ul" | "menu":
                self._lists.append(None)
            case "ol":
                self._lists.append(0)
            case "li":
                self._item = self._item_mark()
            case "dl":
                self._definitions.append(_DefinitionList())
            case "dt" | "dd" if self._definitions:
                self._enter_definition(self._definitions[-1], tag)
            case "pre":
                self._pre += 1
            case "figcaption" | "caption":
                self._caption = True
            case "time" if attributes.get("datetime"):
                self.page.times.append(attributes["datetime"])
            case "title" if not self.page.title and not self._is_skipping():
                self._capture = []
            case "script" if attributes.get("type", "").lower() == "application/ld+json":
                self._capture = []
            case "table" | "tr" | "td" | "th":
                self._enter_table(tag)
            case _ if tag in _HEADINGS:
                self._level = int(tag[1])

    def _leave(self, tag: str) -> None:
        match tag:
            case "a":
                self._links = max(0, self._links - 1)
            case "b" | "strong":
                self._bold = max(0, self._bold - 1)
            case "ul" | "ol" | "menu" if self._lists:
                self._lists.pop()
            case "dl" if self._definitions:
                self._definitions.pop()
            case "dt" if self._definitions:
                self._definitions[-1].is_in_term = False
            case "pre":
                self._pre = max(0, self._pre - 1)
            case "figcaption" | "caption":
                self._caption = False
            case "title" | "script":
                self._end_capture(tag)
            case "td" | "th":
                self._end_cell()
            case "table" if self._tables:
                self._end_table()
            case _ if tag in _HEADINGS:
                self._level = 0

    def _is_skipping(self) -> bool:
        return any(element.tag == "svg" for element in self._open)

    def _end_capture(self, tag: str) -> None:
        if self._capture is None:
            return
        text, self._capture = "".join(self._capture), None
        if tag == "script":
            self.page.linked_data.append(text)
        else:
            self.page.title = " ".join(text.split())

    def _item_mark(self) -> str:
        depth = "  " * min(max(0, len(self._lists) - 1), 6)
        if self._lists and self._lists[-1] is not None:
            self._lists[-1] += 1
            return f"{depth}{self._lists[-1]}. "
        return f"{depth}- "

    def _enter_definition(self, definitions: _DefinitionList, tag: str) -> None:
        definitions.is_in_term, definitions.has_text = tag == "dt", False
        if tag == "dt" or definitions.waiting:
            definitions.defined = ""
        if tag == "dd":
            terms, definitions.waiting = definitions.waiting, []
            blocks = self.page.blocks
            number = 0
            while number < len(terms) and blocks[-1 - number] is terms[-1 - number]:
                number += 1
                if blocks[-number].link_characters:
                    break  # links in a row are no names of one thing, as "-q" and "--quiet" are
            if number:
                definitions.defined = ", ".join(each.text for each in terms[-number:])
                terms[-1].text = definitions.defined
                del blocks[-number:-1]

    def _end_term(self, tag: str) -> None:
        """A term ends where another block begins, unless that is only what it stands in."""
        if self._definitions and tag not in ("dl", "dt", "dd"):
            last = self._definitions[-1]
            if last.has_text or tag not in ("p", "div", "center"):
                last.is_in_term = False

    # --- tables -----------------------------------------------------------------------------------

    def _in_cell(self, tag: str) -> bool:
        """Return whether text goes on inside a table's cell, its words kept apart by a blank.

        Only table elements break it there.
        """
        table = self._tables[-1] if self._tables else None
        inside = table is not None and table.in_cell and not table.is_layout
        if inside and tag not in ("table", "tr", "td", "th", "thead", "tbody", "tfoot", "caption"):
            self._buffer.append(" ")
            return True
        return False

    def _enter_table(self, tag: str) -> None:
        if tag == "table":
            if self._tables:
                self._make_layout(self._tables[-1])
            self._tables.append(_Table())
        elif self._tables and tag == "tr":
            self._end_cell()
            self._tables[-1].rows.append([])
            self._tables[-1].cells.append([])
        elif self._tables:
            self._end_cell()
            table = self._tables[-1]
            table.rows, table.cells = table.rows or [[]], table.cells or [[]]
            table.in_cell = True
            table.cells[-1].append(tag)

    def _end_cell(self) -> None:
        self._flush()
        if self._tables:
            self._tables[-1].in_cell = False

    def _end_table(self) -> None:
        self._flush()
        table = self._tables.pop()
        rows = [row for row in table.rows if any(row)]
        if not table.is_layout and len(rows) >= 2 and max(map(len, rows)) >= 2:
            is_labelled = all(map(_begins_with_its_head, filter(None, table.cells)))
            header = "th" in table.cells[0] and not is_labelled
            self._add(Block("table", "", rows=rows, header=header, is_labelled=is_labelled))
        elif not table.is_layout:
            self._make_layout(table)

    def _make_layout(self, table: _Table) -> None:
        """What was taken for a table's cells is text that a table only arranges."""
        rows, table.rows, table.is_layout = table.rows, [], True
        for row in rows:
            if text := " ".join(filter(None, row)):
                self._add(Block("prose", text))

    # --- blocks -----------------------------------------------------------------------------------

    def _flush(self) -> None:
        """End the block at hand: put it into its cell, or add it to the page."""
        raw, self._buffer = "".join(self._buffer), []
        links, self._link_characters = self._link_characters, 0
        is_emphasised, self._has_plain = not self._has_plain, False
        text = raw.strip("\n").rstrip() if self._pre else _flow(raw)
        if not text.strip():
            return
        table = self._tables[-1] if self._tables else None
        if table and not table.is_layout and table.in_cell and table.rows:
            table.rows[-1].append(" ".join(text.split()))
            return
        mark, self._item = self._item, ""
        kind = self._kind(mark)
        if kind in ("heading", "term"):
            text = _without_permalink(text)
        if kind == "term":
            text = " ".join(text.split())
        block = Block(
            kind,
            mark + text,
            self._level,
            link_characters=links,
            is_emphasised=is_emphasised and not self._pre,
        )
        self._add(block)
        if kind == "term":
            self._definitions[-1].has_text = True
            self._definitions[-1].waiting.append(block)

    def _kind(self, mark: str) -> BlockKind:
        if self._level:
            return "heading"
        if not mark and self._definitions and self._definitions[-1].is_in_term:
            return "term"
        if self._pre:
            return "code"
        if self._caption:
            return "caption"
        return "item" if mark else "prose"

    def _add(self, block: Block) -> None:
        around = len(self._definitions) - (block.kind == "term")
        block.terms = tuple(
            each.defined
            for each in islice(self._definitions, min(around, MAX_TERMS))
            if each.defined
        )
        if self._open:
            block.boilerplate = self._open[-1].boilerplate and block.level != 1
            block.main = self._open[-1].main
            block.quoted = self._open[-1].quoted
            block.signature = self._open[-1].signature
        self.page.blocks.append(block)


def _without_permalink(text: str) -> str:
    """Return a heading or term without what documentation puts behind it, to link to it."""
    shown = text.rstrip()
    if shown.endswith("¶"):
        shown = shown[:-1].rstrip().removesuffix("[source]").rstrip()
    return shown or text


def _flow(raw: str) -> str:
    lines = (" ".join(line.split()) for line in raw.split(_BREAK))
    return "\n".join(lines).strip()


def _is_hidden(attributes: Attributes) -> bool:
    return (
        "hidden" in attributes
        or attributes.get("aria-hidden") == "true"
        or bool(_HIDDEN_STYLE.search(attributes.get("style", "")))
    )


def _is_named(attributes: Attributes, names: re.Pattern[str]) -> bool:
    """Return whether a mail program marks an element by its id or one of its classes."""
    return bool(names.search(f"{attributes.get('id', '')} {attributes.get('class', '')}"))


def _is_boilerplate(tag: str, attributes: Attributes, in_main: bool) -> bool:
    if tag in ("html", "body", "main", "article"):
        return False
    if tag in _BOILERPLATE and not (in_main and tag == "header"):
        return True
    if attributes.get("role", "").lower() in _BOILERPLATE_ROLES:
        return True
    names = attributes.get("class", "")
    # The id of a section is made of its title, and tables may hold prices of shares.
    if tag in ("dl", "table", "section") or "section" in names.split():
        return _NAVIGATION_NAME.search(names) is not None
    named = f"{attributes.get('id', '')} {names}"
    return tag in ("div", "ul", "ol", "form", "p") and bool(
        _NAVIGATION_NAME.search(named) or _BOILERPLATE_NAME.search(named)
    )


_TAG = re.compile(r"<(/?)([A-Za-z][^\s/>]{0,99})")
_SPACE = re.compile(r"[\s/]*")
_ATTRIBUTE_NAME = re.compile(r"[^\s/>=]+|=")
_EQUALS = re.compile(r"\s*=\s*")
_BARE_VALUE = re.compile(r"[^\s>]*")

RAW_ELEMENTS = frozenset(("script", "style", "title", "textarea", "xmp"))
"""Elements whose content holds no tags."""


class StartTag(Struct, frozen=True):
    """An opening tag; names in lower case, character references in values resolved."""

    name: str
    attributes: dict[str, str]
    closed: bool = False
    """Whether it ends in ``/>``."""


class EndTag(Struct, frozen=True):
    """A closing tag, its name in lower case."""

    name: str


Token = StartTag | EndTag | str


def tokenize(page: str) -> Iterator[Token]:
    """Yield tags and text in the order of the page; comments and declarations are left out."""
    return _Tokenizer(page).tokens()


class _Tokenizer:
    def __init__(self, page: str) -> None:
        self._page = page
        self._missing: set[str] = set()

    def _find(self, mark: str, start: int) -> int:
        """Where the mark is found next; -1 if nowhere, which need be looked for only once."""
        if mark in self._missing:
            return -1
        place = self._page.find(mark, start)
        if place < 0:
            self._missing.add(mark)
        return place

    def tokens(self) -> Iterator[Token]:
        """Yield tags, and the text between them with its references resolved, as they stand."""
        place = text_start = 0
        while (place := self._find("<", place)) >= 0:
            token, end = self._markup(place)
            if end == place:
                place += 1
                continue
            if text_start < place:
                yield unescape(self._page[text_start:place])
            if token is not None:
                yield token
            place = text_start = end
            if isinstance(token, StartTag) and token.name in RAW_ELEMENTS and not token.closed:
                end = self._raw_end(token.name, place)
                raw = self._page[place:end]
                yield raw if token.name in ("script", "style") else unescape(raw)
                place = text_start = end
        if text_start < len(self._page):
            yield unescape(self._page[text_start:])

    def _markup(self, start: int) -> tuple[Token | None, int]:
        """The token that begins at a ``<`` and where it ends; the same place where it is text."""
        match = _TAG.match(self._page, start)
        if match and match[1]:
            return EndTag(match[2].lower()), self._after(">", match.end(), match.end())
        if match:
            return self._start_tag(match[2].lower(), match.end())
        if self._page.startswith("<!--", start):
            return None, self._after("-->", start + 4, start + 4)
        if self._page.startswith(("<![CDATA[", "<![cdata["), start):
            return None, start + 9
        if self._page.startswith(("<!", "<?", "</"), start):
            return None, self._after(">", start + 2, start)
        return None, start

    def _after(self, mark: str, start: int, otherwise: int) -> int:
        place = self._find(mark, start)
        return place + len(mark) if place >= 0 else otherwise

    def _start_tag(self, name: str, place: int) -> tuple[StartTag, int]:
        attributes: dict[str, str] = {}
        while True:
            gap = _SPACE.match(self._page, place)
            place = gap.end() if gap else place
            if self._page.startswith(">", place):
                closed = self._page[place - 1] == "/"
                return StartTag(name, attributes, closed), place + 1
            attribute = _ATTRIBUTE_NAME.match(self._page, place)
            if attribute is None:
                return StartTag(name, attributes), place
            value, place = self._value(attribute.end())
            attributes.setdefault(attribute[0].lower(), value)

    def _value(self, place: int) -> tuple[str, int]:
        equals = _EQUALS.match(self._page, place)
        if equals is None:
            return "", place
        place = equals.end()
        quote = self._page[place : place + 1]
        if quote in ('"', "'") and (end := self._find(quote, place + 1)) >= 0:
            return unescape(self._page[place + 1 : end]), end + 1
        bare = _BARE_VALUE.match(self._page, place)
        end = bare.end() if bare else place
        return unescape(self._page[place:end]), end

    def _raw_end(self, name: str, start: int) -> int:
        """Where an element without tags in it ends; one never closed ends where it began."""
        key = f"</{name}"
        if key in self._missing:
            return start
        match = re.compile(re.escape(key), re.I).search(self._page, start)
        if match is None:
            self._missing.add(key)
            return start
        return match.start()
