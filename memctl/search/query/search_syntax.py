"""Search syntax: operators and wildcards in a question, as search boxes have them.

    "cold brew"  pars*  aurroa~  +must  -mustnot  AND  OR  NOT  (a OR b)

Plain words only rank; what has an operator is required.  A text that begins with a question word,
ends like a sentence or consists of several sentences is never an expression; only ``pars*`` and
``aurroa~`` have their meaning there as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from memctl.errors import UsageError
from memctl.language.sentence_splitting import SENTENCE_MARKS, split_sentences
from memctl.language.term_analysis import query_terms, terms
from memctl.language.word_lists import stop_words
from memctl.patterns import lazy_regex

Operator = Literal["AND", "OR", "NOT"]
TermRun = tuple[str, ...]
"""Terms that are neighbours."""

_ASKING = frozenset(
    re.findall(
        r"\w+",
        """who whom whose what which when where why how wer wen wem wessen was wann wo wie warum
        welche welcher welches qui que quoi quand où comment pourquoi quién qué cuándo dónde""",
    )
)
_CURLY = str.maketrans({"“": '"', "”": '"', "„": '"'})
_CODE = lazy_regex(
    r"[^\W\d_](?:\d|-[^\W_])"  # v2.13.4, Q3, e-mail
    r"|\d{4}-\d\d|\d\d?[./]\d\d?[./]\d{2}"  # days and months
    r"|\d{3,8}(?!\d|[.,:/]\d|\s?[%°€$£])"  # 4711 and 4711-B; more digits are a telephone
)
"""How something that begins with a digit or a single letter continues if it is no quantity."""
_PHRASE = lazy_regex('"[^"]+"')
_PIECE = lazy_regex(
    rf'(?:(?<=[\s(])|^)(?P<sign>[+-])(?=["(]|[^\W\d_]{{2}}|{_CODE.pattern})'
    r'|"(?P<phrase>[^"]+)"'
    r"|(?P<open>(?:(?<=[\s(+-])|^)\()"
    r"|(?P<close>\)(?=[\s)]|$))"
    r'|(?P<word>(?:(?!\){1,64}(?:\s|$))[^\s"])+)'
)
_LONGEST = 256
"""Words; a longer text is no expression."""
_MAX_WORDS_WITH_PHRASES = 12
"""Words; in a longer text people quote what they name, and don't require it word for word."""
_DEEPEST = 40
"""Nested parentheses and negations."""
_LONGEST_COMPOUND = 3
"""Words that are also searched for as one: "state of the art", "state-of-the art"."""
_AFTER = r"[,;:.!?)]*$"
_FUZZY = lazy_regex(rf"([^\W\d_]{{3,}})~([12]?){_AFTER}")
_PREFIX = lazy_regex(rf"(?=.*[^\W_].*[^\W_])(\w[\w.-]*[^\W_])\*{_AFTER}")
_SHORTEST_NUMBER = 4
"""Fewer digits before a star are a rating, or the name of a product."""
_UNSPACED = lazy_regex("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\u0e00-\u0eff\u1000-\u109f]")
_ONE_EDIT = 5
"""Letters of the longest word of which one may differ; in longer words two may."""


class Pattern(Struct, frozen=True):
    """A word that stands for all those with this prefix, or with nearly this spelling."""

    word: str
    edits: int = 0
    """Number of letters that may be wrong, missing or too many; 0 for a prefix."""

    def __str__(self) -> str:
        return f"{self.word}~" if self.edits else f"{self.word}*"


class Match(Struct, frozen=True):
    """A memory must have one of these runs of terms; a stop word has none."""

    runs: tuple[TermRun, ...] = ()
    pattern: Pattern | None = None
    """Set until ``resolve_patterns`` finds the runs for it."""
    joined_runs: tuple[TermRun, ...] = ()
    """The same words with some of them joined: "self-hosted runner"."""


class AllOf(Struct, frozen=True):
    """Every part is required."""

    parts: tuple[Node, ...]


class AnyOf(Struct, frozen=True):
    """One of the parts is required."""

    parts: tuple[Node, ...]


class Not(Struct, frozen=True):
    """The part is excluded."""

    part: Node


