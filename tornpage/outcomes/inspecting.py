"""The rows of `tornpage inspect` as text for people, all at once or as they come.

A table for each kind of row, bytes below their row.

With `--follow --json` the document is written piece by piece. A first line opens it and its rows. Each row is one line,
from the second row on with a comma before it. The rest of the document follows when following ends. A reader of lines
sees each row at once, and the whole output parses as one document.
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
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NoReturn

from tornpage.cli.document import Outcome, not_printed, say
from tornpage.properties.judge.rulings import counted
from tornpage.render.redacting import Showing

if TYPE_CHECKING:
    from tornpage.properties.inspect.follow import LogFollower

__all__ = ["POLL_S", "document_text", "figures_text", "follow", "head_of", "printable", "row_lines", "time_text"]


_FIELD_BYTES_SHOWN = 64


def document_text(seen: dict[str, Any], *, view: str, everything: bool) -> str:
    """Return a whole document as text."""
    head = _LOG_HEAD if view == "log" else ""
    lines = [head] if head else []
    for row in seen["rows"]:
        if head_of(row) not in ("", head):
            head = head_of(row)
            lines.append(head)
        lines += row_lines(row, everything=everything)
    figures = seen["figures"]
    if seen["rowsLeftOut"] is None:
        lines.append("… more rows may follow; --limit N or --all shows them")
    elif seen["rowsLeftOut"]:
        lines.append(f"… {counted(seen['rowsLeftOut'], 'more row')}; --all shows them")
    lines += ["", figures_text(figures)]
    for finding in seen["findings"]:
        place = f"{finding['file']}" + (f" at {finding['offset']}" if finding["offset"] is not None else "")
        said = f"{finding['severity']}: {finding['code']} {place}: {finding['message']}; {finding['remedy']}"
        lines.append(printable(said))
    verdict = f"verdict: {seen['verdict']}" if seen["verdict"] else "not judged: only a part of the store was read"
    return "\n".join([*lines, "", verdict])


def figures_text(figures: dict[str, Any]) -> str:
    """Return figures as one line, those that are 0 left out."""
    said = [f"{name.replace('_', ' ')} {number:,}" for name, number in sorted(figures.items()) if number]
    return ", ".join(said) or "nothing"


def head_of(row: dict[str, Any]) -> str:
    """Return the head of the table of a row; empty for rows of every table."""
    return _HEADS.get(row["kind"], "")


def row_lines(row: dict[str, Any], *, everything: bool = False) -> Iterator[str]:
    """Yield the lines of one row, its bytes last."""
    yield from _LINES.get(row["kind"], _other)(row)
    for field in row.get("hex") or []:
        yield from _hex_lines(field, everything)


def printable(text: str) -> str:
    """Return text that cannot steer a terminal."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def _hex_lines(field: dict[str, Any], everything: bool) -> Iterator[str]:
    stored = bytes.fromhex(field["bytes"])
    shown = stored if everything else stored[:_FIELD_BYTES_SHOWN]
    for at in range(0, len(shown), 16):
        piece = shown[at : at + 16]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in piece)
        name = field["field"] if at == 0 else ""
        yield f"    {field['at'] + at:>16}  {piece.hex(' '):<47}  {text:<16}  {name}"
    if len(shown) < len(stored):
        yield f"    {'':>16}  … {len(stored) - len(shown):,} more bytes (--all shows them)"


def _record(row: dict[str, Any]) -> Iterator[str]:
    queue = f"{printable(row['topic'])}/{row['queueId']}"
    tags, keys = printable(row.get("tags") or ""), printable(row.get("keys") or "")
    yield (
        f"{row['phy']:>16} {row['size']:>9}  {queue:<32} {row['queueOffset']:>12}  "
        f"{time_text(row['storeTimestamp']):<24}  {row['msgId']:<32}  {tags:<12}  {keys}"
    ).rstrip()


def _other(row: dict[str, Any]) -> Iterator[str]:
    place = row.get("phy", row.get("place", ""))
    yield f"{place:>16} {row.get('size', ''):>9}  -- {row['kind']} {row.get('reason', '')}"


