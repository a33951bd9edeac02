"""`tornpage shrink`."""

import click

from tornpage.cli import options
from tornpage.cli.completing import case_files
from tornpage.cli.document import emit, refuse

__all__ = ["command"]


@click.command("shrink")
@click.argument("case", shell_complete=case_files)
@click.option(
    "--seconds",
    type=options.Seconds(min=0, min_open=True),
    default=30.0,
    show_default=True,
    help="Stop after this time.",
)
@options.out_option
@options.json_option
def command(case: str, seconds: float, out: str | None, as_json: bool) -> None:
    """Reduce a failing case: CASE is a token (tp1-, tc1-, tg1- or tr1-…) or a case file.

    \b
    tornpage shrink tp1-…
    tornpage shrink out/case-1a2b3c4d.json --seconds 120 --out small

    Simplifies operations, crash point, lost writes and settings while the case fails in the same way. Prints whether
    the result is 1-minimal, or what ended the search. Exits 1 if the failure occurs, 0 if every guarantee holds.
    """
    from tornpage.outcomes.counterexamples import case_of, shrink_outcome, text_of
    from tornpage.outcomes.processes.cases import shrink_process_case
    from tornpage.outcomes.targets import refusing_targets
    from tornpage.properties.bug_ids import UnknownBug

    given = text_of(case)
    try:
        with refusing_targets():
            if given.kind is not None:
                outcome, text = shrink_process_case(given.kind, given, seconds=seconds, out=out)
            else:
                outcome, text = shrink_outcome(case_of(given), seconds=seconds, out=out)
    except UnknownBug as error:
        refuse(str(error))
    emit(outcome, as_json=as_json, text=text)
