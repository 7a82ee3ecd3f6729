"""What goes wrong with snapshots, by who must mend it.

::

    SnapshotError
    ├── SnapshotInputError      the user: a path, an option, a file to build from
    ├── SnapshotDamagedError    the folder is not what its manifest says
    ├── SnapshotVersionError    the folder was made by a later release
    ├── SnapshotBuildError      the machinery of a build: a worker died, the disk is full
    └── Refusal                 a reply to an agent: this query or this page cannot be served
        └── FetchFailed         … because a live fetch was refused or failed

Every message is one line. A refusal is something to read and react to, never a fault of the machinery.
"""

from __future__ import annotations

from enum import Enum


class SnapshotError(Exception):
    """Anything this package raises on purpose."""


class SnapshotInputError(SnapshotError):
    """Something the user gave cannot be used; the message says what to do."""


class SnapshotDamagedError(SnapshotError):
    """A snapshot's bytes are not what its manifest says; build or copy it again."""


class SnapshotVersionError(SnapshotError):
    """A snapshot was written by a later release than this one."""


class SnapshotBuildError(SnapshotError):
    """A build could not go on; what was done so far is kept and a second run resumes."""


class RefusalCode(Enum):
    """Why an agent's call was refused. The value is what the agent reads."""

    INVALID_ARGUMENT = "invalid_argument"
    NOT_FOUND = "not_found"
    """The snapshot holds no such document. Never answered from the network."""
    NOT_RECORDED = "not_recorded"
    """The recording holds no answer to this request at this occurrence."""
    ALLOWANCE_SPENT = "allowance_spent"
    FETCH_FAILED = "fetch_failed"


class Refusal(SnapshotError):
    """A call of an agent that cannot be served."""

    def __init__(self, code: RefusalCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class FetchFailure(Enum):
    """Why a live page could not be had."""

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
    """A live fetch was refused by policy or failed on the way."""

    def __init__(self, failure: FetchFailure, message: str) -> None:
        super().__init__(RefusalCode.FETCH_FAILED, f"{failure.value}: {message}")
        self.failure = failure
        self.reason = message
