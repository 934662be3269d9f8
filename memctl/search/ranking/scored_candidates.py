"""Scored candidates: keyword and vector scores are fused into one, and the best become hits.

In between, ranking boosts, orders and folds them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from memctl.ids import root_id
from memctl.literals import DATED_BY_FILE, RESTATING_TYPES, Fusion, Mode
from memctl.records import DuplicateHit, EndedFact, Hit
from memctl.search.query.question import TimeExpression
from memctl.search.query.time_expressions import created_within
from memctl.search.retrieval.candidate_rows import SearchScope
from memctl.search.retrieval.candidates import Candidate, Key, read_rows
from memctl.search.search_plan import KEYWORD_WEIGHT, SearchPlan
from memctl.search.term_statistics import Sources
from memctl.store.tables.filter_expressions import Expr, both, col

if TYPE_CHECKING:
    from memctl.store.tables.snapshot import CachedSnapshot, Snapshot

_DISTILLED_LIFT = 0.25
"""Share of the difference that a passage gains when a memory distilled from it scores higher.
Being short, it often does; giving the passage all of it pushed better passages down.  It gets all
where the distilled memory has words of the question that the passage lacks."""
TIME_SCORE = "keyword_time"
"""The part of a hit's keyword score that is due to the question's periods."""
_LEAST_SHOWN = 0.001
"""A smaller time score, of a period years away, is not shown."""

_COMPUTED = {
    "rank", "score", "kb", "memory_id", "legs", "ended", "also_in", "more_in_document", "metadata",
    "relevance", "similarity",
}  # fmt: skip
_COLUMNS = [name for name in Hit.__struct_fields__ if name not in _COMPUTED]
_DUPLICATE_COLUMNS = [name for name in DuplicateHit.__struct_fields__ if name in _COLUMNS]


class FoldedDuplicate(Struct, frozen=True):
    """A candidate that says the same as a hit, and is listed with it."""

    candidate: Candidate
    likeness: float
    """1 for the same text."""


class ScoredCandidate(Struct, frozen=True):
    """A candidate with its score and the parts that the score is made of."""

    candidate: Candidate
    score: float
    legs: dict[str, float]
    copies: tuple[FoldedDuplicate, ...] = ()
    more: tuple[Candidate, ...] = ()
    """Candidates of the same document that the limit per document left out."""
    path: tuple[str, ...] = ()
    """How the mode ``graph`` came to it: memory ids, with the names between them."""


def score_candidates(
    candidates: Sequence[Candidate], plan: SearchPlan, reference: int | None = None
) -> list[ScoredCandidate]:
    """Return each candidate with its score in the plan's mode.

    Args:
        candidates: The candidates.
        plan: What was asked for.
        reference: How many of the first candidates set the scale; None for all.
    """
    keyword = np.array([each.keyword for each in candidates], dtype=np.float64)
    vector = np.array([each.vector for each in candidates], dtype=np.float64)
    scale = minmax if plan.fusion in ("minmax", "simple") else zscore
    spaces = _embedding_spaces(candidates, plan)
    keyword_scaled = scale(keyword, reference)
    vector_scaled = normalize_within(spaces, scale, vector, reference)
    scores = _mode_scores(keyword, vector, plan, spaces, reference)
    return [
        ScoredCandidate(
            candidate,
            float(scores[row]),
            _score_parts(candidate, keyword_scaled[row], vector_scaled[row], plan.mode),
        )
        for row, candidate in enumerate(candidates)
    ]


def _embedding_spaces(candidates: Sequence[Candidate], plan: SearchPlan) -> Spaces | None:
    if not plan.spaces:
        return None
    return np.array([plan.spaces.get(candidate.key[0], NO_SPACE) for candidate in candidates])


def _mode_scores(
    keyword: Scores, vector: Scores, plan: SearchPlan, spaces: Spaces | None, reference: int | None
) -> Scores:
    if plan.mode in ("hybrid", "graph"):
        return fuse(keyword, vector, plan.fusion, spaces, reference, plan.keyword_weight)
    if plan.mode == "keyword":
        return keyword
    return vector if spaces is None else normalize_within(spaces, zscore, vector, reference)


def _score_parts(
    candidate: Candidate, keyword_scaled: float, vector_scaled: float, mode: Mode
) -> dict[str, float]:
    parts: dict[str, float] = {}
    if mode != "vector":
        parts["keyword"] = candidate.keyword
        parts["keyword_normalised"] = float(keyword_scaled)
        if candidate.in_time > _LEAST_SHOWN:
            parts[TIME_SCORE] = candidate.in_time
    if mode != "keyword":
        parts["vector"] = candidate.vector
        parts["vector_normalised"] = float(vector_scaled)
    return parts


def sort_by_score(items: Iterable[ScoredCandidate]) -> list[ScoredCandidate]:
    """Return the items best first; ties in the order of knowledge base and id."""
    return sorted(items, key=lambda item: (-item.score, item.candidate.key))


def boost_score(item: ScoredCandidate, signal: str, by: float) -> ScoredCandidate:
    """Return the item with its score raised, noted under the signal's name; unchanged for 0."""
    if not by:
        return item
    return replace(item, score=item.score + by, legs=item.legs | {signal: by})


