"""Decides the end of games with the werewolf environment of a checkout of MARBLE."""

import importlib.util
import os
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from questions import answer


class _Absent(ModuleType):
    """A module of which nothing is used here."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__getattr__": lambda *_: ""})()


for _name in ("names", "yaml", "colorama", "marble.agent.werewolf_agent", "marble.utils.eventbus"):
    sys.modules[_name] = _Absent(_name)
_FILE = Path(os.environ["FUMEHOOD_ORIGINALS"], "MARBLE/marble/environments/werewolf_env.py")
_spec = importlib.util.spec_from_file_location("werewolf_env", _FILE)
_module = importlib.util.module_from_spec(_spec)  # type: ignore[arg-type]
_spec.loader.exec_module(_module)  # type: ignore[union-attr]
_FOLDER = tempfile.TemporaryDirectory()


def verdict_of(question: dict[str, Any]) -> str:
    """Return the winning side and the result score, or "0" while the game goes on."""
    environment = object.__new__(_module.WerewolfEnv)
    environment.config = {}
    environment.scores = {"villager": {"total": 0}, "werewolf": {"total": 0}}
    # The environment renames the folder.
    environment.shared_memory_path = f"{tempfile.mkdtemp(dir=_FOLDER.name)}/shared_memory.json"
    environment._log_system = environment._log_event = lambda *_, **__: None
    players = {name: {"role": role} for name, role in question["roles"].items()}
    environment.shared_memory = {
        "public_state": {"alive_players": question["alive"]},
        "private_state": {"players": players},
    }
    result = environment.should_terminate()
    if not result["terminated"]:
        return "0"
    side = {"Villagers win": "villagers", "Werewolves win": "wolves"}[result["result"]]
    return f"1:{side}:{result['scores']['result_score']}"


if __name__ == "__main__":
    answer(verdict_of)
