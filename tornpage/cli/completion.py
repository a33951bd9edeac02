"""`tornpage completion`."""

import click

from tornpage.cli import options
from tornpage.cli.document import Outcome, emit

__all__ = ["command"]

_VARIABLE = "_TORNPAGE_COMPLETE"
"""Which click listens to, for a program of this name."""

_CALLED = '    _tornpage_completion "$@"\n'
_SECOND_TAB = (_CALLED, f"    compdef _tornpage_completion tornpage\n{_CALLED}")
"""In click's script for zsh: a file of `fpath` completes at its first TAB and, without this, only registers itself at
the second."""


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@options.json_option
def command(shell: str, as_json: bool) -> None:
    """Print the script that has SHELL complete commands, options, planted bugs, codes of findings, queues of a store.

    \b
    tornpage completion bash > ~/.local/share/bash-completion/completions/tornpage
    tornpage completion zsh > ~/.zfunc/_tornpage           (~/.zfunc being in fpath, before compinit)
    tornpage completion fish > ~/.config/fish/completions/tornpage.fish
    eval "$(tornpage completion bash)"                     (in this shell alone)
    """
    from click.shell_completion import get_completion_class

    from tornpage.cli.main import cli

    made = get_completion_class(shell)
    assert made is not None
    script = made(cli, {}, "tornpage", _VARIABLE).source().replace(*_SECOND_TAB)
    emit(Outcome("completion", None, {}, extra={"shell": shell, "script": script}), as_json=as_json, text=script)
