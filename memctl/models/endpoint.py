"""One OpenAI-compatible endpoint: the only place that knows the ``openai`` package.

It turns what can go wrong with a call into our errors, leaves an endpoint that is down alone for
a while, and holds the number of calls at the same time to what was configured.  Retries after
429, 5xx and time-outs, with growing pauses and jitter and as ``Retry-After`` asks, are the
package's own.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from memctl.errors import ModelError, ModelRefused, ModelUnavailable
from memctl.models.breaker import Breaker
from memctl.models.dialect import Manners
from memctl.models.refusals import refusal

if TYPE_CHECKING:
    from openai import APIError, OpenAI

T = TypeVar("T")

_NO_KEY = "none"
"""Local servers ask for no key, but the package will not start without one."""
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_DOWN = "check that it is running and base_url in [endpoint]; memctl models test tries it"


def is_loopback(url: str) -> bool:
    """Say whether an address is on this machine, by its name alone."""
    from urllib.parse import urlsplit

    return urlsplit(url).hostname in {host.strip("[]") for host in _LOOPBACK}


@dataclass(frozen=True, slots=True)
class Connection:
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
        self._breaker = Breaker(monotonic)
        self._places = threading.BoundedSemaphore(connection.concurrency)
        self._manners: defaultdict[str, Manners] = defaultdict(Manners)

    @property
    def base_url(self) -> str:
        """Where it is."""
        return self.connection.base_url

    def manners(self, model: str) -> Manners:
        """Return what has been found out about how a model of it wants to be asked."""
        return self._manners[model]

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
            # What is sent goes to nobody but whom the settings name: a redirect is an error, and
            # a proxy that the environment names has no part in what stays on this machine.
            http_client=DefaultHttpxClient(follow_redirects=False, mounts=direct),
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
                f"{self.base_url} did not answer and is left alone for {left:.0f} s", _DOWN
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
            return refusal(self.base_url, error, self.connection.without_key)
        if isinstance(error, APITimeoutError):
            return ModelUnavailable(
                f"{self.base_url} did not answer within {self.connection.timeout_seconds:g} s",
                "give it longer with timeout_seconds in [endpoint], or check that it is running",
            )
        if isinstance(error, APIConnectionError):
            return ModelUnavailable(f"{self.base_url} cannot be reached: {_cause(error)}", _DOWN)
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
