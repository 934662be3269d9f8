"""Selection: which of the ranked candidates are shown.

The same text remembered twice is one hit, which lists where else it stands.  Copies have the same
text, white space and case aside, under the same heading; turns also the same time, and where a
question names a period, all have the same day.  Near copies differ in a few words, but in no
number: their resemblance is measured after Broder, "On the resemblance and containment of
documents" (1997), as the share of word runs that both have.  What a message quotes is a copy where
most of its word runs, Broder's containment, stand in another document that was found.

A document of which several knowledge bases have a copy is one document: its hits are passages of
one of the copies, and those of the others that overlap them are folded into them.

Maximal marginal relevance puts hits that say something new before those that repeat a better one,
after Carbonell and Goldstein, "The use of MMR, diversity-based reranking for reordering documents
and producing summaries" (SIGIR 1998).  A limit per document folds what more it has into its best.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from memctl.literals import QUOTED, Duplicates
from memctl.models.vector_math import dot_products, normalize_rows
from memctl.schema.arrow_tables import VECTOR
from memctl.search.ranking.scored_candidates import TIME_SCORE, FoldedDuplicate, ScoredCandidate
from memctl.search.retrieval.candidate_rows import vector_matrix
from memctl.search.retrieval.candidates import Candidate, Key, read_rows
from memctl.search.term_statistics import Sources

_NEAR = 0.8
"""The least resemblance of near copies; one word changed in the middle of thirty gives 0.8."""
_CONTAINED = 0.6
"""The least share of a quotation's word runs: it may begin above a passage, or end below it."""
_RUN = 3
"""Words; Broder takes runs of ten of whole web pages."""
_ENDING = 3
"""The last three terms of two texts are compared first.  Search terms begin with the title, so
shorter texts are copies only under the same title."""
_TITLE_EXPANSION = 6
"""Most characters of search terms for each character of the title: the title counts twice, and a
compound gives its parts and itself."""
_WORD = re.compile(r"\w+")
_CONTENT = ("id", "sha256", "part")
"""The columns that tell which documents have the same content."""
_MOST_LOOKED_UP = 200
"""So many of the best items are looked at for copies of documents."""
_OVERLAP = 0.5
"""The least share of the shorter of two passages that copies of a document have in common."""
_HEADER = re.compile(r"\s*(?:-{3}|_{3}|\*?[^\W\d_][\w -]{1,14}:\*?\s)")
"""A line above a message that is quoted without marks."""

_Kind = tuple[Hashable, ...]


class _Text(Struct, frozen=True):
    """What a memory says, in the form in which copies are equal."""

    words: str
    """In lower case, with single spaces."""
    kind: _Kind
    """What copies share besides: level, heading, and where it matters the time."""


def fold_duplicates(
    items: Sequence[ScoredCandidate], sources: Sources, duplicates: Duplicates
) -> list[ScoredCandidate]:
    """Return the items, each copy folded into the best that says the same.

    Args:
        items: Best first.
        sources: Where the texts are read.
        duplicates: What is folded: ``exact`` copies, ``near`` ones too, or none (``keep``).
    """
    if duplicates == "keep":
        return list(items)
    items = _fold_quotations(items, sources)
    by_day = any("time" in item.legs or TIME_SCORE in item.legs for item in items)
    kinds = {item.candidate.key: _kind(item.candidate, by_day) for item in items}
    suspects = list(items) if duplicates == "near" else _with_same_ending(items, kinds)
    texts = _texts(sources, [item.candidate for item in suspects], kinds)
    if not texts:
        return _fold_copied_documents(items, sources)
    index = _NearIndex() if duplicates == "near" else _ExactIndex()
    kept: dict[Key, ScoredCandidate] = {}
    for item in items:
        text = texts.get(item.candidate.key)
        key, likeness = index.find(item.candidate.key, text) if text else (item.candidate.key, 1.0)
        kept[key] = _fold(kept[key], item, likeness) if key in kept else item
    return _fold_copied_documents(list(kept.values()), sources)


class _Passage(Struct, frozen=True):
    """Where an item stands in its document, if a copy of that was found as well."""

    original: Key
    """The copy of which passages are hits."""
    start: int
    end: int

    def likeness(self, other: _Passage) -> float:
        """Return the share of both that they have in common; 0 if it is little of either."""
        common = min(self.end, other.end) - max(self.start, other.start)
        shorter, longer = sorted((self.end - self.start, other.end - other.start))
        if self.original != other.original or common < _OVERLAP * shorter:
            return 0.0
        return common / (shorter + longer - common)


