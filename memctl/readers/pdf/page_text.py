"""The text of a PDF page, put together from where its letters stand.

A program that writes a PDF may leave out spaces, and draw its lines in any pieces.  So words are
separated by the gaps between letters, as the widths in the fonts give them, cells by wider gaps,
and columns that are drawn line by line across the page are read one after the other.  Knows nothing
of what the text says.  See ISO 32000-1, 9.4, for the operators.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from memctl.errors import OverLimit

if TYPE_CHECKING:
    from pypdf import PageObject
    from pypdf.generic import DictionaryObject

CELL_BAR = " | "
"""Stands between what is far apart on one line."""

STEPS_OF_ANY, STEPS_PER_BYTE = 2_000_000, 10
"""Operators and letters that the pages of any file may have, and further ones for each byte."""

_WORD_GAP = 0.14
"""In font sizes; letters of a word stand closer, words that were squeezed into a line farther."""
_CELL_GAP = 1.5
_SAME_LINE = 0.6
"""Of the font size: as far up and down as a line's raised and lowered figures stand."""
_OVERPRINT = 0.3
"""Of the font size: so close by, a text that is drawn again only makes it bold."""
_MAX_FORMS = 5_000
_MAX_DEPTH = 20

_MIN_COLUMN_LINES = 4
_MIN_COLUMN_LENGTH = 20
"""Characters of a line; cells of a table are shorter."""
_FULL, _MOST = 0.75, 0.6
"""Most lines of a column reach this share of its width; cells of a table are ragged."""
_GUTTER = 0.5
"""Of the font size, at least."""

_RIGHT_TO_LEFT = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc"
_HAS_RIGHT_TO_LEFT = re.compile(f"[{_RIGHT_TO_LEFT}]")
_LEFT_TO_RIGHT = re.compile(rf"[^\W{_RIGHT_TO_LEFT}](?:[^{_RIGHT_TO_LEFT}]*[^\W{_RIGHT_TO_LEFT}])?")

Matrix = tuple[float, float, float, float, float, float]
_IDENTITY: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)


class _Run(Struct):
    """Text in one piece: where it begins, ends and stands along and across its direction."""

    text: str
    start: float
    end: float
    across: float
    size: float
    em: float
    """The font size along the line, which differs where letters are stretched."""
    angle: int


class Segment(Struct, frozen=True):
    """What stands together on a line, without a gap as wide as between cells."""

    text: str
    start: float
    end: float


class Line(Struct, frozen=True):
    """A line of a page and the size of its letters, in points."""

    segments: tuple[Segment, ...]
    size: float

    @property
    def text(self) -> str:
        """Its text, with bars between cells."""
        return CELL_BAR.join(segment.text for segment in self.segments)


class StepBudget(Struct):
    """Steps that there still may be; what repeats without end is refused rather than read."""

    name: str
    left: int

    def spend(self, steps: int) -> None:
        """Count steps.

        Raises:
            OverLimit: There are more than a file of its size needs.
        """
        self.left -= steps
        if self.left < 0:
            raise OverLimit(
                f"{self.name} draws far more than a PDF of its size needs",
                "open it in the program it comes from, and print or save it anew",
            )


class Fonts:
    """The fonts of a file, each looked into once."""

    def __init__(self) -> None:
        self._known: dict[int, _Font] = {}

    def named(self, resources: Mapping[str, Any], name: object) -> _Font:
        """The font that a page or form calls by a name."""
        fonts = _dictionary(resources.get("/Font"))
        number = getattr(_raw(fonts, name), "idnum", None)
        if number in self._known:
            return self._known[number]
        font = _Font(_dictionary(fonts.get(name)))
        if number is not None:
            self._known[number] = font
        return font


