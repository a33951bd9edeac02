"""`tornpage replay`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tornpage import options
from tornpage.document import Outcome, emit, refuse

if TYPE_CHECKING:
    from properties.case import Case
    from properties.recorder.dirty import DirtyTracker

__all__ = ["command"]


@click.command("replay")
@click.argument("case")
@click.option(
    "--image", type=click.Path(file_okay=False), help="Write the disk of the last power loss to this directory."
)
@options.json_option
def command(case: str, image: str | None, as_json: bool) -> None:
    """Run one failure again: CASE is a token (tp1-… or ti1-…) or a case file.

    \b
    tornpage replay tp1-…
    tornpage replay out/case-1a2b3c4d.json
    tornpage replay tp1-… --image crashed && tornpage inspect crashed
    tornpage replay ti1-…                     (an interleaving of threads)

    Exits 1 when the failure shows again, 0 when every promise holds.
    """
    from properties.case import BadToken, Case
    from properties.planted import UnknownBug
    from properties.recorder.dirty import choose_tracker
    from properties.replay import replay
    from tornpage.failures import failure_finding, failure_text

    is_token = case.startswith(("tp1-", "ti1-"))
    text = case if is_token else _text_of(case)
    try:
        if case.startswith("ti1-") or "tornpage_interleaving" in text:
            from tornpage.interleavings import replay_outcome

            if image is not None:
                refuse("an interleaving has no power loss, so there is no image to write")
            outcome, told = replay_outcome(text, is_token=is_token)
            emit(outcome, as_json=as_json, text=told)
        read = Case.from_token(case) if is_token else Case.from_text(text)
        with choose_tracker("auto") as tracker:
            if image is not None:
                _write_image(read, image, tracker)
            failure = replay(read, tracker=tracker)
    except (BadToken, UnknownBug) as error:
        refuse(str(error))
    figures = {"operations": len(read.operations)}
    if failure is None:
        emit(Outcome("replay", "holds", figures), as_json=as_json, text="every promise holds\n\nverdict: holds")
    outcome = Outcome("replay", "broken", figures, findings=[failure_finding(failure)])
    emit(outcome, as_json=as_json, text=f"{failure_text(failure)}\n\nverdict: broken")


def _write_image(case: Case, directory: str, tracker: DirtyTracker) -> None:
    """Write the crash image before recovery touches it."""
    from properties.image_directory import write_image
    from properties.pagemap import crash_image

    image = crash_image(case, tracker=tracker)
    if image is None:
        refuse("the case has no power loss, so there is no image to write")
    try:
        write_image(image, Path(directory))
    except OSError as error:
        refuse(f"cannot write the image to {directory}: {error.strerror}; name a new directory")


def _text_of(path: str) -> str:
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no text"
        refuse(f"{path} is neither a token (tp1-…) nor a readable case file: {reason}")
