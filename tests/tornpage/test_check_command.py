"""Test that `tornpage check` offers the existing machines.

Their names are written twice, so that help stays fast.
"""

import click

from tornpage.cli.main import cli
from tornpage.properties.explore.machines.check import MACHINES


def test_every_machine_can_be_asked_for() -> None:
    command = cli.get_command(click.Context(cli), "check")
    assert command is not None
    (choice,) = [option.type for option in command.params if option.name == "machine"]
    assert isinstance(choice, click.Choice)
    assert list(choice.choices) == ["all", *MACHINES]
