"""`tornpage inspect`."""

from typing import TYPE_CHECKING, Any

import click

from tornpage.cli import options
from tornpage.cli.completing import names_in_a_store
from tornpage.cli.document import Outcome, emit, refuse
from tornpage.cli.progress import bytes_progress
from tornpage.outcomes.inspecting import document_text
from tornpage.render.redacting import AS_IT_IS, Showing, showing
from tornpage.render.store_page import inspect_page_outcome
from tornpage.run.writing import new_page

if TYPE_CHECKING:
    from tornpage.properties.inspect import Query

__all__ = ["command", "inspect_outcome"]

_LIMIT = 100
_VIEWS = ("log", "queues", "queue", "ext", "index", "checkpoint", "config", "groups")


class _View(click.Choice[str]):
    """The name of a view. A former name is refused with the new one."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value == "progress":
            refuse("the view 'progress' is now 'groups'; give that name")
        return super().convert(value, param, ctx)


@click.command("inspect")
@click.argument("store", type=click.Path())
@click.argument("view", type=_View(_VIEWS), default="log")
@click.argument("name", default=None, required=False, shell_complete=names_in_a_store)
@click.option("--limit", type=click.IntRange(min=0), default=None, help=f"Rows to print.  [default: {_LIMIT}]")
@click.option("--all", "everything", is_flag=True, help="Print every row, and every byte of --hex.")
@click.option(
    "--offset", type=click.IntRange(min=0), default=None, metavar="BYTES", help="Begin at this physical offset."
)
@click.option("--id", "message_id", default=None, help="The record of a store-side message id (32 or 56 digits).")
@click.option("--key", default=None, help="Records with this key or unique key; by the index with --topic.")
@click.option("--time", "times", default=None, help="Store time FROM..TO, each ms or ISO 8601; one end may be missing.")
@click.option("--topic", default=None, help="Records of this topic.")
@click.option("--queue", "queue_id", type=click.IntRange(min=0), default=None, help="Records of this queue id.")
@click.option("--tag", default=None, help="Records with this tag.")
@click.option(
    "--queue-offset", type=click.IntRange(min=0), default=None, metavar="N", help="Begin at this unit of a queue."
)
@click.option("--scan", is_flag=True, help="Search --key in the whole log, and report entries missing in the index.")
@click.option("--hex", "with_hex", is_flag=True, help="Print the bytes too, field by field.")
@click.option("--follow", is_flag=True, help="Print new records of the log as they arrive, until Ctrl-C.")
@options.slots_option
@options.broker_config_option
@options.file_bytes_option
@options.release_option
@click.option("--html", type=click.Path(dir_okay=False), default=None, help="Write a page of the whole store instead.")
@click.option("--overwrite", is_flag=True, help="Replace the file of --html if it exists.")
@options.redact_option
@options.json_option
def command(
    store: str,
    view: str,
    name: str | None,
    limit: int | None,
    everything: bool,
    follow: bool,
    broker_config: str | None,
    html: str | None,
    overwrite: bool,
    redact: bool,
    as_json: bool,
    **asked: Any,
) -> None:
    """Show the content of a store directory. Takes no lock, recovers and writes nothing.

    \b
    VIEW        NAME        shows
    log                     records, blanks, bad places (the default)
    queues                  consume queues: range, files, extension
    queue       TOPIC/ID    units of a queue, with their records
    ext         TOPIC/ID    extension units and bit maps of a queue
    index       [FILE]      index files; entries of one; with --key the chain of the key
    checkpoint              checkpoint, durable floor, abort marker, lock
    config      [FILE]      JSON files below config/
    groups      [GROUP]     offset and lag of consumer groups, dead letters; delay levels

    \b
    tornpage inspect /var/rocketmq/store --limit 20
    tornpage inspect STORE --offset 1073741824 --hex --limit 1
    tornpage inspect STORE --key order-17 --topic Orders
    tornpage inspect STORE --time 2026-01-01T00:00:00Z..2026-01-01T00:05:00Z
    tornpage inspect STORE queue Orders/3 --queue-offset 1000 --json
    tornpage inspect STORE groups my-group --json
    tornpage inspect STORE --html store.html     (all views, with a map of the files)
    tornpage inspect STORE --redact --json       (for sharing: no topics, keys, tags, hosts)
    """
    from tornpage.properties.inspect import InspectError

    if redact and asked["with_hex"]:
        refuse("--hex prints bytes that --redact leaves out; give one of them")
    show = showing(redact=redact)
    try:
        query = _query(None if everything else limit if limit is not None else _LIMIT, broker_config, asked)
        if html is not None:
            if view != "log" or name is not None or follow:
                refuse("--html shows the whole store; give it without VIEW and --follow")
            new_page(html, option="--html", overwrite=overwrite)
            outcome, text = inspect_page_outcome(html, store, query, show)
            emit(outcome, as_json=as_json, text=text)
        if follow:
            _follow(store, view, name, query, show, as_json=as_json, limit=limit)
    except InspectError as error:
        refuse(str(error))
    outcome, text = inspect_outcome(store, view, name, query, show)
    emit(outcome, as_json=as_json, text=text)


def inspect_outcome(
    store: str, view: str, name: str | None, query: "Query", show: Showing = AS_IT_IS
) -> tuple[Outcome, str]:
    """Inspect a view of a store; return the outcome and its text."""
    from tornpage.properties.inspect import InspectError, inspect_view

    try:
        with bytes_progress("inspecting") as read:
            found = inspect_view(store, view, name, query, progress=read)
    except InspectError as error:
        refuse(str(error))
    seen = show.document(found) | {"rowsLeftOut": found["rowsLeftOut"]}
    extra = {"rows": seen["rows"], "rowsLeftOut": seen["rowsLeftOut"], **show.extra}
    outcome = Outcome("inspect", seen["verdict"], seen["figures"], (), seen["findings"], extra=extra)
    return outcome, document_text(seen, view=view, everything=query.limit is None)


def _query(limit: int | None, broker_config: str | None, asked: dict[str, Any]) -> "Query":
    """Return the query for the options. Raises InspectError if they contradict each other."""
    from tornpage.properties.decode.opening import drops_joined_by
    from tornpage.properties.inspect import InspectError, Query
    from tornpage.properties.inspect.query import parse_times, read_settings

    settings = {} if broker_config is None else read_settings(broker_config)
    message_id = asked["message_id"]
    others = ("key", "times", "offset", "topic", "queue_id", "tag")
    if message_id is not None and any(asked[other] is not None for other in others):
        raise InspectError(
            "a message id names one record; give --id without --key, --time, --offset, --topic, --queue and --tag"
        )
    if asked["scan"] and asked["key"] is None:
        raise InspectError("--scan needs a key; give --key too")
    return Query(
        limit=limit,
        offset=asked["offset"],
        message_id=message_id,
        key=asked["key"],
        topic=asked["topic"],
        queue_id=asked["queue_id"],
        tag=asked["tag"],
        times=None if asked["times"] is None else parse_times(asked["times"]),
        queue_offset=asked["queue_offset"],
        hex=asked["with_hex"],
        scan=asked["scan"],
        slots=asked["slots"] or settings.get("maxHashSlotNum"),
        file_bytes=asked["file_bytes"] or settings.get("mappedFileSizeCommitLog"),
        drops_joined=drops_joined_by(asked["rocketmq_version"]),
    )


def _follow(
    store: str, view: str, name: str | None, query: "Query", show: Showing, *, as_json: bool, limit: int | None
) -> None:
    from tornpage.outcomes.inspecting import follow
    from tornpage.properties.inspect import InspectError
    from tornpage.properties.inspect.follow import LogFollower

    if view != "log" or name is not None:
        raise InspectError("only the log can be followed; leave the view out")
    if query.message_id is not None or query.scan:
        raise InspectError("--follow waits for new records; give it without --id and --scan")
    follow(LogFollower(store, query), show, as_json=as_json, limit=limit)
