"""`tornpage report`."""

from pathlib import Path

import click

from tornpage.cli import options
from tornpage.cli.document import Outcome, emit, refuse
from tornpage.cli.progress import steps_progress
from tornpage.run.writing import unwritable

__all__ = ["command"]

PAGES = 5
"""Pages of counterexamples that are written if nobody says how many; each carries its case out again."""


@click.command("report")
@click.argument("directory", type=click.Path(), metavar="[DIR]", required=False)
@click.option(
    "--pages",
    type=click.IntRange(min=0),
    default=PAGES,
    show_default=True,
    help="Explain a counterexample of so many causes on pages of their own, case-….html beside the report.",
)
@click.option(
    "--history", type=click.Path(), default=None, metavar="DIR", help="Instead: the trends over a history of runs."
)
@click.option("--out", type=click.Path(dir_okay=False), default=None, help="The page of trends.  [default: in DIR]")
@options.json_option
def command(directory: str | None, pages: int, history: str | None, out: str | None, as_json: bool) -> None:
    """Write the page of the run directory DIR, and print its path.

    \b
    tornpage report out/                     (of explore, campaign, check, prove, judge or bugs score, with --out)
    tornpage report out/ --pages 0           (without pages of counterexamples)
    tornpage report --history runs/ --out trends.html

    One file that needs no network: findings by cause, what was explored and what was not, the scoreboard, the store
    beside RocketMQ, time, provenance, and the numbers to be saved. See docs/report.md.
    """
    from tornpage.reports.errors import ReportError

    if (directory is None) == (history is None):
        refuse("give a run directory, or --history with a directory of histories")
    if out is not None and history is None:
        refuse("--out goes with --history; the page of a run lies in its directory")
    figures: dict[str, float | int]
    try:
        if history is not None:
            from tornpage.reports.trends import build_trends

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
    """Write pages of counterexamples and the report; return its path and how many pages were written."""
    from tornpage.outcomes.counterexamples import write_case_pages
    from tornpage.reports.experiment_tables import has_experiments
    from tornpage.reports.pages import build_report
    from tornpage.reports.prediction import has_validation
    from tornpage.reports.simulation_page import build_simulation_page

    if has_experiments(directory) or has_validation(directory):
        return build_simulation_page(directory), 0
    with steps_progress("explaining", total=pages) as show:
        written = write_case_pages(directory, pages_max=pages, progress=show) if pages else []
    return build_report(directory), len(written)
