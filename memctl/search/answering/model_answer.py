"""Model answers: a model writes the answer, and each sentence is checked against what it cites.

The model gets numbered memories and may cite only these.  Other numbers are dropped; a sentence
whose words, numbers or names are not in what it cites is marked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from memctl.language.inline_tags import without_wikilinks
from memctl.language.sentence_splitting import split_sentences
from memctl.language.term_analysis import query_terms
from memctl.prompts import fenced
from memctl.records import Answer, AnswerSentence, Citation
from memctl.search.answering.evidence_context import Excerpt, numbered_excerpts, token_counter
from memctl.search.answering.extractive_answer import NOT_FOUND
from memctl.understanding.evidence_support import Evidence, measure_support

if TYPE_CHECKING:
    from memctl.models.chat_model import ChatModel
    from memctl.prompts import Prompt
    from memctl.search.answering.evidence_sentences import EvidenceSentence
    from memctl.search.answering.search_outcome import SearchOutcome

UNSUPPORTED = "[unsupported]"

_AS_JSON = (
    'Reply with JSON alone: {"not_in_memory": false, "sentences": [{"text": "...", "memories": '
    '[1]}]}, without the numbers in the text. If it is not in memory: {"not_in_memory": true, '
    '"sentences": []}.'
)
_AS_TEXT = (
    "Reply in plain text without headings or lists. Put the numbers before the full stop of each "
    f"sentence, each in brackets of its own: It starts on Monday [1][3]. If it is not in memory, "
    f"reply with nothing but: {NOT_FOUND}"
)
_NUMBERS = re.compile(r"\s*\[\s*(\d{1,4}(?:\s*[,;]\s*\d{1,4})*)\s*\]")
_NUMBERS_AFTER_STOP = re.compile(r"([.!?])((?:\s*\[\s*\d{1,4}(?:\s*[,;]\s*\d{1,4})*\s*\])+)")
_LONGEST_BRACKET = 40
"""Characters; an open bracket with more inside holds no numbers."""
_NOT_FOUND_FACTOR = 0.3
"""Factor of the confidence where the model didn't find the answer in the memories."""


class _DraftSentence(Struct, frozen=True):
    """A sentence as the model wrote it."""

    text: str
    memories: tuple[int, ...]


class ModelAnswerer:
    """Lets a model answer questions.

    Args:
        chat: The model.
        prompt: Its instructions.
        budget: Most tokens of memories that it is given.
    """

    def __init__(self, chat: ChatModel, prompt: Prompt, budget: int) -> None:
        self._chat = chat
        self._prompt = prompt
        self._budget = budget

    @property
    def method(self) -> str:
        """The model and the prompt."""
        return f"model/{self._chat.name}/{self._prompt.id}"

    def answer(
        self,
        outcome: SearchOutcome,
        sentences: Sequence[EvidenceSentence],
        on_token: Callable[[str], None] | None = None,
    ) -> Answer:
        """Return the model's answer, checked.

        Args:
            outcome: What the search found; there must be hits.
            sentences: Its sentences, best first; the best tells how sure an answer can be.
            on_token: Receives the answer piece by piece while the model writes it.

        Raises:
            ModelError: The model failed; with ``on_token``, perhaps after some pieces.
        """
        count = token_counter(outcome.embedder)
        given = numbered_excerpts(outcome.hits, self._budget, count)
        blocks = fenced([item.text for item in given])
        data = f"{blocks}\n\nThe question: {' '.join(outcome.question.text.split())}"
        numbering = _Numbering(given)
        written = self._ask(data) if on_token is None else self._stream(data, numbering, on_token)
        confidence = sentences[0].score if sentences else 0.0
        if not written:
            low = round(_NOT_FOUND_FACTOR * confidence, 3)
            return Answer(NOT_FOUND, found=False, method=self.method, confidence=low)
        checked = [_check_sentence(item, numbering, outcome.languages) for item in written]
        supported = sum(not item.unsupported for item in checked)
        return Answer(
            text=" ".join(map(_with_marks, checked)),
            found=supported > 0,
            method=self.method,
            confidence=round(confidence * supported / len(checked), 3),
            citations=numbering.citations(checked, outcome.languages),
            sentences=tuple(checked),
        )

    def _ask(self, data: str) -> list[_DraftSentence]:
        from memctl.search.answering.reply_schemas import AnswerReply

        instructions = f"{self._prompt.text}\n\n{_AS_JSON}"
        reply = self._chat.ask(instructions, data, AnswerReply, version=self._prompt.id)
        if reply.not_in_memory:
            return []
        return [
            replace(item, memories=(*item.memories, *sentence.memories))
            for sentence in reply.sentences
            for item in _sentences(sentence.text)
        ]

    def _stream(
        self, data: str, numbering: _Numbering, on_token: Callable[[str], None]
    ) -> list[_DraftSentence]:
        instructions = f"{self._prompt.text}\n\n{_AS_TEXT}"
        whole = ""
        pieces = _Renumberer(numbering)
        for piece in self._chat.stream(instructions, data):
            whole += piece
            on_token(pieces.add(piece))
        on_token(pieces.rest())
        return [] if _is_not_found(whole) else _sentences(whole)