Node = Match | AllOf | AnyOf | Not


class Expression(Struct, frozen=True):
    """A parsed text."""

    text: str
    """The words to search for, without operators and without what is excluded."""
    required: AllOf | None = None
    """What is required; None where words only rank."""
    patterns: Mapping[int, Pattern] = field(default_factory=dict)
    """By the position of the word in the text."""
    note: str = ""
    """How the text was understood, where it may have been meant differently."""


def parse_query(text: str, languages: Sequence[str]) -> Expression:
    """Parse a text; a malformed expression becomes plain words, with a note.

    Args:
        text: The question.
        languages: Those of the memories.

    Raises:
        UsageError: It only says what is excluded.
    """
    if len(text.split()) > _LONGEST:
        return Expression(text)
    plain = text.translate(_CURLY)
    if plain.count('"') % 2:
        plain = plain.replace('"', " ")
    if not plain.split() or _is_prose(plain):
        return _with_patterns(text)
    pieces = list(_pieces(plain))
    if not any(piece.is_mark for piece in pieces) or _only_quotes(pieces):
        return _required_patterns(_with_patterns(text), languages)
    try:
        expression = _Parser(pieces, languages).expression()
        if expression.required and any(piece.in_doubt for piece in pieces):
            note = f"what must hold: {describe_node(expression.required)}"
            return replace(expression, note=note)
        return expression
    except _MalformedError as error:
        return Expression(text, note=f"taken as plain words: {error}")


def _is_prose(text: str) -> bool:
    if text.rstrip().endswith(SENTENCE_MARKS) or text.split()[0].lower() in _ASKING:
        return True
    return len(split_sentences(_PHRASE.sub("quoted", text))) > 1


def _with_patterns(text: str) -> Expression:
    """Return plain words, some of which may be patterns."""
    words = text.split()
    stars = not any(word.startswith("*") for word in words)  # *such* is emphasis
    found = {at: p for at, word in enumerate(words) if (p := _pattern(word, stars=stars))}
    if not found:
        return Expression(text)
    plain = [found[at].word if at in found else word for at, word in enumerate(words)]
    return Expression(" ".join(plain), patterns=found)


def _required_patterns(expression: Expression, languages: Sequence[str]) -> Expression:
    """Require one of the patterns, where the text has no other content."""
    others = (w for at, w in enumerate(expression.text.split()) if at not in expression.patterns)
    if not expression.patterns or query_terms(" ".join(others), languages):
        return expression
    some = AnyOf(tuple(Match(pattern=pattern) for pattern in expression.patterns.values()))
    return replace(expression, required=AllOf((some,)))


def _pattern(word: str, *, stars: bool = True) -> Pattern | None:
    if fuzzy := _FUZZY.fullmatch(word):
        edits = int(fuzzy[2]) if fuzzy[2] else 1 if len(fuzzy[1]) <= _ONE_EDIT else 2
        return Pattern(fuzzy[1], edits)
    prefix = _PREFIX.fullmatch(word) if stars else None
    if prefix and (not prefix[1].isdigit() or len(prefix[1]) >= _SHORTEST_NUMBER):
        return Pattern(prefix[1])
    return None


# --- pieces --------------------------------------------------------------------------------------


class _Piece(Struct, frozen=True):
    kind: Literal["sign", "phrase", "open", "close", "word", "operator"]
    text: str
    in_doubt: bool = False
    """Whether it is a sign that may not have been meant as one."""

    @property
    def is_mark(self) -> bool:
        """Whether it makes a text an expression; parentheses alone do not."""
        return self.kind in ("sign", "phrase", "operator")


def _pieces(text: str) -> Iterator[_Piece]:
    before, shouted = "", text.isupper()
    for match in _PIECE.finditer(text):
        kind, said = match.lastgroup, match.group(match.lastgroup or 0)
        if kind == "word" and _is_operator(said, before, shouted=shouted):
            yield _Piece("operator", said)
        elif kind == "sign" and _CODE.match(text, match.end()):
            if before.lower() not in stop_words("en"):  # "from -500 to +300"
                yield _Piece("sign", said, in_doubt=True)
        elif kind in ("sign", "phrase", "open", "close", "word"):
            yield _Piece(kind, said)  # type: ignore[arg-type]  # a string of the pattern's own
        before = said


