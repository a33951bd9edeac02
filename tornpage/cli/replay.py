"""`tornpage replay`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from tornpage.cli import options
from tornpage.cli.completing import case_files
from tornpage.cli.document import Outcome, emit, refuse

if TYPE_CHECKING:
    from tornpage.outcomes.counterexamples import GivenCase
    from tornpage.properties.explain.evidence import Witness

__all__ = ["command"]

_TARGET_TRIES = 5
"""Runs of a case of another project's store, which may depend on time and threads."""


@click.command("replay")
@click.argument("cases", nargs=-1, required=True, metavar="CASE…", shell_complete=case_files)
@click.option(
    "--image", type=click.Path(file_okay=False), help="Write the disk of the last power loss to this directory."
)
@click.option(
    "--tries",
    type=click.IntRange(1, 1000),
    help="Runs of one case, if the first does not fail (5 for the store of another project, else 1).",
)
@options.json_option
def command(cases: tuple[str, ...], image: str | None, tries: int | None, as_json: bool) -> None:
    """Repeat failures: CASE is a token (tp1-…), a case file, or a run directory.

    \b
    tornpage replay tp1-…
    tornpage replay out/case-1a2b3c4d.json
    tornpage replay tp1-… --image crashed && tornpage inspect crashed
    tornpage replay ti1-…                     (an interleaving of threads)
    tornpage replay tc1-…                     (a cluster of nodes)
    tornpage replay tg1-…                     (a consumer group)
    tornpage replay tr1-…                     (a Raft group)
    tornpage replay out/ older-run/           (all saved cases, with the present store and judges)

    Exits 1 if a failure occurs again, 0 if every guarantee holds, 3 if one of several cases cannot be read.
    """
    from tornpage.outcomes.counterexamples import given_cases, is_directory, judged_again, text_of

    if len(cases) > 1 or is_directory(cases[0]):
        if image is not None:
            refuse("--image goes with one case")
        outcome, text = judged_again([found for given in cases for found in given_cases(given)])
        emit(outcome, as_json=as_json, text=text)
    _replay_one(text_of(cases[0]), image, tries, as_json=as_json)


def _replay_one(given: GivenCase, image: str | None, tries: int | None, *, as_json: bool) -> NoReturn:
    from tornpage.outcomes.processes.cases import replay_process_case
    from tornpage.outcomes.targets import refusing_targets
    from tornpage.properties.bug_ids import UnknownBug
    from tornpage.properties.campaign.replay import replay_several
    from tornpage.properties.disk.dirty import choose_tracker
    from tornpage.properties.explain.evidence import Witness
    from tornpage.properties.program.case import BadToken
    from tornpage.render.counterexample import failure_text

    try:
        if given.kind is not None:
            if image is not None:
                refuse(given.kind.no_image)
            outcome, told = replay_process_case(given.kind, given)
            emit(outcome, as_json=as_json, text=told)
        if given.is_interleaving:
            from tornpage.outcomes.counterexamples import replay_outcome

            if image is not None:
                refuse("an interleaving has no power loss, so there is no image to write")
            outcome, told = replay_outcome(given.text, is_token=given.is_token)
            emit(outcome, as_json=as_json, text=told)
        read = given.case()
        with refusing_targets(), choose_tracker("auto") as tracker:
            witness = Witness()
            tries = tries or (_TARGET_TRIES if read.settings.target else 1)
            tried = replay_several(read, tries, tracker=tracker, witness=witness)
            if image is not None:
                _write_image(witness, image, is_foreign=bool(read.settings.target))
    except (BadToken, UnknownBug) as error:
        given.refuse_because(error)
    figures = {"operations": len(read.operations), "tries": tried.tries, "shown": tried.shown}
    failure = tried.failure
    if failure is None:
        held = "every guarantee holds" + (f" in {tried.tries} tries" if tried.tries > 1 else "")
        emit(Outcome("replay", "holds", figures), as_json=as_json, text=f"{held}\n\nverdict: holds")
    outcome = Outcome("replay", "broken", figures, findings=[failure.finding().document()])
    rate = f"the failure showed in {tried.shown} of {tried.tries} tries\n\n" if tried.tries > 1 else ""
    emit(outcome, as_json=as_json, text=f"{failure_text(failure)}\n\n{rate}verdict: broken")


def _write_image(witness: Witness, directory: str, *, is_foreign: bool) -> None:
    """Write the disk of the last power loss as it was before recovery touched it."""
    from tornpage.properties.judge.image import write_image
    from tornpage.properties.program.log_places import ROOT

    if witness.power_loss is None:
        refuse("the case has no power loss, so there is no image to write")
    try:
        write_image(witness.power_loss.image, Path(directory), root="" if is_foreign else ROOT)
    except OSError as error:
        refuse(f"cannot write the image to {directory}: {error.strerror}; name a new directory")
