"""`tornpage explain`."""

import click

from tornpage.cli import options
from tornpage.cli.completing import codes_and_case_files
from tornpage.cli.document import emit, refuse

__all__ = ["command"]


@click.command("explain")
@click.argument("case", shell_complete=codes_and_case_files)
@click.option(
    "--out", type=click.Path(dir_okay=False), default="", help="The page.  [default: counterexample-….html here]"
)
@click.option(
    "--seconds",
    type=options.Seconds(min=0),
    default=0.0,
    help="Make it small first, for up to this time (default: no).",
)
@options.json_option
def command(case: str, out: str, seconds: float, as_json: bool) -> None:
    """Write a page that explains a failing case: CASE is a token (tp1-…) or a case file. Or say what a finding means.

    \b
    tornpage explain CL_BAD_RECORD          (a code that audit, inspect or judge printed)
    tornpage explain tp1-…
    tornpage explain out/case-1a2b3c4d.json --seconds 30 --out page.html

    The page is one file that needs no network: program, time line with barriers, pages of the disk, bytes, what
    recovery decided, and why a disk may do that (docs/counterexample.md). Its path is printed alone on a line. Exits 1
    when the failure shows, 0 when every promise holds; then there is no page.
    """
    from tornpage.outcomes.counterexamples import explain_outcome, given_case
    from tornpage.outcomes.targets import refusing_targets
    from tornpage.properties.planted import UnknownBug
    from tornpage.render.finding_codes import explain_code_outcome, is_code

    if is_code(case):
        if out or seconds:
            refuse("--out and --seconds are about a failing case; leave them out for the code of a finding")
        outcome, text = explain_code_outcome(case)
        emit(outcome, as_json=as_json, text=text)
    try:
        with refusing_targets():
            outcome, text = explain_outcome(given_case(case), seconds=seconds, page=out)
    except UnknownBug as error:
        refuse(str(error))
    emit(outcome, as_json=as_json, text=text)
