"""`tornpage doctor`."""

import os
from dataclasses import asdict

import click

from tornpage.cli import options
from tornpage.cli.document import Outcome, emit

__all__ = ["command"]


@click.command("doctor")
@click.argument("directory", type=click.Path(), default=".")
@options.json_option
def command(directory: str, as_json: bool) -> None:
    """Print what this machine offers, and whether DIRECTORY's file system suits sync figures.

    Always exits 0.

    \b
    tornpage doctor
    tornpage doctor /var/rocketmq
    """
    from tornpage.outcomes.doctor import examine

    checks = examine(os.path.abspath(directory))
    states = [check.state for check in checks]
    figures = {name: states.count(name) for name in ("ok", "limited", "absent")}
    lines = []
    for check in checks:
        lines.append(f"{check.state:<8} {check.name}: {check.detail}")
        if check.remedy:
            lines.append(f"{'':<9}{check.remedy}")
    outcome = Outcome("doctor", None, figures, extra={"checks": [asdict(check) for check in checks]})
    emit(outcome, as_json=as_json, text="\n".join(lines))
