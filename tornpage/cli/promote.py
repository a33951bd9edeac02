"""`tornpage promote`."""

import click

from tornpage.cli import options
from tornpage.cli.completing import case_files
from tornpage.cli.document import emit, refuse

__all__ = ["command"]


@click.command("promote")
@click.argument("case", shell_complete=case_files)
@click.option("--name", required=True, help="Name of the test: small letters, digits and _.")
@click.option(
    "--directory",
    type=click.Path(file_okay=False),
    default="tests/regressions",
    show_default=True,
    help="Directory of your tests.",
)
@options.json_option
def command(case: str, name: str, directory: str, as_json: bool) -> None:
    """Keep a case as a regression test: CASE is a token (tp1-, tc1-, tg1- or tr1-…) or a file.

    \b
    tornpage promote tp1-… --name a_lost_size_of_the_first_file
    tornpage promote out/case-1a2b3c4d.json --name torn_tail --directory tests

    Writes test_NAME.py with the case in readable form. The test asserts that the store holds and, if the case names a
    planted bug, that the bug is still caught. Exits 1 if the store does not hold yet. Never overwrites a file.
    """
    from tornpage.outcomes.counterexamples import case_of, new_test, promote_outcome, text_of
    from tornpage.outcomes.processes.cases import promote_process_case
    from tornpage.outcomes.targets import refusing_targets
    from tornpage.properties.bug_ids import UnknownBug

    given = text_of(case)
    try:
        with refusing_targets():
            if given.kind is not None:
                outcome, text = promote_process_case(given.kind, given, path=new_test(name, directory))
            else:
                outcome, text = promote_outcome(case_of(given), name=name, directory=directory)
    except UnknownBug as error:
        refuse(str(error))
    emit(outcome, as_json=as_json, text=text)