class _Font:
    """What the letters of a font are and how wide they stand."""

    def __init__(self, resource: DictionaryObject) -> None:
        # pypdf (7.1) exports no way to decode text but its own, which is quadratic in a page's
        # operators and guesses at gaps from the width of a space that many fonts do not have.
        from pypdf.generic._font import Font

        self._font = Font.from_font_resource(resource)
        self._scale = 1 / 1000
        if resource.get("/Subtype") == "/Type3":
            self._scale = float(resource.get("/FontMatrix", (0.001,))[0])
        self._letters: dict[str, tuple[str, float]] = {}

    def letters(self, data: bytes) -> list[tuple[str, float]]:
        """Every letter's text and width, in font sizes."""
        encoding = self._font.encoding
        if isinstance(encoding, str):
            codes = data.decode(encoding, "replace")
        else:
            codes = data.decode("latin-1")
        known = self._letters
        return [known.get(code) or self._letter(code) for code in codes]

    def _letter(self, code: str) -> tuple[str, float]:
        font = self._font
        read = code if isinstance(font.encoding, str) else font.encoding.get(ord(code), code)
        width = font.space_width if code == font.space_char else font.get_text_width(code)
        found = (str(font.character_map.get(read, read)), float(width) * self._scale)
        self._letters[code] = found
        return found


def page_lines(page: PageObject, fonts: Fonts, work: StepBudget) -> list[Line]:
    """The lines of a page in reading order.

    Raises:
        OverLimit: The file draws far more than one of its size needs.
    """
    canvas = _Canvas(fonts, work)
    contents = page.get("/Contents")
    if contents is not None:
        canvas.draw(contents, _dictionary(page.get_inherited("/Resources", {})), _IDENTITY)
    return _column_order([line for group in _same_lines(canvas.runs) for line in _lines(group)])


def text_of(lines: Iterable[Line]) -> str:
    """Lines as text."""
    return "".join(line.text + "\n" for line in lines)


# --- operators to runs ---------------------------------------------------------------------------


class _State(Struct):
    """What ``q`` saves and ``Q`` restores, as far as text goes."""

    matrix: Matrix
    font: _Font | None = None
    size: float = 12.0
    letter_gap: float = 0.0
    word_gap: float = 0.0
    stretch: float = 1.0
    leading: float = 0.0


