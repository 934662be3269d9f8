"""An embedding model and a reranker behind an endpoint; what was paid for once is kept.

Reranking uses the ``/rerank`` that Jina, Cohere, vLLM and TEI share.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from memctl.errors import BadReply, RequestRefused
from memctl.models import ENDPOINT
from memctl.models.call_accounting import CallUsage, ModelAccount
from memctl.models.endpoint import Endpoint
from memctl.models.vector_math import normalize_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

TEXTS_PER_CALL = 64
MOST_CHARACTERS = 24_000
"""Only so much of a text's beginning is sent: models take some 8,000 tokens."""


class RemoteEmbedder:
    """Embeds texts by the endpoint's ``/embeddings``.

    Args:
        endpoint: Where the model is.
        model: Its name there.
        dimension: Length of its vectors.
        account: Keeps vectors and costs.
        kb: The knowledge base, for what to do where they are of another length.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        dimension: int,
        account: ModelAccount,
        kb: str = "NAME",
    ) -> None:
        self._endpoint = endpoint
        self._model = model
        self._dimension = dimension
        self._kb = kb
        self._account = account

    @property
    def id(self) -> str:
        """``endpoint/`` and the model's name; where it runs may change."""
        return f"{ENDPOINT}{self._model}"

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._dimension

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return rows of length 1 (0 for an empty text), shape ``(len(texts), dimension)``.

        Raises:
            ModelUnavailable: The endpoint cannot do it now, or the budget is spent.
            ModelRefused: It will not, as it is configured.
            BadReply: The vectors have another length, or another number than the texts.
        """
        vectors = np.zeros((len(texts), self._dimension), dtype=np.float32)
        wanted = {text: n for n, text in enumerate(texts) if text.strip()}
        with self._account.together():
            known = {text: self._known(text) for text in wanted}
        missing = [text for text, vector in known.items() if vector is None]
        parts = [missing[at : at + TEXTS_PER_CALL] for at in range(0, len(missing), TEXTS_PER_CALL)]
        for part, rows in zip(parts, self._all_embedded(parts), strict=True):
            known |= dict(zip(part, rows, strict=True))
        for n, text in enumerate(texts):
            vector = known.get(text)
            if vector is not None:
                vectors[n] = vector
        return vectors

    def _all_embedded(self, parts: Sequence[Sequence[str]]) -> list[NDArray[np.float32]]:
        """Ask for all parts, several at a time where there are several."""
        if len(parts) < 2:
            return [self._embedded_once(part) for part in parts]
        with ThreadPoolExecutor(self._endpoint.connection.concurrency) as threads:
            return list(threads.map(self._embedded_once, parts))

    def _embedded_once(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Ask, or wait for another process that asks the same now, as one that takes in the same
        files does."""
        with self._account.asking(self._key("\0".join(texts))):
            kept = [self._known(text) for text in texts]
            known = [vector for vector in kept if vector is not None]
            return np.stack(known) if len(known) == len(texts) else self._embedded(texts)

    def _known(self, text: str) -> NDArray[np.float32] | None:
        kept = self._account.known(self._key(text), "embed", self._model)
        if kept is None or len(kept) != 2 * self._dimension:
            return None
        return np.frombuffer(kept, dtype=np.float16).astype(np.float32)

    def _embedded(self, texts: Sequence[str]) -> NDArray[np.float32]:
        sent = [text[:MOST_CHARACTERS] for text in texts]
        with self._account.calling("embed", self._model) as call:
            reply = self._endpoint.call(
                lambda client: client.embeddings.create(
                    model=self._model, input=sent, encoding_format="float"
                )
            )
            call.spent = CallUsage(reply.usage.prompt_tokens if reply.usage else 0)
        ordered = sorted(reply.data, key=lambda item: item.index)
        rows = self._checked([item.embedding for item in ordered], len(texts))
        kept = rows.astype(np.float16)  # given so the first time too: a question finds the same
        with self._account.together():
            for text, row in zip(texts, kept, strict=True):
                self._account.keep(self._key(text), "embed", self._model, row.tobytes())
        return kept.astype(np.float32)

    def _checked(self, found: Sequence[Sequence[float]], count: int) -> NDArray[np.float32]:
        if len(found) != count:
            raise BadReply(f"{self._model} gave {len(found)} vectors for {count} texts")
        lengths = {len(vector) for vector in found}
        if lengths != {self._dimension}:
            raise BadReply(
                f"{self._model} gave vectors of length {sorted(lengths)}, not {self._dimension}",
                "the endpoint has another model under that name; use the one that this was made"
                f" with, or memctl kb reembed {self._kb}",
            )
        rows = np.asarray(found, dtype=np.float32)
        if not np.isfinite(rows).all():
            raise BadReply(f"{self._model} gave vectors with values that are no numbers")
        return normalize_rows(rows)

    def _key(self, text: str) -> str:
        whole = f"embed\0{self._model}\0{text[:MOST_CHARACTERS]}"
        return hashlib.sha256(whole.encode("utf-8", "replace")).hexdigest()