# --- distilled memories --------------------------------------------------------------------------


def fold_distilled(items: Sequence[ScoredCandidate]) -> list[ScoredCandidate]:
    """Fold each distilled memory into the best of the passages it was drawn from; best first.

    ``via_<type>`` in the passage's legs has the score of the distilled memory.
    """
    kept = {item.candidate.key: item for item in items}
    own = {item.candidate.key: item.score for item in items}
    for item in items:
        passage = _passage_of(item, kept)
        if passage is not None:
            del kept[item.candidate.key]
            kept[passage.candidate.key] = _fold(item, passage, own[passage.candidate.key])
    return sort_by_score(kept.values())


def _passage_of(
    item: ScoredCandidate, kept: Mapping[Key, ScoredCandidate]
) -> ScoredCandidate | None:
    if item.candidate.level != "memory":
        return None
    keys = ((item.candidate.key[0], id) for id in item.candidate.source_ids)
    passages = [
        kept[key] for key in keys if key in kept and kept[key].candidate.level == "evidence"
    ]
    return max(passages, key=lambda passage: passage.score, default=None)


def _fold(distilled: ScoredCandidate, passage: ScoredCandidate, own: float) -> ScoredCandidate:
    """Return the passage, its own score raised by that of the distilled memory."""
    via = f"via_{distilled.candidate.type}"
    raised = own + _lift(passage.candidate, distilled.candidate) * (distilled.score - own)
    return replace(
        passage,
        score=max(passage.score, raised),
        legs=passage.legs | {via: max(distilled.score, passage.legs.get(via, distilled.score))},
    )


def _lift(passage: Candidate, distilled: Candidate) -> float:
    of_several = distilled.type in RESTATING_TYPES or len(distilled.source_ids) > 1
    return _DISTILLED_LIFT if of_several or distilled.terms <= passage.terms else 1.0


# --- hits ----------------------------------------------------------------------------------------


def load_hits(sources: Sources, ranked: Sequence[ScoredCandidate]) -> tuple[Hit, ...]:
    """Read the rows of ranked candidates in full; the hits are ranked from 1, in this order."""
    rows = read_rows(sources, [item.candidate for item in ranked], _COLUMNS)
    copies = [copy.candidate for item in ranked for copy in item.copies]
    copy_rows = read_rows(sources, copies, _DUPLICATE_COLUMNS)
    return tuple(
        Hit(
            rank=rank,
            score=item.score,
            kb=item.candidate.key[0],
            memory_id=item.candidate.key[1],
            legs=item.legs,
            also_in=tuple(
                DuplicateHit(
                    kb=copy.candidate.key[0],
                    memory_id=copy.candidate.key[1],
                    likeness=copy.likeness,
                    **_field_values(copy_rows[copy.candidate.key]),
                )
                for copy in item.copies
            ),
            more_in_document=tuple(each.key[1] for each in item.more),
            **_field_values(rows[item.candidate.key]),
        )
        for rank, item in enumerate(ranked, start=1)
    )


def load_hits_by_id(sources: Sources, kb: str, ids: Sequence[str]) -> dict[str, Hit]:
    """Read some memories of a knowledge base as hits without a rank."""
    table = sources[kb].get("memories", ids, ["id", *_COLUMNS])
    return {
        row["id"]: Hit(rank=0, score=0.0, kb=kb, memory_id=row.pop("id"), **_field_values(row))
        for row in table.to_pylist()
    }


def with_document_metadata(
    sources: Mapping[str, CachedSnapshot], hits: Sequence[Hit]
) -> tuple[Hit, ...]:
    """Return hits with the metadata of their documents."""
    wanted: dict[str, set[str]] = {}
    for hit in hits:
        if hit.document_id is not None:
            wanted.setdefault(hit.kb, set()).add(hit.document_id)
    found = {kb: sources[kb].document_metadata(sorted(ids)) for kb, ids in wanted.items()}
    return tuple(
        replace(hit, metadata=json.loads(found.get(hit.kb, {}).get(hit.document_id or "") or "{}"))
        for hit in hits
    )


