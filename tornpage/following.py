"""`tornpage inspect --follow`: rows go out as they come, until someone presses Ctrl-C.

With `--json` the one document is written piece by piece: a first line that opens it and its rows, then one row per line
(from the second on with a comma before it), and the rest of the document when following ends. A reader of lines sees
each row at once; what is there after the end parses as a whole.
"""

from __future__ import annotations

import io
import json
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NoReturn

from tornpage.document import Outcome, not_printed, say
from tornpage.inspect_text import head_of, printable, row_lines
from tornpage.redacting import Showing

if TYPE_CHECKING:
    from properties.inspect.follow import LogFollower

__all__ = ["POLL_S", "follow"]

POLL_S = 0.2


def follow(
    follower: LogFollower,
    show: Showing,
    *,
    as_json: bool,
    limit: int | None,
    sleep: Callable[[float], None] = time.sleep,
) -> NoReturn:
    """Print what a follower hands out; leave with 130 when interrupted, with 0 after `limit` rows or a closed pipe."""
    printer = _JsonPrinter() if as_json else _TextPrinter()
    outcome = Outcome("inspect", None, {}, extra=show.extra)
    told = 0
    try:
        printer.begin()
        with _interrupts() as interrupted:
            while not interrupted and (limit is None or printer.rows < limit):
                rows = follower.poll()
                for row in rows[: None if limit is None else limit - printer.rows]:
                    printer.show(show.row(row))
                told = _tell(follower, show, told)
                if not rows:
                    if _nobody_reads():
                        raise _Unprinted(BrokenPipeError())
                    sleep(POLL_S)
        outcome.interrupted = bool(interrupted)
        outcome.figures = {
            "rows": printer.rows,
            "records": follower.records,
            "end_offset": follower.position,
            "findings": len(follower.findings),
        }
        outcome.findings = [show.finding(asdict(finding)) for finding in follower.findings]
        printer.end(outcome)
    except _Unprinted as stuck:
        outcome.unwritten = not_printed(stuck.error)
    sys.exit(outcome.exit_code)


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Yield a list that a first Ctrl-C fills, so that no row is cut in the middle; a second one interrupts at once."""
    seen: list[int] = []

    def note(number: int, _: object) -> None:
        seen.append(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, before)


class _Unprinted(Exception):
    """Standard output takes no more."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


def _print(text: str) -> None:
    try:
        print(text, flush=True)
    except OSError as error:
        raise _Unprinted(error) from error


def _nobody_reads() -> bool:
    """Whether standard output is a pipe whose reader has gone: who has nothing to write would never hear of it."""
    try:
        output = sys.stdout.fileno()
    except io.UnsupportedOperation:
        return False
    poller = select.poll()
    poller.register(output, 0)
    return any(event & select.POLLERR for _, event in poller.poll(0))


def _tell(follower: LogFollower, show: Showing, told: int) -> int:
    for finding in follower.findings[told:]:
        shown = show.finding(asdict(finding))
        say(printable(f"{shown['code']} {shown['file']}: {shown['message']}"))
    return len(follower.findings)


class _TextPrinter:
    rows = 0

    def begin(self) -> None:
        _print(head_of({"kind": "record"}))

    def show(self, row: dict[str, Any]) -> None:
        self.rows += 1
        _print("\n".join(row_lines(row)))

    def end(self, outcome: Outcome) -> None:
        said = ", ".join(f"{name.replace('_', ' ')} {number:,}" for name, number in outcome.figures.items())
        _print(f"\n{said}")


class _JsonPrinter:
    rows = 0

    def begin(self) -> None:
        _print('{"rows": [')

    def show(self, row: dict[str, Any]) -> None:
        _print(f"{',' if self.rows else ''}{json.dumps(row)}")
        self.rows += 1

    def end(self, outcome: Outcome) -> None:
        rest = json.dumps(outcome.document())
        _print(f"], {rest[1:]}")
