"""A web site on loopback, tasks about it, and their runs: live, recorded, replayed and offline."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fumehood.orchestrator.config import RunConfig, run_config
from fumehood.orchestrator.launch import Progress, start_run
from fumehood.orchestrator.rescore import rescore
from fumehood.records.run_reader import RunReader
from fumehood.report.runs import Run, join_run
from fumehood_snapshots.build.options import BuildOptions
from fumehood_snapshots.build.pipeline import build_snapshot
from fumehood_snapshots.sources.recording import RecordingFolder
from tests.unit.snapshots.sites import Site, page

TOPICS: Mapping[str, str] = {
    "owls": "Owls hunt at night and swallow mice whole, as a rule.",
    "cats": "Cats sleep for sixteen hours of every day.",
    "foxes": "Foxes bury what they cannot eat, and forget where.",
}
ANSWERS = {"owls": "at night", "cats": "sixteen hours", "foxes": "bury"}
QUESTIONS = {
    "owls": "When do owls hunt?",
    "cats": "How long do cats sleep?",
    "foxes": "What do foxes do with what they cannot eat?",
}


def article(topic: str, fact: str) -> str:
    """Return the HTML of a page that contains a fact."""
    return (
        f"<html><head><title>About {topic}</title></head><body><article><h1>{topic}</h1>"
        f"<p>{fact} Much else is said of {topic}, "
        "most of it without having looked for long enough.</p>"
        "</article></body></html>"
    )


def publish(site: Site) -> None:
    """Add an index and a page per topic to a site."""
    site.routes.update({f"/{topic}": article(topic, fact) for topic, fact in TOPICS.items()})
    index = [{"url": f"{site.url}/{topic}", "title": QUESTIONS[topic]} for topic in TOPICS]
    site.routes["/index.json"] = page(json.dumps(index), Content_Type="application/json")


def write_tasks(path: Path) -> Path:
    """Write one native task per topic."""
    records = [
        {
            "format": "fumehood.task/1",
            "task_id": topic,
            "world": "search",
            "instruction": f"Answer with ids in brackets. Question: {question}",
            "initial_state": {},
            "budget": {"steps": 9, "calls": 9, "retries": 5},
            "criteria": [{"op": "answer_contains", "value": ANSWERS[topic]}],
            "solvable": True,
            "oracle": [{"submit": ANSWERS[topic]}],
        }
        for topic, question in QUESTIONS.items()
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def config_for(site: Site, tasks: Path, data_mode: str, **changes: Any) -> RunConfig:
    """Return a run of the searcher in one data mode."""
    settings: dict[str, Any] = {"suite": str(tasks), "agents": ("searcher",), "engine": "inline"}
    settings |= {"data_mode": data_mode, "concurrency": 1}
    settings["search"] = {
        "provider": "site-index",
        "url": f"{site.url}/index.json",
        "private": True,
    }
    settings["fetch"] = site.policy().model_dump()
    return run_config({**settings, **changes})


def play(config: RunConfig, out: Path) -> RunReader:
    """Start a run and return its folder."""
    ignored = Progress(lambda *_: None, lambda _: None, lambda _: None)
    return start_run(config, out, ignored)


def joined(folder: RunReader) -> Run:
    """Return a run with its rescored rows."""
    return join_run(folder, rescore(folder))


def seal(recording: Path, out: Path) -> Path:
    """Build a snapshot from a recording."""
    source = RecordingFolder(recording)
    build_snapshot([source], out, BuildOptions(), extra_files=source.replay_files())
    return out


def calls_of(folder: RunReader) -> dict[str, list[Any]]:
    """Return the calls of each episode with their results."""
    return {
        str(row.name): [
            [event["tool"], event["arguments"], event.get("output"), event.get("failure")]
            for event in (json.loads(record.event_json) for record in folder.read_trace(row))
            if event["kind"] == "call"
        ]
        for row in folder.rows()
    }
