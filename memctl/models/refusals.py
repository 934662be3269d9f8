"""What an endpoint's error answer means: that it is away, set up wrongly, or not for this request.

Servers agree on the status and little else.  OpenAI names a ``param`` and a ``code``, llama.cpp a
``type``; vLLM, Ollama and LM Studio say it in words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from memctl.errors import (
    ModelError,
    ModelRefused,
    ModelUnavailable,
    RequestRefused,
    RequestTooLong,
)

if TYPE_CHECKING:
    from openai import APIStatusError

_TRANSIENT = frozenset({408, 409, 425, 429})
_ABOUT_THE_REQUEST = frozenset({400, 413, 422})
_SHOWN = 200
_LONGEST = 4_000

_HINTS = {
    401: "check the key: api_key_env or api_key_file in [endpoint]",
    402: "its credit is spent",
    403: "the key is not allowed to do this",
    404: "check base_url in [endpoint] and the model's name; memctl models list shows them",
    429: "it is asked too much, or its quota is spent; set concurrency lower or wait",
}
_TOO_LONG = re.compile(
    r"context[ _](length|size|window)|maximum context|too many tokens|prompt is too long"
    r"|input is too long|max_model_len|exceeds? .{0,40}\b(context|n_ctx)\b|string_above_max_length",
    re.IGNORECASE,
)
_WRONG_SETTING = re.compile(
    r"\b(invalid|incorrect|missing|unknown|no such) (model|api.?key)\b|\bapi.?key not valid"
    r"|\bmodel\b.{0,80}\b(not found|does not exist|not exist|is not a valid model)"
    r"|model_not_found|invalid_api_key",
    re.IGNORECASE,
)
_HINTS_BY_WORDS = (
    (
        re.compile(r"content[ _](policy|filter|management)|safety|moderation", re.IGNORECASE),
        "whoever runs the model does not allow that; another model may",
    ),
    (
        re.compile(r"image|picture|vision|multimodal", re.IGNORECASE),
        "it may be a model that sees no pictures: set image of [models] to one that does",
    ),
)
_MAKE_LONGER = "start its server with a longer context, or name a model that takes more at once"


def refusal(url: str, error: APIStatusError, without_key: Callable[[str], str]) -> ModelError:
    """Return what an answer other than 2xx comes to.

    Args:
        url: Who answered.
        error: What the answer was made into.
        without_key: Takes the key out of what was said.
    """
    code = error.status_code
    if error.response.has_redirect_location:
        return _redirected(url, error)
    said = without_key(_said(error.body) or error.message)
    message = f"{url} answered {code}: {said[:_SHOWN]}"
    marks = f"{error.code or ''} {error.type or ''} {said}"
    if (code in _ABOUT_THE_REQUEST or code == 500) and (_TOO_LONG.search(marks) or code == 413):
        return RequestTooLong(message, _MAKE_LONGER, said=said, param=error.param or "")
    if code >= 500 or code in _TRANSIENT:
        return ModelUnavailable(message, _HINTS.get(code, "it may be back later"))
    if code not in _ABOUT_THE_REQUEST:
        return ModelRefused(message, _HINTS.get(code, "memctl models test tries each model"))
    if error.param == "model" or _WRONG_SETTING.search(marks):
        return ModelRefused(message, "check the model's name and the key; memctl models list")
    return RequestRefused(message, _hint(marks), said=said, param=error.param or "")


def _redirected(url: str, error: APIStatusError) -> ModelRefused:
    """What is sent goes to the address that the settings name, and is sent on to no other."""
    to = " ".join(error.response.headers["location"].split())[:_SHOWN]
    message = f"{url} answered {error.status_code}: it has moved to {to}"
    return ModelRefused(message, "where that is right, set base_url in [endpoint] accordingly")


def _hint(marks: str) -> str:
    found = (hint for words, hint in _HINTS_BY_WORDS if words.search(marks))
    return next(found, "memctl models test tries each model with something small")


def _said(body: Any) -> str:
    """What an error's body says, in one line of bounded length."""
    found = body
    if isinstance(body, Mapping):
        found = body.get("message") or body.get("detail") or body.get("error") or ""
    if isinstance(found, (list, Mapping)):
        found = json.dumps(found, ensure_ascii=False, default=str)
    return " ".join(str(found or "").split())[:_LONGEST]
