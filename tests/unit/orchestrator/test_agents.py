"""Agent references resolve to labels and sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from fumehood.core.errors import InputError
from fumehood.engines.engine import AgentKind, Image
from fumehood.orchestrator.agents import name_agents
from fumehood.orchestrator.config import AgentConfig, run_config
from fumehood.orchestrator.setup import RunSetup


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module, a package, an agent's folder and an empty folder."""
    (tmp_path / "mine.py").write_text("")
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "__init__.py").write_text("")
    (tmp_path / "boxed").mkdir()
    (tmp_path / "boxed" / "Dockerfile").write_text("FROM scratch\n")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "kind", "name", "label"),
    [
        ("noop", AgentKind.BUILTIN, "noop", "noop"),
        ("best=noop", AgentKind.BUILTIN, "noop", "best"),
        ("anything:Agent", AgentKind.MODULE, "anything:Agent", "anything:Agent"),
        ("a.b.c:Agent", AgentKind.MODULE, "a.b.c:Agent", "a.b.c:Agent"),
        ("mine:agent", AgentKind.MODULE, "mine:agent", "mine:agent"),
        ("pack:agent", AgentKind.MODULE, "pack:agent", "pack:agent"),
        ("other:agent", AgentKind.IMAGE, "other:agent", "other:agent"),
        ("registry:5000/team/agent:1.0", AgentKind.IMAGE, "registry:5000/team/agent:1.0", None),
        ("x=agent@sha256:00", AgentKind.IMAGE, "agent@sha256:00", "x"),
    ],
)
def test_a_reference_gives_a_label_and_a_source(
    here: Path, text: str, kind: AgentKind, name: str, label: str | None
) -> None:
    (agent,) = name_agents([text])
    assert (agent.source.kind, agent.source.name, agent.label) == (kind, name, label or name)


@pytest.mark.parametrize("text", ["boxed", "./boxed", "boxed/"])
def test_a_folder_is_labelled_by_its_name_and_stored_as_an_absolute_path(
    here: Path, text: str
) -> None:
    (agent,) = name_agents([text])
    assert (agent.source.kind, agent.source.name) == (AgentKind.FOLDER, str(here / "boxed"))
    assert agent.label == "boxed"


@pytest.mark.parametrize("text", ["agent.tar", "./agent.tar", "layout"])
def test_an_image_archive_is_labelled_by_its_name(here: Path, text: str) -> None:
    (here / "agent.tar").touch()
    (here / "layout").mkdir()
    (here / "layout" / "oci-layout").touch()
    (agent,) = name_agents([text])
    assert (agent.source.kind, agent.source.name) == (AgentKind.IMAGE, str(here / Path(text)))
    assert agent.label == Path(text).stem


