"""Who turns out to be connected: a sentence that ties one name to another one known elsewhere."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise

from memctl.consolidation import insight_wording
from memctl.consolidation.insight_findings import Finding
from memctl.consolidation.memory_pool import GENERIC_NAMES
from memctl.consolidation.statements import Statement, StemWeights
from memctl.language.term_analysis import terms
from memctl.language.word_lists import word_set

_RELATIVE = (
    r"(?:(?:step|half-|grand|god|great-)?(?:son|daughter|mother|father|brother|sister|mum|mom|dad|"
    r"aunt|uncle|cousin|nephew|niece|wife|husband|partner|parents?)(?:-in-law)?|"
    r"widow(?:er)?|fianc[ée]e?|boyfriend|girlfriend|twin|ex|neighbou?r|flatmate|housemate|"
    r"room-?mate|classmate|colleague|boss|landlord|landlady|tenant|"
    r"Sohn|Tochter|Mutter|Vater|Bruder|Schwester|Tante|Onkel|Cousine?|Neffe|Nichte|"
    r"Schwager|Schwägerin|Schwiegersohn|Schwiegertochter|Schwiegervater|Schwiegermutter|"
    r"Nachbarin?|Mitbewohnerin?|Kollegin?|"
    r"fils|fille|frère|sœur|oncle|tante|neveu|nièce|mari|femme|voisine?|"
    r"hijo|hija|hermano|hermana|tío|tía|primo|prima|sobrino|sobrina|vecino|vecina|"
    r"figlio|figlia|fratello|sorella|zio|zia|cugino|cugina|nipote|vicino|vicina)"
)
_TIE = re.compile(
    r"\b(?:née|married|engaged to|related|used to work|went to school|studied with|"
    r"same (?:person|one|man|woman|company|family)|verheiratet)\b",
    re.IGNORECASE,
)
_OWNER = re.compile(
    r"(?:(?P<name>(?-i:[A-ZÄÖÜÉÁÍÓÚÑ][\w-]*(?: [A-ZÄÖÜÉÁÍÓÚÑ][\w-]*)*))['’]s|"
    r"(?P<mine>my|our|mein\w*|unser\w*|mon|ma|mi|mio|mia)|"
    r"(?P<theirs>his|her|their|sein\w*|ihr\w*|son|sa|su|suo|sua))\s+(?:[\w-]+\s+)?$",
    re.IGNORECASE,
)
"""Before a word such as "brother": whose it is."""
_OF = re.compile(r"\s+(?:of|von|de|di)\s+(?P<whose>mine|ours|his|hers|theirs)?", re.IGNORECASE)
_THEN = re.compile(r"(?:['’]s)?[\s,(]*(?:is|are|was|called|named|ist|heißt)?[\s,]*", re.IGNORECASE)
"""Between a word such as "brother" and who that is."""
_IS = re.compile(
    r"[\s,(]*(?:.{0,60}[^\w](?:is|are|was|were|ist|war)\b)?[\s,]*"
    r"(?:(?:also|really|the|a|an|old|die|der|ein|eine|übrigens)\s+){0,3}",
    re.IGNORECASE,
)
"""Between who that is and whose brother."""
_NAME = re.compile(
    r"[A-ZÄÖÜÉÁÍÓÚÑ][\w’'-]*[\w](?:\s+(?:[Vv]an|[Dd]e|[Vv]on|der|den|[A-ZÄÖÜÉÁÍÓÚÑ][\w’'-]*\w))*"
)
_LABEL_END = re.compile(r"[*_]{0,2}:")
"""After a name at which a speaker begins, who doesn't call herself "her"."""
_SENTENCES_BEFORE = 4
"""Sentences before one in which a person was named whom it calls "her"."""
_FORMS_OF_ADDRESS = word_set(
    "mr mrs ms miss dr prof sir madam frau herr herrn monsieur madame señor señora signor signora"
)
_RELATIVE_WORD = re.compile(rf"\b{_RELATIVE}\b", re.IGNORECASE)
_APART = re.compile(r"[.;:!?\[\]|]|\b(?:he|she|they)(?:['’](?:s|re|d))?\s", re.IGNORECASE)
"""Between two names: the second one is tied to somebody else."""
_FAR = 80
"""Characters to a name from what ties it to another one."""
_MOST_DOCUMENTS = 0.25
"""A name that stands in a larger share of the documents, and in more than three, joins nothing."""
_MIN_DOCUMENT_LIMIT = 4


def find_bridges(
    statements: Sequence[Statement], weights: StemWeights, names: Iterable[str]
) -> list[Finding]:
    """Return ties between people or organisations that both stand in other documents, too.

    Args:
        statements: All that are compared.
        weights: Of their stems.
        names: Those of people and organisations.
    """
    parts = frozenset(
        part.casefold()
        for name in names
        for part in name.split()
        if part[:1].isupper() and part.casefold().rstrip(".") not in _FORMS_OF_ADDRESS
    )
    documents: dict[str, set[str]] = defaultdict(set)
    for each in statements:
        for stem in each.context:
            documents[stem].add(each.document)
    count = len({each.document for each in statements})
    most = max(_MIN_DOCUMENT_LIMIT, _MOST_DOCUMENTS * count)
    findings = []
    for place, each in enumerate(statements):
        if each.topic or each.is_row or each.is_question:
            continue
        before = [
            other
            for other in statements[max(place - _SENTENCES_BEFORE, 0) : place]
            if (other.document, other.day) == (each.document, each.day)
        ]
        said_before = " ".join(other.text for other in before)
        for first, second in _tied_names(each, said_before, parts):
            naming = [other for other in before if first in other.text and first not in each.text]
            ends = [_rarest_stem(name, documents) for name in (first, second)]
            if "" in ends or ends[0] == ends[1]:
                continue
            elsewhere = [documents[end] - {each.document} for end in ends]
            if not all(elsewhere) or any(len(documents[end]) > most for end in ends):
                continue
            full = [_full_name(name, each) for name in (first, second)]
            said = (*naming[-1:], each)
            findings.append(_bridge_finding(said, full, ends, elsewhere, statements, weights))
    return findings


