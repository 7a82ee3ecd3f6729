"""Compares each simulator with a small model of it, for any calls in any order."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fumehood.core.json_values import copy_object
from fumehood.core.tools import Failure, ToolCall, Value, World
from fumehood.worlds.crud import Crud
from fumehood.worlds.files import Files
from fumehood.worlds.retrieval import Retrieval
from fumehood.worlds.scheduling import Scheduling

NAMES = st.sampled_from(["a", "b", "c", "acct_1", "acct_2"])
WORDS = st.sampled_from(["x", "y", "yes", "X y", ""])
FIELDS = st.dictionaries(st.sampled_from(["tier", "note", "status"]), WORDS, max_size=2)
PATHS = st.sampled_from(["/", "/a", "/a/b", "/a/b/c", "/ab", "a", "/a/"])
CRONS = st.sampled_from(["* * * * *", "0 59 7 * 12", "60 * * * *", "* * * *", "a * * * *"])

_bounded = settings(max_examples=30, stateful_step_count=15, deadline=None)


class _Machine(RuleBasedStateMachine):
    """Asks a world and keeps what it should hold."""

    world: World
    model: Any

    def ask(self, tool: str, **arguments: Any) -> Any:
        """Return the output, or the code of the refusal."""
        before, revision = copy.deepcopy(self.world.state), self.world.revision
        given = copy_object(arguments)
        result = self.world.call(ToolCall(tool, given))
        assert given == arguments, "a world changed what it was given"
        assert self.world.revision > revision or self.world.state == before
        if isinstance(result, Failure):
            assert before in (self.world.state, {}), "a refusal changed the state"
            return result.code
        assert isinstance(result, Value)
        return result.output


class CrudMachine(_Machine):
    """Accounts as a dict of dicts."""

    def __init__(self) -> None:
        super().__init__()
        self.world, self.model = Crud({}), {}

    @rule(name=NAMES)
    def get(self, name: str) -> None:
        known = self.model.get(name)
        assert self.ask("get_account", id=name) == (
            "not_found" if known is None else {"account": known}
        )

    @rule(name=NAMES | st.none(), fields=FIELDS)
    def create(self, name: str | None, fields: dict[str, str]) -> None:
        given = fields if name is None else {**fields, "id": name}
        chosen = name or f"acct_{len(self.model) + 1}"
        answer = self.ask("create_account", fields=given)
        if chosen in self.model:
            assert answer == "already_exists"
            return
        self.model[chosen] = {"status": "active", **fields, "id": chosen}
        assert answer == {"account": self.model[chosen]}

    @rule(name=NAMES, patch=FIELDS)
    def update(self, name: str, patch: dict[str, str]) -> None:
        answer = self.ask("update_account", id=name, patch=patch)
        if name not in self.model:
            assert answer == "not_found"
            return
        self.model[name].update(patch)
        assert answer == {"account": self.model[name]}

    @rule(name=NAMES, reason=WORDS)
    def close(self, name: str, reason: str) -> None:
        answer = self.ask("close_account", id=name, reason=reason)
        if name not in self.model:
            assert answer == "not_found"
            return
        self.model[name].update(status="closed", closed_reason=reason)
        assert answer == {"account": self.model[name]}

    @invariant()
    def the_state_is_the_model(self) -> None:
        assert self.world.state.get("accounts", {}) == self.model


class FilesMachine(_Machine):
    """Files as a dict of texts."""

    def __init__(self) -> None:
        super().__init__()
        self.world, self.model = Files({}), {}

    @rule(path=PATHS, content=WORDS)
    def write(self, path: str, content: str) -> None:
        self.model[path] = content
        expected = {"path": path, "bytes_written": len(content)}
        assert self.ask("write_file", path=path, content=content) == expected

    @rule(path=PATHS)
    def read(self, path: str) -> None:
        known = {"path": path, "content": self.model.get(path)}
        assert self.ask("read_file", path=path) == (known if path in self.model else "not_found")

    @rule(path=PATHS)
    def list_folder(self, path: str) -> None:
        prefix = path.rstrip("/") + "/" if path.rstrip("/") else ""
        inside = [name.removeprefix(prefix) for name in self.model if name.startswith(prefix)]
        entries = sorted({name.split("/")[0] for name in inside if name})
        assert self.ask("list_dir", path=path) == {"path": path, "entries": entries}

    @invariant()
    def the_state_is_the_model(self) -> None:
        assert self.world.state.get("files", {}) == self.model


class SchedulingMachine(_Machine):
    """Jobs as a dict by name, listed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.world, self.model = Scheduling({}), {}

    @rule(name=NAMES, cron=CRONS, command=WORDS)
    def create(self, name: str, cron: str, command: str) -> None:
        answer = self.ask("create_job", name=name, cron=cron, command=command)
        if not _is_cron(cron):
            assert answer == "invalid_cron"
        elif name in self.model:
            assert answer == "already_exists"
        else:
            self.model[name] = {"name": name, "cron": cron, "command": command}
            assert answer == {"job": self.model[name]}

    @rule(cron=CRONS)
    def validate(self, cron: str) -> None:
        assert self.ask("validate_cron", cron=cron) == {"cron": cron, "valid": _is_cron(cron)}

    @rule()
    def list_all(self) -> None:
        assert self.ask("list_jobs") == {"jobs": [self.model[name] for name in sorted(self.model)]}


class RetrievalMachine(_Machine):
    """A shelf that nothing changes, searched by counting words."""

    def __init__(self) -> None:
        super().__init__()
        self.model = [{"id": f"d{at}", "title": "X", "text": "y " * at} for at in range(4)]
        self.world = Retrieval({"docs": copy.deepcopy(self.model)})

    @rule(name=st.sampled_from(["d0", "d3", "d9"]))
    def get(self, name: str) -> None:
        known = next((doc for doc in self.model if doc["id"] == name), None)
        assert self.ask("get_doc", doc_id=name) == (
            "not_found" if known is None else {"doc": known}
        )

    @rule(query=WORDS, top_k=st.integers(-1, 6))
    def search(self, query: str, top_k: int) -> None:
        terms = query.lower().split()
        texts = {doc["id"]: f"{doc['title']} {doc['text']}".lower() for doc in self.model}
        scores = {name: sum(text.count(term) for term in terms) for name, text in texts.items()}
        best = sorted(scores, key=lambda name: (-scores[name], name))[: max(1, top_k)]
        expected = [
            {"id": name, "title": "X", "score": scores[name]} for name in best if scores[name]
        ]
        assert self.ask("search_docs", query=query, top_k=top_k) == {"results": expected}

    @invariant()
    def nothing_changes(self) -> None:
        assert self.world.state == {"docs": self.model}


def _is_cron(cron: str) -> bool:
    fields = cron.split()
    return len(fields) == 5 and all(
        one == "*" or (one.isdigit() and int(one) <= 59) for one in fields
    )


for _machine in (CrudMachine, FilesMachine, SchedulingMachine, RetrievalMachine):
    _machine.TestCase.settings = _bounded

TestCrud = CrudMachine.TestCase
TestFiles = FilesMachine.TestCase
TestScheduling = SchedulingMachine.TestCase
TestRetrieval = RetrievalMachine.TestCase