class _Canvas(Struct):
    """Follows the operators of a page and of the forms that it draws."""

    fonts: Fonts
    work: StepBudget
    runs: list[_Run] = field(default_factory=list)
    _state: _State = field(default_factory=lambda: _State(_IDENTITY))
    _line: Matrix = _IDENTITY
    _place: Matrix = _IDENTITY
    _forms: int = 0

    def draw(
        self,
        stream: Any,
        resources: Mapping[str, Any],
        matrix: Matrix,
        within: tuple[int, ...] = (),
    ) -> None:
        """Record every run of text of a stream."""
        from pypdf.generic import ContentStream

        before, self._state = self._state, copy(self._state)
        self._state.matrix = matrix
        saved: list[_State] = []
        operations = ContentStream(stream, None, "bytes").operations
        self.work.spend(len(operations))
        for operands, operator in operations:
            if operator == b"q":
                saved.append(copy(self._state))
            elif operator == b"Q":
                self._state = saved.pop() if saved else self._state
            elif operator == b"Do":
                self._form(operands, resources, within)
            elif operator == b"Tf":
                self._choose(operands, resources)
            else:
                self._step(operator, operands)
        self._state = before

    def _step(self, operator: bytes, operands: Sequence[Any]) -> None:
        state = self._state
        match operator:
            case b"Tj":
                self._show(operands[:1])
            case b"TJ":
                self._show(operands[0] if operands and isinstance(operands[0], list) else ())
            case b"'":
                self._move(0.0, -state.leading)
                self._show(operands[:1])
            case b'"':
                state.word_gap, state.letter_gap = _numbers(operands, 2)
                self._move(0.0, -state.leading)
                self._show(operands[2:3])
            case b"Td":
                self._move(*_numbers(operands, 2))
            case b"TD":
                across, down = _numbers(operands, 2)
                state.leading = -down
                self._move(across, down)
            case b"T*":
                self._move(0.0, -state.leading)
            case b"Tm":
                self._line = self._place = _matrix(operands)
            case b"BT":
                self._line = self._place = _IDENTITY
            case b"cm":
                state.matrix = _times(_matrix(operands), state.matrix)
            case b"Tc":
                (state.letter_gap,) = _numbers(operands, 1)
            case b"Tw":
                (state.word_gap,) = _numbers(operands, 1)
            case b"TL":
                (state.leading,) = _numbers(operands, 1)
            case b"Tz":
                state.stretch = _numbers(operands, 1)[0] / 100 or 1.0

    def _choose(self, operands: Sequence[Any], resources: Mapping[str, Any]) -> None:
        self._state.font = self.fonts.named(resources, operands[0]) if operands else None
        self._state.size = _numbers(operands[1:], 1)[0]

    def _move(self, along: float, up: float) -> None:
        self._line = self._place = _times((1.0, 0.0, 0.0, 1.0, along, up), self._line)

    def _show(self, shown: Sequence[Any]) -> None:
        """Record strings with the gaps between them, which are in thousandths of the font size."""
        state = self._state
        matrix = _times(self._place, state.matrix)
        wide, tall = math.hypot(matrix[0], matrix[1]), math.hypot(matrix[2], matrix[3])
        if state.font is None or not all(map(math.isfinite, matrix)):
            return
        em, size = abs(state.size) * state.stretch * wide, abs(state.size) * tall
        along = (matrix[0] / wide, matrix[1] / wide) if wide else (1.0, 0.0)
        start = matrix[4] * along[0] + matrix[5] * along[1]
        across = matrix[5] * along[0] - matrix[4] * along[1]
        angle = round(math.degrees(math.atan2(along[1], along[0])))
        moved = 0.0  # in units of text space, before its matrix
        for each in shown:
            if isinstance(each, bytes):
                letters = state.font.letters(each)
                self.work.spend(len(letters))
                # Ghostscript writes the end of a word and the beginning of the next like this.
                is_gap = len(letters) == 2 and state.letter_gap >= _WORD_GAP * abs(state.size)
                text = (" " if is_gap else "").join(text for text, _ in letters)
                width = state.size * sum(width for _, width in letters)
                width += state.letter_gap * len(letters) + state.word_gap * each.count(b" ")
                width *= state.stretch
                place = start + moved * wide
                end = place + (width - state.letter_gap * state.stretch) * wide
                if text:
                    self.runs.append(_Run(text, place, end, across, size or 1.0, em or 1.0, angle))
                moved += width
            elif isinstance(each, int | float):
                moved -= float(each) / 1000 * state.size * state.stretch
        self._place = _times((1.0, 0.0, 0.0, 1.0, moved, 0.0), self._place)

    def _form(
        self, operands: Sequence[Any], resources: Mapping[str, Any], within: tuple[int, ...]
    ) -> None:
        """Draw a form, unless it is drawn within itself."""
        form = _dictionary(resources.get("/XObject")).get(operands[0]) if operands else None
        form = form.get_object() if form is not None else None
        if not isinstance(form, dict) or form.get("/Subtype") != "/Form" or id(form) in within:
            return
        self._forms += 1
        if self._forms > _MAX_FORMS or len(within) > _MAX_DEPTH:
            return
        own = _dictionary(form.get("/Resources")) or resources
        matrix = _times(_matrix(form.get("/Matrix", _IDENTITY)), self._state.matrix)
        line, place = self._line, self._place
        self.draw(form, own, matrix, (*within, id(form)))
        self._line, self._place = line, place


def _dictionary(value: Any) -> Any:
    found = value.get_object() if hasattr(value, "get_object") else value
    return found if isinstance(found, dict) else {}


def _raw(dictionary: Any, name: object) -> Any:
    """An entry as it stands there, which may be a reference."""
    return dictionary.raw_get(name) if name in dictionary else None


def _numbers(operands: Sequence[Any], count: int) -> list[float]:
    found = [float(each) if isinstance(each, int | float) else 0.0 for each in operands[:count]]
    return found + [0.0] * (count - len(found))


def _matrix(operands: Sequence[Any]) -> Matrix:
    if len(operands) < 6:
        return _IDENTITY
    a, b, c, d, e, f = _numbers(operands, 6)
    return a, b, c, d, e, f


def _times(first: Matrix, then: Matrix) -> Matrix:
    a, b, c, d, e, f = first
    p, q, r, s, t, u = then
    return (
        a * p + b * r,
        a * q + b * s,
        c * p + d * r,
        c * q + d * s,
        e * p + f * r + t,
        e * q + f * s + u,
    )


# --- runs to lines -------------------------------------------------------------------------------


