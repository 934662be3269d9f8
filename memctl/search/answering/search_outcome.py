"""What a search found, and what answering derives from it when it needs it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from memctl.ids import root_id
from memctl.language.table_amounts import Cells, is_sum, row_cells, with_plain_decimals
from memctl.language.term_analysis import query_terms
from memctl.literals import OWN_SOURCES, QUOTED, Mode
from memctl.models.protocols import Embedder
from memctl.records import Community, Hit
from memctl.search.answering.evidence_parts import is_table_row
from memctl.search.answering.relevance import Relevance, hit_relevance, judge_relevance
from memctl.search.query.question import Question, Slot, TimeExpression
from memctl.search.query.synonyms import Synonyms, add_synonyms, find_synonyms
from memctl.search.query.time_expressions import hit_dates
from memctl.search.ranking.scored_candidates import ScoredCandidate
from memctl.search.ranking.signals import text_score
from memctl.search.retrieval.candidates import Candidate, slot_weights
from memctl.search.retrieval.question_vectors import QuestionMeaning, rescore_by_words
from memctl.search.term_statistics import TermStatistics

if TYPE_CHECKING:
    from memctl.search.answering.communities import CommunityFinder


MAX_HITS_READ = 32
"""Number of the best hits that are read for an answer, however few are to be shown."""


_DOCUMENTS_WITH_TABLES = 10
"""Number of the best documents whose tables are read."""


class TableRow(Struct, frozen=True):
    """A row of a table in a hit's text."""

    hit: Hit
    start: int
    end: int
    cells: Cells

    @property
    def text(self) -> str:
        """It as the table has it."""
        return self.hit.text[self.start : self.end]


def table_rows(passages: Sequence[Hit]) -> list[TableRow]:
    """Return the rows of a source, each once, without those that add up others."""
    found: dict[tuple[int, int], TableRow] = {}
    parts: dict[tuple[str, str], int] = {}
    for hit in passages:
        part = parts.setdefault(hit.document, len(parts))
        for match in re.finditer(r"[^\n]+", hit.text):
            cells = row_cells(match.group()) if is_table_row(match.group()) else {}
            if cells and not is_sum(cells):
                place = (part, (hit.start or 0) + match.start())
                found.setdefault(place, TableRow(hit, *match.span(), cells))
    return [found[place] for place in sorted(found)]