def _queue(row: dict[str, Any]) -> Iterator[str]:
    name = f"{printable(row['topic'])}/{row['queueId']}"
    yield (
        f"{name:<40} {row['minOffset']:>12} {row['maxOffset']:>12} {row['messageTotal']:>10} {row['files']:>6} "
        f"{row['extFiles']:>4}  {row['maxPhysicOffset']:>16}"
    )


def _unit(row: dict[str, Any]) -> Iterator[str]:
    wrong = f"  {' '.join(row['wrong'])}" if row["wrong"] else ""
    tags, keys = printable(row.get("tags") or ""), printable(row.get("keys") or "")
    yield (
        f"{row['queueOffset']:>12} {row['phy']:>16} {row['size']:>10} {row['tagsCode']:>20}  {row['state']:<8} "
        f"{tags:<12} {keys}{wrong}"
    )
    if ext := row.get("ext"):
        bits = ext["bitMap"] or "none"
        yield f"{'':>12}   extension: tags code {ext['tagsCode']}, {time_text(ext['msgStoreTime'])}, bit map {bits}"


def _empty(row: dict[str, Any]) -> Iterator[str]:
    yield f"{row['queueOffset']:>12}   -- {counted(row['units'], 'empty unit')}"


def _extension(row: dict[str, Any]) -> Iterator[str]:
    yield (
        f"{row['place']:>16} {row['addressText']:>21} {row['size']:>6} {row['tagsCode']:>20} "
        f"{time_text(row['msgStoreTime'])}  {row['bitMap'] or ''}"
    )


def _index(row: dict[str, Any]) -> Iterator[str]:
    slots = "unknown" if row["slots"] is None else f"{row['slots']:,}"
    used = "" if row["slotsUsed"] is None else f"{row['slotsUsed']:,}"
    room = "" if row["entriesMax"] is None else f" of {row['entriesMax'] - 1:,}"
    yield (
        f"{row['file']:<24} {row['entries']:>11,}{room:<14} {used:>10} of {slots:<10} {row['beginPhyOffset']:>16} "
        f"{row['endPhyOffset']:>16}  {time_text(row['beginTimestamp'])} .. {time_text(row['endTimestamp'])}"
    )
    if row["chainMax"] is not None:
        yield (
            f"{'':<24} longest chain {row['chainMax']:,}, {counted(row['slotCollisions'], 'hash', 'hashes')} in a "
            "slot of another, "
            f"{counted(row['problems'], 'problem')}"
        )


def _entry(row: dict[str, Any]) -> Iterator[str]:
    same = "" if row.get("sameHash", True) else "  (another hash)"
    found = printable(f"{row['topic']} {' '.join(row['keys'])}") if "topic" in row else ""
    yield (
        f"{row['file']:<24} {row['number']:>9} {row['slot']:>9} {row['keyHash']:>11} {row['phy']:>16} "
        f"{time_text(row['time'])} {row['previous']:>9}  {row['points']}: {found}{same}"
    )


def _checkpoint(row: dict[str, Any]) -> Iterator[str]:
    yield f"{row['file']:<22} {_file(row)}"
    if row["physicMsgTimestamp"] is not None:
        for name in ("physicMsgTimestamp", "logicsMsgTimestamp", "indexMsgTimestamp"):
            yield f"  {name:<20} {row[name]:>14}  {time_text(row[name]) if row[name] else 'never'}"


def _floor(row: dict[str, Any]) -> Iterator[str]:
    yield f"{row['file']:<22} {_file(row)}"
    if row["offset"] is not None:
        yield f"  durable up to offset {row['offset']}, log files of {row['mappedFileSize']} bytes"


def _abort(row: dict[str, Any]) -> Iterator[str]:
    yield f"{row['file']:<22} {_file(row)}: {'open, or not closed cleanly' if row['present'] else 'closed cleanly'}"


def _lock(row: dict[str, Any]) -> Iterator[str]:
    yield f"{row['file']:<22} {_file(row)}: {'held, a store is open' if row['held'] else 'not held'}"


def _config(row: dict[str, Any]) -> Iterator[str]:
    entries = "" if row["entries"] is None else counted(row["entries"], "entry", "entries")
    yield f"{printable(row['file']):<40} {row['size']:>9} bytes  {row['state']:<8} {entries}"
    if row["content"] is not None:
        for line in json.dumps(row["content"], indent=2, ensure_ascii=True).splitlines():
            yield f"    {line}"


