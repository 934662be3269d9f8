"""An OpenAI-compatible endpoint on loopback that answers sensibly and misbehaves on demand."""

from __future__ import annotations

import hashlib
import json
import math
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pytest_httpserver import HTTPServer
from waiting import PATIENCE
from werkzeug import Request, Response

DIMENSION = 32
_DATA = re.compile(r"<data-(\w+)>\n(.*?)\n</data-\1>", re.DOTALL)


@dataclass(frozen=True)
class Said:
    """A reply that is more, or less, than its text."""

    text: str = ""
    finish: str = "stop"
    refusal: str | None = None
    thoughts: str | None = None


Reply = dict[str, Any] | str | Said
Rank = Callable[[str, str], float]
Answerer = Callable[["Asked"], Reply]
Judge = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True)
class Asked:
    """One request: where to, what the body was, and what a chat request says."""

    path: str
    body: dict[str, Any]
    headers: dict[str, str]

    @property
    def shape(self) -> str:
        """The name of the schema that was asked for, "" for plain text."""
        wanted = self.body.get("response_format")
        schema = wanted.get("json_schema", {}) if isinstance(wanted, dict) else {}
        return str(schema.get("name", ""))

    @property
    def instructions(self) -> str:
        return "".join(m["content"] for m in self.body["messages"] if m["role"] == "system")

    @property
    def said(self) -> str:
        """The text of the first message of the user."""
        content = next(m["content"] for m in self.body["messages"] if m["role"] == "user")
        return content if isinstance(content, str) else content[0]["text"]

    @property
    def data(self) -> list[str]:
        """The texts that were given as data."""
        return [text for _, text in _DATA.findall(self.said)]

    @property
    def images(self) -> list[str]:
        content = next(m["content"] for m in self.body["messages"] if m["role"] == "user")
        parts = [] if isinstance(content, str) else content
        return [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]


@dataclass
class Fault:
    """What happens instead of an answer, to requests whose path ends so."""

    status: int = 500
    path: str = ""
    times: int = 1
    headers: dict[str, str] = field(default_factory=dict)
    hang: float = 0.0
    body: str = ""
    after: int = 0
    """So many requests are answered before."""
    cut: bool = False
    """Break off in the middle of a stream."""