_COPIED_TOGETHER = 4
_AT_ONCE = timedelta(minutes=1)
"""So many files that are written within so long are copies, of which their time tells nothing."""


def with_known_days(sources: Mapping[str, CachedSnapshot], hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return hits with the metadata of their documents, for those who ask which is newer.

    The time of a file by itself tells when its text was written; the times of many files that
    were copied, cloned or unpacked together do not.
    """

    @cache
    def are_copies(kb: str, at: datetime) -> bool:
        near = (col("created_at") >= at - _AT_ONCE) & (col("created_at") <= at + _AT_ONCE)
        return sources[kb].count("documents", near) >= _COPIED_TOGETHER

    return tuple(
        replace(hit, metadata={k: v for k, v in hit.metadata.items() if k != DATED_BY_FILE})
        if DATED_BY_FILE in hit.metadata and not are_copies(hit.kb, hit.created_at)
        else hit
        for hit in with_document_metadata(sources, hits)
    )


_MOST_PASSAGES = 2_000


def load_document(sources: Sources, hit: Hit) -> tuple[Hit, ...]:
    """Read the passages of a hit's document in their order; none if it has very many."""
    return () if hit.document_id is None else _load_passages(sources, hit.kb, [hit.document_id])


def load_source(sources: Sources, hit: Hit) -> tuple[Hit, ...]:
    """Read the passages of a hit's document and of the other parts of its source, in their order.

    None if they are very many.  What is said in a conversation is no part of what was said before.
    """
    if hit.document_id is None or hit.session_id is not None:
        return load_document(sources, hit)
    is_part = col("root_id") == root_id(hit.document_id)
    parts = sources[hit.kb].scan("documents", is_part, ["id", "part"]).to_pylist()
    in_order = sorted(parts, key=lambda row: int(row["part"] or 0))
    ids = dict.fromkeys(row["id"] for row in in_order)
    return _load_passages(sources, hit.kb, [*(ids | {hit.document_id: None})])


def _load_passages(sources: Sources, kb: str, documents: Sequence[str]) -> tuple[Hit, ...]:
    """Read the passages of some documents in their order; none if they have very many."""
    where = col("document_id").is_in(documents) & (col("level") == "evidence")
    where &= col("valid_to").is_null()
    columns = ["id", "document_id", "start"]
    rows = sources[kb].scan("memories", where, columns, limit=_MOST_PASSAGES + 1)
    if rows.num_rows > _MOST_PASSAGES:
        return ()
    place = {id_: place for place, id_ in enumerate(documents)}
    ordered = sorted(
        rows.to_pylist(), key=lambda row: (place[row["document_id"]], row["start"] or 0)
    )
    passages = load_hits_by_id(sources, kb, [row["id"] for row in ordered])
    return tuple(passages[row["id"]] for row in ordered)


_MOST_PAST_PASSAGES, _MOST_PAST_VERSIONS = 200, 20


def load_past_versions(
    sources: Sources, ended_within: Callable[[], Expr], hits: Sequence[Hit]
) -> tuple[Hit, ...]:
    """Read the passages of the versions that the documents of hits have replaced, newest first.

    All of such a passage counts as ended: what a newer version still says, that one says.

    Args:
        sources: What is searched, by knowledge base.
        ended_within: Returns the condition on what held once and may be shown.
        hits: Of the current versions.
    """
    found: list[Hit] = []
    for kb in dict.fromkeys(hit.kb for hit in hits):
        current = {hit.document_id: hit for hit in reversed(hits) if hit.kb == kb}
        newer = _replaced_documents(sources[kb], {id_: h for id_, h in current.items() if id_})
        if not newer:
            continue
        where = col("document_id").is_in(sorted(newer)) & (col("level") == "evidence")
        where &= col("type").is_in(["passage"]) & ended_within()
        ended = (
            sources[kb]
            .scan("memories", where, ["id", "valid_to"], limit=_MOST_PAST_PASSAGES)
            .to_pylist()
        )
        at = {row["id"]: row["valid_to"] for row in ended}
        for id_, hit in load_hits_by_id(sources, kb, list(at)).items():
            if hit.start is not None and hit.end is not None:
                now = newer[hit.document_id or ""]
                fact = EndedFact(hit.start, hit.end, at[id_], now.document_id or "")
                found.append(replace(hit, rank=now.rank, ended=(fact,)))
    return tuple(sorted(found, key=lambda hit: hit.ended[0].at, reverse=True))


def _replaced_documents(source: Snapshot, current: Mapping[str, Hit]) -> dict[str, Hit]:
    """Return the hits of current documents by the ids of the versions that these have replaced."""
    replaced: dict[str, Hit] = {}
    newer = current
    for _ in range(_MOST_PAST_VERSIONS):
        where = col("superseded_by").is_in(sorted(newer)) & (col("status") == "superseded")
        rows = source.scan("documents", where, ["id", "namespace", "superseded_by"]).to_pylist()
        newer = {
            row["id"]: hit
            for row in rows
            if (hit := newer[row["superseded_by"]]).namespace == row["namespace"]
            and row["id"] not in replaced
        }
        if not newer:
            break
        replaced |= newer
    return replaced


def load_author(sources: Sources, hit: Hit) -> str:
    """Read who wrote a hit's document; "" if nobody is known, or several are."""
    if hit.document_id is None:
        return ""
    rows = sources[hit.kb].get("documents", [hit.document_id], ["id", "authors"]).to_pylist()
    authors = rows[0]["authors"] if rows else []
    return authors[0] if len(authors) == 1 else ""


_MOST_MAILS, _SHARE_OF_OWNER = 500, 2 / 3


def load_owner(sources: Sources, kb: str) -> str:
    """Read the first name of whose mails a knowledge base has; "" if that isn't known.

    It is who wrote or got more of them than anybody else, and most of them.
    """
    where = col("doc_type").is_in(["email"])
    columns = ["authors", "metadata"]
    mails = sources[kb].scan("documents", where, columns, limit=_MOST_MAILS).to_pylist()
    parties: Counter[str] = Counter()
    for mail in mails:
        said = json.loads(mail["metadata"] or "{}")
        others = [name for key in ("to", "cc") for name in said.get(key) or ()]
        parties.update(set(filter(None, map(first_name, (*mail["authors"], *map(str, others))))))
    (first, most), (_, second), *_ = [*parties.most_common(2), ("", 0), ("", 0)]
    return first if most > second and most >= _SHARE_OF_OWNER * len(mails) else ""


def first_name(party: str) -> str:
    """Return the first word of a name or an address in lower case.

    It is the same for "Ann Roe" and ann.roe@example.org.
    """
    words = re.findall(r"[^\W_]+", party)
    return words[0].casefold() if words else ""


_MOST_STATEMENTS = 2_000
"""Of a period, whose importance is compared."""
_WEIGHTIEST = 40


def load_statements_of(
    sources: Sources, scope: SearchScope, period: TimeExpression
) -> tuple[tuple[Hit, Hit], ...]:
    """Read statements made in a period, each with the passage it stands in.

    Returns:
        At most 40 of each knowledge base, the weightiest first.
    """
    found: list[tuple[Hit, Hit]] = []
    for kb in sources:
        made = created_within(period) & (col("level") == "memory") & (col("type") != "gist")
        where = both(scope.where, made & col("valid_to").is_null())
        rows = sources[kb].scan("memories", where, ["id", "importance"], limit=_MOST_STATEMENTS)
        weightiest = sorted(rows.to_pylist(), key=lambda row: (-row["importance"], row["id"]))
        ids = [row["id"] for row in weightiest[:_WEIGHTIEST]]
        statements = load_hits_by_id(sources, kb, ids)
        wanted = {each.source_ids[0] for each in statements.values() if each.source_ids}
        passages = load_hits_by_id(sources, kb, sorted(wanted))
        found += [
            (statement, passages[statement.source_ids[0]])
            for id_ in ids
            if (statement := statements.get(id_))
            and statement.source_ids
            and statement.source_ids[0] in passages
        ]
    return tuple(found)


def load_turns_around(sources: Sources, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Read the turns of conversations directly before and after some, ranked like these."""
    wanted: dict[tuple[str, str, str, int], int] = {}
    for hit in hits:
        if hit.type == "turn" and hit.session_id is not None and hit.turn is not None:
            for turn in (hit.turn - 1, hit.turn + 1):
                wanted.setdefault((hit.kb, hit.namespace, hit.session_id, turn), hit.rank)
    known = {(hit.kb, hit.namespace, hit.session_id, hit.turn) for hit in hits}
    found: list[Hit] = []
    for kb in dict.fromkeys(place[0] for place in wanted):
        mine = [place for place in wanted if place[0] == kb and place not in known]
        where = col("session_id").is_in(sorted({place[2] for place in mine}))
        where &= col("turn").is_in(sorted({place[3] for place in mine}))
        where &= (col("level") == "evidence") & col("valid_to").is_null()
        rows = sources[kb].scan("memories", where, ["id", "namespace", "session_id", "turn"])
        ranks = {
            row["id"]: wanted[place]
            for row in rows.to_pylist()
            if (place := (kb, row["namespace"], row["session_id"], row["turn"])) in mine
        }
        turns = load_hits_by_id(sources, kb, list(ranks))
        found += [replace(turn, rank=ranks[id_]) for id_, turn in turns.items()]
    return tuple(found)


def _field_values(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a row says of a hit; an importance has the digits that are stored: 0.7."""
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in row.items()
    }
    if "importance" in values:
        values["importance"] = float(str(np.float32(values["importance"])))
    return values


# --- fusion ---------------------------------------------------------------------------------------


Scores = NDArray[np.float64]
Spaces = NDArray[np.int64]
"""A number for the embedder that each candidate's vector is from."""
NO_SPACE = -1
"""For a candidate without a vector to compare."""


class Scale(Protocol):
    """Puts scores on a common scale, set by the first of them or by all."""

    def __call__(self, scores: Scores, reference: int | None = None, /) -> Scores:
        """Return the scores on that scale."""
        ...


_RANK_CONSTANT = 60
"""From Cormack, Clarke and Büttcher (2009)."""
_BEST_OF_RANKS = 3.0
"""What else speaks for a passage is measured against scores of about this size."""


def fuse(
    keyword: Scores,
    vector: Scores,
    fusion: Fusion,
    spaces: Spaces | None = None,
    reference: int | None = None,
    keyword_weight: float = KEYWORD_WEIGHT,
) -> Scores:
    """Return one score for each candidate from its exact keyword and vector scores.

    ``zscore`` and ``minmax`` put both on one scale over the candidates and add them, keywords at
    three quarters; ``simple`` is ``minmax`` with equal shares, ``weighted`` is ``zscore`` with a
    share of choice.  ``rrf`` looks at ranks alone; it is offered because it is well known, and
    measured 1 to 10 points of recall worse.

    Args:
        keyword: The keyword scores.
        vector: The vector scores.
        fusion: How to fuse them.
        spaces: See ``normalize_within``.
        reference: How many of the first scores set the scale; None for all.
        keyword_weight: The share of keyword scores in ``weighted``, 0 to 1.
    """
    scale = {"minmax": minmax, "simple": minmax, "rrf": reciprocal_rank}.get(fusion, zscore)
    share = {"simple": 0.5, "rrf": 0.5, "weighted": keyword_weight}.get(fusion, KEYWORD_WEIGHT)
    vectors = normalize_within(spaces, scale, vector, reference)
    keywords = scale(keyword, reference)
    if fusion == "rrf":  # what has none of the words has no rank among what has
        keywords = np.where(keyword > 0, keywords, 0.0)
    return share * keywords + (1 - share) * vectors


def normalize_within(
    spaces: Spaces | None, scale: Scale, scores: Scores, reference: int | None = None
) -> Scores:
    """Return the scores scaled among those of the same embedder; 0 for those of none.

    Cosines of different embedders say nothing about each other.

    Args:
        spaces: The embedder of each score; None where all have the same.
        scale: Puts scores on a scale.
        scores: The scores.
        reference: See ``fuse``.
    """
    if spaces is None:
        return scale(scores, reference)
    scaled = np.zeros_like(scores)
    for space in set(spaces[spaces != NO_SPACE].tolist()):
        own = spaces == space
        scaled[own] = scale(scores[own], None if reference is None else int(own[:reference].sum()))
    return scaled


def zscore(scores: Scores, reference: int | None = None) -> Scores:
    """Return how many standard deviations each score lies above the mean; 0 if all are equal."""
    of = scores[:reference]
    if not len(of):
        return np.zeros_like(scores)
    return _divide(scores - of.mean(), float(of.std()))


def minmax(scores: Scores, reference: int | None = None) -> Scores:
    """Return the scores scaled to 0 for the lowest and 1 for the highest; 0 if all are equal."""
    of = scores[:reference]
    if not len(of):
        return np.zeros_like(scores)
    return _divide(scores - of.min(), float(np.ptp(of)))


def reciprocal_rank(scores: Scores, reference: int | None = None) -> Scores:
    """Return 1 / (60 + rank), times what makes it 3 at best, as the others may be.

    Equal scores share the best of their ranks.
    """
    ranks = 1 + np.searchsorted(np.sort(-scores[:reference]), -scores)
    result: Scores = _BEST_OF_RANKS * (_RANK_CONSTANT + 1) / (_RANK_CONSTANT + ranks)
    return result


def _divide(scores: Scores, by: float) -> Scores:
    # Below this, differences are rounding errors of sums of floats that ought to be equal.
    return scores / by if by > 1e-9 else np.zeros_like(scores)
