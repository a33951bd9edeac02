"""Write the HTML page of a store, from all views of `inspect` or from an audit."""

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tornpage import __version__
from tornpage.cli.document import Outcome, refuse
from tornpage.cli.progress import bytes_progress
from tornpage.properties.judge.rulings import counted
from tornpage.render.redacting import AS_IT_IS, Showing
from tornpage.run.writing import write_whole, writing

if TYPE_CHECKING:
    from tornpage.properties.inspect import Query

__all__ = ["audit_page", "inspect_page_outcome", "page_findings", "write_store_page"]

_VIEWS = ("queues", "index", "checkpoint", "groups", "config")
_ROWS_MAX = 2_000
"""Queues, index files and consumers that the page lists."""

Row = dict[str, Any]


def inspect_page_outcome(path: str, store: str, query: "Query", show: Showing = AS_IT_IS) -> tuple[Outcome, str]:
    """Inspect a whole store and write its page; return the outcome and its text.

    Raises InspectError.
    """
    from tornpage.properties.inspect import inspect_view

    if query.has_filter or query.hex or any(each is not None for each in (query.offset, query.message_id)):
        refuse("--html shows the whole store; give it without filters, places and --hex")
    with bytes_progress("inspecting") as read:
        log = show.document(inspect_view(store, "log", None, replace(query, limit=0), progress=read))
    seen = _seen(store, query.file_bytes, query.slots, show, drops_joined=query.drops_joined)
    documents = [log, *seen.values()]
    told = {json.dumps(finding, sort_keys=True): finding for each in documents for finding in each["findings"]}
    findings = list(told.values())
    verdicts = {each["verdict"] for each in documents}
    verdict = next((worst for worst in ("broken", "unknown") if worst in verdicts), "holds")
    given = [("--file-bytes", query.file_bytes), ("--slots", query.slots)]
    options = " ".join(f"{name} {value}" for name, value in given if value is not None)
    options += " --rocketmq-version 4.9.0" if query.drops_joined else ""
    command = f"inspect {shlex.quote(show.store(store))} {options}".rstrip() + _to_page(path, show)
    write_store_page(
        path, store, show, command=command, verdict=verdict, figures=log["figures"], findings=findings,
        file_bytes=query.file_bytes, slots=query.slots,
    )  # fmt: skip
    outcome = Outcome("inspect", verdict, log["figures"], (), findings, extra={"page": path, **show.extra})
    return outcome, f"{path}\n\nverdict: {verdict}"


def audit_page(path: str, store: str, audited: Outcome, show: Showing, *, file_bytes: int | None) -> None:
    """Write the page of an audited store, with the views of index and progress.

    `show` is what the outcome was made with, so that equal things have equal names in both.
    """
    from tornpage.properties.inspect import InspectError

    command = f"audit {shlex.quote(show.store(store))}" + _to_page(path, show)
    try:
        findings = page_findings(store, audited.findings, show, file_bytes=file_bytes)
        write_store_page(
            path, store, show, command=command, verdict=audited.verdict, figures=audited.figures,
            findings=findings, file_bytes=file_bytes,
        )  # fmt: skip
    except InspectError as error:
        refuse(str(error))
    audited.extra = {**audited.extra, "page": path}


def page_findings(
    store: str, findings: Sequence[Mapping[str, Any]], show: Showing, *, file_bytes: int | None
) -> list[Mapping[str, Any]]:
    """Return the findings of an audit, and the notes that only views have.

    Raises InspectError.
    """
    seen = _seen(store, file_bytes, None, show)
    known = {(finding["code"], finding["file"]) for finding in findings}
    more = [
        finding
        for view in ("index", "groups")
        for finding in seen[view]["findings"]
        if finding["severity"] == "note" and (finding["code"], finding["file"]) not in known
    ]
    return [*findings, *more]


def write_store_page(
    path: str,
    store: str,
    show: Showing = AS_IT_IS,
    *,
    command: str,
    verdict: str | None,
    figures: Mapping[str, Any],
    findings: Sequence[Mapping[str, Any]],
    file_bytes: int | None = None,
    slots: int | None = None,
) -> None:
    """Write the page of a store; `command` is shown on it, figures and findings are redacted.

    Raises InspectError; refuses an unwritable file.
    """
    from tornpage.reports.pages.downloads import inlined
    from tornpage.reports.pages.store_page import read_store_report, render_store_report

    document = _document(store, file_bytes, slots, show) | {
        "command": command,
        "store": show.store(store).encode(errors="surrogateescape").decode(errors="replace"),
        "verdict": verdict,
        "version": __version__,
        "figures": dict(figures),
        "findings": _placed(findings),
    }
    data = json.dumps(document, indent=1).encode()
    text = render_store_report(read_store_report(json.loads(data)), downloads=[inlined("store.json", data)])
    with writing(path, option="--html"):
        write_whole(path, text)


