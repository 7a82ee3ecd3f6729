"""Errors of this package, by who must fix them.

::

    SnapshotError
    ├── SnapshotInputError      the user: a path, an option, an input file
    ├── SnapshotDamagedError    the files differ from the manifest
    ├── SnapshotVersionError    a later release wrote the folder
    ├── SnapshotBuildError      the build process: a worker died, the disk is full
    └── Refusal                 an answer to an agent: this query or page cannot be served
        └── FetchFailed         a live fetch was refused or failed

Every message is one line. A refusal is an answer that an agent can react to, not a failure of the
infrastructure.
"""

from __future__ import annotations

from enum import Enum


class SnapshotError(Exception):
    """Base class of the errors of this package."""


class SnapshotInputError(SnapshotError):
    """An input of the user cannot be used; the message states the remedy."""


class SnapshotDamagedError(SnapshotError):
    """A snapshot's bytes differ from its manifest; build or copy it again."""


class SnapshotVersionError(SnapshotError):
    """A snapshot was written by a later release than this one."""


class SnapshotBuildError(SnapshotError):
    """A build cannot continue; finished parts are kept, and a second run resumes."""


class RefusalCode(Enum):
    """Reason for a refusal, as the agent reads it."""

    INVALID_ARGUMENT = "invalid_argument"
    NOT_FOUND = "not_found"
    """The snapshot holds no such document; the network is never asked."""
    NOT_RECORDED = "not_recorded"
    """The recording holds no response to this occurrence of the request."""
    BUDGET_TOO_SMALL = "budget_too_small"
    """The remaining budget of bytes is too small for any answer."""
    FETCH_FAILED = "fetch_failed"


class Refusal(SnapshotError):
    """An agent's call cannot be served."""

    def __init__(self, code: RefusalCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class FetchFailure(Enum):
    """Reason why a live fetch failed."""

    BAD_URL = "bad_url"
    HOST_NOT_ALLOWED = "host_not_allowed"
    ADDRESS_NOT_PUBLIC = "address_not_public"
    NAME_NOT_RESOLVED = "name_not_resolved"
    ROBOTS_DISALLOWED = "robots_disallowed"
    TOO_MANY_REDIRECTS = "too_many_redirects"
    TOO_LARGE = "too_large"
    TIMED_OUT = "timed_out"
    CONNECTION_FAILED = "connection_failed"
    BROKEN_RESPONSE = "broken_response"


class FetchFailed(Refusal):
    """A live fetch was refused by the policy, or failed."""

    def __init__(self, failure: FetchFailure, message: str) -> None:
        super().__init__(RefusalCode.FETCH_FAILED, f"{failure.value}: {message}")
        self.failure = failure
        self.reason = message
