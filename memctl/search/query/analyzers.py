"""Query analysis: an ordered list of analyzers, each of which may refine the question.

To add an analyzer, write a function from an ``Analysis`` to an ``Analysis`` and add it to
``ANALYZERS``.  Analyzers know how common terms are, and what memories say of words, but never
which memories match.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from functools import reduce
from typing import Any

import pyarrow as pa
from msgspec import Struct, field
from msgspec.structs import replace

from memctl.language.term_analysis import WORD_PUNCTUATION, plain_form, terms
from memctl.language.word_lists import english_labels, load_language, short_forms, stop_words
from memctl.search.query.question import (
    Question,
    Slot,
    analyze_question,
    keep_known_pairs,
    question_language,
    version_at,
)
from memctl.search.query.search_syntax import (
    Expression,
    Node,
    Pattern,
    describe_node,
    iter_patterns,
    resolve_patterns,
)
from memctl.search.query.synonyms import find_other_names
from memctl.search.query.time_expressions import (
    Count,
    explain_times,
    recognize_dates,
    recognize_times,
)
from memctl.search.term_statistics import Sources, TermStatistics
from memctl.store.tables.filter_expressions import Expr, both, col
from memctl.store.tables.snapshot import Snapshot

MAX_WORDS = 128
"""Different words that are searched for; questions have fewer."""
_MAX_EXPANSIONS = 32
"""Terms that one pattern may stand for."""
_ENDS = 24
"""Words at the beginning and at the end, where people say what they want of the rest."""
_LONGEST_WORD = 200
"""Characters of a word: in scripts without spaces, a whole page is one word."""
_MAX_VERSIONS = 32
"""Versions that one without the last numbers may stand for."""
_SHORTEST_STEM = 4
"""Shorter stems are other words: "par" of "pars*"."""
_ROWS = 400
"""Memories read for the words of a table too large to know them all."""
_NEWEST = 5_000
"""Memories that the index may not have yet."""

_QUESTION_WORDS = ("who", "whose", "what", "when", "where", "which", "why", "how")
_SHORTEST_SLIP = 3
"""Shorter words may be any: "wo" is where in German, and almost who."""

_SHORTEST_PART = 4
"""Letters of a word that others are joined with; "tag" ends "Montag"."""
_SHORTEST_BEGINNING, _LONGEST_JOINED = 3, 40
_MAX_JOINED = 16
_LINKS = ("", "s", "n", "e", "en", "es", "er")
"""What may stand between two words that are joined, empty first."""

Expansions = Mapping[Pattern, tuple[str, ...]]


class Analysis(Struct, frozen=True):
    """What is known of a question, refined by one analyzer after the other."""

    expression: Expression
    """The question as parsed search syntax."""
    question: Question
    statistics: TermStatistics
    languages: tuple[str, ...]
    """Those of the memories searched, the most frequent first."""
    sources: Sources
    where: Expr | None
    """The condition that holds for the memories searched; None for all."""
    today: date
    count: Count
    """Counts the memories searched that meet a further condition."""
    embedded: Question
    """The question as it is embedded: with its periods and dates in their own words."""
    required: Node | None = None
    """What must hold for every memory found."""
    expansions: Expansions = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """What of the question was not searched for, or understood differently."""

    def explain(self) -> dict[str, Any]:
        """Return how the question was understood, for ``--explain``."""
        expanded = {str(pattern): list(terms) for pattern, terms in self.expansions.items()}
        statistics, question = self.statistics, self.question
        names = {each.name: each.asked for each in question.other_names}
        return {
            "languages": list(self.languages),
            "terms": {term: round(statistics.idf(term), 3) for term in question.terms},
            "memories": statistics.memories,
            "sampled": statistics.sampled,
            **explain_times(question),
            **({"required": describe_node(self.required)} if self.required else {}),
            **({"expanded": expanded} if expanded else {}),
            **({"other_names": names} if names else {}),
        }


def analyze(
    expression: Expression,
    languages: tuple[str, ...],
    statistics: TermStatistics,
    sources: Sources,
    where: Expr | None,
    today: date,
    count: Count,
) -> Analysis:
    """Return the question of an expression after all analyzers; see ``Analysis`` for the arguments.

    Raises:
        UsageError: The question is empty.
    """
    question = analyze_question(expression.text, languages)
    notes = (expression.note,) if expression.note else ()
    analysis = Analysis(
        expression, question, statistics, languages, sources, where, today, count,
        embedded=question, notes=notes,
    )  # fmt: skip
    for analyzer in ANALYZERS:
        analysis = analyzer(analysis)
    return analysis


# --- wildcards and misspellings ------------------------------------------------------------------


def expand_patterns(analysis: Analysis) -> Analysis:
    """Replace ``pars*`` and ``aurroa~`` by the words of the memories that they stand for."""
    expression = analysis.expression
    patterns = set(expression.patterns.values())
    patterns.update(iter_patterns(expression.required) if expression.required else ())
    found = {pattern: _expand(pattern, analysis) for pattern in sorted(patterns, key=str)}
    expanded = {at: found[pattern] for at, pattern in expression.patterns.items()}
    question = analysis.question
    slots = tuple(
        (slot,) if (slot := expanded.get(at)) else own for at, own in enumerate(question.word_slots)
    )
    return replace(
        analysis,
        question=keep_known_pairs(replace(question, word_slots=slots)),
        required=expression.required and resolve_patterns(expression.required, found),
        expansions=found,
    )


def _expand(pattern: Pattern, analysis: Analysis) -> tuple[str, ...]:
    """Return the terms that a pattern stands for: the nearest first, then the most frequent."""
    prefix = _term_prefix(pattern.word)
    wholes = (
        found[-1] for language in analysis.languages if (found := terms(pattern.word, language))
    )
    forms = {prefix, *(stem for stem in wholes if len(stem) >= _SHORTEST_STEM)}
    statistics = analysis.statistics
    known = Counter(statistics.frequencies)
    if statistics.sampled < statistics.memories:
        known += _more_terms(pattern, analysis, forms)
    distances = ((term, _distance(pattern, prefix, forms, term)) for term in known)
    near = {term: distance for term, distance in distances if distance is not None}
    order = sorted(near, key=lambda term: (near[term], -known[term], term))
    return tuple(order[:_MAX_EXPANSIONS])


def _more_terms(pattern: Pattern, analysis: Analysis, forms: set[str]) -> Counter[str]:
    """Return the terms of memories that may have a matching one, as the index says."""
    found: Counter[str] = Counter()
    where = analysis.where
    for source in analysis.sources.values():
        tables = _read_misspelt(source, where, forms, pattern.edits) if pattern.edits else ()
        for rows in tables or (_read_prefixed(source, where, _term_prefix(pattern.word)),):
            for text in rows["search_text"].to_pylist():
                found.update(set(text.split()))
    return found


def _read_misspelt(
    source: Snapshot, where: Expr | None, forms: set[str], edits: int
) -> tuple[pa.Table, ...]:
    # lance 13 finds nearly equal words in its index alone, which the newest rows are not in yet.
    skipped = max(source.count("memories", where) - _NEWEST, 0)
    return (
        source.keyword(sorted(forms), where, _ROWS, ("search_text",), edits=edits),
        source.scan("memories", where, ("search_text",), limit=_NEWEST, offset=skipped),
    )


def _term_prefix(word: str) -> str:
    """Return how the terms of words with this prefix begin: "proj4711", but "2026-05-12"."""
    plain = plain_form(word)
    return plain.replace("-", "") if any(map(str.isalpha, plain)) else plain


def _read_prefixed(source: Snapshot, where: Expr | None, word: str) -> pa.Table:
    text = col("search_text")
    begins = text.like_glob(f"{word}*") | text.like_glob(f"* {word}*")
    return source.scan("memories", both(where, begins), ("search_text",), limit=_ROWS)


def _distance(pattern: Pattern, prefix: str, forms: set[str], term: str) -> int | None:
    """Return by how many letters a term differs; None where it doesn't match."""
    if not pattern.edits:
        return 0 if term in forms or term.startswith(prefix) else None
    edits = (_edit_distance(form, term, pattern.edits) for form in forms)
    return min((count for count in edits if count is not None), default=None)


