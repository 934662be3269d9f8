"""Who joins what is otherwise apart: a sentence that ties a name to another one."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from memctl.consolidation import insight_wording
from memctl.consolidation.insight_findings import Finding
from memctl.consolidation.memory_pool import DULL_NAMES
from memctl.consolidation.statements import Statement, StemWeights
from memctl.language.term_analysis import terms

_TIE = re.compile(
    r"\b(?:son|daughter|mother|father|mum|mom|dad|brother|sister|aunt|uncle|cousin|nephew|niece|"
    r"wife|husband|partner|widow|grand\w+|neighbour|neighbor|friend|colleague|boss|landlord|tenant|"
    r"owner|founder|director|married|engaged|related|in-law|owns|works? (?:for|at|with)|"
    r"worked (?:for|at|with)|used to (?:work|be|run|own)|same (?:person|one|man|woman|company)|"
    r"née|"
    r"Sohn|Tochter|Mutter|Vater|Bruder|Schwester|Tante|Onkel|Cousine?|Neffe|"
    r"Nichte|Frau von|Mann von|"
    r"Schwager|Schwägerin|Nachbarin?|arbeitet (?:bei|für)|verheiratet|"
    r"fils|fille|frère|sœur|oncle|tante|neveu|nièce|mari|femme de|voisine?|"
    r"travaille (?:chez|pour)|"
    r"hijo|hija|hermano|hermana|tío|tía|primo|prima|sobrino|sobrina|vecino|vecina|trabaja|"
    r"figlio|figlia|fratello|sorella|zio|zia|cugino|cugina|nipote|vicino|vicina|lavora)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?:[A-ZÄÖÜÉÁÍÓÚÑ][\w'’-]+)(?:\s+[A-ZÄÖÜÉÁÍÓÚÑ][\w'’-]+)*")
_APART = re.compile(r"[.;:!?()\[\]|]|, and\b")
_FAR, _NEAR = 60, 20
"""Characters between two names that one sentence ties, and after the second one."""
_MOST_DOCUMENTS = 0.25
"""A name that stands in a larger share of the documents, and in more than three, joins nothing."""
_ALWAYS = 3


def find_bridges(found: Sequence[Statement], weights: StemWeights) -> list[Finding]:
    """Return ties between names of which each stands in documents that the other is not in."""
    documents: dict[str, set[str]] = defaultdict(set)
    for each in found:
        for stem in each.stems:
            documents[stem].add(each.document)
    most = max(_ALWAYS, _MOST_DOCUMENTS * len({each.document for each in found}))
    findings = []
    for each in found:
        if each.topic or each.is_row or not _TIE.search(each.text):
            continue
        for first, second in _tied_names(each):
            ends = [_rarest(name, documents, each) for name in (first, second)]
            one, other = (documents[end] for end in ends)
            is_known = all(2 <= len(held) <= most for held in (one, other))
            if is_known and _are_apart(one, other, each):
                findings.append(_finding(each, (first, second), ends, found, weights))
    return findings


def _tied_names(statement: Statement) -> Iterator[tuple[str, str]]:
    """Yield pairs of names with a tie between them, or one that the second one has."""
    text = statement.text
    names = [
        match
        for match in _NAME.finditer(text)
        if match.group().casefold() not in DULL_NAMES
        and any(match.group().removesuffix("'s") in name for name in statement.memory.entities)
    ]
    for first, second in pairwise(names):
        between = text[first.end() : second.start()]
        after = text[second.end() : second.end() + _NEAR]
        if len(between) > _FAR or _APART.search(between):
            continue
        is_owner = second.group().endswith(("'s", "’s"))
        if _TIE.search(between) or (is_owner and _TIE.match(after.strip())):
            yield _bare(first.group()), _bare(second.group())


def _bare(name: str) -> str:
    return re.sub(r"['’]s$", "", name)


def _rarest(name: str, documents: dict[str, set[str]], statement: Statement) -> str:
    """Return the stem of a name that stands in the fewest documents but in another one."""
    stems = [stem for stem in terms(name) if stem in statement.stems]
    others = [stem for stem in stems if len(documents[stem]) > 1]
    return min(others or stems, key=lambda stem: len(documents[stem]), default="")


def _are_apart(first: set[str], second: set[str], statement: Statement) -> bool:
    """Tell whether no other document has both, and each stands in one that the other is not in."""
    here = {statement.document}
    return not (first & second - here) and bool(first - here) and bool(second - here)


def _finding(
    statement: Statement,
    names: tuple[str, str],
    ends: Sequence[str],
    found: Sequence[Statement],
    weights: StemWeights,
) -> Finding:
    elsewhere = [
        max(
            (s for s in found if end in s.stems and s.document != statement.document),
            key=lambda s: (s.is_kept, len(s.stems & statement.stems), s.day),
        )
        for end in ends
    ]
    where = insight_wording.listed([insight_wording.source(s.memory) for s in elsewhere])
    return Finding(
        kind="connection",
        title=" and ".join(names),
        headline=f"{' and '.join(names)}, known from {where}, are connected.",
        evidence=(statement, *elsewhere),
        about=" ".join(sorted(ends)),
        strength=0.4 * weights.sum(ends) - 1.0,
    )