def _group(row: dict[str, Any]) -> Iterator[str]:
    dead = f"  {counted(row['deadLetters'], 'dead letter')}" if row["deadLetters"] else ""
    yield f"{printable(row['group']):<48} {counted(row['queues'], 'queue'):>11} {'':>24} {row['diffTotal']:>12}{dead}"


def _topic(row: dict[str, Any]) -> Iterator[str]:
    yield f"  {printable(row['topic']):<46} {counted(row['queues'], 'queue'):>11} {'':>24} {row['diffTotal']:>12}"


def _dead(row: dict[str, Any]) -> Iterator[str]:
    name = printable(f"{row['topic']}/{row['queueId']}")
    yield f"  {name:<53} {row['minOffset']:>12} {row['maxOffset']:>12} {row['messages']:>12}  dead letters"


def _offset(row: dict[str, Any]) -> Iterator[str]:
    offset = "-" if row["consumerOffset"] is None else row["consumerOffset"]
    yield f"    queue {row['queueId']:<45} {offset:>12} {row['brokerOffset']:>12} {row['diff']:>12}  {row['state']}"


def _delay(row: dict[str, Any]) -> Iterator[str]:
    offset = "-" if row["delayOffset"] is None else row["delayOffset"]
    yield f"  delay level {row['level']:<41} {offset:>12} {row['maxOffset']:>12} {row['diff']:>12}  {row['state']}"


def _file(row: dict[str, Any]) -> str:
    return f"{row['size']} bytes, {time_text(row['modified'])}" if row["present"] else "no such file"


def time_text(milliseconds: int) -> str:
    """Return a time as ISO 8601 in UTC; as a number where no calendar has it."""
    try:
        moment = datetime.fromtimestamp(milliseconds // 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return f"{milliseconds} ms"
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03d}Z"


_LOG_HEAD = (
    f"{'offset':>16} {'size':>9}  {'queue':<32} {'queue offset':>12}  {'store time':<24}  {'message id':<32}  "
    f"{'tags':<12}  keys"
)
_PROGRESS_HEAD = f"{'':<55} {'stored':>12} {'end':>12} {'lag':>12}"
_HEADS = {
    "record": _LOG_HEAD,
    "queue": f"{'queue':<40} {'min':>12} {'max':>12} {'messages':>10} {'files':>6} {'ext':>4}  {'log end':>16}",
    "unit": f"{'queue offset':>12} {'offset':>16} {'size':>10} {'tags code':>20}  {'state':<8} {'tags':<12} keys",
    "ext-unit": f"{'place':>16} {'address':>21} {'size':>6} {'tags code':>20} {'store time':<24}  bit map",
    "index": f"{'file':<24} {'entries':>11}{'':<14} {'slots used':>10}{'':<14} {'first':>16} {'last':>16}  times",
    "entry": f"{'file':<24} {'entry':>9} {'slot':>9} {'hash':>11} {'offset':>16} {'time':<24} {'before':>9}  points to",
    "group": _PROGRESS_HEAD,
    "topic": _PROGRESS_HEAD,
    "offset": _PROGRESS_HEAD,
    "dead": _PROGRESS_HEAD,
    "delay": _PROGRESS_HEAD,
}
_LINES: dict[str, Callable[[dict[str, Any]], Iterator[str]]] = {
    "record": _record,
    "queue": _queue,
    "unit": _unit,
    "empty": _empty,
    "ext-unit": _extension,
    "index": _index,
    "entry": _entry,
    "checkpoint": _checkpoint,
    "floor": _floor,
    "abort": _abort,
    "lock": _lock,
    "config": _config,
    "group": _group,
    "topic": _topic,
    "offset": _offset,
    "dead": _dead,
    "delay": _delay,
}


# ---- rows as they come -----------------------------------------------------------------------------------------------


POLL_S = 0.2


def follow(
    follower: LogFollower,
    show: Showing,
    *,
    as_json: bool,
    limit: int | None,
    sleep: Callable[[float], None] = time.sleep,
) -> NoReturn:
    """Print the rows of a follower until an interrupt, `limit` rows or a closed pipe."""
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
    """Yield a list that the first Ctrl-C fills; a second one interrupts at once."""
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
    """Return whether standard output is a pipe without a reader."""
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
