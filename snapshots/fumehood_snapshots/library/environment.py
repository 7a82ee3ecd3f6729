"""Builds the library of an episode from the settings of its data mode."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from fumehood_snapshots.documents.urls import DEFAULT_PORTS
from fumehood_snapshots.errors import SnapshotInputError
from fumehood_snapshots.format import layout
from fumehood_snapshots.library.library import Library, LiveLibrary, SealedLibrary
from fumehood_snapshots.library.settings import EnvironmentConfig, SearchConfig
from fumehood_snapshots.snapshot import open_snapshot
from fumehood_snapshots.web.addresses import Resolver, system_resolver
from fumehood_snapshots.web.fetcher import Fetcher, LiveFetcher
from fumehood_snapshots.web.policy import FetchPolicy
from fumehood_snapshots.web.providers import SearchProvider, SearxngProvider, SiteIndexProvider
from fumehood_snapshots.web.recording import (
    REQUESTS,
    Purpose,
    Recorder,
    Recording,
    RecordingFetcher,
    ReplayingFetcher,
)

SHARES = 16
"""An episode may take this part of the space for a recording."""


def open_library(
    config: EnvironmentConfig,
    session: str,
    *,
    fetchers: Mapping[Purpose, Fetcher] | None = None,
) -> Library:
    """Return the library for one episode.

    Args:
        config: settings of the data mode.
        session: name of the episode; recordings separate the requests of sessions.
        fetchers: fetch for ``live`` and ``record``; None to fetch in this process.

    Raises:
        SnapshotError: the snapshot or the recording cannot be used.
    """
    if config.data_mode == "offline":
        assert config.snapshot is not None
        return SealedLibrary(open_snapshot(config.snapshot), config.snippet_chars)
    if config.data_mode == "replay":
        replaying = ReplayingFetcher(Recording(_recording_folder(config)), session)
        return LiveLibrary(replaying, _provider(config.search, replaying), config.extractor)
    fetchers = fetchers or open_fetchers(config, session)
    searching = _provider(config.search, fetchers["search"])
    return LiveLibrary(fetchers["page"], searching, config.extractor)


def open_fetchers(
    config: EnvironmentConfig, session: str, *, resolve: Resolver = system_resolver
) -> dict[Purpose, Fetcher]:
    """Return what fetches pages and searches of one episode, for ``live`` and ``record``.

    Args:
        config: settings of the data mode.
        session: name of the episode.
        resolve: resolves names.
    """
    recorder = None
    if config.data_mode == "record":
        assert config.recording is not None
        bytes_max = config.recording_mb << 20
        recorder = Recorder(config.recording, bytes_max // SHARES, bytes_max)
    assert config.fetch is not None
    return {
        "page": _fetcher(config.fetch, recorder, session, "page", resolve),
        "search": _fetcher(_search_policy(config), recorder, session, "search", resolve),
    }


def _recording_folder(config: EnvironmentConfig) -> Path:
    if config.recording is not None:
        return config.recording
    assert config.snapshot is not None
    folder = config.snapshot / layout.RECORDED
    if not (folder / REQUESTS).is_file():
        raise SnapshotInputError(
            f"{config.snapshot} was not built from a recording, so nothing can be replayed"
        )
    return folder


def _fetcher(
    policy: FetchPolicy,
    recorder: Recorder | None,
    session: str,
    purpose: Purpose,
    resolve: Resolver,
) -> Fetcher:
    if recorder is None:
        return LiveFetcher(policy, resolve=resolve)
    return RecordingFetcher(
        LiveFetcher(policy, resolve=resolve, observe=recorder.keep), recorder, session, purpose
    )


def _search_policy(config: EnvironmentConfig) -> FetchPolicy:
    """Return a policy that allows only the provider."""
    assert config.fetch is not None
    if config.search is None:
        return config.fetch
    parts = urlsplit(config.search.url)
    host = parts.hostname or ""
    port = parts.port
    name = host if port in {None, DEFAULT_PORTS.get(parts.scheme)} else f"{host}:{port}"
    private = (name,) if config.search.private else ()
    # The robots.txt of a search engine does not address its API users.
    changes = {"hosts": (name,), "private_hosts": private, "obey_robots": False}
    return config.fetch.model_copy(update=changes)


def _provider(search: SearchConfig | None, fetcher: Fetcher) -> SearchProvider | None:
    if search is None:
        return None
    if search.provider == "searxng":
        return SearxngProvider(search.url, fetcher)
    return SiteIndexProvider(search.url, fetcher)
