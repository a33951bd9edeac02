"""`tornpage report`."""

from pathlib import Path

import click

from tornpage import options
from tornpage.document import Outcome, emit, refuse

__all__ = ["command"]


@click.command("report")
@click.argument("directory", type=click.Path(), metavar="DIR")
@options.json_option
def command(directory: str, as_json: bool) -> None:
    """Write the page of the run directory DIR, and print its path.

    \b
    tornpage report out/
    """
    from reports.errors import ReportError
    from reports.pages import build_report

    try:
        path = build_report(Path(directory))
    except ReportError as error:
        refuse(" ".join(str(error).splitlines()))
    outcome = Outcome("report", None, {"bytes": path.stat().st_size}, extra={"path": str(path)})
    emit(outcome, as_json=as_json, text=str(path))
