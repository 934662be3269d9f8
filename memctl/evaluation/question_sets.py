"""Question sets: questions with the records that answer them, read from files or drafted.

A set is a folder with two files of JSON lines.  ``corpus.jsonl`` is what ``memctl ingest --jsonl``
takes, each record with an ``id``; ``queries.jsonl`` has one question a line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from memctl.language.sentence_splitting import split_sentences
from memctl.language.sentence_values import Value, values
from memctl.language.word_lists import stop_words
from memctl.literals import EXCHANGE
from memctl.records import Filters

if TYPE_CHECKING:
    from memctl.knowledge_base import KnowledgeBase

CORPUS, QUERIES = "corpus.jsonl", "queries.jsonl"


class EvalQuestion(Struct, frozen=True):
    """A question with the ids of its evidence: records, documents or memories."""

    id: str
    text: str
    relevant: tuple[str, ...]
    namespace: str | None = None
    """The only namespace that is asked."""
    category: str = ""


class BadLine(Struct, frozen=True):
    """A line of a question set that is invalid; lines count from 1."""

    line: int
    reason: str


class QuestionSet(Struct, frozen=True):
    """The questions of a file."""

    questions: tuple[EvalQuestion, ...]
    bad: tuple[BadLine, ...]
    without_evidence: int
    """Number of questions without evidence, which cannot be scored."""


def read_questions(path: Path) -> QuestionSet:
    """Read ``queries.jsonl``: ``id``, ``question``, ``relevant``, ``namespace``?, ``category``?.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open(encoding="utf-8-sig", errors="replace") as lines:
        return parse_questions(lines)


def parse_questions(lines: Iterable[str]) -> QuestionSet:
    """Read questions, one JSON object per line; of those with the same id the first counts."""
    found: dict[str, EvalQuestion] = {}
    bad: list[BadLine] = []
    without = 0
    for number, value in _objects(lines, bad):
        try:
            question = _question(value, number)
            if question.id in found:
                raise ValueError(f"the id {question.id!r} is that of an earlier line")
        except ValueError as error:
            bad.append(BadLine(number, str(error)))
            continue
        if question.relevant:
            found[question.id] = question
        else:
            without += 1
    return QuestionSet(tuple(found.values()), tuple(bad), without)


def _objects(lines: Iterable[str], bad: list[BadLine]) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except ValueError as error:
            bad.append(BadLine(number, f"no JSON: {error}"))
            continue
        if isinstance(value, dict):
            yield number, value
        else:
            bad.append(BadLine(number, "not a JSON object"))


def _question(value: dict[str, Any], number: int) -> EvalQuestion:
    text, relevant = value.get("question"), value.get("relevant", [])
    namespace, category = value.get("namespace"), value.get("category")
    if not isinstance(text, str) or not any(map(str.isalnum, text)):
        raise ValueError("no question in it")
    if not isinstance(relevant, list) or not all(isinstance(id_, (str, int)) for id_ in relevant):
        raise ValueError("relevant must be a list of ids")
    if namespace is not None and not isinstance(namespace, str):
        raise ValueError("namespace must be a text")
    return EvalQuestion(
        id=str(value.get("id", f"line {number}")),
        text=text,
        relevant=tuple(dict.fromkeys(map(str, relevant))),
        namespace=namespace,
        category="" if category is None else str(category),
    )


def missing_evidence(questions: Sequence[EvalQuestion], known: set[str]) -> int:
    """Return the number of ids given as evidence that don't exist."""
    return len({id_ for question in questions for id_ in question.relevant} - known)


_MAX_OF_A_DOCUMENT = 3
_MAX_WORDS = 4
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
_DECISION = re.compile(
    r"^.{0,40}?\b(?:decided|agreed|resolved|chose)\b(?: not)?(?: to| that| on)?\b"
)
_AT_THE_START = re.compile(r"[\"'(]*([^\W\d_]+)")
_PLAIN_STARTS = frozenset(stop_words("en"))


class Draft(Struct, frozen=True):
    """A drafted question, with the statement it was made from."""

    question: EvalQuestion
    evidence: str
    source: str


def make_questions(base: KnowledgeBase, count: int) -> list[Draft]:
    """Draft questions about what a knowledge base remembers, the most important first.

    Before them come questions that were judged bad, or had no answer.

    No model is involved: a value in a statement is replaced by a question for it ("... starts on
    which date?"), and for a decision, a preference or anything else the question is about its
    subject.  The owner is to correct them.

    Args:
        base: The knowledge base; its distilled facts and the first sentences of gists are used.
        count: Most questions.
    """
    judged = {draft.question.text: draft for draft in judged_questions(base)}
    found = base.memories.list(Filters(levels=("memory",))).to_pylist()
    rows = [row for row in found if row["type"] != EXCHANGE]
    rows.sort(key=lambda row: (row["type"] == "gist", -row["importance"], row["id"]))
    drafts: dict[str, Draft] = dict(judged)
    of_document: dict[str, int] = {}
    used: set[str] = set()
    for row in rows:
        evidence = row["external_id"] or row["document_id"] or row["id"]
        for sentence in _sentences(row):
            text, category = write_question(sentence, row["type"])
            known = drafts.get(text)
            if row["type"] == "gist" and any(statement in sentence for statement in used):
                continue
            used.add(sentence)
            if text in judged:
                continue
            if known is not None:
                drafts[text] = _with_evidence(known, evidence)
            elif text and of_document.get(evidence, 0) < _MAX_OF_A_DOCUMENT:
                of_document[evidence] = of_document.get(evidence, 0) + 1
                drafts[text] = _draft(row, evidence, sentence, text, category)
    return list(drafts.values())[:count]


