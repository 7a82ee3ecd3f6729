"""What the package shows: its names, its tables, its closed sets."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import fumehood_agent
from fumehood_agent import FumehoodError, RefusalKind, errors
from fumehood_agent._proto.v1 import tool_pb2 as pb
from fumehood_agent.builtin import BUILTIN

_FOLDER = Path(fumehood_agent.__file__).parent


def test_the_public_names_are_listed() -> None:
    public = {
        name
        for name, thing in vars(fumehood_agent).items()
        if not name.startswith("_") and not isinstance(thing, ModuleType) and name != "annotations"
    }
    assert public == set(fumehood_agent.__all__)
    assert list(fumehood_agent.__all__) == sorted(fumehood_agent.__all__)


def test_every_error_is_public_and_has_the_base_class() -> None:
    defined = {name: thing for name, thing in vars(errors).items() if inspect.isclass(thing)}
    raised = {name for name, thing in defined.items() if issubclass(thing, FumehoodError)}
    assert raised <= set(fumehood_agent.__all__)
    assert raised | {"RefusalKind", "Enum"} == set(defined)


def test_the_refusals_are_those_of_the_protocol() -> None:
    kinds = {kind.name: kind.value for kind in RefusalKind}
    theirs = {
        value.name.removeprefix("REFUSAL_KIND_"): value.number
        for value in pb.RefusalKind.DESCRIPTOR.values
    }
    assert kinds == {name: number for name, number in theirs.items() if name != "UNSPECIFIED"}


def test_every_built_in_agent_is_in_the_table_and_can_be_loaded() -> None:
    files = {path.stem for path in (_FOLDER / "builtin").iterdir() if path.name[0] not in "_."}
    assert files == set(BUILTIN)
    for path in BUILTIN.values():
        module, _, name = path.partition(":")
        cls = getattr(import_module(module), name)
        assert callable(cls.reset)
        assert callable(cls.act)


def test_depends_on_grpc_and_protobuf_only() -> None:
    allowed = {"fumehood_agent", "grpc", "google"} | sys.stdlib_module_names
    for path in _FOLDER.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, path
                names = [node.module or ""]
            else:
                continue
            assert {name.partition(".")[0] for name in names} <= allowed, path


def test_the_package_does_not_reveal_that_it_is_a_test() -> None:
    words = ("harness", "benchmark", "evaluat", "episode", "sandbox", "score", "golden", "misuse")
    for path in set(_FOLDER.rglob("*.py")) - set(_FOLDER.joinpath("_proto").rglob("*.py")):
        text = path.read_text().lower()
        assert [word for word in words if word in text] == [], path


def test_importing_has_no_side_effects(tmp_path: Path) -> None:
    code = "import threading, fumehood_agent; print(threading.active_count())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("1\n", "")
    assert list(tmp_path.iterdir()) == []


def test_the_import_leaves_asyncio_and_inspect_to_those_who_use_them() -> None:
    program = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "import fumehood_agent.__main__, dataclasses, grpc\n"
        "unused = {'asyncio', 'calendar', 'grpc.aio', 'inspect', 'pkgutil', 'traceback'}\n"
        "assert not unused & (sys.modules.keys() - before), 'imported'\n"
        "import inspect\n"
        "assert dataclasses.inspect.signature is inspect.signature\n"
        "import asyncio.events\n"
        "assert grpc.aio.AioRpcError is __import__('grpc.aio').aio.AioRpcError\n"
        "assert grpc.aio is sys.modules['grpc.aio']\n"
        "print(asyncio.run(asyncio.sleep(0, 'works')))\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "works\n", done.stderr
