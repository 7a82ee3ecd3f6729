"""``fumehood snapshot record``: fetches pages into a recording."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from fumehood_snapshots.cli.showing import json_option, plain, print_json
from fumehood_snapshots.errors import SnapshotInputError
from fumehood_snapshots.web.crawl import CrawlLimits, crawl
from fumehood_snapshots.web.fetcher import LiveFetcher
from fumehood_snapshots.web.policy import FetchPolicy
from fumehood_snapshots.web.recording import Recorder, RecordingFetcher

SESSION = "record"


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("urls", nargs=-1)
@click.option("--urls-from", type=click.Path(path_type=Path), help="A file with one URL per line.")
@click.option(
    "--allow", "hosts", multiple=True, required=True, help="An allowed host, *.host or host:port."
)
@click.option(
    "--allow-private",
    "private_hosts",
    multiple=True,
    help="A host, *.host or host:port that may have a private address.",
)
@click.option(
    "--depth",
    type=click.IntRange(0, 20),
    default=0,
    show_default=True,
    help="Number of links to follow in a row from each URL.",
)
@click.option(
    "--pages-max",
    type=click.IntRange(1),
    default=1000,
    show_default=True,
    help="Largest number of pages to fetch.",
)
@click.option(
    "--pause",
    type=click.FloatRange(0, 60),
    default=0.5,
    show_default=True,
    help="Pause between two requests, seconds.",
)
@click.option(
    "--ignore-robots",
    is_flag=True,
    help="Ignore robots.txt; requires the consent of the site owners.",
)
@json_option
def record(
    out: Path,
    urls: Sequence[str],
    urls_from: Path | None,
    hosts: Sequence[str],
    private_hosts: Sequence[str],
    depth: int,
    pages_max: int,
    pause: float,
    ignore_robots: bool,
    as_json: bool,
) -> None:
    """Fetch URLS and linked pages into the recording OUT.

    Only allowed hosts are contacted, robots.txt is obeyed, private addresses are refused. Build a
    snapshot from the recording with `snapshot build --recording OUT`.
    """
    seeds = [*urls, *(_lines(urls_from) if urls_from else [])]
    if not seeds:
        raise SnapshotInputError("no URL to record; give URLs, or a file with --urls-from")
    if "*" in private_hosts:
        raise SnapshotInputError("--allow-private must name hosts; * opens the whole local network")
    policy = FetchPolicy(
        hosts=tuple(hosts), private_hosts=tuple(private_hosts), obey_robots=not ignore_robots
    )
    recorder = Recorder(out)
    fetcher = RecordingFetcher(
        LiveFetcher(policy, observe=recorder.keep), recorder, SESSION, "page"
    )
    kept = lost = 0
    for visit in crawl(fetcher, seeds, CrawlLimits(depth, pages_max, pause)):
        if visit.capture is not None:
            kept += 1
            click.echo(plain(f"{visit.url}: {visit.capture.status}"), err=True)
        else:
            lost += 1
            click.echo(plain(f"{visit.url}: {visit.failure}"), err=True)
    if as_json:
        print_json({"path": str(out), "recorded": kept, "failed": lost})
    else:
        click.echo(plain(f"{out}: {kept} pages recorded, {lost} failed"))
    if not kept:
        raise SnapshotInputError("no page was recorded; the lines above name the reasons")


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        raise SnapshotInputError(f"{path}: no such file")
    return [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
