"""BFCL's memory with embeddings.

Initial state: ``memory`` as in ``bfcl_memory``, and optionally ``embeddings``: the ``folder`` of a
sentence-transformers model and the ``sha256`` of its weights. A separate process reads the model
and embeds the texts of agents. Without a model, texts are embedded by the hashes of their words.
"""

from __future__ import annotations

from typing import Any

from fumehood.benchmarks.bfcl.package import class_documents
from fumehood.benchmarks.bfcl.world_memory import EMPTY, BfclMemory, open_memory
from fumehood.core.errors import InfraError, SpecError
from fumehood.core.json_values import Json, JsonObject
from fumehood.core.tools import Failure, FailureKind, ToolCall, ToolResult
from fumehood.third_party.process import NO_ANSWER, checker

NAME = "MemoryAPI_vector"
CHECKER = "bfcl_embeddings"
"""Embeds with a model."""


def preload() -> None:
    """Import the memory while this process can still read Python's files."""
    open_memory(NAME, EMPTY[NAME])
    class_documents(NAME)


class BfclVector(BfclMemory):
    """A world that consists of one memory with embeddings."""

    toolset_id = "bfcl_v4_vector_memory"

    @staticmethod
    def _create_objects(state: JsonObject) -> dict[str, Any]:
        memory = state.get("memory")
        if not isinstance(memory, dict) or set(memory) != {NAME}:
            raise SpecError("initial_state.memory", f"must have one key, {NAME}")
        embed = None
        match state.get("embeddings"):
            case {"folder": str(folder), "sha256": str(digest)}:
                embed = _Model(folder, digest)
            case None:
                pass
            case _:
                raise SpecError("initial_state.embeddings", "must have folder and sha256")
        try:
            return {NAME: open_memory(NAME, memory[NAME], embed)}
        except InfraError as error:
            raise SpecError(
                "initial_state.embeddings", f"must be a model that all users can read: {error}"
            ) from None

    @property
    def state(self) -> JsonObject:
        """The texts by number, as BFCL writes them to a file."""
        memory = self._objects[NAME]
        return {NAME: {name: _content(getattr(memory, name)) for name in EMPTY[NAME]}}

    def call(self, call: ToolCall) -> ToolResult:
        """Call the method; without an answer of the model, the call fails."""
        result = super().call(call)
        model = vars(self._objects[NAME].core_memory).get("_embed")
        if model is None or model.error is None:
            return result
        error, model.error = model.error, None
        return Failure(FailureKind.WORLD, NO_ANSWER, str(error))


def _content(store: Any) -> JsonObject:
    exported = store.export()
    texts: JsonObject = {str(number): text for number, text in exported["store"].items()}
    return {"next_id": exported["next_id"], "store": texts}


class _Model:
    """Embeds texts in the process with the model. The simulator hides exceptions."""

    def __init__(self, folder: str, digest: str) -> None:
        self.error: InfraError | None = None
        self._where: JsonObject = {"folder": folder, "sha256": digest}

    def __call__(self, texts: Any) -> Any:
        """Return one vector for each text. One question has one text, so that none takes long."""
        import numpy as np

        vectors: list[Json] = []
        for text in texts if isinstance(texts, list) else [texts]:
            if not isinstance(text, str):
                raise TypeError("only text can be embedded")
            try:
                vectors.append(checker(CHECKER).ask({**self._where, "text": text})["vector"])
            except InfraError as error:
                self.error = error
                raise
        return np.asarray(vectors, dtype=np.float32)
