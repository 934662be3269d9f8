"""Search: a question and filters become hits, best first, from one or several knowledge bases.

Each leg finds candidates, every candidate is scored exactly in both legs, the legs' scores are
fused over all candidates of all knowledge bases together, and what says the same is one hit.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, partial
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from memctl.choices import Mode
from memctl.errors import KnowledgeBaseUnavailable, MemctlError, ModelUnavailable, UsageError
from memctl.models.protocols import Embedder, Reranker
from memctl.records import Filters, Hit
from memctl.retrieve.candidates import (
    BOTH,
    Candidate,
    Gatherer,
    Key,
    Leg,
    Sources,
    keywords,
    vectors,
)
from memctl.retrieve.collapse import Collapsed, collapsed
from memctl.retrieve.days import dated, with_days
from memctl.retrieve.demand import Demand, demand_of, in_other_words, with_exact
from memctl.retrieve.ended import with_ended
from memctl.retrieve.fusion import (
    NO_SPACE,
    Fusion,
    Scores,
    Spaces,
    checked_fusion,
    fuse,
    minmax,
    within,
    zscore,
)
from memctl.retrieve.hits import hits_of
from memctl.retrieve.kin import Kin, kin_of, widened, with_kin
from memctl.retrieve.question import Meaning, Question, understood
from memctl.retrieve.relevance import Relevance, relevance
from memctl.retrieve.rerank import reranked
from memctl.retrieve.statistics import NO_STATISTICS, TermStatistics, term_statistics
from memctl.retrieve.words import judged_by_words, word_embedder
from memctl.store.filters import Expr, memory_filter

MODES: tuple[Mode, ...] = get_args(Mode)
_LEGS: Mapping[Mode, frozenset[Leg]] = {
    "hybrid": BOTH,
    "keyword": frozenset(("keyword",)),
    "vector": frozenset(("vector",)),
}

AWAY = (ModelUnavailable, KnowledgeBaseUnavailable)
"""An embedder cannot be had now, or what it costs cannot be noted."""

CANDIDATES = 100
"""Candidates a leg, at least; twice as many as the hits asked for."""
MOST_INSIGHTS = 3
_MOST_LANGUAGES = 4
_LEAST_LANGUAGE_SHARE = 0.02
_LANGUAGE_SAMPLE = 4_096
_STATISTICS_KEPT = 64


@dataclass(frozen=True)  # without slots, for what is worked out late is kept
class SearchOutcome:
    """What a search found, with what answering needs to know about it.

    What takes word vectors is worked out when it is first asked for, so that no model is loaded
    where words alone are looked for and decide.
    """

    asked: Question
    """As it was understood by itself."""
    mode: Mode
    statistics: TermStatistics
    languages: tuple[str, ...]
    """Those of the documents, in which the question was asked."""
    hits: tuple[Hit, ...]
    insights: tuple[Hit, ...]
    """Insights that bear on the question; never among the hits unless their level was asked for."""
    explain: Mapping[str, Any]
    meaning: Meaning
    candidates: tuple[Candidate, ...]
    """Those that became the hits."""
    has_cosines: bool
    """Whether theirs are by word vectors."""
    notes: tuple[str, ...] = ()
    """What was done without because a model could not be had."""

    @property
    def vector(self) -> NDArray[np.float32] | None:
        """The question's, by ``embedder``; None where words alone are looked for."""
        return None if self.mode == "keyword" else self.meaning.vector

    @property
    def embedder(self) -> Embedder:
        """What words and sentences are judged by."""
        return self.meaning.embedder

    @cached_property
    def question(self) -> Question:
        """The question with the words that the hits have for its own."""
        return widened(self.asked, self._kin)

    @cached_property
    def demand(self) -> Demand:
        """What a sentence must have to answer it."""
        return demand_of(self.question, self.hits, self.languages)

    @cached_property
    def wider_demand(self) -> Demand:
        """What it must have, or else what means the same."""
        return in_other_words(self.demand, self.hits, self.meaning, self.languages)

    @cached_property
    def relevance(self) -> Relevance:
        """How well the best hits bear on the question."""
        best = with_kin(self.candidates, self.hits, self._kin, self.languages)
        best = with_exact(self.demand, with_days(self.asked, best, self.hits), self.hits)
        if self.mode == "keyword":
            by_words_alone = relevance(self.question, best, self.statistics)
            if by_words_alone.is_relevant:
                return by_words_alone
        if not self.has_cosines:
            best = judged_by_words(best, self.hits, self.embedder, self.meaning.vector)
        return relevance(self.question, best, self.statistics)

    @cached_property
    def _kin(self) -> Kin:
        return kin_of(self.asked, self.statistics, self.meaning, self.languages, self.hits)


