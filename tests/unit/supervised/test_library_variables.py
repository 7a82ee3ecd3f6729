"""The environment variables for libraries in processes that fork."""

from __future__ import annotations

import os
import subprocess
import sys

from fumehood.supervised.fork_server import LIBRARY_VARIABLES

USE_GRPC = "import grpc; grpc.insecure_channel('unix:/none').close()"


def test_the_installed_grpc_knows_its_experiments() -> None:
    """It prints a line about each one that it does not know, and ignores the setting."""
    done = subprocess.run(
        [sys.executable, "-c", USE_GRPC],
        env={**os.environ, **LIBRARY_VARIABLES},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""


def test_grpc_names_an_experiment_that_it_does_not_know() -> None:
    done = subprocess.run(
        [sys.executable, "-c", USE_GRPC],
        env={**os.environ, "GRPC_EXPERIMENTS": "-no_such_experiment"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "no_such_experiment" in done.stderr