def _only_quotes(pieces: Sequence[_Piece]) -> bool:
    """Return whether a long text has quotation marks, but no operators."""
    words = sum(piece.kind == "word" for piece in pieces)
    marks = (piece.kind == "phrase" for piece in pieces if piece.is_mark)
    return words > _MAX_WORDS_WITH_PHRASES and all(marks)


def _is_operator(word: str, before: str, *, shouted: bool) -> bool:
    """Return whether a word is an operator, not emphasis as in "do NOT" or a text in capitals."""
    if word == "NOT":
        return not shouted and (before in ("AND", "OR") or before.lower() not in stop_words("en"))
    return word in ("AND", "OR")


# --- grammar -------------------------------------------------------------------------------------


class _MalformedError(Exception):
    """Why a text is no valid expression."""


class _Parser:
    """Parses one expression: a sequence of words and groups, joined by OR, AND and NOT.

    Args:
        pieces: Those of the text.
        languages: Those of the memories.
    """

    def __init__(self, pieces: Sequence[_Piece], languages: Sequence[str]) -> None:
        self._pieces = list(pieces)
        self._languages = languages
        self._at = 0
        self._words: list[str] = []
        self._patterns: dict[int, Pattern] = {}
        self._negations = 0
        self._depth = 0

    def expression(self) -> Expression:
        """Return the whole expression."""
        required = AllOf(tuple(self._clauses(inside=False)))
        if not self._words:
            raise UsageError("that only says what is not to be found", 'add what is: "coffee -tea"')
        text = " ".join(self._words)
        return Expression(text, required if required.parts else None, self._patterns)

    def _clauses(self, *, inside: bool) -> list[Node]:
        """Return what is required up to the end, or inside up to the closing parenthesis."""
        found: list[Node] = []
        while (piece := self._next()) is not None:
            if piece.kind == "close":
                self._at += 1
                if inside:
                    return found
                continue  # it was never opened
            node, joined = self._chain()
            if joined or inside or piece.kind != "word":
                found.append(node)
        if inside:
            raise _MalformedError("a parenthesis is not closed")
        return found

    def _chain(self) -> tuple[Node, bool]:
        """Return operands joined by operators, and whether there are any operators."""
        ways: list[list[Node]] = [[self._operand()]]
        joined = False
        while (piece := self._next()) is not None and piece.kind == "operator":
            joined = True
            if piece.text != "NOT":
                self._at += 1
            if piece.text == "OR":
                ways.append([])
            ways[-1].append(self._operand())
        return AnyOf(tuple(AllOf(tuple(way)) for way in ways)), joined

    def _operand(self) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _MalformedError(f"more than {_DEEPEST} parentheses are within one another")
        node = self._parse_one()
        self._depth -= 1
        return node

    def _parse_one(self) -> Node:
        piece = self._next()
        if piece is None or piece.kind == "close":
            raise _MalformedError("an operator has nothing behind it")
        self._at += 1
        if piece.kind == "operator":
            if piece.text != "NOT":
                raise _MalformedError(f"{piece.text} joins nothing")
            return self._parse_negation()
        if piece.kind == "sign":
            return self._operand() if piece.text == "+" else self._parse_negation()
        if piece.kind == "open":
            return AllOf(tuple(self._clauses(inside=True)))
        return self._words_of(piece)

    def _parse_negation(self) -> Node:
        self._negations += 1
        part = self._operand()
        self._negations -= 1
        return Not(part)

    def _words_of(self, piece: _Piece) -> Match:
        pattern = _pattern(piece.text) if piece.kind == "word" else None
        if not self._negations:
            if pattern:
                self._patterns[len(self._words)] = pattern
            self._words += (pattern.word if pattern else piece.text).split()
        if pattern:
            return Match(pattern=pattern)
        if piece.kind == "word":
            return Match(self._runs(_word_runs, piece.text))
        runs = self._runs(_phrase_runs, piece.text)
        joined = (run for run in self._runs(_joined_runs, piece.text) if run not in runs)
        return Match(runs, joined_runs=tuple(joined))

    def _runs(
        self, runs: Callable[[str, str], Iterator[TermRun]], text: str
    ) -> tuple[TermRun, ...]:
        found = (run for language in self._languages for run in runs(text, language))
        return tuple(dict.fromkeys(found))

    def _next(self) -> _Piece | None:
        return self._pieces[self._at] if self._at < len(self._pieces) else None