def _edit_distance(one: str, other: str, most: int) -> int | None:
    """Return how many letters to change, add, drop or swap turn one word into the other.

    None where it takes more than ``most``; optimal string alignment (Damerau 1964).
    """
    if abs(len(one) - len(other)) > most or len(set(one) ^ set(other)) > 2 * most:
        return None
    distance = list(_distance_rows(one, other))[-1][-1]
    return distance if distance <= most else None


def _distance_rows(one: str, other: str) -> Iterator[list[int]]:
    """Yield the rows of the table of distances between the prefixes of two words."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    yield last
    for at, letter in enumerate(one, start=1):
        row = [at]
        for to, theirs in enumerate(other, start=1):
            cost = min(last[to] + 1, row[-1] + 1, last[to - 1] + (letter != theirs))
            swapped = at > 1 and to > 1 and letter == other[to - 2] and theirs == one[at - 2]
            row.append(min(cost, before[to - 2] + 1) if swapped else cost)
        before, last = last, row
        yield row


# --- misspelt question words ---------------------------------------------------------------------


def correct_question_words(analysis: Analysis) -> Analysis:
    """Read misspelt question words as what was meant: "wher does the key go", "whos that".

    What kind of answer is wanted depends on them, and searched for they would be words that no
    memory has.
    """
    question = analysis.question
    meant = [_meant_word(at, word, analysis) for at, word in enumerate(question.words)]
    if not any(meant):
        return analysis
    words = tuple(new or word for new, word in zip(meant, question.words, strict=True))
    word_slots = tuple(
        () if new else slots for new, slots in zip(meant, question.word_slots, strict=True)
    )
    corrected = replace(question, text=" ".join(words), words=words, word_slots=word_slots)
    return replace(analysis, question=keep_known_pairs(corrected))


def _meant_word(at: int, word: str, analysis: Analysis) -> str:
    """Return the question word that a word is meant to be; "" for other words.

    A slip is looked for in the first word alone, unless that is a word of the memories or of one of
    their languages.
    """
    plain = word.lower()
    if "en" not in analysis.languages or not plain.isalpha():
        return ""
    if plain.endswith("s") and plain[:-1] in _QUESTION_WORDS:
        return f"{word[:-1]}'s"
    if at or len(plain) < _SHORTEST_SLIP or plain in analysis.statistics.frequencies:
        return ""
    if any(plain in stop_words(language) for language in analysis.languages):
        return ""
    bare = plain.removesuffix("s")
    meant = [
        *(each for each in _QUESTION_WORDS if _is_slip(plain, each)),
        *(f"{each}'s" for each in _QUESTION_WORDS if bare != plain and _is_slip(bare, each)),
    ]
    return meant[0] if len(meant) == 1 else ""


def _is_slip(word: str, meant: str) -> bool:
    """Return whether a word lacks a letter but the first, has one twice, or two of them swapped.

    A letter that is changed or added makes other words: "there", "show", "wheat".
    """
    places = range(len(meant))
    return (
        any(word == meant[:at] + meant[at + 1 :] for at in places[1:])
        or any(word == meant[:at] + meant[at : at + 1] + meant[at:] for at in places)
        or any(
            word == meant[:at] + meant[at + 1] + meant[at] + meant[at + 2 :] for at in places[:-1]
        )
    )


# --- words that are joined to one ---------------------------------------------------------------


def find_joined_words(analysis: Analysis) -> Analysis:
    """Find "Einbauküche" by "Küche", and "der Schlüssel für die Halle" by "Hallenschlüssel"."""
    languages = [code for code in analysis.languages if load_language(code).joins_words]
    question = analysis.question
    if _language_of(analysis) not in languages:
        return analysis
    known = analysis.statistics.frequencies
    ends = tuple(term for term in question.terms if len(term) >= _SHORTEST_PART)
    longer = sorted(term for term in known if term.endswith(ends))
    slots = tuple(
        _joined_slots(word, own, languages, known, longer)
        for word, own in zip(question.words, question.word_slots, strict=True)
    )
    return replace(analysis, question=keep_known_pairs(replace(question, word_slots=slots)))


def _language_of(analysis: Analysis) -> str:
    """Return the language of a question; that of most memories where its words don't tell."""
    words, languages = analysis.question.words, analysis.languages
    return question_language(words, languages) or languages[0]


