"""`tornpage export`."""

import sys
from collections.abc import Iterator
from typing import Any

import click

from tornpage.cli import options
from tornpage.cli.document import not_printed, refuse, say, warn
from tornpage.cli.progress import bytes_progress
from tornpage.outcomes.exporting import FORMATS, write_rows
from tornpage.properties.judge.rulings import counted
from tornpage.render.redacting import Showing, showing
from tornpage.run.writing import new_file

__all__ = ["command"]

_TOPICS_SHOWN = 10


@click.command("export")
@click.argument("store", type=click.Path())
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    default="jsonl",
    show_default=True,
    help="How messages are written.",
)
@click.option("--out", type=click.Path(dir_okay=False), default=None, help="File to write.  [default: standard output]")
@click.option("--overwrite", is_flag=True, help="Replace the file of --out if it exists.")
@click.option("--topic", default=None, help="Messages of this topic.")
@click.option("--queue", "queue_id", type=click.IntRange(min=0), default=None, help="Messages of this queue id.")
@click.option("--tag", default=None, help="Messages with this tag.")
@click.option("--key", default=None, help="Messages with this key or unique key.")
@click.option(
    "--time", "times", default=None, help="Store time FROM..TO, each a day, ms or ISO 8601; an end may be left out."
)
@click.option("--offset", type=click.IntRange(min=0), default=None, help="Begin at this physical offset.")
@click.option("--until", type=click.IntRange(min=0), default=None, help="End before this physical offset.")
@click.option("--limit", type=click.IntRange(min=0), default=None, help="Messages to write.  [default: all]")
@click.option("--quarantine", "with_quarantine", is_flag=True, help="Messages of the store's quarantine/, too.")
@click.option("--fillers", "with_fillers", is_flag=True, help="The records that stand for lost ones, too.")
@click.option("--raw", "is_raw", is_flag=True, help="Leave compressed bodies as they are stored.")
@click.option(
    "--file-bytes", type=click.IntRange(1, 2**40 - 1), default=None, help="Size of a log file, if it cannot be seen."
)
@options.release_option
@options.redact_option
def command(
    store: str,
    format_: str,
    out: str | None,
    overwrite: bool,
    redact: bool,
    until: int | None,
    limit: int | None,
    with_quarantine: bool,
    with_fillers: bool,
    is_raw: bool,
    times: str | None,
    rocketmq_version: str | None,
    **asked: Any,
) -> None:
    """Write the messages of STORE, with bodies and properties.

    STORE is only read, and damage does not end the export.
    STORE is a store directory, its quarantine directory, or one file of either.

    \b
    tornpage export /var/rocketmq/store --topic Orders --out orders.jsonl
    tornpage export STORE --key order-17 --format text
    tornpage export STORE --time 2026-11-21 --format csv --out day.csv
    tornpage export STORE/quarantine --out set-aside.jsonl
    tornpage export STORE --format parquet --out messages.parquet

    Columns and how to send messages again: docs/export.md.
    """
    from tornpage.properties.decode.opening import drops_joined_by
    from tornpage.properties.inspect import InspectError, Query
    from tornpage.properties.inspect.export import Export
    from tornpage.properties.inspect.query import parse_times

    if format_ == "parquet" and out is None:
        refuse("Parquet is no text for standard output; give --out FILE")
    target = None if out is None else new_file(out, option="--out", overwrite=overwrite)
    show = showing(redact=redact)
    try:
        query = Query(
            limit=limit,
            times=None if times is None else parse_times(times),
            drops_joined=drops_joined_by(rocketmq_version),
            **asked,
        )
        export = Export(
            store, query, until=until, with_quarantine=with_quarantine, with_fillers=with_fillers, is_raw=is_raw
        )
        with bytes_progress("exporting") as progress:
            rows = _shown(export.rows(progress), show) if redact else export.rows(progress)
            write_rows(rows, format_, target, redacted=redact)
    except InspectError as error:
        refuse(str(error))
    except BrokenPipeError as error:
        not_printed(error)
        sys.exit(0)
    except OSError as error:
        sys.exit(2 if not_printed(error) else 0)
    told = export.told
    for error_text in told.errors:
        warn(f"cannot be read: {error_text}")
    if asked["topic"] is not None and asked["topic"] not in told.topics and limit != 0:
        names = sorted(told.topics)
        more = f" and {len(names) - _TOPICS_SHOWN:,} more" if len(names) > _TOPICS_SHOWN else ""
        there = f"; topics there: {', '.join(names[:_TOPICS_SHOWN])}{more}" if names and not redact else ""
        warn(f"no record of the topic that was asked for was read{there}")
    skipped = f", {told.unreadable_bytes:,} bytes without a valid record" if told.unreadable_bytes else ""
    lost = f", {counted(told.fillers, 'filler')} left out" if told.fillers else ""
    say(f"{told.rows:,} of {counted(told.read, 'message')} exported{skipped}{lost}")
    sys.exit(3 if told.errors else 0)


def _shown(rows: Iterator[dict[str, Any]], show: Showing) -> Iterator[dict[str, Any]]:
    for row in rows:
        yield show.row({**row, "kind": "record"})
