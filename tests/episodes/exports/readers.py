"""Reads an export with the original reader of its format, and prints what it contains as JSON.

Runs in a separate process, whose libraries are those of the readers.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from base64 import b64encode
from pathlib import Path
from types import ModuleType
from typing import Any


def inspect(folder: Path) -> Any:
    from inspect_ai.log import read_eval_log, read_eval_log_sample_summaries

    logs = {}
    for path in sorted(folder.glob("*.eval")):
        log = read_eval_log(str(path))
        (score,) = log.results.scores
        logs[path.stem] = {
            "status": log.status,
            "scored": score.scored_samples,
            "unscored": score.unscored_samples,
            "accuracy": score.metrics["accuracy"].value,
            "summaries": len(read_eval_log_sample_summaries(str(path))),
            "samples": [
                {
                    "id": sample.id,
                    "epoch": sample.epoch,
                    "value": sample.scores["fumehood"].value if sample.scores else None,
                    "limit": sample.limit.type if sample.limit else None,
                    "error": sample.error.message if sample.error else None,
                    "roles": [message.role for message in sample.messages],
                    "events": [event.event for event in sample.events],
                    "tokens": sum(use.total_tokens for use in sample.model_usage.values()),
                }
                for sample in log.samples
            ],
        }
    return logs


def write_logs(folder: Path) -> Any:
    """Let Inspect evaluate a scripted model, and write a log in each of its formats."""
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import includes
    from inspect_ai.solver import generate, use_tools
    from inspect_ai.tool import tool

    @tool
    def add() -> Any:
        async def execute(x: int, y: int) -> int:
            """Add two numbers.

            Args:
                x: the first
                y: the second
            """
            return x + y

        return execute

    name = "mockllm/model"
    for log_format in ("eval", "json"):
        outputs = [
            ModelOutput.for_tool_call(name, "add", {"x": 1, "y": 1}),
            ModelOutput.from_content(name, "2"),
            ModelOutput.for_tool_call(name, "add", {"x": "no"}),
            ModelOutput.for_tool_call(name, "subtract", {}),
            ModelOutput.from_content(name, "unknown"),
        ]
        for output in outputs:
            output.usage = ModelUsage(input_tokens=10, output_tokens=3, total_tokens=13)
        eval(
            Task(
                name="sums",
                dataset=[
                    Sample(id="a/b", input="1 + 1?", target="2"),
                    Sample(id=2, input="1 + 2?", target="3"),
                ],
                solver=[use_tools(add()), generate()],
                scorer=includes(),
            ),
            model=get_model(name, custom_outputs=outputs),
            log_dir=str(folder),
            log_format=log_format,
            max_samples=1,
            display="none",
        )
    return sorted(path.name for path in folder.iterdir())


def _allow_models_of_harbor() -> None:
    """Make the models of Harbor importable; Harbor itself needs Python 3.12."""
    spec = importlib.util.find_spec("harbor")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    (root,) = spec.submodule_search_locations
    for name in ("harbor", "harbor.models", "harbor.models.trial"):
        place = f"{root}{name.removeprefix('harbor').replace('.', '/')}"
        package = ModuleType(name)
        package.__path__ = [place]
        sys.modules[name] = package


def atif(folder: Path) -> Any:
    _allow_models_of_harbor()
    from harbor.models.trajectories import Trajectory

    read = {}
    for path in sorted(folder.rglob("*.json")):
        trajectory = Trajectory.model_validate(json.loads(path.read_text()))
        others = trajectory.subagent_trajectories or []
        read[str(path.relative_to(folder))] = {
            "steps": len(trajectory.steps),
            "calls": sum(len(step.tool_calls or []) for step in trajectory.steps),
            "embedded": len(others),
            "tokens": trajectory.final_metrics.total_prompt_tokens,
        }
    return read


def harbor(folder: Path) -> Any:
    import typing

    import typing_extensions

    # The models are for Python 3.12.
    typing.TypedDict = typing_extensions.TypedDict
    typing.override = typing_extensions.override
    _allow_models_of_harbor()
    from harbor.models.trajectories import Trajectory
    from harbor.models.trial.result import TrialResult

    for path in folder.glob("*/agent/trajectory.json"):
        Trajectory.model_validate(json.loads(path.read_text()))
    results = {}
    for path in folder.glob("*/result.json"):
        trial = TrialResult.model_validate_json(path.read_text())
        results[path.parent.name] = {
            "agent": trial.agent_info.name,
            "task": trial.task_name,
            "rewards": trial.verifier_result.rewards if trial.verifier_result else None,
            "steps": [
                (step.step_name, step.verifier_result.rewards) for step in trial.step_results or []
            ],
            "exception": trial.exception_info.exception_type if trial.exception_info else None,
            "tokens": trial.compute_token_cost_totals()[0],
        }
    return results


def otel(folder: Path) -> Any:
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    def requests(name: str, kind: Any) -> Any:
        for line in (folder / name).read_text().splitlines():
            yield ParseDict(_with_base64(json.loads(line)), kind())

    spans = [
        span
        for request in requests("traces.jsonl", ExportTraceServiceRequest)
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    records = [
        record
        for request in requests("logs.jsonl", ExportLogsServiceRequest)
        for resource in request.resource_logs
        for scope in resource.scope_logs
        for record in scope.log_records
    ]
    roots = {span.span_id: span.trace_id for span in spans if not span.parent_span_id}
    children = [span for span in spans if span.parent_span_id]
    return {
        "lengths": sorted({(len(span.trace_id), len(span.span_id)) for span in spans}),
        "names": sorted({span.name.split(" ")[0] for span in spans}),
        "roots": len(roots),
        "children": len(children),
        "strays": sum(span.parent_span_id not in roots for span in children),
        "reversed": sum(span.end_time_unix_nano < span.start_time_unix_nano for span in spans),
        "events": sorted({record.event_name for record in records}),
        "judged": len({record.span_id for record in records}),
        "judged strays": sum(roots.get(each.span_id) != each.trace_id for each in records),
    }


def _with_base64(value: Any) -> Any:
    """Return JSON whose identifiers are base64, which the library expects, instead of hex."""
    if isinstance(value, list):
        return list(map(_with_base64, value))
    if not isinstance(value, dict):
        return value
    return {
        name: b64encode(bytes.fromhex(inner)).decode()
        if name in ("traceId", "spanId", "parentSpanId")
        else _with_base64(inner)
        for name, inner in value.items()
    }


def sarif(folder: Path) -> Any:
    from sarif import loader

    report = loader.load_sarif_file(str(folder / "safety.sarif"))
    return [
        {"rule": record["Code"], "severity": record["Severity"], "line": record["Line"]}
        for record in report.get_records()
    ]


def sarif_schema(folder: Path) -> Any:
    from jsonschema import Draft4Validator

    validator = Draft4Validator(json.loads((folder / "schema.json").read_text()))
    report = json.loads((folder / "safety.sarif").read_text())
    of_another_version = validator.iter_errors({**report, "version": "2.0"})
    return {
        "errors": [error.message for error in validator.iter_errors(report)],
        "of another version": len(list(of_another_version)),
    }


def junit(folder: Path) -> Any:
    from junitparser import JUnitXml

    results = JUnitXml.fromfile(str(folder / "junit.xml"))
    return [
        {
            "suite": suite.name,
            "tests": suite.tests,
            "failures": suite.failures,
            "errors": suite.errors,
            "skipped": suite.skipped,
            "cases": len(list(suite)),
        }
        for suite in results
    ]


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](Path(sys.argv[2]))))
