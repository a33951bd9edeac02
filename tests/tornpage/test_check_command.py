"""`tornpage check` offers the machines there are; their names are said twice, so that help stays quick."""

import click

from properties.explore.machines.check import MACHINES
from tornpage.cli.main import cli


def test_every_machine_can_be_asked_for() -> None:
    command = cli.get_command(click.Context(cli), "check")
    assert command is not None
    (choice,) = [option.type for option in command.params if option.name == "machine"]
    assert isinstance(choice, click.Choice)
    assert list(choice.choices) == ["all", *MACHINES]
