"""`tornpage sim experiment` and `tornpage sim frontier`."""

import os

import click

from tornpage import options
from tornpage.document import emit, refuse
from tornpage.experiments import chosen, device_named, experiments_outcome, list_outcome

__all__ = ["experiment_command", "frontier_command"]

_device_option = click.option(
    "--device", default="vm-ext4", show_default=True, metavar="PRESET", help="Which device; a wrong name lists them."
)
_effort_option = click.option(
    "--effort",
    type=click.FloatRange(min=0, max=1, min_open=True),
    default=1.0,
    show_default=True,
    help="Share of the messages and crashes to simulate; below 1 captions are rougher.",
)
_out_option = click.option(
    "--out",
    type=click.Path(file_okay=False),
    default=None,
    help="Directory for the tables; `tornpage report` draws it.",
)


@click.command("experiment")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--all", "everything", is_flag=True, help="Every experiment, some minutes.")
@click.option("--list", "only_list", is_flag=True, help="Tell the names and what each one asks, and end.")
@_device_option
@_effort_option
@_out_option
@options.seed_option
@options.json_option
def experiment_command(
    names: tuple[str, ...],
    everything: bool,
    only_list: bool,
    device: str,
    effort: float,
    out: str | None,
    seed: int,
    as_json: bool,
) -> None:
    """Carry out named experiments: a question, its answer from a simulation, and the rows behind it.

    \b
    tornpage sim experiment --list
    tornpage sim experiment knee
    tornpage sim experiment least-pages pool --device ebs-gp3 --out build/sim
    tornpage sim experiment --all --out build/sim && tornpage report build/sim
    """
    if only_list:
        outcome, text = list_outcome()
    else:
        experiments = chosen(names, everything=everything)
        outcome, text = experiments_outcome(
            "sim experiment", experiments, device=device_named(device), seed=seed, effort=effort, out=out
        )
    emit(outcome, as_json=as_json, text=text)


@click.command("frontier")
@click.option(
    "--crashes", type=click.IntRange(1, 10_000), default=24, show_default=True, help="Power losses for each policy."
)
@click.option(
    "--kills", type=click.IntRange(0, 1_000), default=2, show_default=True, help="Processes to kill for each."
)
@click.option(
    "--directory", type=click.Path(), default=None, help="Where stores of killed processes are (a temporary one)."
)
@_device_option
@_effort_option
@_out_option
@options.seed_option
@options.json_option
def frontier_command(
    crashes: int,
    kills: int,
    directory: str | None,
    device: str,
    effort: float,
    out: str | None,
    seed: int,
    as_json: bool,
) -> None:
    """What latency buys what safety? Simulated policies, and what crashes really took from the store under them.

    \b
    tornpage sim frontier --out build/frontier && tornpage report build/frontier
    tornpage sim frontier --kills 10 --directory /var/tmp
    tornpage sim frontier --kills 0     (power losses only: equal seeds give equal results)
    """
    from bench.crash_frontier import crash_frontier

    if directory is not None and not os.path.isdir(directory):
        refuse(f"{directory!r} is no directory; name one that exists")
    if directory is not None and kills and not os.access(directory, os.W_OK | os.X_OK):
        refuse(f"{directory} cannot be written to; name another --directory")
    experiment = crash_frontier(crashes=crashes, kills=kills, directory=directory)
    outcome, text = experiments_outcome(
        "sim frontier",
        [experiment],
        device=device_named(device),
        seed=seed,
        effort=effort,
        out=out,
        again=lambda _: f"sim frontier --crashes {crashes} --kills {kills}",
        elsewhere="name another --directory",
    )
    emit(outcome, as_json=as_json, text=text)