def _fold_copied_documents(
    items: Sequence[ScoredCandidate], sources: Sources
) -> list[ScoredCandidate]:
    """Return the items with one copy of each document that several knowledge bases have."""
    passages = _passages_of_copies(items[:_MOST_LOOKED_UP], sources) if len(sources) > 1 else {}
    if not passages:
        return list(items)
    kept: list[ScoredCandidate] = []
    for item in items:
        passage = passages.get(item.candidate.key)
        if passage is None:
            kept.append(item)
            continue
        item = _preferring(item, passage.original)
        likeness, at = max(
            (
                (passage.likeness(passages[other.candidate.key]), at)
                for at, other in enumerate(kept)
                if other.candidate.key in passages
                and document_key(other.candidate) != document_key(item.candidate)
            ),
            default=(0.0, -1),
        )
        if likeness:
            kept[at] = _preferring(_fold(kept[at], item, likeness), passage.original)
        else:
            kept.append(item)
    return kept


def _preferring(item: ScoredCandidate, document: Key) -> ScoredCandidate:
    """Return an item that is of a document if one of its copies is, and is a copy of that."""
    own = item.candidate
    copy = next((each for each in item.copies if document_key(each.candidate) == document), None)
    if copy is None or document_key(own) == document:
        return item
    others = [each for each in item.copies if each is not copy]
    copies = (FoldedDuplicate(own, copy.likeness), *others)
    return replace(item, candidate=copy.candidate, copies=copies)


def _passages_of_copies(items: Sequence[ScoredCandidate], sources: Sources) -> dict[Key, _Passage]:
    """Return where passages of documents stand that have the same content as another one.

    The copy with the longest passages counts as the original, as most is said in one of these.
    """
    every = [item.candidate for item in items]
    every += [copy.candidate for item in items for copy in item.copies]
    candidates = [each for each in every if each.type == "passage" and each.row["document_id"]]
    by_content: dict[tuple[str, int], set[Key]] = {}
    for kb in sources:
        ids = {each.row["document_id"] for each in candidates if each.key[0] == kb}
        for row in sources[kb].get("documents", sorted(ids), _CONTENT).to_pylist() if ids else ():
            by_content.setdefault((row["sha256"], row["part"]), set()).add((kb, row["id"]))
    copied = {key for keys in by_content.values() if len(keys) > 1 for key in keys}
    wanted = [each for each in candidates if document_key(each) in copied]
    places = read_rows(sources, wanted, ("start", "end")) if wanted else {}
    of_document: dict[Key, list[int]] = {}
    for each in wanted:
        length = (places[each.key]["end"] or 0) - (places[each.key]["start"] or 0)
        of_document.setdefault(document_key(each), []).append(length)
    originals = {
        key: max(
            (each for each in of_document if each in keys),  # of equals, that of the best item
            key=lambda each: sum(of_document[each]) / len(of_document[each]),
        )
        for keys in by_content.values()
        if len(keys) > 1
        for key in keys
        if key in of_document
    }
    return {
        each.key: _Passage(originals[document_key(each)], place["start"], place["end"])
        for each in wanted
        if (place := places[each.key])["start"] is not None and place["end"] is not None
    }


def _fold_quotations(
    items: Sequence[ScoredCandidate], sources: Sources
) -> Sequence[ScoredCandidate]:
    """Return the items, quotations folded into the best passage of the message that they are of."""
    quotations = [item for item in items if item.candidate.type == QUOTED]
    if not quotations:
        return items
    said = [
        item
        for item in items
        if item.candidate.level == "evidence" and item.candidate.type != QUOTED
    ]
    texts = read_rows(sources, [item.candidate for item in (*said, *quotations)], ("text",))
    best: dict[Key, Key] = {}
    runs: dict[Key, set[tuple[str, ...]]] = {}
    for item in said:
        key = item.candidate.key
        document = (key[0], item.candidate.row["document_id"])
        best.setdefault(document, key)
        words = _WORD.findall(_fold_text(texts[key]["text"]))
        runs.setdefault(document, set()).update(_runs(words), ((word,) for word in words))
    kept = {item.candidate.key: item for item in items}
    for item in quotations:
        key = item.candidate.key
        words = _quoted_words(texts[key]["text"])
        own = (key[0], item.candidate.row["document_id"])
        likeness, document = max(
            ((_containment(words, runs[each]), each) for each in best if each != own),
            default=(0.0, own),
        )
        if likeness >= _CONTAINED:
            kept[best[document]] = _fold(kept[best[document]], kept.pop(key), likeness)
    return list(kept.values())


def _quoted_words(text: str) -> list[str]:
    """Return the words of a quotation without marks, headers and what introduces it."""
    lines = text.splitlines()
    marked = [line.lstrip("> ") for line in lines if line.startswith(">")]
    kept = marked or [line for line in lines if not _HEADER.match(line)]
    return _WORD.findall(_fold_text("\n".join(line for line in kept if line.strip()[-1:] != ":")))


