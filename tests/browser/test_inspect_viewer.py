"""The log viewer of Inspect shows the samples and scores of an exported run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import BrowserContext, expect

from tests.episodes.exports.test_original_readers import libraries
from tests.parts.commands import fumehood

pytestmark = [pytest.mark.release, pytest.mark.browser]

VIEWER_TIMEOUT_MS = 60_000


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and prints nothing."""

    def log_message(self, *_: object) -> None:
        pass


def test_the_viewer_shows_samples_and_scores(context: BrowserContext, tmp_path: Path) -> None:
    run, logs, bundle = (tmp_path / name for name in ("run", "logs", "bundle"))
    words = ("run", "sample", "-a", "policy_aware", "--sample", "6", "--engine", "process")
    fumehood(*words, "--out", str(run))
    fumehood("export", str(run), "--to", "inspect", "--out", str(logs))
    subprocess.run(
        [
            *(sys.executable, "-m", "inspect_ai", "view", "bundle"),
            *("--log-dir", str(logs), "--output-dir", str(bundle)),
        ],
        env={**os.environ, "PYTHONPATH": str(libraries())},
        check=True,
        capture_output=True,
        timeout=120,
    )
    rows = [json.loads(line) for line in (run / "episodes.jsonl").read_text().splitlines()]
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(bundle))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        page = context.new_page()
        address = f"http://127.0.0.1:{server.server_port}"
        page.goto(f"{address}/#/logs/policy_aware.eval/samples", timeout=VIEWER_TIMEOUT_MS)
        body = page.locator("body")
        for row in rows:
            shown = page.get_by_role("row").filter(has_text=row["task"])
            expect(shown).to_have_count(1, timeout=VIEWER_TIMEOUT_MS)
            value = "C" if row["success"] else "I"
            expect(shown.get_by_text(value, exact=True)).to_have_count(1)
        accuracy = sum(row["success"] for row in rows) / len(rows)
        expect(body).to_contain_text(f"{accuracy:.3f}".rstrip("0").rstrip("."))
        page.screenshot(path=tmp_path / "viewer.png")
        server.shutdown()
    assert (tmp_path / "viewer.png").stat().st_size > 10_000
