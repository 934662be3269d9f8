"""One OpenAI-compatible endpoint: the only place that knows the ``openai`` package.

It turns what can go wrong with a call into our errors, leaves an endpoint that is down alone for
a while, and holds the number of calls at the same time to what was configured.  Retries after
429, 5xx and time-outs, with growing pauses and jitter and as ``Retry-After`` asks, are the
package's own.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from memctl.errors import (
    ModelError,
    ModelRefused,
    ModelUnavailable,
    RequestRefused,
    RequestTooLong,
)
from memctl.models.request_format import NegotiatedFormat
from memctl.patterns import lazy_regex

if TYPE_CHECKING:
    from openai import APIError, APIStatusError, OpenAI


T = TypeVar("T")

_NO_KEY = "none"
"""Local servers ask for no key, but the package will not start without one."""
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_DOWN_HINT = "check that it is running and base_url in [endpoint]; memctl models test tries it"


def is_loopback(url: str) -> bool:
    """Return whether an address is on this machine, by its name alone."""
    from urllib.parse import urlsplit

    return urlsplit(url).hostname in {host.strip("[]") for host in _LOOPBACK}


class Connection(Struct, frozen=True):
    """Where an endpoint is and how it is to be called.  The key is never shown."""

    base_url: str
    key: str = ""
    timeout_seconds: float = 120.0
    retries: int = 3
    concurrency: int = 4

    def __repr__(self) -> str:
        return f"Connection({self.base_url!r})"

    def without_key(self, text: str) -> str:
        """Return what an endpoint said without the key, which some of them repeat."""
        return text.replace(self.key, "[key]") if self.key else text


class Endpoint:
    """An endpoint that can be called from several threads.

    Args:
        connection: Where it is.
        monotonic: What measures time.
    """

    def __init__(
        self, connection: Connection, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.connection = connection
        self._breaker = CircuitBreaker(monotonic)
        self._places = threading.BoundedSemaphore(connection.concurrency)
        self._negotiated_formats: defaultdict[str, NegotiatedFormat] = defaultdict(NegotiatedFormat)

    @property
    def base_url(self) -> str:
        """Where it is."""
        return self.connection.base_url

    def negotiated_format(self, model: str) -> NegotiatedFormat:
        """Return what has been found out about how a model of it wants to be asked."""
        return self._negotiated_formats[model]

    def prepare(self) -> None:
        """Make the client, which takes half a second the first time, before a call is timed."""
        _ = self._client

    @cached_property
    def _client(self) -> OpenAI:
        from openai import DefaultHttpxClient, OpenAI

        wanted = self.connection
        direct = {f"all://{host}": None for host in _LOOPBACK}
        return OpenAI(
            api_key=wanted.key or _NO_KEY,
            base_url=wanted.base_url,
            timeout=wanted.timeout_seconds,
            max_retries=wanted.retries,
            # Data goes only to the endpoint that the settings name: a redirect is an error, and
            # a proxy that the environment names has no part in what stays on this machine.
            http_client=DefaultHttpxClient(
                follow_redirects=False,
                mounts=direct,
                # Certificates take longer to load than a local server to answer.
                verify=not (is_loopback(wanted.base_url) and wanted.base_url.startswith("http:")),
            ),
        )

    def call(self, task: Callable[[OpenAI], T]) -> T:
        """Do one call with the client.

        Raises:
            ModelUnavailable: It is down, too busy, or was so a moment ago; it may work later.
            ModelRefused: It will not do that: a wrong key or model.
            RequestRefused: It will not do this one request.
        """
        with self.calling() as client:
            return task(client)

    @contextmanager
    def calling(self) -> Iterator[OpenAI]:
        """Hold one of the places while calls are made; for replies that arrive in pieces.

        Raises:
            ModelUnavailable: As :meth:`call`.
            ModelRefused, RequestRefused: As :meth:`call`.
        """
        left = self._breaker.seconds_left()
        if left:
            raise ModelUnavailable(
                f"{self.base_url} did not answer and is left alone for {left:.0f} s", _DOWN_HINT
            )
        from openai import APIError

        try:
            with self._places:
                yield self._client
        except APIError as error:
            ours = self._ours(error)
            self._judge(ours)
            raise ours from error
        except BaseException:
            self._breaker.succeeded()  # whatever it is, the endpoint was not to blame
            raise
        self._breaker.succeeded()

    def _ours(self, error: APIError) -> ModelError:
        """Return what an error of the package comes to."""
        from openai import (
            APIConnectionError,
            APIResponseValidationError,
            APIStatusError,
            APITimeoutError,
        )

        if isinstance(error, APIStatusError):
            return error_of_response(self.base_url, error, self.connection.without_key)
        if isinstance(error, APITimeoutError):
            return ModelUnavailable(
                f"{self.base_url} did not answer within {self.connection.timeout_seconds:g} s",
                "give it longer with timeout_seconds in [endpoint], or check that it is running",
            )
        if isinstance(error, APIConnectionError):
            return ModelUnavailable(
                f"{self.base_url} cannot be reached: {_cause(error)}", _DOWN_HINT
            )
        if isinstance(error, APIResponseValidationError):
            return ModelRefused(
                f"{self.base_url} answered with something else than the protocol's JSON",
                "check that base_url in [endpoint] ends as the server wants, often with /v1",
            )
        return ModelUnavailable(  # in the middle of a stream; all others are of the kinds above
            f"{self.base_url} broke off: {self.connection.without_key(error.message)}",
            "it may be back later",
        )

    def _judge(self, ours: ModelError) -> None:
        if isinstance(ours, ModelUnavailable):
            self._breaker.failed()
        else:
            self._breaker.succeeded()


def _cause(error: BaseException) -> str:
    root = error
    while root.__cause__ is not None:
        root = root.__cause__
    return " ".join(str(root).split())[:200] or type(root).__name__


FAILURES_TO_OPEN = 3
FIRST_PAUSE_SECONDS = 15.0
LONGEST_PAUSE_SECONDS = 300.0


class CircuitBreaker:
    """Says whether an endpoint may be called, from the result of each call.

    Closed at first; after a few failures in a row open for a pause that doubles each time, then
    one caller may try.  Shared between threads.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._mutex = threading.Lock()
        self._failures = 0
        self._pause = FIRST_PAUSE_SECONDS
        self._open_until = 0.0
        self._trying = False

    def seconds_left(self) -> float:
        """Return for how many seconds it must not be called; 0 when this caller may call now."""
        with self._mutex:
            if self._failures < FAILURES_TO_OPEN:
                return 0.0
            left = self._open_until - self._monotonic()
            if left > 0:
                return left
            if self._trying:  # another caller finds out whether it is back
                return 1.0
            self._trying = True
            return 0.0

    def succeeded(self) -> None:
        """Record that it answered, whatever it said."""
        with self._mutex:
            self._failures, self._pause, self._trying = 0, FIRST_PAUSE_SECONDS, False

    def failed(self) -> None:
        """Record that it could not be reached or could not serve."""
        with self._mutex:
            self._failures += 1
            if self._failures >= FAILURES_TO_OPEN:
                self._open_until = self._monotonic() + self._pause
                if self._trying:
                    self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)
            self._trying = False