def _tied_names(
    statement: Statement, said_before: str, parts: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield the names that a statement ties to each other.

    Whose brother a person is may be said by a name, by "my", which is who speaks, and by "her",
    which is who was named last.
    """
    start = len(said_before) + 1
    text = f"{said_before}\n{statement.text}"
    end = len(text)
    names = list(_names(text, parts))
    own = [name for name in names if start <= name[0] < end]
    for tie in _RELATIVE_WORD.finditer(text, start, end):
        owner = _OWNER.search(text, max(start, tie.start() - 40), tie.start())
        of = _OF.match(text, tie.end())
        begin = owner.start() if owner else tie.start()
        stop = of.end() if of and of["whose"] else tie.end()
        after = [n for n in own if n[0] >= stop and _THEN.fullmatch(text, stop, n[0])]
        before = [n for n in own if n[1] <= begin and _IS.fullmatch(text, n[1], begin)]
        earlier = [
            n[2]
            for n in names
            if n[1] < begin and n not in before and not _LABEL_END.match(text, n[1])
        ]
        first = ""
        if owner and owner["name"]:
            first = owner["name"]
        elif (owner and owner["mine"]) or (of and of["whose"] in ("mine", "ours")):
            first = statement.speaker
        elif owner or (of and of["whose"]):
            first = (earlier or [_source_name(statement, parts)])[-1]
        elif of:
            first = next((n[2] for n in own if n[0] == of.end()), "")
        others = [n[2] for n in (*after[:1], *reversed(before))]
        if of and not of["whose"] and not before:
            others = []
        others = [n for n in others if n not in first and first not in n]
        if first and others:
            yield first, others[0]
    for one, two in pairwise(own):
        between = text[one[1] : two[0]]
        if len(between) <= _FAR and _are_joined(text, one[1], two[0]) and _TIE.search(between):
            yield one[2], two[2]


def _names(text: str, parts: Collection[str]) -> Iterator[tuple[int, int, str]]:
    """Yield the names in a text that are known, without capitalised words around them."""
    for match in _NAME.finditer(text):
        words = list(re.finditer(r"[\w’'-]+", match.group()))
        known = [word for word in words if _strip_possessive(word.group()).casefold() in parts]
        if known:
            start, end = known[0].start(), known[-1].end()
            name = _strip_possessive(match.group()[start:end])
            if name.casefold() not in GENERIC_NAMES:
                yield match.start() + start, match.start() + end, name


def _source_name(statement: Statement, parts: Collection[str]) -> str:
    """Return the name in the name of a file about a person."""
    named = _names(insight_wording.source(statement.memory).partition(".")[0], parts)
    return next((name for _, _, name in named), "")


def _are_joined(text: str, start: int, end: int) -> bool:
    return not _APART.search(text, start, end)


def _strip_possessive(name: str) -> str:
    return re.sub(r"['’]s$", "", name)


def _rarest_stem(name: str, documents: dict[str, set[str]]) -> str:
    """Return the stem of a name that stands in the fewest documents but in another one."""
    stems = [stem for stem in terms(name) if not stem[0].isdigit()]
    others = [stem for stem in stems if len(documents[stem]) > 1]
    return min(others, key=lambda stem: len(documents[stem]), default="")


def _full_name(name: str, statement: Statement) -> str:
    """Return the longest form of a name that the source of a statement has."""
    forms = [each for each in statement.memory.entities if each.startswith(f"{name} ")]
    return max(forms, key=len, default=name)


def _bridge_finding(
    said: Sequence[Statement],
    names: Sequence[str],
    ends: Sequence[str],
    elsewhere: Sequence[set[str]],
    statements: Sequence[Statement],
    weights: StemWeights,
) -> Finding:
    statement = said[-1]
    known = [
        max(
            (s for s in statements if end in s.context and s.document in documents),
            key=lambda s: (end in s.stems, s.is_kept, len(s.stems & statement.stems), s.day),
        )
        for end, documents in zip(ends, elsewhere, strict=True)
    ]
    where = insight_wording.join_items(
        list(dict.fromkeys(insight_wording.source(s.memory) for s in known))
    )
    is_news = not (elsewhere[0] & elsewhere[1])
    return Finding(
        kind="connection",
        title=" and ".join(names),
        headline=f"{names[0]} and {names[1]}, both known from elsewhere ({where}), are connected.",
        evidence=(*said, *{id(s): s for s in known}.values()),
        about=" ".join(sorted(ends)),
        strength=0.4 * weights.sum(ends) - 1.0 + 0.6 * is_news,
    )