def _phrase_runs(text: str, language: str) -> Iterator[TermRun]:
    if run := tuple(terms(text, language)):
        yield run


def _joined_runs(text: str, language: str) -> Iterator[TermRun]:
    """Yield a phrase with its compounds split, and with each two or three words joined.

    Of a compound, a memory has the parts followed by the whole.
    """
    words = text.replace("-", " ").split()
    yield from _phrase_runs(" ".join(words), language)
    for count in range(2, _LONGEST_COMPOUND + 1):
        for at in range(len(words) - count + 1):
            for mark in "-_":
                whole = mark.join(words[at : at + count])
                yield from _phrase_runs(
                    " ".join([*words[:at], whole, *words[at + count :]]), language
                )


def _word_runs(word: str, language: str) -> Iterator[TermRun]:
    """Yield the runs that a word is found by: ``parse_config`` also by its neighbouring parts."""
    found = tuple(terms(word, language))
    if len(found) <= 1 or _UNSPACED.search(word):
        yield from (found,) if found else ()
        return
    *parts, whole = found
    yield (whole,)
    if len(parts) > 1 and any(map(str.isalpha, parts)):
        yield tuple(parts)


# --- evaluation ----------------------------------------------------------------------------------


def resolve_patterns(node: Node, found: Mapping[Pattern, Sequence[str]]) -> Node | None:
    """Return what is required with the terms that patterns stand for; None if nothing is left."""
    if isinstance(node, Match):
        if node.pattern is not None:
            return Match(tuple((term,) for term in found[node.pattern]), node.pattern)
        return node if node.runs else None
    if isinstance(node, Not):
        part = resolve_patterns(node.part, found)
        return None if part is None else Not(part)
    parts = tuple(
        part for each in node.parts if (part := resolve_patterns(each, found)) is not None
    )
    return type(node)(parts) if parts else None


def matches_node(node: Node, text: str) -> bool:
    """Return whether a memory has what is required.

    Args:
        node: What is required, with its patterns resolved.
        text: The memory's terms, with a space before, between and after them.
    """
    if isinstance(node, Match):
        return any(f" {' '.join(run)} " in text for run in chain(node.runs, node.joined_runs))
    if isinstance(node, Not):
        return not matches_node(node.part, text)
    judged = (matches_node(part, text) for part in node.parts)
    return all(judged) if isinstance(node, AllOf) else any(judged)


def iter_patterns(node: Node) -> Iterator[Pattern]:
    """Yield the patterns in what is required."""
    if isinstance(node, Match):
        yield from (node.pattern,) if node.pattern is not None else ()
    elif isinstance(node, Not):
        yield from iter_patterns(node.part)
    else:
        for part in node.parts:
            yield from iter_patterns(part)


def mandatory_terms(node: Node) -> tuple[str, ...]:
    """Return the terms that every matching memory has."""
    if isinstance(node, Match):
        each = [*node.runs, *node.joined_runs] or [()]
        return tuple(term for term in each[0] if all(term in run for run in each))
    if isinstance(node, Not) or (isinstance(node, AnyOf) and len(node.parts) > 1):
        return ()
    return tuple(dict.fromkeys(term for part in node.parts for term in mandatory_terms(part)))


def describe_node(node: Node) -> str:
    """Return what is required, as terms, to show how it was understood."""
    if isinstance(node, Match):
        if node.pattern is not None:
            return str(node.pattern)
        runs = [" ".join(run) if len(run) == 1 else f'"{" ".join(run)}"' for run in node.runs]
        return runs[0] if len(runs) == 1 else f"({' | '.join(runs)})"
    if isinstance(node, Not):
        return f"NOT {describe_node(node.part)}"
    parts = [describe_node(part) for part in node.parts]
    operator = " AND " if isinstance(node, AllOf) else " OR "
    return parts[0] if len(parts) == 1 else f"({operator.join(parts)})"