def _same_lines(runs: Iterable[_Run]) -> Iterator[list[_Run]]:
    """Neighbours in the page's own order that stand on one line."""
    group: list[_Run] = []
    for run in runs:
        if group and not _is_same_line(group[0], group[-1], run):
            yield group
            group = []
        group.append(run)
    if group:
        yield group


def _is_same_line(first: _Run, last: _Run, run: _Run) -> bool:
    if run.angle != first.angle:
        return False
    return any(
        abs(run.across - other.across) < _SAME_LINE * max(run.size, other.size)
        for other in (first, last)
    )


def _lines(group: list[_Run]) -> Iterator[Line]:
    """The line that runs make up; none where all of it is blank."""
    stretches: list[list[_Run]] = []
    last: _Run | None = None
    for run in group:
        if last is not None and run.text == last.text and _is_overprint(last, run):
            continue
        if not run.text.strip() and last is None:
            continue
        if last is None or run.start - last.end < -run.em:
            stretches.append([])
        stretches[-1].append(run)
        last = run
    segments = [s for runs in sorted(stretches, key=_begin) for s in _segments(runs)]
    if segments:
        yield Line(tuple(_readable(segments)), max(run.size for run in group if run.text.strip()))


def _is_overprint(last: _Run, run: _Run) -> bool:
    return abs(run.start - last.start) < _OVERPRINT * run.em


def _begin(runs: Sequence[_Run]) -> float:
    return runs[0].start


def _segments(runs: Sequence[_Run]) -> Iterator[Segment]:
    """What a line is made of, from left to right."""
    text, start, end = "", 0.0, 0.0
    for run in runs:
        gap = (run.start - end) / run.em
        words = text.strip()
        if words and gap > _CELL_GAP and run.text.strip():
            yield Segment(words, start, end)
            text = words = ""
        if not words:
            text, start = "", run.start
        is_apart = gap >= _WORD_GAP and not text.endswith(" ") and not run.text.startswith(" ")
        text += " " + run.text if words and is_apart else run.text
        if run.text.strip():
            end = run.end
    if text.strip():
        yield Segment(text.strip(), start, end)


def _readable(segments: list[Segment]) -> list[Segment]:
    """What was drawn from left to right but is read the other way, in the order of reading."""
    if not any(_HAS_RIGHT_TO_LEFT.search(segment.text) for segment in segments):
        return segments
    return [
        Segment(
            _LEFT_TO_RIGHT.sub(lambda match: match[0][::-1], segment.text[::-1]),
            segment.start,
            segment.end,
        )
        for segment in reversed(segments)
    ]


# --- lines in columns ----------------------------------------------------------------------------


def _column_order(lines: list[Line]) -> list[Line]:
    """Lines with those of columns that were drawn across the page one column after the other."""
    ordered: list[Line] = []
    place = 0
    while place < len(lines):
        end, gutter = _column_block(lines, place)
        block = lines[place:end]
        left, right = _sides(block, gutter)
        if _are_columns(block, left, right):
            ordered += _column_order(left) + _column_order(right)
        else:
            ordered += block
        place = end
    return ordered


def _column_block(lines: Sequence[Line], first: int) -> tuple[int, float]:
    """The end of the lines that a gutter runs through, and where it is; one line has none."""
    low, high = _first_gap(lines[first])
    end = first + 1
    while low < high and end < len(lines):
        line = lines[end]
        start, stop = line.segments[0].start, line.segments[-1].end
        inner = [(a.end, b.start) for a, b in zip(line.segments, line.segments[1:], strict=False)]
        gaps = [(-math.inf, start), *inner, (stop, math.inf)]
        common = max(((max(low, a), min(high, b)) for a, b in gaps), key=lambda g: g[1] - g[0])
        if common[1] - common[0] < _GUTTER * line.size:
            break
        low, high = common
        end += 1
    return end, (low + high) / 2


def _first_gap(line: Line) -> tuple[float, float]:
    if len(line.segments) < 2:
        return 0.0, 0.0
    return line.segments[0].end, line.segments[1].start


def _sides(block: Iterable[Line], gutter: float) -> tuple[list[Line], list[Line]]:
    left, right = [], []
    for line in block:
        before = tuple(segment for segment in line.segments if segment.end <= gutter)
        after = line.segments[len(before) :]
        left += [Line(before, line.size)] if before else []
        right += [Line(after, line.size)] if after else []
    return left, right