class SearchOutcome(Struct, frozen=True, dict=True):
    """What a search found, with what answering needs to know about it.

    Properties that need word vectors are computed when they are first used, so that no model is
    loaded where a keyword search decides without one.
    """

    asked: Question
    """The question as it was analyzed, before the hits were known."""
    asked_on: date
    """The day from which "next" and "overdue" count."""
    mode: Mode
    statistics: TermStatistics
    languages: tuple[str, ...]
    """Those of the documents searched, the most frequent first."""
    hits: tuple[Hit, ...]
    """What answers are drawn from."""
    insights: tuple[Hit, ...]
    """Relevant insights; never among the hits unless their level was asked for."""
    explain: Mapping[str, Any]
    meaning: QuestionMeaning
    ranked: tuple[ScoredCandidate, ...]
    """All that was found, best first; the first of it became the hits."""
    has_cosines: bool
    """Whether the candidates' cosines are by word vectors."""
    load_document: Callable[[Hit], tuple[Hit, ...]]
    """Reads the passages of a hit's document."""
    load_source: Callable[[Hit], tuple[Hit, ...]]
    """Reads the passages of all parts of the source of a hit; none if they are very many."""
    load_past_versions: Callable[[Sequence[Hit]], tuple[Hit, ...]]
    """Reads what the documents of hits said before they were replaced by newer versions."""
    load_author: Callable[[Hit], str]
    """Reads who wrote a hit's document."""
    load_owner: Callable[[str], str]
    """Reads the first name of whose mails a knowledge base has."""
    with_known_days: Callable[[Sequence[Hit]], tuple[Hit, ...]]
    """Returns hits with the metadata of their documents, for those who ask which is newer."""
    load_statements_of: Callable[[TimeExpression], tuple[tuple[Hit, Hit], ...]]
    """Reads the weightiest statements made in a period, each with the passage it stands in."""
    load_turns_around: Callable[[Sequence[Hit]], tuple[Hit, ...]]
    """Reads what was said directly before and after turns of conversations."""
    notes: tuple[str, ...] = ()
    """What the search did without because a model was not available."""
    failures: tuple[str, ...] = ()
    """The classes of the errors of those models."""
    community_finder: CommunityFinder | None = None
    """Has the graphs that the mode ``graph`` walked."""
    selected: tuple[Hit, ...] | None = None
    """The hits to show where diversity or a limit per document was asked for."""

    @property
    def hits_to_show(self) -> tuple[Hit, ...]:
        """The hits to show."""
        return self.hits if self.selected is None else self.selected

    @property
    def best(self) -> tuple[ScoredCandidate, ...]:
        """The scored candidates that became the hits."""
        return self.ranked[: len(self.hits)]

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The candidates that became the hits."""
        return tuple(item.candidate for item in self.best)

    @property
    def vector(self) -> NDArray[np.float32] | None:
        """The question's vector by ``embedder``; None in the mode ``keyword``."""
        return None if self.mode == "keyword" else self.meaning.vector

    @property
    def embedder(self) -> Embedder:
        """What words and sentences are compared by."""
        return self.meaning.embedder

    @cached_property
    def tables(self) -> Sequence[Sequence[TableRow]]:
        """The rows of each table of the best documents, those of the best hits first."""
        seen: set[tuple[str, str, str]] = set()
        found: list[list[TableRow]] = []
        documents = dict.fromkeys(hit.document for hit in self.hits)
        looked_at = frozenset(islice(documents, _DOCUMENTS_WITH_TABLES))
        for hit in self.hits:
            kb, document = hit.document
            table = (kb, root_id(document) if hit.session_id is None else document, hit.heading)
            first = hit.text.removeprefix(hit.heading).lstrip().partition("\n")[0]
            if hit.document not in looked_at or table in seen or not is_table_row(first):
                continue
            seen.add(table)
            rows = table_rows(self.load_source(hit))
            if own := [row for row in rows if row.hit.heading == hit.heading]:
                cells = with_plain_decimals([row.cells for row in own])
                found.append(
                    [replace(row, cells=each) for row, each in zip(own, cells, strict=True)]
                )
        return found

    @cached_property
    def question(self) -> Question:
        """The question with synonyms that the hits have for its unknown words."""
        return add_synonyms(self.asked, self._synonyms)

    @cached_property
    def slot_weights(self) -> Mapping[Slot, float]:
        """What each part of the question's content weighs."""
        return slot_weights(self.question, self.statistics)

    @cached_property
    def relevance(self) -> Relevance:
        """How relevant the hits are to the question, those with the best text before others."""
        best: Sequence[Candidate] = self._read_candidates
        if self.mode == "keyword":
            by_words_alone = self._judge(best)
            if by_words_alone.is_relevant:
                return by_words_alone
        if not self.has_cosines:
            best = rescore_by_words(best, self.hits, self.embedder, self.meaning.vector)
        return self._judge(best)

    def with_relevance(self) -> SearchOutcome:
        """Return it with the relevance of each hit, and its cosine with the question."""
        by_key = {item.candidate.key: item.candidate for item in self.ranked}
        others = [hit for hit in self.selected or () if hit not in self.hits]
        hits = [*self.hits, *others]
        best = [
            *self._read_candidates,
            *self._add_implied_terms([by_key[hit.kb, hit.memory_id] for hit in others], others),
        ]
        near = best
        if not self.has_cosines and best:
            near = rescore_by_words(best, hits, self.embedder, self.meaning.vector, len(best))
        if self.mode == "keyword":
            best = near
        if self.has_cosines and self.mode != "keyword":
            whole = self.relevance
        else:
            whole = self._judge(near[: len(self.hits)])
        found = {
            each.key: (hit_relevance(self._judge_best([each]), whole), own.vector)
            for each, own in zip(near, best, strict=True)
        }

        def with_relevance(hit: Hit) -> Hit:
            """Return a hit with its two measures."""
            relevance, similarity = found[hit.kb, hit.memory_id]
            return replace(
                hit, relevance=round(relevance, 4), similarity=round(max(similarity, 0.0), 4)
            )

        judged = replace(
            self,
            hits=tuple(map(with_relevance, self.hits)),
            selected=self.selected and tuple(map(with_relevance, self.selected)),
        )
        for name in ("_synonyms", "_read_candidates", "relevance"):  # the hits say the same
            if name in vars(self):
                vars(judged)[name] = getattr(self, name)
        return judged

    @cached_property
    def evidence(self) -> SearchOutcome:
        """It without what answers nothing: quotations, and ``OWN_SOURCES``."""
        kept = [
            hit
            for hit in self.hits
            if not hit.source.startswith(OWN_SOURCES) and hit.type != QUOTED
        ]
        return self if len(kept) == len(self.hits) else self._with_hits(kept)

    def _with_hits(self, kept: Sequence[Hit]) -> SearchOutcome:
        keys = {(hit.kb, hit.memory_id) for hit in kept}
        return replace(
            self,
            hits=tuple(replace(hit, rank=rank) for rank, hit in enumerate(kept, start=1)),
            ranked=tuple(item for item in self.best if item.candidate.key in keys),
        )

    def above(self, threshold: float) -> SearchOutcome:
        """Return it with only the hits, once judged, that are at least so relevant."""
        return replace(
            self._with_hits([hit for hit in self.hits if hit.relevance >= threshold]),
            insights=tuple(hit for hit in self.insights if hit.relevance >= threshold),
            selected=self.selected
            and tuple(hit for hit in self.selected if hit.relevance >= threshold),
        )

    @cached_property
    def communities(self) -> tuple[Community, ...]:
        """The communities of the names in question and hits, unless those are far from it."""
        if self.community_finder is None or self.relevance.is_far:
            return ()
        return self.community_finder.find(self.asked.text, self.hits)

    def _judge(self, candidates: Sequence[Candidate]) -> Relevance:
        scores = [text_score(hit) for hit in self.hits]
        order = sorted(range(len(scores)), key=lambda at: -scores[at])
        return self._judge_best([candidates[at] for at in order])

    def _judge_best(self, best: Sequence[Candidate]) -> Relevance:
        return judge_relevance(self.question, best, self.statistics, self.slot_weights)

    @cached_property
    def _read_candidates(self) -> list[Candidate]:
        """The candidates that became the hits, with the terms that their texts imply."""
        return self._add_implied_terms(self.candidates, self.hits)

    def terms_in(self, text: str) -> frozenset[str]:
        """Return the terms of a text, those of other names only where it has these."""
        found = frozenset(query_terms(text, self.languages))
        return self._with_other_names(found, text) if self.asked.other_names else found

    def _with_other_names(self, terms: frozenset[str], text: str) -> frozenset[str]:
        names = self.asked.other_names
        named = {term for each in names if each.is_in(text) for term in each.terms}
        return terms.difference(term for each in names for term in each.terms) | named

    def _add_implied_terms(
        self, found: Sequence[Candidate], hits: Sequence[Hit]
    ) -> list[Candidate]:
        """Return candidates with the terms of the question that their texts imply.

        These are synonyms, and dates in any form.
        """
        synonyms = frozenset[str]().union(*self._synonyms.values())
        dates = frozenset(term for slot in self.asked.dates for term in slot)
        candidates: list[Candidate] = []
        for candidate, hit in zip(found, hits, strict=True):
            terms = candidate.terms
            if synonyms:
                text = f"{hit.title}\n{hit.heading}\n{hit.text}"
                terms |= synonyms.intersection(query_terms(text, self.languages))
            if dates:
                terms |= dates & hit_dates(hit)
            candidates.append(replace(candidate, terms=terms))
        return candidates

    @cached_property
    def _synonyms(self) -> Synonyms:
        return find_synonyms(
            self.asked, self.statistics, lambda: self.embedder, self.languages, self.hits
        )
