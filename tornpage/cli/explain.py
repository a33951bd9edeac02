"""`tornpage explain`."""

import click

from tornpage.cli import options
from tornpage.cli.completing import codes_and_case_files
from tornpage.cli.document import emit, refuse

__all__ = ["command"]


@click.command("explain")
@click.argument("case", shell_complete=codes_and_case_files)
@click.option(
    "--out", type=click.Path(dir_okay=False), default="", help="The page.  [default: ./counterexample-….html]"
)
@click.option(
    "--seconds",
    type=options.Seconds(min=0),
    default=0.0,
    help="Shrink it first, for up to this time (default: no).",
)
@options.json_option
def command(case: str, out: str, seconds: float, as_json: bool) -> None:
    """Explain a failing case as a page, or the code of a finding.

    CASE is a token (tp1-, tc1- or tg1-…), a case file, or a code.

    \b
    tornpage explain CL_BAD_RECORD          (a code that audit, inspect or judge printed)
    tornpage explain tp1-…
    tornpage explain out/case-1a2b3c4d.json --seconds 30 --out page.html

    The page is one file without network: program, time line with barriers, pages of the disk, bytes, decisions of the
    recovery, and why a disk may be left so (docs/counterexample.md). For a cluster it has the time line of all nodes
    and the frames of their links. For a consumer group all events are printed instead. The path of a page is printed on
    a line of its own. Exits 1 if the failure occurs, and 0, without a page, if every guarantee holds.
    """
    from tornpage.outcomes.counterexamples import case_of, explain_outcome, text_of
    from tornpage.outcomes.targets import refusing_targets
    from tornpage.properties.bug_ids import UnknownBug
    from tornpage.render.finding_codes import code_of, explain_code_outcome, is_code

    case = code_of(case) or case
    if is_code(case):
        if out or seconds:
            refuse("--out and --seconds apply to a failing case; leave them out for the code of a finding")
        outcome, text = explain_code_outcome(case)
        emit(outcome, as_json=as_json, text=text)
    given = text_of(case)
    from tornpage.outcomes.processes.cases import CLUSTER, GROUP, RAFT
    from tornpage.outcomes.processes.clusters import explain_cluster_case
    from tornpage.outcomes.processes.groups import trace_group_case

    if given.kind is RAFT:
        refuse("a case of a Raft group has no page; `tornpage replay` prints its schedule")
    try:
        with refusing_targets():
            if given.kind is CLUSTER:
                outcome, text = explain_cluster_case(given, seconds=seconds, page=out)
            elif given.kind is GROUP:
                if out:
                    refuse("the events of a consumer group are printed; --out goes with cases that have a page")
                outcome, text = trace_group_case(given, seconds=seconds)
            else:
                outcome, text = explain_outcome(case_of(given), seconds=seconds, page=out)
    except UnknownBug as error:
        refuse(str(error))
    emit(outcome, as_json=as_json, text=text)
