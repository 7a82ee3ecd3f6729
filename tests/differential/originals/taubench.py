"""Scores trajectories with a checkout of tau-bench: its environment executes the actions."""

import os
import pickle
import sys
from functools import cache
from hashlib import sha256
from types import ModuleType
from typing import Any

from questions import answer, digits

_models = ModuleType("litellm")
vars(_models).update(completion=None, provider_list=[])
sys.modules[_models.__name__] = _models
sys.path.insert(0, f"{os.environ['FUMEHOOD_ORIGINALS']}/tau-bench")

import tau_bench.envs.base  # noqa: E402
from tau_bench.envs.airline.env import MockAirlineDomainEnv  # noqa: E402
from tau_bench.envs.retail.env import MockRetailDomainEnv  # noqa: E402
from tau_bench.types import Action  # noqa: E402


class _User:
    """A user who says the texts of a trajectory."""

    texts: list[str]

    def reset(self, instruction: object = None) -> str:
        return self.texts.pop(0)

    def step(self, content: str) -> str:
        return self.texts.pop(0) if self.texts else ""

    def get_total_cost(self) -> float:
        return 0


tau_bench.envs.base.load_user = lambda **_: _User()
_hash = tau_bench.envs.base.Env.get_data_hash
_hashes: dict[bytes, str] = {}


def _cached_hash(environment: Any) -> str:
    """Return the original's hash of the data, which takes most of the time, once for equal data."""
    key = sha256(pickle.dumps(environment.data)).digest()
    if key not in _hashes:
        _hashes[key] = _hash(environment)
    return _hashes[key]


tau_bench.envs.base.Env.get_data_hash = _cached_hash


@cache
def _environment(domain: str) -> Any:
    _User.texts = [""]
    kind = {"airline": MockAirlineDomainEnv, "retail": MockRetailDomainEnv}[domain]
    environment = kind(user_strategy="", user_model="", task_split="test", task_index=0)
    # The same data without reading the files again.
    stored = pickle.dumps(environment.data_load_func())
    environment.data_load_func = lambda: pickle.loads(stored)
    return environment


def verdict_of(question: dict[str, Any]) -> str:
    """Return whether the reward is 1. A conversation that does not end has no reward."""
    domain, _, number = question["task"].split("_")
    environment = _environment(domain)
    texts = [move["submit"] for move in question["moves"] if move.get("seat") == "user"]
    environment.user.texts = texts
    environment.reset(int(number))
    for move in question["moves"]:
        if move.get("seat") == "user":
            continue
        action = (move["tool_name"], move["args"]) if "tool_name" in move else None
        name, arguments = action or ("respond", {"content": move["submit"]})
        response = environment.step(Action(name=name, kwargs=arguments))
        if response.done:
            return digits(response.reward == 1)
    return "0"


if __name__ == "__main__":
    answer(verdict_of)