def _containment(words: Sequence[str], runs: set[tuple[str, ...]]) -> float:
    """Return the share of word runs that stand among others; 0 if a number does not."""
    own = frozenset(_runs(words))
    numbers = {(word,) for word in words if any(map(str.isdigit, word))}
    return len(own & runs) / len(own) if numbers <= runs else 0.0


def _fold(first: ScoredCandidate, copy: ScoredCandidate, likeness: float) -> ScoredCandidate:
    copies = (*first.copies, FoldedDuplicate(copy.candidate, likeness), *copy.copies)
    return replace(first, copies=tuple(sorted(copies, key=lambda copy: -copy.likeness)))


def _kind(candidate: Candidate, by_day: bool) -> _Kind:
    if candidate.type == "turn":
        return candidate.level, candidate.row["created_at"]
    return candidate.level, candidate.row["created_at"].date() if by_day else None


def _with_same_ending(
    items: Iterable[ScoredCandidate], kinds: Mapping[Key, _Kind]
) -> list[ScoredCandidate]:
    """Return the items whose search terms end like those of another, which only copies do.

    Most differ in this already, so their text need not be read.
    """
    endings: dict[_Kind, list[ScoredCandidate]] = {}
    for item in items:
        candidate = item.candidate
        terms = candidate.row["search_text"].rsplit(" ", _ENDING)[-_ENDING:]
        endings.setdefault((*kinds[candidate.key], *terms), []).append(item)
    return [
        item
        for alike in endings.values()
        for item in alike
        if any(_may_say_the_same(item, other) for other in alike if other is not item)
    ]


def _may_say_the_same(one: ScoredCandidate, other: ScoredCandidate) -> bool:
    """Return whether the search terms of two are equal where they can't be the title's."""
    left, right = (item.candidate.row["search_text"] for item in (one, other))
    common = max(_length_below_title(one), _length_below_title(other))
    fits = common <= min(len(left), len(right))
    return fits and bool(left.endswith(right[len(right) - common :]))


def _length_below_title(item: ScoredCandidate) -> int:
    """Return how many characters at the end of the search terms cannot be the title's."""
    row = item.candidate.row
    of_title = _TITLE_EXPANSION * (len(row["title"]) + 1) if row["title"] else 0
    return max(0, len(row["search_text"]) - of_title)


def _texts(
    sources: Sources, candidates: Sequence[Candidate], kinds: Mapping[Key, _Kind]
) -> dict[Key, _Text]:
    return {
        key: _Text(_fold_text(row["text"]), (*kinds[key], _fold_text(row["heading"])))
        for key, row in read_rows(sources, candidates, ("text", "heading")).items()
    }


def _fold_text(text: str | None) -> str:
    return " ".join((text or "").split()).casefold()


class _ExactIndex:
    """Finds the first item with the same text."""

    def __init__(self) -> None:
        self._first: dict[_Text, Key] = {}

    def find(self, key: Key, text: _Text) -> tuple[Key, float]:
        """Return the first with this text, which may be the item itself, and the likeness 1."""
        return self._first.setdefault(text, key), 1.0


class _NearIndex:
    """Finds the first item with nearly the same text and the same numbers."""

    def __init__(self) -> None:
        self._first: dict[Hashable, list[tuple[Key, frozenset[tuple[str, ...]]]]] = {}

    def find(self, key: Key, text: _Text) -> tuple[Key, float]:
        """Return the most similar earlier item, or the item itself, and their likeness."""
        words = _WORD.findall(text.words)
        numbers = frozenset(word for word in words if any(map(str.isdigit, word)))
        before = self._first.setdefault((text.kind, numbers), [])
        runs = frozenset(_runs(words))
        similar = ((_resemblance(runs, theirs), other) for other, theirs in before)
        likeness, other = max(similar, default=(0.0, key), key=lambda pair: pair[0])
        if likeness >= _NEAR:
            return other, likeness
        before.append((key, runs))
        return key, 1.0


