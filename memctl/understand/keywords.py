"""The phrases that say what a text is about.

Candidates are runs of words between stop words (as in RAKE: Rose et al., 2010), scored by how
often their words come and how early, and chosen one after another so that they differ (maximal
marginal relevance: Carbonell and Goldstein, 1998).  With an embedder they are also weighed by how
near they are to the whole text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log
from typing import TYPE_CHECKING

from memctl.understand.stopwords import stop_words, words

if TYPE_CHECKING:
    from memctl.models.protocols import Embedder

MOST_KEYWORDS = 10
_SCANNED = 60_000
_CANDIDATES = 60
_LONGEST_PHRASE = 3
_TOKEN = re.compile(r"[^\W_][^\W_]*(?:['’.\-][^\W_]+)*|[^\w\s]|\n")
_URL = re.compile(r"(?:https?://|www\.)\S+")

_WEAK = words(
    """able actually ago almost already always another anybody anyone anything anyway around
    awesome away back bad became become been best better big bit bring bye came cannot
    certainly come coming cool could couple currently day days definitely didn done don dont
    else enough especially even ever every everybody everyone everything exactly excited far
    feel feeling felt fine first five forward found four fun gave get gets getting give given
    glad go goes going gone gonna gonna good got gotta great guess guy guys haha hahaha happen
    happened happy hard haven hear heard hello help hey hi hope hopefully idea im instead
    interesting isn it'll it's keep kind kinda knew know known last lately later least leave
    left less let lets like liked likely little ll lol long look looked looking looks lot lots
    love loved lovely made make makes making many matter may maybe mean means might mind minute
    minutes moment month months morning much must near nearly need needed needs never new next
    nice night nothing now number often oh ok okay old omg one ones people perfect perhaps pic
    pics place please possible pretty probably put quite rather re read ready real really
    reason recently right said same saw say saying says see seem seems seen set several shall
    show simply since something sometimes somewhere soon sorry sort sound sounds start started
    stay still stuff sure take taken takes taking talk talking tell ten thank thanks that's
    thing things think thinking though thought three time times today told tomorrow tonight
    took totally tried true try trying turn two type u use used uses using usually ve via wait
    wanna want wanted wants watch way ways week weeks well went weren what's whatever whether
    whole without won wonderful word work worked working works worry would wow ya yeah year
    years yep yes yesterday yet you'll you're you've absolutely amazing enjoy enjoyed enjoying
    hearing happens share sharing stop today's tonight's i'm i've i'll i'd we're we've we'll
    they're they've he's she's there's here's let's don't can't also according based based
    including include includes following called within across among per however therefore thus
    hence although due example note etc e.g i.e"""
)


@dataclass(slots=True)
class _Phrase:
    shown: str
    words: tuple[str, ...]
    count: int
    first: int
    score: float = 0.0


def keywords(
    text: str,
    language: str = "",
    *,
    limit: int = MOST_KEYWORDS,
    embedder: Embedder | None = None,
) -> tuple[str, ...]:
    """Return the phrases that say what a text is about, the most telling first."""
    phrases = _phrases(text[:_SCANNED], language or "en")
    if not phrases:
        return ()
    ranked = _ranked(phrases)
    if embedder is not None and len(ranked) > limit:
        _weigh_by_meaning(text[:_SCANNED], ranked, embedder)
    return tuple(phrase.shown for phrase in _different(ranked, limit))


def _phrases(text: str, language: str) -> dict[tuple[str, ...], _Phrase]:
    """Every run of words between stop words, weak words and marks, with how often it comes."""
    if "://" in text or "www." in text:
        text = _URL.sub("\n", text)
    found: dict[tuple[str, ...], _Phrase] = {}
    run: list[str] = []
    for position, token in enumerate([*_TOKEN.findall(text), "\n"]):
        if _carries(token, language):
            run.append(token)
            continue
        if run:
            _count(run[:_LONGEST_PHRASE] if len(run) > _LONGEST_PHRASE else run, position, found)
            run = []
    return found


def _count(run: Sequence[str], position: int, found: dict[tuple[str, ...], _Phrase]) -> None:
    key = tuple(word.lower() for word in run)
    known = found.get(key)
    if known:
        known.count += 1
    elif not all(map(str.isdigit, key)):
        found[key] = _Phrase(" ".join(run), key, 1, position)


@lru_cache(maxsize=100_000)
def _carries(token: str, language: str) -> bool:
    """Whether a token may be part of a phrase."""
    if len(token) < 2 or not token[0].isalnum():
        return token.isalpha() and not token.isascii()
    plain = token.lower().replace("’", "'")
    if plain in _WEAK or plain in stop_words("en") or plain in stop_words(language):
        return False
    return not token.isdigit() and "'" not in plain[-3:]


def _ranked(phrases: Mapping[tuple[str, ...], _Phrase]) -> list[_Phrase]:
    counts: Counter[str] = Counter()
    for phrase in phrases.values():
        for word in phrase.words:
            counts[word] += phrase.count
    for phrase in phrases.values():
        phrase.score = _score(phrase, counts)
    by_score = sorted(phrases.values(), key=lambda phrase: (-phrase.score, phrase.first))
    return by_score[:_CANDIDATES]


def _score(phrase: _Phrase, counts: Mapping[str, int]) -> float:
    weight = sum(log(1 + counts[word]) * _heft(word) for word in phrase.words)
    length = len(phrase.words)
    early = 1.0 / (1.0 + 0.15 * log(1 + phrase.first / 20))
    named = 1.25 if phrase.shown[0].isupper() and not phrase.shown.isupper() else 1.0
    return weight / float(length**0.6) * (1 + log(phrase.count)) * early * named


def _heft(word: str) -> float:
    """Longer words carry more, up to a point."""
    return min(len(word), 9) / 9 + 0.4


def _weigh_by_meaning(text: str, ranked: list[_Phrase], embedder: Embedder) -> None:
    vectors = embedder.embed([text[:4000], *(phrase.shown for phrase in ranked)])
    for phrase, likeness in zip(ranked, vectors[1:] @ vectors[0], strict=True):
        phrase.score *= 0.5 + max(0.0, float(likeness))
    ranked.sort(key=lambda phrase: (-phrase.score, phrase.first))


def _different(ranked: Sequence[_Phrase], limit: int) -> list[_Phrase]:
    """Take the best that share at most half of their words with one already taken."""
    chosen: list[_Phrase] = []
    for phrase in ranked:
        own = set(phrase.words)
        if all(
            2 * len(own & set(other.words)) <= min(len(own), len(other.words)) for other in chosen
        ):
            chosen.append(phrase)
            if len(chosen) == limit:
                break
    return chosen