def probe_dimension(endpoint: Endpoint, model: str) -> int:
    """Return the length of a model's vectors, by embedding one word.

    Raises:
        ModelError: As :meth:`RemoteEmbedder.embed`.
    """
    reply = endpoint.call(
        lambda client: client.embeddings.create(
            model=model, input=["dimension"], encoding_format="float"
        )
    )
    if not reply.data or not reply.data[0].embedding:
        raise BadReply(f"{model} gave no vector")
    return len(reply.data[0].embedding)


# --- reranking ------------------------------------------------------------------------------------

MOST_PASSAGE_CHARACTERS = 8_000
"""Only so much of a passage's beginning is sent to a reranker."""


class RemoteReranker:
    """Scores how well texts answer a question.

    Args:
        endpoint: Where the model is.
        model: Its name there.
        account: Keeps scores and costs.
    """

    def __init__(self, endpoint: Endpoint, model: str, account: ModelAccount) -> None:
        self._endpoint = endpoint
        self._model = model
        self._account = account

    @property
    def id(self) -> str:
        """The model's name and where it is."""
        return f"{self._model}@{self._endpoint.base_url}"

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return a score for each text, in their order; higher is better, the scale is its own.

        Raises:
            ModelUnavailable: The endpoint cannot do it now, or the budget is spent.
            ModelRefused: It will not, as it is configured.
            BadReply: What it gave is no ranking of these texts.
        """
        if not texts:
            return []
        sent = [text[:MOST_PASSAGE_CHARACTERS] for text in texts]
        key = _key(self._model, question, sent)

        def asked() -> bytes:
            """Ask."""
            return json.dumps(self._asked(question, sent)).encode()

        scores: list[float] = json.loads(self._account.once(key, "rerank", self._model, asked))
        return scores

    def _asked(self, question: str, texts: Sequence[str]) -> list[float]:
        with self._account.calling("rerank", self._model) as call:
            reply = self._posted(question, texts)
            call.spent = CallUsage(_tokens(reply))
        return _scores(self._model, reply, len(texts))

    def _posted(self, question: str, texts: Sequence[str]) -> Any:
        """The reply to the shape that most servers know, else to that of TEI."""
        common: dict[str, Any] = {"model": self._model, "query": question}
        count = {"top_n": len(texts)}
        try:
            return self._post({**common, "documents": list(texts), **count})
        except RequestRefused as error:
            if "answered 422" not in error.message:
                raise
        return self._post({"query": question, "texts": list(texts)})

    def _post(self, body: dict[str, Any]) -> Any:
        return self._endpoint.call(lambda client: client.post("/rerank", body=body, cast_to=object))


def _scores(model: str, reply: Any, count: int) -> list[float]:
    """The scores in a reply: ``results`` of Jina, Cohere and vLLM, or TEI's bare list."""
    rows: Any = reply.get("results") if isinstance(reply, dict) else reply
    try:
        found = {
            int(row["index"]): float(row.get("relevance_score", row.get("score"))) for row in rows
        }
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise BadReply(f"{model} gave something else than a ranking") from error
    if found.keys() != set(range(count)):
        raise BadReply(f"{model} ranked other texts than the {count} it was given")
    return [found[n] for n in range(count)]


def _tokens(reply: Any) -> int:
    usage = reply.get("usage") if isinstance(reply, dict) else None
    total = usage.get("total_tokens") if isinstance(usage, dict) else None
    return int(total or 0)


def _key(model: str, question: str, texts: Sequence[str]) -> str:
    whole = "\0".join(["rerank", model, question, *texts])
    return hashlib.sha256(whole.encode("utf-8", "replace")).hexdigest()