def _joined_slots(
    word: str,
    slots: tuple[Slot, ...],
    languages: Sequence[str],
    known: Mapping[str, int],
    longer: Sequence[str],
) -> tuple[Slot, ...]:
    """Return the slots of a word with the terms of longer words that end with it.

    One that no memory has is looked for by its two parts, where memories have both.
    """
    plain = word.strip(WORD_PUNCTUATION).lower()
    if len(slots) != 1 or not plain.isalpha() or len(plain) > _LONGEST_JOINED:
        return slots
    [slot] = slots
    if not any(map(known.get, slot)) and (parts := _parts_of_joined(plain, languages, known)):
        return tuple((*slot, *part) for part in parts)
    found = [term for term in longer if _is_joined_of(term, slot)]
    return ((*slot, *found[:_MAX_JOINED]),)


def _is_joined_of(term: str, slot: Slot) -> bool:
    return term not in slot and any(
        len(end) >= _SHORTEST_PART
        and term.endswith(end)
        and len(term) - len(end) >= _SHORTEST_BEGINNING
        for end in slot
    )


def _parts_of_joined(
    word: str, languages: Sequence[str], known: Mapping[str, int]
) -> tuple[Slot, Slot] | None:
    """Return the terms of the two words that a word is joined of, the second as long as can be."""
    for at in range(_SHORTEST_PART, len(word) - _SHORTEST_PART + 1):
        for language in languages:
            last = [term for term in terms(word[at:], language) if term in known]
            firsts = (word[: at - len(link)] for link in _LINKS if word[:at].endswith(link))
            first = [
                term
                for part in firsts
                if len(part) >= _SHORTEST_PART
                for term in terms(part, language)
                if term in known
            ]
            if first and last:
                return tuple(dict.fromkeys(first)), tuple(last)
    return None