def _runs(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield all runs of three words; all words where there are fewer."""
    for start in range(max(1, len(words) - _RUN + 1)):
        yield tuple(words[start : start + _RUN])


def _resemblance(some: frozenset[tuple[str, ...]], others: frozenset[tuple[str, ...]]) -> float:
    return len(some & others) / len(some | others)


# --- diversity ------------------------------------------------------------------------------------

_DIVERSITY = "diversity"
"""The name under which a hit's legs have what it lost, a negative number."""
POOL = 50
"""The hits are chosen from the best 50, or from twice as many as are wanted; those below are too
far from the question to be a gain."""
_MAX_DIVERSITY = 0.99
"""With 1 only dissimilarity would count, and equally dissimilar hits would have no order."""

Vectors = Mapping[Hashable, tuple[NDArray[np.intp], NDArray[np.float32]]]
"""By embedder: the positions of the items that have its vectors, and these, of length 1."""


class NearestBetter(Struct, frozen=True):
    """The better hit that a hit is most similar to."""

    key: Key
    cosine: float


def diversify(
    items: Sequence[ScoredCandidate], diversity: float, limit: int, vectors: Vectors
) -> tuple[list[ScoredCandidate], dict[Key, NearestBetter]]:
    """Return the items to show, in order, and for each that lost something the better one.

    The next is the one with the greatest (1 - d) s - d c: d is the diversity, s the item's score
    on a scale from 0 to 1 over all items, c its greatest cosine with one chosen before, at least
    0.  Scores keep their scale: an item loses d / (1 - d) c of the span of the scores.  Ties keep
    their order.

    Args:
        items: All that are chosen from, best first.
        diversity: 0 changes nothing; near 1 only dissimilarity counts.
        limit: Most items to return.
        vectors: The vectors of the items.
    """
    if not items:
        return [], {}
    scores = np.array([item.score for item in items])
    share = min(diversity, _MAX_DIVERSITY)
    weight = share / (1 - share) * (float(np.ptp(scores)) or 1.0)
    cosines = np.zeros(len(items))  # with the nearest chosen so far
    nearest = np.zeros(len(items), dtype=np.intp)
    chosen: list[ScoredCandidate] = []
    better: dict[Key, NearestBetter] = {}
    for _ in range(min(limit, len(items))):
        at = int(np.argmax(scores - weight * cosines))
        item, cosine = items[at], float(cosines[at])
        if cosine:
            penalty = weight * cosine
            item = replace(
                item, score=item.score - penalty, legs=item.legs | {_DIVERSITY: -penalty}
            )
            other = items[nearest[at]].candidate.key
            better[item.candidate.key] = NearestBetter(other, round(cosine, 3))
        chosen.append(item)
        scores[at] = -np.inf
        for places, directions in vectors.values():
            for own in np.flatnonzero(places == at):
                similar = dot_products(directions, directions[own])
                nearer = similar > cosines[places]
                cosines[places[nearer]] = similar[nearer]
                nearest[places[nearer]] = at
    return chosen, better


def candidate_vectors(
    items: Sequence[ScoredCandidate], sources: Sources, spaces: Mapping[str, int]
) -> Vectors:
    """Return the stored vectors of the items; those of a keyword search are read for it.

    Items compared with the question are compared with each other where they have the same
    embedder; the others within their knowledge base, which has one.

    Args:
        items: The items.
        sources: Where vectors are read.
        spaces: A number for the embedder of each knowledge base; empty where all have the same.
    """
    groups: dict[Hashable, list[int]] = {}
    for at, item in enumerate(items):
        kb = item.candidate.key[0]
        is_compared = item.candidate.direction is not None
        groups.setdefault(spaces.get(kb, 0) if is_compared else kb, []).append(at)
    return {
        space: (np.array(places), _unit_vectors([items[at] for at in places], sources))
        for space, places in groups.items()
    }


def _unit_vectors(items: Sequence[ScoredCandidate], sources: Sources) -> NDArray[np.float32]:
    """Return the vectors, of length 1, of items of which all or none have been read."""
    known = [item.candidate.direction for item in items if item.candidate.direction is not None]
    if known:
        return normalize_rows(np.stack(known))
    source = sources[items[0].candidate.key[0]]
    numbers = [item.candidate.number for item in items]
    return normalize_rows(vector_matrix(source.rows("memories", numbers, (VECTOR,))[VECTOR]))


# --- hits per document ---------------------------------------------------------------------------


def document_key(candidate: Candidate) -> Key:
    """Return knowledge base and document; a memory without a document counts as its own."""
    kb, id = candidate.key
    return kb, candidate.row["document_id"] or id


def full_documents(items: Sequence[ScoredCandidate], most: int) -> set[Key]:
    """Return the documents that have at least as many items as they may have hits."""
    counts = Counter(document_key(item.candidate) for item in items)
    return {document for document, count in counts.items() if count >= most}


def limit_per_document(
    items: Sequence[ScoredCandidate], most: int, limit: int
) -> list[ScoredCandidate]:
    """Return the items without those of documents that have enough better ones.

    The first item of a document gets in ``more`` what would have been among the hits.

    Args:
        items: Best first.
        most: Most items per document.
        limit: The number of hits wanted; more items are returned where there are any.
    """
    kept: dict[Key, list[ScoredCandidate]] = {}
    order: list[ScoredCandidate] = []
    more: dict[Key, list[Candidate]] = {}
    for item in items:
        document = document_key(item.candidate)
        of_document = kept.setdefault(document, [])
        if len(of_document) < most:
            of_document.append(item)
            order.append(item)
        elif len(order) < limit:
            more.setdefault(document, []).append(item.candidate)
    folded = {kept[document][0].candidate.key: found for document, found in more.items()}
    return [replace(item, more=tuple(folded.get(item.candidate.key, ()))) for item in order]
