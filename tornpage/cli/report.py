"""`tornpage report`."""

from pathlib import Path

import click

from tornpage.cli import options
from tornpage.cli.document import Outcome, emit, refuse
from tornpage.cli.progress import counted_progress, steps_progress
from tornpage.run.writing import unwritable

__all__ = ["command"]

PAGES = 5
"""Default number of counterexample pages; each page repeats its case."""


@click.command("report")
@click.argument("directory", type=click.Path(), metavar="[DIR]", required=False)
@click.option(
    "--pages",
    type=click.IntRange(min=0),
    default=PAGES,
    show_default=True,
    help="Number of counterexample pages, case-….html next to the report.",
)
@click.option(
    "--history", type=click.Path(), default=None, metavar="DIR", help="Write the trends over a history of runs instead."
)
@click.option(
    "--mutants",
    type=click.Path(),
    default=None,
    metavar="DIR",
    help="The --out directory of `bugs mutate`: show its kill rates on the page of a scoreboard.",
)
@click.option("--out", type=click.Path(dir_okay=False), default=None, help="The page of trends.  [default: in DIR]")
@click.option(
    "--max-loss",
    type=options.Span(),
    default=None,
    help="With results of sim: the longest age of a lost message in the table of policies (10ms).",
)
@click.option(
    "--max-p99", type=options.Span(), default=None, help="With results of sim: the put p99 in that table (2ms)."
)
@options.json_option
def command(
    directory: str | None,
    pages: int,
    history: str | None,
    mutants: str | None,
    out: str | None,
    max_loss: float | None,
    max_p99: float | None,
    as_json: bool,
) -> None:
    """Write the page of the run directory DIR, and print its path.

    \b
    tornpage report out/                     (--out of explore, campaign, check, prove, judge or bugs score or mutate)
    tornpage report out/ --pages 0           (without pages of counterexamples)
    tornpage report --history runs/ --out trends.html
    tornpage report score/ --mutants mutants/    (kill rates of mutants beside the planted bugs)
    tornpage report sweep/ --max-loss 10ms --max-p99 2ms    (--out of sim sweep, experiment, choose or validate)
    tornpage report peers/                   (a directory of runs of campaign --peer --out: RocketMQ under power loss)

    The page is one file without network: findings by cause, coverage, the scoreboard, the comparison with RocketMQ,
    time, provenance, and downloads. See docs/report.md.
    """
    from tornpage.reports.errors import ReportError

    if (directory is None) == (history is None):
        refuse("give a run directory, or --history with a directory of histories")
    if out is not None and history is None:
        refuse("--out goes with --history; the page of a run is written to its directory")
    figures: dict[str, float | int]
    try:
        if history is not None:
            from tornpage.reports.pages.trends import build_trends

            path = build_trends(Path(history), None if out is None else Path(out))
            figures = {}
        else:
            assert directory is not None
            path, written = _report(Path(directory), pages, mutants=mutants, max_loss=max_loss, max_p99=max_p99)
            figures = {"pages": written}
    except ReportError as error:
        refuse(" ".join(str(error).splitlines()))
    except OSError as error:
        refuse(unwritable(error, directory or history or "", option="another run directory"))
    outcome = Outcome("report", None, {**figures, "bytes": path.stat().st_size}, extra={"path": str(path)})
    emit(outcome, as_json=as_json, text=str(path))


def _report(
    directory: Path, pages: int, *, mutants: str | None, max_loss: float | None, max_p99: float | None
) -> tuple[Path, int]:
    """Write counterexample pages and the report; return its path and the number of pages.

    The limits are in ns.
    """
    from tornpage.reports.kinds import page_kind

    kind = page_kind(directory)
    if kind != "simulation" and (max_loss is not None or max_p99 is not None):
        refuse("--max-loss and --max-p99 go with results of sim; leave them out for other runs")
    if kind != "run" and mutants is not None:
        refuse("--mutants goes with the directory of `bugs score`")
    if kind == "power-loss":
        from tornpage.reports.pages.power_loss_page import build_power_loss_page

        with counted_progress("report", total=None, unit="pages") as show:
            show(0, "drawing")
            return build_power_loss_page(directory), 0
    if kind == "simulation":
        from tornpage.reports.pages.simulation_page import Limits, build_simulation_page

        limits = Limits(
            loss_ms=None if max_loss is None else max_loss / 1e6, put_p99_us=None if max_p99 is None else max_p99 / 1e3
        )
        with counted_progress("drawing", total=None, unit="figures") as show:
            return build_simulation_page(directory, limits=limits, progress=show), 0
    from tornpage.outcomes.counterexamples import write_case_pages
    from tornpage.reports.pages.run_page import build_report

    with steps_progress("report", total=pages + 1) as step:
        written = write_case_pages(directory, pages_max=pages, progress=step) if pages else []
        step("drawing the page")
        return build_report(directory, mutants=None if mutants is None else Path(mutants)), len(written)