def _is_not_found(text: str) -> bool:
    return _NUMBERS.search(text) is None and text.strip().lower().startswith("not in memory")


def _sentences(text: str) -> list[_DraftSentence]:
    """Split a model's text into sentences, and take the cited numbers out of them."""
    moved = _NUMBERS_AFTER_STOP.sub(lambda match: f" {match[2].strip()}{match[1]}", text)
    found = []
    for start, end in split_sentences(moved):
        part = moved[start:end]
        numbers = [int(n) for inside in _NUMBERS.findall(part) for n in re.findall(r"\d+", inside)]
        plain = " ".join(_NUMBERS.sub("", part).split())
        if any(map(str.isalnum, plain)):
            found.append(_DraftSentence(plain, tuple(numbers)))
    return found


def _with_marks(sentence: AnswerSentence) -> str:
    marks = [f"[{number}]" for number in sentence.citations]
    return " ".join([sentence.text, *marks, *([UNSUPPORTED] if sentence.unsupported else [])])


# --- numbers -------------------------------------------------------------------------------------


class _Numbering:
    """Numbers the memories that are cited, in the order of the answer."""

    def __init__(self, given: Sequence[Excerpt]) -> None:
        self._excerpts = {item.number: item for item in given}
        self._numbers: dict[int, int] = {}

    def answer_numbers(self, numbers: Sequence[int]) -> tuple[int, ...]:
        """Return the answer's numbers for those that the model cites, without invented ones."""
        known = [number for number in dict.fromkeys(numbers) if number in self._excerpts]
        return tuple(self._numbers.setdefault(n, len(self._numbers) + 1) for n in known)

    def excerpt(self, number: int) -> Excerpt:
        """Return the memory with a number of the answer."""
        return self._excerpts[list(self._numbers)[number - 1]]

    def citations(
        self, checked: Sequence[AnswerSentence], languages: Sequence[str]
    ) -> tuple[Citation, ...]:
        """Return the citation of each number, narrowed to the sentences cited."""
        return tuple(
            _narrow_quote(
                replace(self.excerpt(shown).citation, number=shown),
                [sentence.text for sentence in checked if shown in sentence.citations],
                languages,
            )
            for shown in range(1, len(self._numbers) + 1)
        )


class _Renumberer:
    """Renumbers the citations in the pieces of a reply.

    An open bracket is held back until it closes, and white space until something follows.
    """

    def __init__(self, numbering: _Numbering) -> None:
        self._numbering = numbering
        self._pending_text = ""

    def add(self, piece: str) -> str:
        """Take the next piece, and return the text that can be shown."""
        text = self._pending_text + piece
        opened = text.rfind("[")
        is_open = opened >= 0 and "]" not in text[opened:] and len(text) - opened < _LONGEST_BRACKET
        ready = (text[:opened] if is_open else text).rstrip()
        self._pending_text = text[len(ready) :]
        return _NUMBERS.sub(self._renumber, ready)

    def rest(self) -> str:
        """Return the text that is still held back."""
        return self._pending_text.rstrip()

    def _renumber(self, match: re.Match[str]) -> str:
        numbers = [int(number) for number in re.findall(r"\d+", match[1])]
        return "".join(f" [{number}]" for number in self._numbering.answer_numbers(numbers))


# --- checks --------------------------------------------------------------------------------------


def _check_sentence(
    written: _DraftSentence, numbering: _Numbering, languages: Sequence[str]
) -> AnswerSentence:
    shown = numbering.answer_numbers(written.memories)
    evidence = [_evidence(numbering.excerpt(number)) for number in shown]
    is_supported = bool(shown) and measure_support(written.text, evidence, languages).is_enough
    return AnswerSentence(without_wikilinks(written.text), shown, unsupported=not is_supported)


def _evidence(item: Excerpt) -> Evidence:
    hit = item.hit
    return Evidence("\n".join([hit.title, hit.heading, item.citation.quote]), hit.created_at)


def _narrow_quote(citation: Citation, claims: Sequence[str], languages: Sequence[str]) -> Citation:
    """Cut the quote to the sentences that the answer rests on, from the first to the last."""
    spans = [span for text in claims for span in _nearest(text, citation.quote, languages)]
    if not spans:
        return citation
    start, end = min(start for start, _ in spans), max(end for _, end in spans)
    quoted = replace(citation, quote=citation.quote[start:end])
    if citation.start is None:
        return quoted
    return replace(quoted, start=citation.start + start, end=citation.start + end)


def _nearest(text: str, quote: str, languages: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the span of the sentence of a quote that shares the most terms with a text."""
    wanted = set(query_terms(text, languages))
    shared = {
        (start, end): len(wanted.intersection(query_terms(quote[start:end], languages)))
        for start, end in split_sentences(quote)
    }
    best = max(shared, key=lambda span: shared[span], default=None)
    if best is not None and shared[best]:
        yield best
