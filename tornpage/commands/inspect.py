"""`tornpage inspect`."""

from typing import Any

import click

from tornpage import options
from tornpage.document import Outcome, emit, refuse

__all__ = ["command", "inspect_outcome"]


@click.command("inspect")
@click.argument("store", type=click.Path())
@click.option("--limit", type=click.IntRange(min=0), default=100, show_default=True, help="Rows to print.")
@click.option("--all", "everything", is_flag=True, help="Print every row.")
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Begin at this physical offset.")
@click.option(
    "--file-bytes", type=click.IntRange(min=1), default=None, help="Size of a log file, if it cannot be seen."
)
@options.json_option
def command(store: str, limit: int, everything: bool, offset: int, file_bytes: int | None, as_json: bool) -> None:
    """Look into the store directory STORE: records, blanks, findings. Takes no lock, recovers and writes nothing.

    \b
    tornpage inspect /var/rocketmq/store --limit 20
    tornpage inspect STORE --offset 1073741824 --json
    """
    shown = None if everything else limit
    outcome, text = inspect_outcome(store, limit=shown, offset=offset, file_bytes=file_bytes)
    emit(outcome, as_json=as_json, text=text)


def inspect_outcome(store: str, *, limit: int | None, offset: int, file_bytes: int | None) -> tuple[Outcome, str]:
    """Look into a store; return the outcome and its text."""
    from properties.inspection import InspectError, inspect_store

    try:
        seen = inspect_store(store, limit=limit, from_offset=offset, file_bytes=file_bytes)
    except InspectError as error:
        refuse(str(error))
    outcome = Outcome("inspect", seen["verdict"], seen["figures"], (), seen["findings"], extra={"rows": seen["rows"]})
    return outcome, _text(seen)


def _text(seen: dict[str, Any]) -> str:
    lines = [f"{'offset':>16} {'size':>9}  {'queue':<32} {'queue offset':>12}  keys"]
    for row in seen["rows"]:
        if row["kind"] == "record":
            queue = f"{_printable(row['topic'])}/{row['queueId']}"
            keys = _printable(row.get("keys") or "")
            lines.append(f"{row['phy']:>16} {row['size']:>9}  {queue:<32} {row['queueOffset']:>12}  {keys}")
        else:
            lines.append(f"{row['phy']:>16} {row.get('size', ''):>9}  -- {row['kind']} {row.get('reason', '')}")
    figures = seen["figures"]
    lines += ["", ", ".join(f"{name.replace('_', ' ')} {number:,}" for name, number in sorted(figures.items()))]
    for finding in seen["findings"]:
        place = f"{finding['file']}" + (f" at {finding['offset']}" if finding["offset"] is not None else "")
        lines.append(f"{finding['severity']}: {finding['code']} {place}: {finding['message']}; {finding['remedy']}")
    return "\n".join([*lines, "", f"verdict: {seen['verdict']}"])


def _printable(text: str) -> str:
    """Return text that cannot steer a terminal."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
