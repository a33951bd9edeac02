"""`tornpage report`."""

from pathlib import Path

import click

from tornpage.cli import options
from tornpage.cli.document import Outcome, emit, refuse
from tornpage.cli.progress import steps_progress
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
@click.option("--out", type=click.Path(dir_okay=False), default=None, help="The page of trends.  [default: in DIR]")
@options.json_option
def command(directory: str | None, pages: int, history: str | None, out: str | None, as_json: bool) -> None:
    """Write the page of the run directory DIR, and print its path.

    \b
    tornpage report out/                     (--out of explore, campaign, check, prove, judge or bugs score)
    tornpage report out/ --pages 0           (without pages of counterexamples)
    tornpage report --history runs/ --out trends.html
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
            path, written = _report(Path(directory), pages)
            figures = {"pages": written}
    except ReportError as error:
        refuse(" ".join(str(error).splitlines()))
    except OSError as error:
        refuse(unwritable(error, directory or history or "", option="another run directory"))
    outcome = Outcome("report", None, {**figures, "bytes": path.stat().st_size}, extra={"path": str(path)})
    emit(outcome, as_json=as_json, text=str(path))


def _report(directory: Path, pages: int) -> tuple[Path, int]:
    """Write counterexample pages and the report; return its path and the number of pages."""
    from tornpage.outcomes.counterexamples import write_case_pages
    from tornpage.reports.pages.power_loss_page import build_power_loss_page
    from tornpage.reports.pages.run_page import build_report
    from tornpage.reports.pages.simulation_page import build_simulation_page
    from tornpage.reports.plots.prediction import has_validation
    from tornpage.reports.results.experiment_tables import has_experiments
    from tornpage.reports.results.power_loss import has_power_loss

    if has_power_loss(directory):
        return build_power_loss_page(directory), 0
    if has_experiments(directory) or has_validation(directory):
        return build_simulation_page(directory), 0
    with steps_progress("explaining", total=pages) as show:
        written = write_case_pages(directory, pages_max=pages, progress=show) if pages else []
    return build_report(directory), len(written)
