"""Questions written from what is remembered, for their owner to correct.

No model is asked: a value that a statement gives is asked for in its place ("... starts on which
date?"), and a decision, a preference or anything else by what it is about.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memctl.consolidate.values import Value, values
from memctl.evaluate.questions import EvalQuestion
from memctl.records import Filters
from memctl.understand.sentences import sentences
from memctl.understand.stopwords import stop_words

if TYPE_CHECKING:
    from memctl.knowledge_base import KnowledgeBase

_MOST_OF_A_DOCUMENT = 3
_MOST_WORDS = 4
_SHORTEST, _LONGEST = 20, 240
_LINK = re.compile(r"\[\[(?:[^\]|]*\|)?([^\]]*)\]\]")
_LABEL = re.compile(r"^(?:remember|note|reminder|fact|decision|todo)\s*:\s*", re.IGNORECASE)
_LISTING = re.compile(r"\btalks? about\b|\d+ rows? of\b|\?")
_PREFERENCE = re.compile(r"^(?P<who>[^\W\d_][\w .'-]{0,40}?) prefers? (?P<what>.+)")
_WORD = re.compile(r"[^\W_](?:[\w'-]*[^\W_])?")
_CLAUSE = re.compile(r"[,;:]\s")
_ASKED = {
    "date": "which date", "time": "what time", "money": "how much money",
    "percent": "what percentage",
}  # fmt: skip
_DECIDED = re.compile(
    r"^.{0,40}?\b(?:decided|agreed|resolved|chose)\b(?: not)?(?: to| that| on)?\b"
)
_AT_THE_START = re.compile(r"[\"'(]*([^\W\d_]+)")
_PLAIN_STARTS = frozenset(stop_words("en"))


@dataclass(frozen=True, slots=True)
class Draft:
    """A question with what it was made from."""

    question: EvalQuestion
    evidence: str
    source: str


def make_questions(base: KnowledgeBase, count: int) -> list[Draft]:
    """Return at most so many questions, those on what matters most first.

    Args:
        base: Whose memories; its distilled facts and the first sentences of its gists.
        count: How many.
    """
    rows = base.memories(Filters(levels=("memory",))).to_pylist()
    rows.sort(key=lambda row: (row["type"] == "gist", -row["importance"], row["id"]))
    drafts: dict[str, Draft] = {}
    of_document: dict[str, int] = {}
    used: set[str] = set()
    for row in rows:
        evidence = row["external_id"] or row["document_id"] or row["id"]
        for sentence in _sentences(row):
            text, category = question_on(sentence, row["type"])
            known = drafts.get(text)
            if row["type"] == "gist" and any(statement in sentence for statement in used):
                continue
            used.add(sentence)
            if known is not None:
                drafts[text] = _with_evidence(known, evidence)
            elif text and of_document.get(evidence, 0) < _MOST_OF_A_DOCUMENT:
                of_document[evidence] = of_document.get(evidence, 0) + 1
                drafts[text] = _draft(row, evidence, sentence, text, category)
    return list(drafts.values())[:count]


def _sentences(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield the statements of a memory, of a gist the first one that is a sentence."""
    text = _LINK.sub(r"\1", row["text"])
    if row["type"] != "gist":
        yield " ".join(_LABEL.sub("", text).split())
        return
    found = (" ".join(text[start:end].split()) for start, end in sentences(text))
    fit = (
        s
        for s in found
        if _SHORTEST <= len(s) <= _LONGEST and s[0].isupper() and not _LISTING.search(s)
    )
    if first := next(fit, ""):
        yield first


def question_on(statement: str, type_: str) -> tuple[str, str]:
    """Return a question that a statement answers, and its category; ("", "") where none fits."""
    said = values(statement)
    if said:
        best = min(said, key=lambda value: value.kind == "quantity")
        return _asked_in_place(statement, best), best.kind
    if type_ == "preference" and (match := _PREFERENCE.match(statement)):
        who = match["who"]
        verb = "do" if who in ("I", "We") else "does"
        about = _about(match["what"], 2)
        subject = f" when it comes to {about}" if about else ""
        return f"What {verb} {who} prefer{subject}?", "preference"
    about = _about(_DECIDED.sub("", statement), _MOST_WORDS)
    if not about:
        return "", ""
    if type_ == "decision":
        return f"What was decided about {about}?", "decision"
    return f"What is known about {about}?", "topic"


def _asked_in_place(statement: str, value: Value) -> str:
    """Ask for a value where it stands, or at the end where a statement begins with it."""
    ask = "which year" if value.text.isdigit() else _ASKED.get(value.kind)
    if ask is None:
        counted = value.text.partition(" ")[2]
        ask = f"how many {counted}" if counted else "how many"
    before, after = statement[: value.start], statement[value.end :]
    if len(before.split()) <= 1 and len(after.split()) > 1:
        asked = f"{after.lstrip(' ,')} {before.strip().lower()} {ask}"
    else:
        asked = f"{before}{ask}{_CLAUSE.split(after, maxsplit=1)[0]}"
    asked = " ".join(re.sub(r"[.!]+(?=\s|$)", "", asked).split())
    return f"{asked[:1].upper()}{asked[1:]}?"


def _about(text: str, most: int) -> str:
    """Return the words that say what a text is about, in its order: names first of all."""
    words = [match.group() for match in _WORD.finditer(text)]
    start = _AT_THE_START.match(text)
    if start and start[1].lower() in _PLAIN_STARTS:
        words = words[1:]
    telling = [w for w in words if w.lower() not in _PLAIN_STARTS and len(w) > 2]
    chosen = sorted(telling, key=lambda w: (not w[0].isupper(), -len(w)))[:most]
    return " ".join(dict.fromkeys(w for w in telling if w in chosen))


def _draft(row: Mapping[str, Any], evidence: str, sentence: str, text: str, category: str) -> Draft:
    question = EvalQuestion(
        id=row["id"], text=text, relevant=(evidence,), namespace=row["namespace"],
        category=category,
    )  # fmt: skip
    return Draft(question, sentence, row["source"])


def _with_evidence(draft: Draft, evidence: str) -> Draft:
    known = draft.question
    relevant = tuple(dict.fromkeys((*known.relevant, evidence)))
    question = EvalQuestion(known.id, known.text, relevant, known.namespace, known.category)
    return Draft(question, draft.evidence, draft.source)


def as_lines(drafts: Sequence[Draft]) -> Iterable[dict[str, Any]]:
    """Return what a question set has of each, and what helps to correct it."""
    for draft in drafts:
        asked = draft.question
        yield {
            "id": asked.id,
            "question": asked.text,
            "relevant": list(asked.relevant),
            "namespace": asked.namespace,
            "category": asked.category,
            "evidence": draft.evidence,
            "source": draft.source,
        }