def _to_page(path: str, show: Showing) -> str:
    """Return the options that make a page; a redacted page hides the directory."""
    return f"{show.option} --html {shlex.quote(Path(path).name if show.option else path)}"


def _seen(
    store: str, file_bytes: int | None, slots: int | None, show: Showing, *, drops_joined: bool = False
) -> dict[str, Row]:
    from tornpage.properties.inspect import Query, inspect_view

    query = Query(limit=_ROWS_MAX, file_bytes=file_bytes, slots=slots, drops_joined=drops_joined)
    return {view: show.document(inspect_view(store, view, None, query)) for view in _VIEWS}


def _document(store: str, file_bytes: int | None, slots: int | None, show: Showing) -> Row:
    from tornpage.properties.decode.opening import open_view
    from tornpage.properties.inspect.filemap import file_maps

    seen = _seen(store, file_bytes, slots, show)
    with bytes_progress("drawing") as read:
        maps = file_maps(open_view(store, file_bytes=file_bytes), slots=slots, progress=read)
    return {
        "files": [each | {"file": show.label(each["file"])} for each in maps],
        "queues": [_queue(row) for row in seen["queues"]["rows"]],
        "indexes": [_index(row) for row in seen["index"]["rows"]],
        "small_files": [*map(_small_file, seen["checkpoint"]["rows"]), *map(_config_file, seen["config"]["rows"])],
        "consumers": [_consumer(row) for row in seen["groups"]["rows"] if row["kind"] in ("offset", "delay")],
    }


def _placed(findings: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Return findings with positions in files, computed from offsets for log files."""
    placed = []
    for finding in findings:
        row = dict(finding)
        folder, _, name = row["file"].rpartition("/")
        if row.get("position") is None and folder == "commitlog" and name.isdecimal() and row.get("offset") is not None:
            row["position"] = max(0, row["offset"] - int(name))
        placed.append(row)
    return placed


def _queue(row: Row) -> Row:
    return {
        "topic": row["topic"],
        "queue_id": row["queueId"],
        "min_offset": row["minOffset"],
        "max_offset": row["maxOffset"],
        "files": row["files"],
        "size": row["bytes"],
        "extensions": row["extFiles"],
    }


def _index(row: Row) -> Row:
    return {
        "file": row["file"],
        "size": row["size"],
        "entries": row["entries"],
        "entries_max": row["entriesMax"],
        "slots": row["slots"],
        "slots_used": row["slotsUsed"],
        "chain_max": row["chainMax"],
        "collisions": row["slotCollisions"],
        "problems": row["problems"],
        "begin_offset": row["beginPhyOffset"],
        "end_offset": row["endPhyOffset"],
    }


def _small_file(row: Row) -> Row:
    if not row["present"]:
        absent = {"abort": "not there: the store was closed cleanly", "lock": "not there"}
        return {"file": row["file"], "said": absent.get(row["kind"], "not there")}
    match row["kind"]:
        case "checkpoint":
            names = ("physicMsgTimestamp", "logicsMsgTimestamp", "indexMsgTimestamp")
            said = ", ".join(f"{name} {_time(row[name])}" for name in names)
        case "floor":
            said = "cannot be read" if row["offset"] is None else f"flushed below offset {row['offset']:,}"
        case "abort":
            said = "there: the store is open, or was not closed cleanly"
        case _:
            said = "held: the store is open" if row["held"] else "not held"
    return {"file": row["file"], "said": said}


def _config_file(row: Row) -> Row:
    entries = "" if row["entries"] is None else f", {counted(row['entries'], 'entry', 'entries')}"
    return {"file": row["file"], "said": f"{row['state']}, {row['size']:,} bytes{entries}"}


def _consumer(row: Row) -> Row:
    if row["kind"] == "delay":
        who, queue, names = f"delay level {row['level']}", str(row["queueId"]), ("delayOffset", "maxOffset")
    else:
        who, queue, names = row["group"], f"{row['topic']}/{row['queueId']}", ("consumerOffset", "brokerOffset")
    offset, end = (row[name] for name in names)
    return {"who": who, "queue": queue, "offset": offset, "end": end, "lag": row["diff"], "state": row["state"]}


def _time(milliseconds: int | None) -> str:
    if milliseconds is None:
        return "unreadable"
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return str(milliseconds)
    return "0" if milliseconds == 0 else f"{moment:%Y-%m-%d %H:%M:%S}.{milliseconds % 1000:03} UTC"
