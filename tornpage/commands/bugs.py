"""`tornpage bugs`."""

import click

from tornpage import options
from tornpage.document import Outcome, emit, refuse

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


@command.command("holes")
@click.option("--hunt", is_flag=True, help="Hunt each hole that can be planted, one after the other.")
@click.option("--only", default="", help="Ids with commas between, as H1,C3 (default: all).")
@click.option(
    "--seconds", type=click.FloatRange(min=0.1), default=60.0, show_default=True, help="For each hunt, with --hunt."
)
@options.seed_option
@options.out_option
@options.json_option
def holes(hunt: bool, only: str, seconds: float, seed: int, out: str | None, as_json: bool) -> None:
    """List the holes of RocketMQ 4.9.3, or hunt them in a store that has them.

    With --out each result is kept as a file, and a hunt that found its hole is not made again.

    \b
    tornpage bugs holes
    tornpage bugs holes --hunt --only H1,C3
    tornpage bugs holes --hunt --out out/holes    (all: up to an hour, to be resumed)
    """
    from properties.holes import UnknownHole, holes_named
    from tornpage.holes import hunt_outcome, list_outcome

    try:
        wanted = holes_named(only)
    except UnknownHole as error:
        refuse(str(error))
    if not hunt:
        if out is not None:
            refuse("--out goes with --hunt")
        outcome, text = list_outcome(wanted)
    else:
        with options.steps_progress("hunting", total=sum(hole.is_hosted for hole in wanted)) as show:
            outcome, text = hunt_outcome(wanted, seconds=seconds, seed=seed, out=out, progress=show)
    emit(outcome, as_json=as_json, text=text)