# --- other ways to write a word ------------------------------------------------------------------

_SPELLINGS = (("ae", "a"), ("oe", "o"), ("ue", "u"))
"""How umlauts are written where a keyboard has none, and as they are folded."""
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})
_SHORTEST_SPELLED = 5


def find_spellings(analysis: Analysis) -> Analysis:
    """Find "Müller" by "Mueller", "Birthday" by "Geburtstag" and "pw" by "password".

    Umlauts and what is written in short are found the other way round, too.
    """
    question, known = analysis.question, analysis.statistics.frequencies
    language = _language_of(analysis)
    labels, short = english_labels(language), short_forms(language)
    slots = tuple(
        tuple(
            (*slot, *_other_spellings(word, slot, analysis.languages, known, labels, short))
            for slot in own
        )
        for word, own in zip(question.words, question.word_slots, strict=True)
    )
    return replace(analysis, question=keep_known_pairs(replace(question, word_slots=slots)))


def _other_spellings(
    word: str,
    slot: Slot,
    languages: Sequence[str],
    known: Mapping[str, int],
    *others: Mapping[str, tuple[str, ...]],
) -> tuple[str, ...]:
    """Return the terms of memories that write the same word in another way."""
    plain = word.strip(WORD_PUNCTUATION).lower()
    written = [form for each in others for form in each.get(plain, ())]
    respelled = plain
    if not any(map(known.get, slot)) and not plain.isascii():
        respelled = plain.translate(_UMLAUTS)
    elif not any(map(known.get, slot)) and len(plain) >= _SHORTEST_SPELLED:
        respelled = reduce(lambda text, pair: text.replace(*pair), _SPELLINGS, plain)
    if respelled != plain:
        written.append(respelled)
    found = (term for each in written for language in languages for term in terms(each, language))
    return tuple(dict.fromkeys(term for term in found if term in known and term not in slot))


# --- very long messages --------------------------------------------------------------------------