@pytest.mark.parametrize(
    ("references", "reason"),
    [
        (["empty"], "has no Dockerfile"),
        (["./nowhere"], "there is no folder ./nowhere"),
        (["/nowhere/at/all"], "there is no folder"),
        (["mine"], "mine is a module: name a class of it, such as mine:Agent"),
        (["mine.py"], "mine.py is a file: .* such as mine:Agent"),
        (["./mine.py:Mine"], "mine.py:Mine is a file: .* such as mine:Mine"),
        (["pack/agent.py:Mine"], "such as pack.agent:Mine"),
        (["noop", "noop"], "two agents have the label 'noop': rename one, for example other=noop"),
        (["a=noop", "a=oracle"], "two agents have the label 'a'"),
    ],
)
def test_an_invalid_reference_is_an_input_error(
    here: Path, references: list[str], reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        name_agents(references)


def test_an_agent_may_have_two_labels() -> None:
    assert [agent.label for agent in name_agents(["noop", "again=noop"])] == ["noop", "again"]


def test_a_class_has_keyword_arguments_in_the_flag_and_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("class Agent: ...\n")
    in_file = AgentConfig(agent="mine:Agent", label="calm", arguments={"patience": [1, {}]})
    for given in ('calm=mine:Agent{"patience": [1, {}]}', in_file):
        (agent,) = name_agents([given])
        assert (agent.label, agent.source.name) == ("calm", "mine:Agent")
        assert agent.arguments == {"patience": [1, {}]}


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ('noop{"patience": 1}', "noop takes no arguments: only an agent module:Class does"),
        ("mine:Agent{patience}", "the arguments must be a JSON object"),
        ("mine:Agent{1}", "the arguments must be a JSON object"),
        ('acp:opencode{"permissions": "ask"}', "permissions` (allow or reject)"),
        ('acp:opencode{"command": []}', "`command` (a list of words)"),
        ('acp:opencode{"patience": 1}', "takes the settings `permissions`"),
        ("acp:", "acp: lacks the name of an agent: name a recipe (opencode), a folder with a"),
        ("mine=acp:", "a Dockerfile, or an image, such as acp:opencode, acp:FOLDER or acp:IMAGE"),
        ("", "the name of an agent is empty"),
        ('{"patience": 1}', "the name of an agent is empty"),
        ("acp:noop", "name a recipe (opencode), a folder with a Dockerfile, or an image"),
    ],
)
def test_arguments_that_cannot_take_effect_are_rejected(reference: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        name_agents([reference])
    assert message in str(raised.value)


def test_a_model_that_no_agent_of_a_run_calls_is_rejected() -> None:
    def created(*agents: str, **settings: object) -> RunSetup:
        return RunSetup.create(
            run_config({"suite": "sample", "agents": agents, "model": "m1", **settings})
        )

    models = {"providers": [{"name": "local", "address": "http://localhost:1"}]}
    with pytest.raises(InputError, match="no agent of the run calls the model m1: remove --model"):
        created("noop", models=models)
    with pytest.raises(InputError, match="no agent of the run calls the model m1"):
        created("my_agent:Agent")
    created("noop", "react")
    created("my_agent:Agent", models=models)


@pytest.mark.parametrize(("scale", "are_idle"), [(1, True), (100, False)])
def test_tasks_that_give_workers_nothing_are_found(scale: int, are_idle: bool) -> None:
    settings = {"team": {"workers": 15}, "budget": {"scale": scale}}
    setup = RunSetup.create(run_config({"suite": "sample", "agents": ["noop"], **settings}))
    assert bool(setup.tasks_of_idle_workers()) == are_idle


def test_a_run_without_a_team_has_no_idle_workers() -> None:
    setup = RunSetup.create(run_config({"suite": "sample", "agents": ["noop"]}))
    assert setup.tasks_of_idle_workers() == []


@pytest.mark.parametrize(
    ("reference", "label", "kind", "end"),
    [
        ("acp:opencode", "opencode", AgentKind.RECIPE, "--permissions allow -- its command"),
        ("mine=acp:opencode", "mine", AgentKind.RECIPE, "--permissions allow -- its command"),
        (
            'acp:some/image:1{"permissions": "reject", "command": ["run", "me"]}',
            "some/image:1",
            AgentKind.IMAGE,
            "--permissions reject -- run me",
        ),
    ],
)
def test_an_acp_agent_is_started_by_the_command_in_its_box(
    reference: str, label: str, kind: AgentKind, end: str
) -> None:
    (agent,) = name_agents([reference], "some-model")
    assert (agent.label, agent.source.kind) == (label, kind)
    image = agent.started_in(Image("ref", "", ("its", "command")))
    words = " ".join(image.command)
    assert words.endswith(f"/fumehood/bin/fumehood acp --model some-model {end}")


def test_a_folder_can_hold_an_acp_agent(here: Path) -> None:
    (agent,) = name_agents(["acp:boxed"])
    assert (agent.label, agent.source.kind) == ("boxed", AgentKind.FOLDER)
