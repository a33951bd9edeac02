"""`tornpage replay`."""

from pathlib import Path

import click

from tornpage import options
from tornpage.document import Outcome, emit, refuse

__all__ = ["command"]


@click.command("replay")
@click.argument("case")
@options.json_option
def command(case: str, as_json: bool) -> None:
    """Run one failure again: CASE is a token (tp1-…) or a case file.

    \b
    tornpage replay tp1-…
    tornpage replay out/case-1a2b3c4d.json

    Exits 1 when the failure shows again, 0 when every promise holds.
    """
    from properties.case import BadToken, Case
    from properties.planted import UnknownBug
    from properties.recorder.dirty import choose_tracker
    from properties.replay import replay
    from tornpage.failures import failure_finding, failure_text

    try:
        read = Case.from_token(case) if case.startswith("tp1-") else Case.from_text(_text_of(case))
        with choose_tracker("auto") as tracker:
            failure = replay(read, tracker=tracker)
    except (BadToken, UnknownBug) as error:
        refuse(str(error))
    figures = {"operations": len(read.operations)}
    if failure is None:
        emit(Outcome("replay", "holds", figures), as_json=as_json, text="every promise holds\n\nverdict: holds")
    outcome = Outcome("replay", "broken", figures, findings=[failure_finding(failure)])
    emit(outcome, as_json=as_json, text=f"{failure_text(failure)}\n\nverdict: broken")


def _text_of(path: str) -> str:
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no text"
        refuse(f"{path} is neither a token (tp1-…) nor a readable case file: {reason}")