_TRANSIENT = frozenset({408, 409, 425, 429})
_REQUEST_ERRORS = frozenset({400, 413, 422})
_MAX_CHARACTERS_SHOWN = 200
_LONGEST = 4_000

_HINTS = {
    401: "check the key: api_key_env or api_key_file in [endpoint]",
    402: "its credit is spent",
    403: "the key is not allowed to do this",
    404: "check base_url in [endpoint] and the model's name; memctl models list shows them",
    429: "it is asked too much, or its quota is spent; set concurrency lower or wait",
}
_TOO_LONG = lazy_regex(
    r"context[ _](length|size|window)|maximum context|too many tokens|prompt is too long"
    r"|input is too long|max_model_len|exceeds? .{0,40}\b(context|n_ctx)\b|string_above_max_length",
    re.IGNORECASE,
)
_WRONG_SETTING = lazy_regex(
    r"\b(invalid|incorrect|missing|unknown|no such) (model|api.?key)\b|\bapi.?key not valid"
    r"|\bmodel\b.{0,80}\b(not found|does not exist|not exist|is not a valid model)"
    r"|model_not_found|invalid_api_key",
    re.IGNORECASE,
)
_HINTS_BY_WORDS = (
    (
        re.compile(r"content[ _](policy|filter|management)|safety|moderation", re.IGNORECASE),
        "the provider of the model does not allow that; another model may",
    ),
    (
        re.compile(r"image|picture|vision|multimodal", re.IGNORECASE),
        "it may be a model that sees no pictures: set image of [models] to one that does",
    ),
)
_CONTEXT_HINT = "start its server with a longer context, or name a model that takes more at once"


def error_of_response(
    url: str, error: APIStatusError, without_key: Callable[[str], str]
) -> ModelError:
    """Return what an answer other than 2xx comes to.

    Args:
        url: Who answered.
        error: What the answer was made into.
        without_key: Takes the key out of what was said.
    """
    code = error.status_code
    if error.response.has_redirect_location:
        return _redirect_error(url, error)
    said = without_key(_error_text(error.body) or error.message)
    message = f"{url} answered {code}: {said[:_MAX_CHARACTERS_SHOWN]}"
    marks = f"{error.code or ''} {error.type or ''} {said}"
    if (code in _REQUEST_ERRORS or code == 500) and (_TOO_LONG.search(marks) or code == 413):
        return RequestTooLong(message, _CONTEXT_HINT, said=said, param=error.param or "")
    if code >= 500 or code in _TRANSIENT:
        return ModelUnavailable(message, _HINTS.get(code, "it may be back later"))
    if code not in _REQUEST_ERRORS:
        return ModelRefused(message, _HINTS.get(code, "memctl models test tries each model"))
    if error.param == "model" or _WRONG_SETTING.search(marks):
        return ModelRefused(message, "check the model's name and the key; memctl models list")
    return RequestRefused(message, _hint(marks), said=said, param=error.param or "")


def _redirect_error(url: str, error: APIStatusError) -> ModelRefused:
    """What is sent goes to the address that the settings name, and is sent on to no other."""
    to = " ".join(error.response.headers["location"].split())[:_MAX_CHARACTERS_SHOWN]
    message = f"{url} answered {error.status_code}: it has moved to {to}"
    return ModelRefused(message, "where that is right, set base_url in [endpoint] accordingly")


def _hint(marks: str) -> str:
    found = (hint for words, hint in _HINTS_BY_WORDS if words.search(marks))
    return next(found, "memctl models test tries each model with something small")


def _error_text(body: Any) -> str:
    """What an error's body says, in one line of bounded length."""
    found = body
    if isinstance(body, Mapping):
        found = body.get("message") or body.get("detail") or body.get("error") or ""
    if isinstance(found, (list, Mapping)):
        found = json.dumps(found, ensure_ascii=False, default=str)
    return " ".join(str(found or "").split())[:_LONGEST]
