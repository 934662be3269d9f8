"""A reranker behind an endpoint, by the ``/rerank`` that Jina, Cohere, vLLM and TEI share."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from memctl.errors import BadReply, RequestRefused
from memctl.models.call_accounting import CallUsage, ModelAccount
from memctl.models.endpoint import Endpoint

MOST_CHARACTERS = 8_000


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
        sent = [text[:MOST_CHARACTERS] for text in texts]
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
