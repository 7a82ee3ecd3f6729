"""A native episode over one file, with any fault plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fumehood.core.clock import StoppedClock
from fumehood.core.episode_spec import EpisodeSpec, SeatSpec
from fumehood.core.evidence import Evidence, read_evidence
from fumehood.core.fault_plan import FaultRule
from fumehood.core.ledger import Budget
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.core.tools import Failure, ToolResult, Value
from fumehood.harness_modes.native import Native


class NativeSeat:
    """One open episode; calls go through all its layers."""

    def __init__(self, *faults: Mapping[str, Any]) -> None:
        self._recorder = MemoryRecorder()
        self._episode = Native().open_episode(_spec(faults), self._recorder, StoppedClock())

    def call(self, tool_name: str, **arguments: Any) -> ToolResult:
        return self._episode.seats[0].call(tool_name, arguments).result

    def refused(self, tool_name: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
        """Call, expecting a refusal; return its code and details."""
        result = self.call(tool_name, **arguments)
        assert isinstance(result, Failure), result
        return result.code, dict(result.details)

    def answered(self, tool_name: str, **arguments: Any) -> dict[str, Any]:
        """Call, expecting an answer; return it."""
        result = self.call(tool_name, **arguments)
        assert isinstance(result, Value), result
        return result.output

    def close(self) -> Evidence:
        self._episode.close()
        return read_evidence(self._recorder.written())


def _spec(faults: Sequence[Mapping[str, Any]]) -> EpisodeSpec:
    return EpisodeSpec(
        episode_id="e",
        world="files",
        harness_mode="native",
        initial_state={"files": {"/a.txt": "x"}},
        fault_plan=tuple(
            FaultRule(
                index,
                fault["family"],
                fault.get("trigger", {}),
                "soft",
                fault.get("payload", {}),
            )
            for index, fault in enumerate(faults)
        ),
        seed=1,
        seats=(SeatSpec(instruction="", budget=Budget()),),
    )