def shorten(analysis: Analysis) -> Analysis:
    """Keep at most 128 different words of a very long message, such as a pasted document.

    Those at both ends, and of the others the rarest that memories have: every word costs time for
    each memory compared, and common words say nothing beside hundreds of rare ones.
    """
    question = analysis.question
    total = len(question.slots)
    if total <= MAX_WORDS:
        return analysis
    left = _most_telling_slots(question, analysis.statistics)
    words: list[str] = []
    word_slots: list[tuple[Slot, ...]] = []
    for place, (word, slots) in enumerate(zip(question.words, question.word_slots, strict=True)):
        kept = tuple(slot for slot in slots if slot in left)
        left.difference_update(kept)
        if kept or _is_at_an_end(place, question):
            words.append(word[:_LONGEST_WORD])
            word_slots.append(kept)
    short = replace(
        question, text=" ".join(words), words=tuple(words), word_slots=tuple(word_slots)
    )
    short = keep_known_pairs(short)
    note = f"of {total:,} different words the {len(short.slots)} that tell most were looked for"
    return replace(analysis, question=short, notes=(*analysis.notes, note))


def _most_telling_slots(question: Question, statistics: TermStatistics) -> set[Slot]:
    first = {
        slot
        for place, slots in enumerate(question.word_slots)
        if _is_at_an_end(place, question)
        for slot in slots
    }

    def order(slot: Slot) -> tuple[bool, bool, float]:
        known = any(map(statistics.frequencies.get, slot))
        return slot not in first, not known, -statistics.slot_weight(slot)

    return set(sorted(question.slots, key=order)[:MAX_WORDS])


def _is_at_an_end(place: int, question: Question) -> bool:
    return place < _ENDS or place >= len(question.words) - _ENDS


# --- versions ------------------------------------------------------------------------------------


def find_versions(analysis: Analysis) -> Analysis:
    """Make each version one slot: "v2.13.5" and "version 2.13" are names, not heaps of numbers.

    It is found with the "v" or without; where it lacks the last numbers, all that begin with it
    are found.
    """
    question = analysis.question
    versions = {
        place: version
        for place in range(len(question.words))
        if (version := version_at(question.words, place))
    }
    if versions:
        slots = list(question.word_slots)
        for place, version in versions.items():
            slots[place] = (_version_slot(version, analysis.statistics),)
        question = keep_known_pairs(replace(question, word_slots=tuple(slots)))
    return replace(analysis, question=question)


def _version_slot(version: str, statistics: TermStatistics) -> Slot:
    longer = re.compile(rf"v?{re.escape(version)}\.\d")
    known = sorted(filter(longer.match, statistics.frequencies))[:_MAX_VERSIONS]
    return tuple(dict.fromkeys([version, f"v{version}", *known]))


# --- what people are called too ------------------------------------------------------------------


def follow_other_names(analysis: Analysis) -> Analysis:
    """Find "Tomasz Bereza" by "Beans" where a memory says that this is what he is called."""
    question, languages = analysis.question, analysis.languages
    names = find_other_names(question, analysis.sources, analysis.where, languages)
    if not names:
        return analysis
    word_slots = list(question.word_slots)
    for each in names:
        for at in each.places:
            word_slots[at] = tuple(
                tuple(dict.fromkeys((*slot, *each.terms))) for slot in word_slots[at]
            )
    return replace(
        analysis, question=replace(question, word_slots=tuple(word_slots), other_names=names)
    )


# --- dates and periods ---------------------------------------------------------------------------


def mark_embedded(analysis: Analysis) -> Analysis:
    """Have the question embedded as it is now: word vectors know "May", but no ISO date."""
    return replace(analysis, embedded=analysis.question)


def find_dates(analysis: Analysis) -> Analysis:
    """Make each date one slot, in all forms in which memories may write it."""
    question = recognize_dates(analysis.question, analysis.statistics, analysis.today)
    return replace(analysis, question=question)


def find_times(analysis: Analysis) -> Analysis:
    """Make each calendar period one slot, as common as the memories made in it."""
    question, statistics = recognize_times(
        analysis.question, analysis.statistics, analysis.today, analysis.count
    )
    return replace(analysis, question=question, statistics=statistics)


Analyzer = Callable[[Analysis], Analysis]

ANALYZERS: Sequence[Analyzer] = (
    expand_patterns,
    correct_question_words,
    find_spellings,
    find_joined_words,
    shorten,
    find_versions,
    mark_embedded,
    follow_other_names,
    find_dates,
    find_times,
)
