"""``fumehood completion``, and the values that a shell completes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem, get_completion_class

from fumehood.cli.output import print_json, print_text


def values(names: Callable[[], Iterable[str]]) -> Callable[..., list[CompletionItem]]:
    """Return a completion of an argument or option: known names, then paths.

    Args:
        names: returns the names; called only when a shell completes.
    """

    def complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
        known = [CompletionItem(name) for name in names() if name.startswith(incomplete)]
        return known or [CompletionItem(incomplete, type="file")]

    return complete


@click.command()
@click.argument("shell", type=click.Choice(["bash", "fish", "zsh"]))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def completion(shell: str, as_json: bool) -> None:
    """Print the code that completes commands in a shell.

    It completes commands, options, suites, agents, engines and paths. Add the line for your shell
    to its start file: ~/.bashrc (for zsh, with `zsh` instead of `bash`, ~/.zshrc), or
    ~/.config/fish/config.fish.

    \b
    Examples:
      eval "$(fumehood completion bash)"
      fumehood completion fish | source
    """
    from fumehood.cli.main import fumehood

    completes = get_completion_class(shell)
    assert completes is not None
    code = completes(fumehood, {}, "fumehood", "_FUMEHOOD_COMPLETE").source()
    if as_json:
        print_json({"shell": shell, "code": code})
    else:
        print_text(code)
