"""The harness mode of questions that must not be stored in plain text."""

from __future__ import annotations

from fumehood.core.clock import StoppedClock
from fumehood.core.encryption import encrypt
from fumehood.core.json_values import canonical_json
from fumehood.core.memory_recorder import MemoryRecorder
from fumehood.harness_modes.encrypted import EncryptedQuestions
from tests.parts.specs import episode_spec

CANARY, QUESTION = "canary-4711", "Who built the clock of the lighthouse?"


def test_a_call_that_a_fault_repeats_stores_no_plain_text() -> None:
    state = {"files": {}, "canary": CANARY, "question": encrypt(QUESTION, CANARY)}
    spec = episode_spec({"family": "duplicate_delivery"}, world="files", state=state, calls=9)
    recorder = MemoryRecorder()
    (seat,) = EncryptedQuestions().open_episode(spec, recorder, StoppedClock()).seats
    seat.call("write_file", {"path": "/a.txt", "content": QUESTION})
    (event,) = [event for event in recorder.written() if event["kind"] == "call"]
    assert isinstance(event["delivered"], list)
    assert len(event["delivered"]) == 2
    assert QUESTION not in canonical_json(event)
