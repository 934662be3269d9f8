"""Conversations written down as text become turns: who said it, and when."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Literal

from memctl.readers.pieces import Piece
from memctl.records import SegmentKind

Style = Literal["", "time", "role", "name"]
_Opening = Literal["", "turn", "notice", "section"]
"""What begins with a line; a notice is what the program says."""

_CLOCK = r"\d{1,2}[:.]\d{2}(?:[:.]\d{2})?(?:[.,]\d+)?(?:\s?[AaPp]\.?[Mm]\.?)?"
_DAY = r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}"
_TIMESTAMP = (
    rf"(?:(?P<day>{_DAY})(?:,\s*|[T\s]+))?(?P<clock>{_CLOCK})\s?(?P<zone>Z|UTC|[+-]\d\d:?\d\d)?"
)
_NAME = r"[^\W\d_][\w.'’&@-]*(?: [\w.'’&()@-]+){0,3}"
_TURN = re.compile(
    rf"(?P<stamp>\[{_TIMESTAMP}\]\s*(?:-\s*)?)?(?:\*\*|__)?(?P<speaker>{_NAME})(?:\*\*|__)?"
    r"(?:\s*\[(?P<later>[^\]\n]{4,30})\])?:(?:\*\*|__)?(?:[^\S\n]+|$)",
)
_BARE_TURN = re.compile(rf"{_TIMESTAMP}\s*(?:[-–—|]\s*)?(?P<speaker>{_NAME}):(?:[^\S\n]+|$)")
_IRC_TURN = re.compile(rf"(?:\[?{_TIMESTAMP}\]?\s*)?<[@+ ]?(?P<speaker>[\w.|`^-]{{1,30}})>[^\S\n]+")
_STAMP = (
    r"(?=\[[^\]\n]{8,30}\]\s|[^\[\n]{8,28}\s-\s)"  # in brackets, or before a dash
    rf"\[?(?P<day>{_DAY}),?\s(?P<clock>{_CLOCK})(?P<zone>)\]?\s(?:-\s)?"
)
_PHONE_TURN = re.compile(rf"{_STAMP}(?:~\s?)?(?P<speaker>[^:\n\[\]<>]{{1,40}}):\s")
"""As phones export chats: who speaks may be a number, or have any sign in the name."""
_NOTICE = re.compile(_STAMP)
_ENCRYPTED = re.compile(
    r"encrypt|verschlüssel|chiffr|cifrad|cifrat|crittograf|criptograf|versleutel|krypter|szyfrow",
    re.IGNORECASE,
)
"""In the notice that every export begins with: "Messages are end-to-end encrypted"."""
_INVISIBLE = "\u200e\u200f\u202a\u202b\u202c\ufeff"
"""Marks of direction, which phones put before lines."""
_PLACEHOLDER = re.compile(r":[^\S\n]+<[^\W\d_][^<>\n]{4,40}[^\W\d_]>\s*\Z")
"""All that an export has of a picture: ``<Media omitted>``, in any language."""
_DATE_LINE = re.compile(r"\W*(?:\w+,?\s+)?(?P<day>\d{4}-\d{2}-\d{2})\W*$")
_ROLES = frozenset(
    ("user", "assistant", "system", "human", "ai", "bot", "me", "you", "agent", "customer", "tool")
)
_NOT_SPEAKERS = frozenset(
    ("note", "notes", "todo", "example",
     "examples", "see", "date", "time", "subject", "title", "summary",
     "http", "https",
     "from", "to", "cc", "remember", "important", "decision", "decided", "plan", "fact", "ps",
     "nb", "source", "tags", "author", "status", "attendees", "location", "where", "when", "what",
     "who", "why", "how", "total", "step", "name", "email", "phone", "address")
)  # fmt: skip
_LOG_LEVELS = frozenset(
    ("trace", "debug", "info", "notice", "warn", "warning", "error", "critical", "fatal", "severe")
)
_SAMPLE_LINES = 400
_SAMPLE_CHARS = 100_000
_OPENING_CHARS = 200
_MAX_SPEAKER_LENGTH = 40


def _turn(line: str) -> re.Match[str] | None:
    """The match of a line that opens a turn; None for any other line."""
    line = line[:_OPENING_CHARS].lstrip(_INVISIBLE)
    patterns = (_TURN, _BARE_TURN, _IRC_TURN, _PHONE_TURN)
    match = next((match for pattern in patterns if (match := pattern.match(line))), None)
    if match is None or len(match["speaker"]) > _MAX_SPEAKER_LENGTH:
        return None
    speaker = match["speaker"].lower()
    named = speaker not in _NOT_SPEAKERS and speaker.split()[0] not in _LOG_LEVELS
    return match if named else None


def chat_style(text: str) -> Style:
    """What opens the turns of a conversation; ``""`` where the text is none.

    ``Name: Ann``, ``City: Rome`` is a list of properties, not a conversation: without times or
    known roles, the same few speakers must come back again and again, and half of them at least.
    """
    lines = [line for line in text[:_SAMPLE_CHARS].split("\n") if line.strip()][:_SAMPLE_LINES]
    turns = [turn for line in lines if (turn := _turn(line))]
    names = [turn["speaker"].lower() for turn in turns]
    roles = [name for name in names if name in _ROLES]
    share = len(turns) / max(1, len(lines))
    if len(set(roles)) > 1 and 2 * len(roles) > len(names) and names[0] in _ROLES:
        return "role"
    timed = sum(_has_time(turn) for turn in turns)
    if timed > 1 and 2 * timed > len(turns) and timed >= 0.3 * len(lines):
        return "time"
    often = Counter(names)
    are_few = 2 <= len(often) <= 0.67 * len(names)
    come_back = 2 * sum(number > 1 for number in often.values()) >= len(often)
    return "name" if len(turns) >= 3 and share >= 0.5 and are_few and come_back else ""


def _has_time(turn: re.Match[str]) -> bool:
    """Return whether it opens with a time as in chats; lower-case names are those of programs."""
    if "<" in turn[0]:
        return True
    return bool(turn.groupdict().get("clock")) and not turn["speaker"][0].islower()


def is_left_out(text: str) -> bool:
    """Return whether a text is lines of a chat that say nothing: placeholders, the first notice."""
    lines = filter(str.strip, text.splitlines())
    return all(
        _NOTICE.match(line.lstrip(_INVISIBLE))
        and (_ENCRYPTED.search(line) or _PLACEHOLDER.search(line))
        for line in lines
    )


class ChatReader:
    """Turns of one conversation; remembers across blocks of it the day and who is speaking.

    Args:
        style: What opens its turns.
        day: When it began, if that is known.
        day_first: Whether its dates have the day before the month.
    """

    def __init__(self, style: Style, day: datetime | None, *, day_first: bool) -> None:
        self._style = style
        self._day = day
        self._day_first = day_first
        self._heading = ""
        self._speaker: str | None = None
        self._said_at: datetime | None = None

    @classmethod
    def of(cls, sample: str, day: datetime | None) -> ChatReader | None:
        """Return a reader of what begins with a sample; None where that is no conversation."""
        style = chat_style(sample)
        return cls(style, day, day_first=_day_comes_first(sample)) if style else None

    def pieces(self, text: str) -> Iterator[Piece]:
        """One piece for each turn with the lines that belong to it; prose before the first turn."""
        run: list[str] = []
        begun: _Opening = ""
        for line in text.splitlines(keepends=True):
            turn = self._turn(line)
            opening: _Opening = "turn" if turn else self._opening(line)
            if run and opening:
                yield self._piece(run, begun)
                run = []
            begun = begun if run else opening
            self._take_note(line, turn, opening)
            run.append(line)
        if run:
            yield self._piece(run, begun)

    def _turn(self, line: str) -> re.Match[str] | None:
        """The turn that a line opens in a conversation of this style."""
        turn = _turn(line)
        if turn and self._style == "role":
            return turn if turn["speaker"].lower() in _ROLES else None
        if turn and self._style == "time":
            return turn if _has_time(turn) else None
        return turn

    def _opening(self, line: str) -> _Opening:
        """What begins with a line that opens no turn; a notice has a time and no speaker."""
        if self._style == "time" and _NOTICE.match(line.lstrip(_INVISIBLE)):
            return "notice"
        return "section" if _starts_section(line) else ""

    def _piece(self, run: list[str], begun: _Opening) -> Piece:
        text = "".join(run)
        if self._speaker is not None and begun == "turn" and _PLACEHOLDER.search(text):
            return Piece(text, None, self._heading)
        if self._speaker is not None:
            return Piece(text, "turn", self._heading, speaker=self._speaker, said_at=self._said_at)
        if begun == "notice":
            kind: SegmentKind | None = None if _ENCRYPTED.search(text) else "properties"
            return Piece(text, kind, self._heading)
        is_heading = begun == "section" and not "".join(run[1:]).strip()
        return Piece(text, "heading" if is_heading else "prose", self._heading)

    def _take_note(self, line: str, turn: re.Match[str] | None, opening: _Opening) -> None:
        if turn:
            self._speaker = turn["speaker"].strip()
            self._said_at = self._moment(turn)
        elif opening == "notice":
            self._speaker, self._said_at = None, None
        elif opening == "section":
            self._speaker, self._said_at = None, None
            self._heading = line.strip().strip("#-=* ").strip()
            if day := _DATE_LINE.match(line.strip()):
                self._day = _date(day["day"], self._day_first) or self._day

    def _moment(self, turn: re.Match[str]) -> datetime | None:
        groups = turn.groupdict()
        if groups.get("later"):
            match = re.match(_TIMESTAMP, groups["later"])
            groups = {**groups, **match.groupdict()} if match else groups
        if not groups.get("clock"):
            return None
        day = _date(groups["day"], self._day_first) if groups.get("day") else self._day
        return _at(day, groups["clock"], groups.get("zone") or "") if day else None


def _starts_section(line: str) -> bool:
    stripped = line.strip()
    return bool(stripped) and (
        re.match(r"#{1,6} \S|[-=]{3,} .*\S [-=]{3,}$", stripped) is not None
        or _DATE_LINE.match(stripped) is not None
    )


def _day_comes_first(sample: str) -> bool:
    """Return whether ``05/06/2026`` in this text is the fifth of June, not May the sixth."""
    pairs = re.findall(
        r"^\W?(\d{1,2})[/.-](\d{1,2})[/.-]\d{2,4}\b(.*)", sample[:_SAMPLE_CHARS], re.M
    )
    if any(int(first) > 12 for first, _, _ in pairs):
        return True
    if any(int(second) > 12 for _, second, _ in pairs):
        return False
    return not any(re.search(r"\d\s?[AaPp]\.?[Mm]", rest[:20]) for _, _, rest in pairs)


def _date(day: str, day_first: bool) -> datetime | None:
    numbers = [int(number) for number in re.split(r"[-/.]", day)]
    if len(day) >= 8 and re.match(r"\d{4}", day):
        year, month, date = numbers
    else:
        date, month = (numbers[0], numbers[1]) if day_first else (numbers[1], numbers[0])
        year = numbers[2] + (2000 if numbers[2] < 100 else 0)
    try:
        return datetime(year, month, date, tzinfo=UTC)
    except ValueError:
        return None


def _at(day: datetime, clock: str, zone: str) -> datetime | None:
    numbers = [int(number) for number in re.findall(r"\d+", clock)[:3]]
    hour, minute, second = (*numbers, 0)[:3]
    if re.search(r"[AaPp]\.?[Mm]", clock):
        hour = hour % 12 + (12 if "p" in clock.lower() else 0)
    try:
        moment = day.replace(hour=hour, minute=minute, second=second)
        if zone in ("", "Z", "UTC"):
            return moment
        offset = datetime.strptime(zone, "%z").tzinfo
        return moment.replace(tzinfo=offset).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