class Searcher:
    """Searches snapshots that were taken at one moment; keep it while they are to be asked.

    Args:
        sources: Snapshots by the name of their knowledge base.
        embedders: What turned the passages of each into vectors, one object where it is the same;
            none where only keywords can be asked for.
        clock: Tells the time, on which it depends what is valid.
        reranker: Puts the best of ``hybrid`` in order.
        load_words: Gives what words and sentences are judged by, when that is needed; by default
            an embedder that can, or else the built-in one.
    """

    def __init__(
        self,
        sources: Sources,
        embedders: Mapping[str, Embedder],
        clock: Callable[[], datetime],
        reranker: Reranker | None = None,
        load_words: Callable[[], Embedder] | None = None,
    ) -> None:
        self._sources = dict(sorted(sources.items()))
        self._embedders = embedders
        self._load_words = load_words or partial(word_embedder, list(embedders.values()))
        self._clock = clock
        self._reranker = reranker
        self._languages = _languages(self._sources)
        self._statistics: OrderedDict[Filters, TermStatistics] = OrderedDict()
        self._insights: dict[Filters, bool] = {}

    def search(
        self,
        question: str,
        *,
        mode: str = "hybrid",
        filters: Filters | None = None,
        limit: int = 10,
        fusion: str = "zscore",
    ) -> SearchOutcome:
        """Return the hits for a question.

        Args:
            question: The question, in words.
            mode: ``hybrid``, ``vector`` or ``keyword``.
            filters: Looked at before the search; without levels, evidence and memories are found.
            limit: The most hits to return.
            fusion: How ``hybrid`` makes one score of two: ``zscore``, ``minmax`` or ``rrf``.

        Raises:
            UsageError: The question is empty, or a mode, fusion, limit or filter is not valid.
            ModelError: The question's vector cannot be had by any embedder, or by one of them in
                the mode ``vector``; never in the mode ``keyword``.
        """
        plan = _Plan(_checked_mode(mode), checked_fusion(fusion), filters or Filters(), limit)
        asked = understood(question, self._languages)
        where = memory_filter(plan.main_filters, self._clock())
        statistics = self._statistics_for(plan.main_filters, where)
        meaning = Meaning(asked, statistics, self._load_words)
        vectors, notes = self._vectors(asked, plan.mode, meaning)
        plan = replace(plan, spaces=self._spaces(vectors))
        asked = dated(asked, statistics, self._clock().date())
        gatherer = Gatherer(self._sources, asked, statistics, vectors, _LEGS[plan.mode])
        reranker = self._reranker if plan.mode == "hybrid" else None
        found = self._ranked(gatherer, where, plan)
        at = plan.filters.as_of or self._clock()
        ranked, more_notes = reranked(reranker, self._sources, asked.text, found)
        return SearchOutcome(
            asked=asked,
            mode=plan.mode,
            statistics=statistics,
            languages=self._languages,
            hits=with_ended(self._sources, hits_of(self._sources, ranked[:limit]), at),
            insights=self._bearing_insights(gatherer, asked, statistics, plan),
            explain=self._explanation(plan, asked, statistics, len(ranked)),
            meaning=meaning,
            candidates=tuple(item.candidate for item in ranked[:limit]),
            has_cosines=len(vectors) == len(self._sources)
            and all(vector is meaning.vector for vector in vectors.values()),
            notes=(*notes, *more_notes),
        )

    def _vectors(
        self, question: Question, mode: Mode, meaning: Meaning
    ) -> tuple[dict[str, NDArray[np.float32]], tuple[str, ...]]:
        """Return the question's vector for each source that has any, and what is done without."""
        if mode == "keyword":
            return {}, ()
        vectors: dict[str, NDArray[np.float32]] = {}
        failures: dict[str, MemctlError] = {}
        for kbs in self._alike():
            try:
                vector = self._vector(question, self._embedders[kbs[0]], meaning)
            except AWAY as error:
                if mode == "vector":
                    raise
                failures |= dict.fromkeys(kbs, error)
            else:
                vectors |= dict.fromkeys(kbs, vector)
        if failures and not vectors:
            raise next(iter(failures.values()))
        return vectors, _by_keyword_alone(failures)

    def _alike(self) -> list[list[str]]:
        """The sources that have the same embedder, together."""
        alike: dict[int, list[str]] = {}
        for kb in self._sources:
            if kb in self._embedders:
                alike.setdefault(id(self._embedders[kb]), []).append(kb)
        return list(alike.values())

    def _vector(
        self, question: Question, embedder: Embedder, meaning: Meaning
    ) -> NDArray[np.float32]:
        """Return the question's vector to compare passages' by."""
        if embedder is meaning.embedder:
            return meaning.vector
        vector: NDArray[np.float32] = embedder.embed([question.text])[0]
        return vector

    def _spaces(self, vectors: Mapping[str, NDArray[np.float32]]) -> Mapping[str, int]:
        """Return a number for the embedder of each source; none where all have one, or none."""
        spaces = {kb: n for n, kbs in enumerate(self._alike()) for kb in kbs if kb in vectors}
        is_one = len(spaces) == len(self._sources) and len(set(spaces.values())) == 1
        return {} if is_one else spaces

    def _ranked(self, gatherer: Gatherer, where: Expr, plan: _Plan) -> list[Collapsed]:
        found = gatherer.gather(where, max(CANDIDATES, 2 * plan.limit))
        if plan.collapses:
            found |= _missing_sources(gatherer, found, where)
        candidates = sorted(found.values(), key=lambda candidate: candidate.key)
        scored = _scored(candidates, plan)
        return collapsed(scored, plan.collapses)

    def _bearing_insights(
        self, gatherer: Gatherer, question: Question, statistics: TermStatistics, plan: _Plan
    ) -> tuple[Hit, ...]:
        filters = replace(plan.filters, levels=("insight",))
        if not plan.collapses or not self._has_insights(filters):
            return ()
        found = gatherer.gather(memory_filter(filters, self._clock()), 2 * MOST_INSIGHTS)
        bearing = [
            candidate
            for candidate in sorted(found.values(), key=lambda candidate: candidate.key)
            if relevance(question, [candidate], statistics).is_relevant
        ]
        ranked = collapsed(_scored(bearing, plan), collapses=False)
        return hits_of(self._sources, ranked[:MOST_INSIGHTS])

    def _has_insights(self, filters: Filters) -> bool:
        if filters not in self._insights:
            where = memory_filter(filters, self._clock())
            counts = (source.count("memories", where) for source in self._sources.values())
            self._insights[filters] = any(counts)
        return self._insights[filters]

    def _statistics_for(self, filters: Filters, where: Expr) -> TermStatistics:
        known = self._statistics.get(filters)
        if known is None:
            each = (term_statistics(source, where) for source in self._sources.values())
            known = sum(each, NO_STATISTICS)
            self._statistics[filters] = known
            while len(self._statistics) > _STATISTICS_KEPT:
                self._statistics.popitem(last=False)
        return known

    def _explanation(
        self, plan: _Plan, question: Question, statistics: TermStatistics, candidates: int
    ) -> dict[str, Any]:
        return {
            "mode": plan.mode,
            "fusion": plan.fusion if plan.mode == "hybrid" else None,
            "languages": list(self._languages),
            "terms": {term: round(statistics.idf(term), 3) for term in question.terms},
            "memories": statistics.memories,
            "sampled": statistics.sampled,
            "candidates": candidates,
            **self._explained_spaces(plan),
        }

    def _explained_spaces(self, plan: _Plan) -> dict[str, Any]:
        """Whose vectors each source was searched by, where they are not those of one embedder."""
        if not plan.spaces:
            return {}
        named = {kb: self._embedders[kb].id if kb in plan.spaces else None for kb in self._sources}
        return {"embedders": named, "vectors_compared": "within each embedder"}


