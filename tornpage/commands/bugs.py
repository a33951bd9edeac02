"""`tornpage bugs`."""

import click

from tornpage import options
from tornpage.document import Outcome, emit

__all__ = ["command"]


@click.group("bugs")
def command() -> None:
    """Planted bugs: the store with one part broken, to prove that the tester notices."""


@command.command("list")
@options.json_option
def list_bugs(as_json: bool) -> None:
    """List them: id, contract number, what is wrong."""
    from properties.planted import PLANTED

    rows = [{"id": bug.id, "contract": bug.contract, "sentence": bug.sentence} for bug in PLANTED.values()]
    text = "\n".join(f"{row['id']:<24}{row['contract']:>3}  {row['sentence']}" for row in rows)
    emit(Outcome("bugs", None, {"bugs": len(rows)}, extra={"rows": rows}), as_json=as_json, text=text)