def _are_columns(block: Sequence[Line], left_lines: Sequence[Line], right: Sequence[Line]) -> bool:
    """Return whether these are two columns of running text and not the rows of a table."""
    in_both = len(left_lines) + len(right) - len(block)
    return in_both >= _MIN_COLUMN_LINES and _is_running(left_lines) and _is_running(right)


def _is_running(lines: Sequence[Line]) -> bool:
    widths = [line.segments[-1].end - line.segments[0].start for line in lines]
    widest = max(widths)
    full = sum(width >= _FULL * widest for width in widths)
    is_long = sum(len(line.text) for line in lines) >= _MIN_COLUMN_LENGTH * len(lines)
    return is_long and full >= _MOST * len(lines)


# --- what the title page says --------------------------------------------------------------------

_DISPLAY = 1.2
"""Of the size of running text: headings and names on a title page are larger."""
_SIMILAR_SIZE = 0.9
_TITLE_PAGE = 800
"""Characters; a first page with more has text of its own below its title."""
_BODY_PAGES = 20
_MAX_NAME, _MAX_SUBJECT = 80, 160
_FISCAL_YEAR = re.compile(
    r"\bFY ?['’]?(?P<short>\d{4}|\d{2})\b"
    r"|\b(?:fiscal|financial)(?: year)?(?:,? (?:ended|ending)(?: on)?)?"
    r"(?: [^\W\d]+| \d{1,2},?){0,3} (?P<fiscal>(?:19|20)\d\d)\b"
    r"|\byear ended (?:[^\W\d]+ |\d{1,2},? ){0,3}(?P<ended>(?:19|20)\d\d)\b"
    r"|\bGeschäftsjahr (?P<jahr>(?:19|20)\d\d)\b"
    r"|\b(?P<after>(?:19|20)\d\d) annual report\b|\bannual report (?P<before>(?:19|20)\d\d)\b",
    re.IGNORECASE,
)
_COMPANY = re.compile(
    r"(?:[^\W\d_][\w&.’'-]*,? ){1,6}"
    r"(?:Inc|Corp|Corporation|Company|Ltd|Limited|LLC|LLP|PLC|plc|GmbH|AG|SE|Oyj|AB|ASA|S\.A|N\.V|S\.p\.A)"
    r"\.?"
)


def title_page_subject(title: str, pages: Sequence[Sequence[Line]]) -> str:
    """What the first page names in large letters, with company and fiscal year, but for the title.

    ``Northwind Traders, Inc. – FY2023`` above every page has a question about that year find its
    figures, which the pages that hold them seldom repeat.
    """
    first = pages[0] if pages else ()
    body = _body_size([line for page in pages[:_BODY_PAGES] for line in page])
    whole = "\n".join(line.text for line in first)
    large = [line for line in first if line.size >= _DISPLAY * body]
    if len(whole) > _TITLE_PAGE and large:
        largest = max(line.size for line in large)
        large = [line for line in large if line.size >= _SIMILAR_SIZE * largest]
    companies = (line.text for line in first if _COMPANY.fullmatch(line.text))
    named = [line.text for line in large] + [next(companies, ""), _fiscal_year(whole)]
    subject, known = "", title.casefold()
    for name in filter(None, named):
        longer = f"{subject} – {name}" if subject else name
        if len(name) <= _MAX_NAME and len(longer) <= _MAX_SUBJECT and name.casefold() not in known:
            subject, known = longer, f"{known}\n{name.casefold()}"
    return subject


def _fiscal_year(text: str) -> str:
    """The fiscal year that a text names first, as ``FY2023``; ``""`` without one."""
    found = _FISCAL_YEAR.search(text)
    year = next(filter(None, found.groups()), "") if found else ""
    return f"FY{year if len(year) == 4 else '20' + year}" if year else ""


def _body_size(lines: Iterable[Line]) -> float:
    """The size that most of the text has, to half a point."""
    sizes: Counter[float] = Counter()
    for line in lines:
        sizes[round(line.size * 2) / 2] += len(line.text)
    return max(sizes, key=sizes.__getitem__) if sizes else 0.0
