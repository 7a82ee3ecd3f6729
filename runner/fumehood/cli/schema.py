"""``fumehood schema``."""

from __future__ import annotations

import click

from fumehood.benchmarks.native.records import record_schema
from fumehood.benchmarks.native.suite_file import suite_schema
from fumehood.cli.output import print_json
from fumehood.orchestrator.added_faults import fault_schema
from fumehood.orchestrator.config import RunConfig
from fumehood.orchestrator.experiment import ExperimentConfig
from fumehood.orchestrator.policy import PolicyFile


@click.command()
@click.argument(
    "what", type=click.Choice(["run", "experiment", "suite", "task", "faults", "policy"])
)
def schema(what: str) -> None:
    """Print the JSON Schema of a file format.

    `run` is the file of `fumehood run --config`, `experiment` is the file of `fumehood experiment`,
    `suite` is a YAML suite, `task` is one line of a task file, `faults` is the
    file of `fumehood run --faults`, `policy` that of `fumehood verdict --policy`.

    \b
    Example:
      fumehood schema run > run_config.schema.json
    """
    schemas = {
        "run": RunConfig.model_json_schema,
        "experiment": ExperimentConfig.model_json_schema,
        "suite": suite_schema,
        "task": record_schema,
        "faults": fault_schema,
        "policy": PolicyFile.model_json_schema,
    }
    print_json(schemas[what]())
