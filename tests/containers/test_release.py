"""`make release-check`: equal bytes, known licences, and an SBOM with all digests."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fumehood.version import __version__
from tests.architecture.project import ROOT
from tests.parts.installed import installed
from tests.parts.npm import require_npm

pytestmark = pytest.mark.release


def test_a_release_is_complete(tmp_path: Path) -> None:
    installed("cyclonedx", "hatchling", "jsonschema", "mkdocs", "twine")
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    require_npm()
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "release-check", tmp_path / "release"],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    names = {path.name for path in (tmp_path / "release").iterdir()}
    assert names == {
        f"fumehood-{__version__}-py3-none-any.whl",
        f"fumehood-{__version__}.tar.gz",
        f"fumehood-sdk-{__version__}.tgz",
        f"fumehood_sdk-{__version__}-py3-none-any.whl",
        f"fumehood_sdk-{__version__}.tar.gz",
        "licences.md",
        "sbom.json",
        "site",
    }
    text = (tmp_path / "release" / "sbom.json").read_text(encoding="utf-8")
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    sbom = json.loads(text)
    assert (sbom["bomFormat"], sbom["specVersion"]) == ("CycloneDX", "1.6")
    assert sbom["metadata"]["component"]["version"] == __version__
    packages = {part["name"]: part for part in sbom["components"]}
    assert {"grpcio", "pydantic"} <= set(packages)
    assert [name for name, part in packages.items() if not part.get("hashes")] == []