class FakeEndpoint:
    """The server.  ``asked`` has every request, ``on`` says what is answered to which schema."""

    def __init__(self, server: HTTPServer) -> None:
        self._server = server
        self._mutex = threading.Lock()
        self._answerers: dict[str, Answerer] = {"ComparisonReply": lambda _: {"verdicts": []}}
        self._faults: list[Fault] = []
        self.asked: list[Asked] = []
        self.at_once = 0
        self.most_at_once = 0
        self.formats = {"json_schema", "json_object", "text"}
        """The response formats that it knows; it answers 400 to others."""
        self.judge: Judge = lambda _: None
        """Gives for the body of a chat request the error that it is answered with, if any."""
        self.dimension = DIMENSION
        self.rank: Rank = shared_words
        """What a text is worth to a question."""
        self.transcript = [(0.0, 1.5, "The ferry leaves at nine"), (1.5, 3.0, "from pier four.")]
        """What is heard in every recording: from, to, words."""
        self.transcript_formats = {"verbose_json", "json"}
        self.delay = 0.0
        self._held_from: int | None = None
        self._goes_on = threading.Event()
        server.expect_request(re.compile("/v1/.*")).respond_with_handler(self._handle)

    @property
    def url(self) -> str:
        return self._server.url_for("/v1")

    def settings(self, **models: str) -> dict[str, str]:
        """The environment variables that make memctl use it: ``settings(understand="m")``."""
        found = {f"MEMCTL_MODELS_{task.upper()}": name for task, name in models.items()}
        return found | {"MEMCTL_ENDPOINT_BASE_URL": self.url, "MEMCTL_ENDPOINT_RETRIES": "0"}

    def on(self, shape: str, answerer: Answerer | Reply) -> None:
        """Answer chat requests for a schema of that name ("" for plain text) so."""
        self._answerers[shape] = answerer if callable(answerer) else lambda _: answerer

    def fail(self, status: int = 500, **how: Any) -> None:
        """Misbehave; ``times=-1`` from now on until :meth:`mend`."""
        self._faults.append(Fault(status, **how))

    def mend(self) -> None:
        """Behave again."""
        self._faults.clear()

    def hold(self, *, after: int) -> None:
        """Answer so many requests more, and the rest only when told to :meth:`go_on`."""
        self._held_from = len(self.asked) + after

    def go_on(self) -> None:
        """Answer those that were held."""
        self._goes_on.set()

    def count(self, path: str = "", shape: str | None = None) -> int:
        """How many requests went to paths that end so, or of these asked for one schema."""
        wanted = [asked for asked in self.asked if shape is None or asked.shape == shape]
        return sum(asked.path.endswith(path) for asked in wanted)

    # --- inside ---

    def _handle(self, request: Request) -> Response:
        with self._mutex:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return self._answer(request)
        finally:
            with self._mutex:
                self.at_once -= 1

    def _answer(self, request: Request) -> Response:
        is_json = (request.content_type or "").startswith("application/json")
        body = request.get_json() if is_json else _form(request)
        asked = Asked(request.path, body, dict(request.headers))
        with self._mutex:
            is_held = self._held_from is not None and len(self.asked) >= self._held_from
            self.asked.append(asked)
            fault = self._next_fault(request.path)
        if is_held:
            self._goes_on.wait(PATIENCE)
        time.sleep(self.delay)
        if fault is not None and not fault.cut:
            time.sleep(fault.hang)
            said = fault.body or json.dumps({"error": {"message": "told to fail"}})
            kind = "application/json"
            return Response(said, fault.status, headers=fault.headers, content_type=kind)
        path = request.path.removeprefix("/v1")
        if path == "/chat/completions":
            return self._chat(asked, cut=fault is not None)
        if path == "/embeddings":
            return _json(self._embeddings(asked))
        if path == "/rerank":
            return _json(_ranking(asked, self.rank))
        if path == "/audio/transcriptions":
            return self._transcription(asked)
        if path == "/models":
            return _json({"object": "list", "data": [{"id": "m", "object": "model"}]})
        return _json({"error": {"message": f"no such path {path}"}}, 404)

    def _next_fault(self, path: str) -> Fault | None:
        for fault in self._faults:
            if path.endswith(fault.path) and fault.after:
                fault.after -= 1
            elif path.endswith(fault.path):
                fault.times -= 1
                if fault.times == 0:
                    self._faults.remove(fault)
                return fault
        return None

    def _chat(self, asked: Asked, *, cut: bool) -> Response:
        wanted = (asked.body.get("response_format") or {"type": "text"})["type"]
        if wanted not in self.formats:
            return _json({"error": {"message": f"response_format {wanted} is not known"}}, 400)
        if (error := self.judge(asked.body)) is not None:
            return _json({"error": error}, 400)
        answerer = self._answerers.get(asked.shape)
        shapes = [each for shape, each in self._answerers.items() if shape != "ComparisonReply"]
        if answerer is None and len(shapes) == 1 and wanted != "json_schema":
            answerer = shapes[0]
        reply: Reply = answerer(asked) if answerer else "fine"
        said = reply if isinstance(reply, Said) else Said(_text(reply))
        text = said.text
        usage = {"prompt_tokens": len(asked.said) // 4, "completion_tokens": len(text) // 4}
        usage["total_tokens"] = sum(usage.values())
        if asked.body.get("stream"):
            return Response(_pieces(said, usage, cut=cut), content_type="text/event-stream")
        message = {"role": "assistant", "content": text or None, "refusal": said.refusal}
        if said.thoughts is not None:
            message["reasoning_content"] = said.thoughts
        choice = {"index": 0, "message": message, "finish_reason": said.finish}
        return _json(
            {
                "id": "c", "object": "chat.completion", "created": 0, "model": "m",
                "choices": [choice], "usage": usage,
            }
        )  # fmt: skip

    def _transcription(self, asked: Asked) -> Response:
        wanted = asked.body["response_format"]
        if wanted not in self.transcript_formats:
            return _json({"error": {"message": f"response_format {wanted} is not known"}}, 400)
        found: dict[str, Any] = {"text": " ".join(words for *_, words in self.transcript)}
        if wanted == "verbose_json":
            segments = [
                {"id": n, "start": start, "end": end, "text": f" {words}"}
                for n, (start, end, words) in enumerate(self.transcript)
            ]
            found |= {"language": "en", "duration": 3.0, "segments": segments}
        return _json(found)

    def _embeddings(self, asked: Asked) -> dict[str, Any]:
        given = asked.body["input"]
        texts = [given] if isinstance(given, str) else given
        rows = [
            {"object": "embedding", "index": n, "embedding": vector(text, self.dimension)}
            for n, text in enumerate(texts)
        ]
        tokens = sum(len(text) // 4 for text in texts)
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return {"object": "list", "model": "e", "data": rows, "usage": usage}


def vector(text: str, dimension: int = DIMENSION) -> list[float]:
    """A bag of hashed words, of length 1: texts that share words are near each other."""
    counts = [0.0] * dimension
    for word in re.findall(r"\w+", text.lower()):
        counts[int(hashlib.sha256(word.encode()).hexdigest(), 16) % dimension] += 1
    norm = math.sqrt(sum(count * count for count in counts)) or 1.0
    return [count / norm for count in counts]


def _form(request: Request) -> dict[str, Any]:
    """The fields of a form, and of its files the bytes."""
    files = {name: file.read() for name, file in request.files.items()}
    return dict(request.form) | files


def shared_words(question: str, text: str) -> float:
    """How many words of the question a text has."""
    words = set(re.findall(r"\w+", question.lower()))
    return float(len(words & set(re.findall(r"\w+", text.lower()))))


def _ranking(asked: Asked, rank: Rank) -> dict[str, Any]:
    texts = asked.body["documents"]
    scores = [rank(asked.body["query"], text) for text in texts]
    order = sorted(range(len(texts)), key=lambda n: -scores[n])[: asked.body.get("top_n")]
    return {"results": [{"index": n, "relevance_score": scores[n]} for n in order]}


def _text(reply: dict[str, Any] | str) -> str:
    return reply if isinstance(reply, str) else json.dumps(reply)


def _pieces(said: Said, usage: dict[str, int], *, cut: bool) -> Iterator[bytes]:
    words = re.findall(r"\S+\s*", said.text)
    for word in words[: len(words) // 2] if cut else words:
        yield _event({"choices": [{"index": 0, "delta": {"content": word}}]})
    if cut:
        raise ConnectionResetError("told to break off")
    last = {"index": 0, "delta": {"refusal": said.refusal}, "finish_reason": said.finish}
    yield _event({"choices": [last]})
    yield _event({"choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


def _event(piece: dict[str, Any]) -> bytes:
    whole = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m"} | piece
    return f"data: {json.dumps(whole)}\n\n".encode()


def _json(body: dict[str, Any], status: int = 200) -> Response:
    return Response(json.dumps(body), status, content_type="application/json")
