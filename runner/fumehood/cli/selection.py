"""Options that select tasks or episodes, of every command that names a suite."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from fumehood.core.errors import InputError
from fumehood.core.task import Suite
from fumehood.orchestrator.config import RunConfig, run_config
from fumehood.orchestrator.shards import shard_setting
from fumehood.orchestrator.task_changes import selected

_Command = TypeVar("_Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--limit", type=int, metavar="N", help="Only the first N selected tasks."),
    click.option("--sample", type=int, metavar="N", help="Only N selected tasks, drawn at random."),
    click.option("--sample-seed", type=int, help="Seed of --sample.  [default: 0]"),
    click.option(
        "--task", multiple=True, metavar="GLOB", help="Only tasks whose ID matches. Repeatable."
    ),
    click.option(
        "--tag",
        multiple=True,
        metavar="KEY=GLOB",
        help="Only tasks with this tag, such as difficulty=easy. Repeatable; all must match.",
    ),
)

shard_option = click.option(
    "--shard",
    metavar="K/N",
    callback=lambda _, __, text: None if text is None else shard_setting(text, os.environ),
    help="Play only shard K of N of the episodes; `fumehood merge` merges the shards. auto and "
    "auto/N take K from a job array of Slurm or an indexed Job of Kubernetes.",
)

trust_cluster_option = click.option(
    "--i-trust-this-cluster",
    is_flag=True,
    help=str(RunConfig.model_fields["i_trust_this_cluster"].description),
)


def on_option(*, default: str | None, of: str = "") -> Callable[[_Command], _Command]:
    """Return the option ``--on``.

    Args:
        default: of the option.
        of: what determines the default if there is none, such as ``the run``.
    """
    text = str(RunConfig.model_fields["on"].description)
    return click.option(
        "--on",
        metavar="WHERE",
        default=default,
        help=text if default else f"{text}  [default: as in {of}]",
    )


def on_settings(on: str | None, *, is_trusted: bool) -> dict[str, object]:
    """Return the settings of ``--on`` and ``--i-trust-this-cluster``; none without ``--on``.

    Raises:
        InputError: a value is invalid, or the second has no effect.
    """
    if on is None:
        if is_trusted:
            raise InputError("--i-trust-this-cluster needs --on ray://HOST:PORT: add it")
        return {}
    settings: dict[str, object] = {"on": on, "i_trust_this_cluster": is_trusted}
    run_config({"suite": "any", "agents": ("any",), **settings})
    return settings


def task_options(command: _Command) -> _Command:
    """Add the options to a command; :func:`with_selection` reads them."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def with_selection(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings in which the options have become the setting ``tasks``.

    An option replaces the same part of ``tasks``, and ``limit`` and ``sample`` replace each other.

    Raises:
        InputError: an option cannot take effect, or a tag has no value.
    """
    others = dict(settings)
    limit, sample = others.pop("limit", None), others.pop("sample", None)
    seed, names = others.pop("sample_seed", None), others.pop("task", ())
    tags = _tags(others.pop("tag", ()))
    own = dict(others.get("tasks") or {})
    if limit is not None and sample is not None:
        raise InputError("--limit and --sample exclude each other: remove one")
    if limit is not None:
        own = {**own, "limit": limit, "sample": None}
    if sample is not None:
        own = {**own, "sample": sample, "limit": None}
    if seed is not None:
        if own.get("sample") is None:
            raise InputError("--sample-seed needs --sample")
        own["sample_seed"] = seed
    own |= {"names": names} if names else {}
    own |= {"tags": tags} if tags else {}
    return {**others, "tasks": own} if own else others


def only_selected(suite: Suite, options: Mapping[str, Any]) -> Suite:
    """Return the suite with the tasks that the options select.

    Raises:
        InputError: an option is invalid, or selects no task.
    """
    config = run_config({"suite": suite.name, "agents": ("any",), **with_selection(options)})
    return selected(suite, config.tasks)


def _tags(texts: tuple[str, ...]) -> dict[str, str]:
    for text in texts:
        if not text.partition("=")[1]:
            raise InputError(f"--tag {text}: use KEY=GLOB, such as difficulty=easy")
    return {key: pattern for key, _, pattern in (text.partition("=") for text in texts)}