@dataclass(frozen=True, slots=True)
class _Plan:
    """What was asked for, checked."""

    mode: Mode
    fusion: Fusion
    filters: Filters
    limit: int
    spaces: Mapping[str, int] = field(default_factory=dict)
    """A number for the embedder of each knowledge base, where they have several."""

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise UsageError(f"cannot return {self.limit} hits", "ask for at least one")

    @property
    def collapses(self) -> bool:
        """Whether a distilled memory and its passage are one hit: unless one kind is asked for."""
        return not self.filters.types and not self.filters.levels

    @property
    def main_filters(self) -> Filters:
        """The filters of the hits: insights stand apart unless asked for."""
        if not self.collapses:
            return self.filters
        return replace(self.filters, levels=("evidence", "memory"))


def _checked_mode(name: str) -> Mode:
    for mode in MODES:
        if mode == name:
            return mode
    raise UsageError(f"unknown mode {name!r}", f"use one of: {', '.join(MODES)}")


def _scored(candidates: Sequence[Candidate], plan: _Plan) -> list[Collapsed]:
    """Return each candidate with its score in this mode and what it is made of."""
    keyword, vector = keywords(candidates), vectors(candidates)
    scale = minmax if plan.fusion == "minmax" else zscore
    spaces = _spaces_of(candidates, plan)
    scaled = {"keyword": scale(keyword), "vector": within(spaces, scale, vector)}
    scores = _final(keyword, vector, plan, spaces)
    return [
        Collapsed(candidate, float(scores[row]), _legs(row, candidate, scaled, plan.mode))
        for row, candidate in enumerate(candidates)
    ]


