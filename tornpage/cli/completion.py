"""`tornpage completion`."""

import click

from tornpage.cli import options
from tornpage.cli.document import Outcome, emit

__all__ = ["command"]

_VARIABLE = "_TORNPAGE_COMPLETE"
"""The variable that click reads for a program of this name."""

_CALLED = '    _tornpage_completion "$@"\n'
_SECOND_TAB = (_CALLED, f"    compdef _tornpage_completion tornpage\n{_CALLED}")
"""Change of click's script for zsh: without it a file of `fpath` completes at the second TAB only."""


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@options.json_option
def command(shell: str, as_json: bool) -> None:
    """Print the script for TAB completion of commands, options and values in SHELL.

    It completes planted bugs, codes of findings and queues of a store too.

    \b
    tornpage completion bash > ~/.local/share/bash-completion/completions/tornpage
    tornpage completion zsh > ~/.zfunc/_tornpage           (with ~/.zfunc in fpath, before compinit)
    tornpage completion fish > ~/.config/fish/completions/tornpage.fish
    eval "$(tornpage completion bash)"                     (in this shell only)
    """
    from click.shell_completion import get_completion_class

    from tornpage.cli.main import cli

    made = get_completion_class(shell)
    assert made is not None
    script = made(cli, {}, "tornpage", _VARIABLE).source().replace(*_SECOND_TAB)
    emit(Outcome("completion", None, {}, extra={"shell": shell, "script": script}), as_json=as_json, text=script)
