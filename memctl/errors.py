"""Every error that memctl raises on purpose, with its exit code and the next step.

This room knows nothing of the others.  An error carries a message (what failed and where) and a
hint (what to do next); the command line prints both and exits with the class's code.

::

    MemctlError                     1
    ├── UsageError                  2   wrong name, wrong value, wrong combination
    │   └── ConfigError             2   a setting that cannot be used
    ├── NotFoundError               1   no such document, memory, snapshot
    ├── VersionConflict             1   another process has written meanwhile
    ├── QuotaExceeded               1   it would take more room than it may
    ├── PartialFailure              3   some inputs failed, the others are done
    ├── NothingFound                4   only with --exit-code
    ├── AccessRefused               1   of another user, or not granted to this agent
    ├── KnowledgeBaseNotFound      10
    ├── KnowledgeBaseUnavailable    1   paused, archived, or made by a newer version
    │   └── DiskRefused             1   the disk is full or read-only, or permission is missing
    ├── LockedError                11   another process is writing
    ├── DamagedError               12   a table or the ledger cannot be read
    ├── CoverageLost                1   a job would have made memories unfindable
    ├── ModelError                  1   a model behind an endpoint did not do what was asked
    │   ├── ModelUnavailable        1   not now: down, too busy, or the day's budget is spent
    │   ├── ModelRefused            1   never, as it is configured: key, model name
    │   ├── RequestRefused          1   not this one request: a picture, what its provider forbids
    │   │   └── RequestTooLong      1   more than the model takes at once, or can reply to
    │   └── BadReply                1   it answered, but not in the shape that was asked for
    └── UnreadableSource            1   a file that cannot be turned into text
        ├── EmptySource             1   nothing in it
        ├── EncryptedSource         1   a password is needed
        ├── MissingReader           1   an extra or a program is needed
        ├── OverLimit           1   it takes more memory, time or text than one file may
        ├── BadRecord               1   a line of JSON lines that is no record
        └── ChangedSource           1   it was written to meanwhile
"""

from __future__ import annotations


class MemctlError(Exception):
    """A failure that the user can understand: one line of message, one line of hint.

    Args:
        message: What failed and where, in one line, without a trailing full stop.
        hint: The next step, in one line; empty when there is none to suggest.
    """

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(MemctlError):
    """The request itself is wrong: a bad name, a bad value, an impossible combination."""

    exit_code = 2


class ConfigError(UsageError):
    """A setting cannot be used: unknown key, wrong type, value out of range."""


class NotFoundError(MemctlError):
    """There is no document, memory or insight with that id."""


class VersionConflict(MemctlError):
    """Another process has written since the version that a change was made for."""


class QuotaExceeded(MemctlError):
    """It would take more room than it may, and nothing may go to make some."""


class PartialFailure(MemctlError):
    """Some inputs failed; everything else is done."""

    exit_code = 3


class NothingFound(MemctlError):
    """Nothing matched; raised only where the user asked for an exit code."""

    exit_code = 4


class AccessRefused(MemctlError):
    """It belongs to another user or agent, is granted to others than the one who asks, or has to
    stay.
    """


class KnowledgeBaseNotFound(MemctlError):
    """There is no knowledge base with that name on this disk."""

    exit_code = 10


class KnowledgeBaseUnavailable(MemctlError):
    """The knowledge base exists but cannot serve this: paused, archived, from a newer version."""


class DiskRefused(KnowledgeBaseUnavailable):
    """The disk is full or read-only, or permission is missing: it may do later what it does not."""


class LockedError(MemctlError):
    """Another process holds the write lock and did not release it in time."""

    exit_code = 11


class DamagedError(MemctlError):
    """A table, a manifest or the ledger cannot be read."""

    exit_code = 12


class CoverageLost(MemctlError):
    """A job would have made memories unfindable; all that it had written was rolled back."""


class ModelError(MemctlError):
    """A model behind an endpoint did not do what was asked."""


class ModelUnavailable(ModelError):
    """The model cannot be had now and may be later: what needs it can wait."""


class ModelRefused(ModelError):
    """The endpoint will not do it however often it is asked: the settings are wrong."""


class RequestRefused(ModelError):
    """The endpoint or its model will not do this one request; others it may do.

    Args:
        message: As for every error.
        hint: As for every error.
        said: All that the endpoint said about it.
        param: The part of the request that it names, where it names one.
    """

    def __init__(self, message: str, hint: str = "", *, said: str = "", param: str = "") -> None:
        super().__init__(message, hint)
        self.said = said
        self.param = param


class RequestTooLong(RequestRefused):
    """The prompt, or the reply that was asked for, is longer than the model allows."""


class BadReply(ModelError):
    """The model's reply is not in the shape that was asked for, after a second try."""


class UnreadableSource(MemctlError):
    """A source cannot be turned into text: damaged, of an unknown type, not what it claims."""


class EmptySource(UnreadableSource):
    """A source holds nothing to remember."""


class EncryptedSource(UnreadableSource):
    """A source needs a password."""


class MissingReader(UnreadableSource):
    """A source can be read only with an optional package or program that is not there."""


class OverLimit(UnreadableSource):
    """Reading a source takes more memory or time, or gives more text, than the limits allow."""


class BadRecord(UnreadableSource):
    """A line of JSON lines is not a record: it is not JSON, or a field cannot be used."""


class ChangedSource(UnreadableSource):
    """A source was written to while it was being read, or since it was remembered."""