def judged_questions(base: KnowledgeBase) -> list[Draft]:
    """Return questions that were judged bad or had no answer, the latest first, each once.

    The evidence of one is the example of what its answer should have been, where there is one;
    otherwise its owner is to name it.
    """
    base.resources.query_log.flush()
    ledger = base.store.ledger
    snapshot = base.resources.seen_snapshot()
    examples: dict[str, tuple[str, str]] = {}
    for each in ledger.feedback.since(None):
        if each.example_id and each.query_id:
            examples.setdefault(each.query_id, (each.example_id, each.example))
    ids = sorted(id_ for id_, _ in examples.values())
    there = set(snapshot.get("memories", ids, ["id"])["id"].to_pylist())
    failed = {each.query_id for each in ledger.query_details.select("status = 'failed'")}
    private = base.settings.private_namespaces
    found: dict[str, Draft] = {}
    for entry in ledger.queries.select("question <> '' AND kind = 'query'", order="id DESC"):
        is_bad = entry.feedback == "bad"
        namespaces = list(entry.filters.get("namespaces") or [])
        if entry.query_id in failed or not (is_bad or not entry.found):
            continue
        if not base.resources.query_log.is_open(entry):
            continue
        if not set(namespaces).isdisjoint(private) or entry.question in found:
            continue
        id_, example = examples.get(entry.query_id, ("", ""))
        question = EvalQuestion(
            id=entry.query_id,
            text=entry.question,
            relevant=(id_,) if id_ in there else (),
            namespace=namespaces[0] if len(namespaces) == 1 else None,
            category="judged bad" if is_bad else "unanswered",
        )
        found[entry.question] = Draft(question, example if question.relevant else "", "feedback")
    return list(found.values())[:_MAX_JUDGED]


_MAX_JUDGED = 25


def _sentences(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield the statements of a memory; of a gist only the first real sentence."""
    text = _LINK.sub(r"\1", row["text"])
    if row["type"] != "gist":
        yield " ".join(_LABEL.sub("", text).split())
        return
    found = (" ".join(text[start:end].split()) for start, end in split_sentences(text))
    fit = (
        s
        for s in found
        if _SHORTEST <= len(s) <= _LONGEST and s[0].isupper() and not _LISTING.search(s)
    )
    if first := next(fit, ""):
        yield first


def write_question(statement: str, type_: str) -> tuple[str, str]:
    """Return a question that a statement answers, and its category; both "" if there is none."""
    said = values(statement)
    if said:
        best = min(said, key=lambda value: value.kind == "quantity")
        return _ask_in_place(statement, best), best.kind
    if type_ == "preference" and (match := _PREFERENCE.match(statement)):
        who = match["who"]
        verb = "do" if who in ("I", "We") else "does"
        about = _about(match["what"], 2)
        subject = f" when it comes to {about}" if about else ""
        return f"What {verb} {who} prefer{subject}?", "preference"
    about = _about(_DECISION.sub("", statement), _MAX_WORDS)
    if not about:
        return "", ""
    if type_ == "decision":
        return f"What was decided about {about}?", "decision"
    return f"What is known about {about}?", "topic"


def _ask_in_place(statement: str, value: Value) -> str:
    """Ask for a value in its place, or at the end where the statement begins with it."""
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


def _about(text: str, limit: int) -> str:
    """Return the words that tell what a text is about, in its order; names are preferred."""
    words = [match.group() for match in _WORD.finditer(text)]
    start = _AT_THE_START.match(text)
    if start and start[1].lower() in _PLAIN_STARTS:
        words = words[1:]
    telling = [w for w in words if w.lower() not in _PLAIN_STARTS and len(w) > 2]
    chosen = sorted(telling, key=lambda w: (not w[0].isupper(), -len(w)))[:limit]
    return " ".join(dict.fromkeys(w for w in telling if w in chosen))


def _draft(row: Mapping[str, Any], evidence: str, sentence: str, text: str, category: str) -> Draft:
    question = EvalQuestion(
        id=row["id"], text=text, relevant=(evidence,), namespace=row["namespace"],
        category=category,
    )  # fmt: skip
    return Draft(question, sentence, row["source"])


def _with_evidence(draft: Draft, evidence: str) -> Draft:
    relevant = tuple(dict.fromkeys((*draft.question.relevant, evidence)))
    return replace(draft, question=replace(draft.question, relevant=relevant))


def drafts_as_lines(drafts: Sequence[Draft]) -> Iterable[dict[str, Any]]:
    """Yield each draft as a line of a question set, with its statement and source."""
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