def _spaces_of(candidates: Sequence[Candidate], plan: _Plan) -> Spaces | None:
    if not plan.spaces:
        return None
    return np.array([plan.spaces.get(candidate.key[0], NO_SPACE) for candidate in candidates])


def _final(keyword: Scores, vector: Scores, plan: _Plan, spaces: Spaces | None) -> Scores:
    if plan.mode == "hybrid":
        return fuse(keyword, vector, plan.fusion, spaces)
    if plan.mode == "keyword":
        return keyword
    return vector if spaces is None else within(spaces, zscore, vector)


def _by_keyword_alone(failures: Mapping[str, MemctlError]) -> tuple[str, ...]:
    """One note for each reason, with the sources that it holds for."""
    kbs: dict[str, list[str]] = {}
    for kb, error in failures.items():
        kbs.setdefault(error.message, []).append(kb)
    return tuple(f"found by keyword alone in {', '.join(kbs[why])}: {why}" for why in kbs)


def _legs(
    row: int, candidate: Candidate, scaled: Mapping[str, Scores], mode: Mode
) -> dict[str, float]:
    legs: dict[str, float] = {}
    if mode != "vector":
        legs["keyword"] = candidate.keyword
        legs["keyword_normalised"] = float(scaled["keyword"][row])
    if mode != "keyword":
        legs["vector"] = candidate.vector
        legs["vector_normalised"] = float(scaled["vector"][row])
    return legs


def _missing_sources(
    gatherer: Gatherer, found: Mapping[Key, Candidate], where: Expr
) -> dict[Key, Candidate]:
    """Return the passages behind distilled memories of which no passage was found itself."""
    wanted: dict[str, set[str]] = {}
    for candidate in found.values():
        kb = candidate.key[0]
        if candidate.source_ids and not any((kb, id) in found for id in candidate.source_ids):
            wanted.setdefault(kb, set()).add(candidate.source_ids[0])
    missing: dict[Key, Candidate] = {}
    for kb, ids in wanted.items():
        missing |= gatherer.fetch(kb, sorted(ids), where)
    return missing


def _languages(sources: Sources) -> tuple[str, ...]:
    """Return the languages of the documents, most frequent first, always with English."""
    seen: Counter[str] = Counter()
    for snapshot in sources.values():
        table = snapshot.scan("documents", None, ["language"], limit=_LANGUAGE_SAMPLE)
        seen.update(language or "en" for language in table["language"].to_pylist())
    least = _LEAST_LANGUAGE_SHARE * seen.total()
    common = [language for language, count in seen.most_common(_MOST_LANGUAGES) if count >= least]
    return tuple(dict.fromkeys([*common, "en"]))
