"""Show the small files: checkpoint, floor, abort marker, lock, and files below `config/`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tornpage.properties.decode.config_files import parse_config
from tornpage.properties.decode.deleted_topics import parse_deleted_topics
from tornpage.properties.decode.derived_floor import parse_derived_floor
from tornpage.properties.decode.fields import checkpoint_fields, floor_fields
from tornpage.properties.decode.files import read_small
from tornpage.properties.decode.findings import Finding
from tornpage.properties.decode.opening import InspectError
from tornpage.properties.decode.store import StoreView, read_floor
from tornpage.properties.inspect.place import Document, derived_severity, part_document
from tornpage.properties.inspect.query import Query
from tornpage.properties.inspect.rows import Row, hex_of, wide

__all__ = ["config_files", "config_rows", "marker_files"]

_CONFIG_BYTES_MAX = 64 << 20
_FLOOR = "config/durableFloor"
_DELETED_TOPICS = "config/deletedTopics"
_DERIVED_FLOOR = "config/derivedFloor"


def marker_files(view: StoreView, query: Query) -> Document:
    """Return a row each for checkpoint, durable floor, abort marker and lock.

    A row says if its file is missing.
    """
    findings = [found for found in view.findings if found.code.startswith(("CP_", "FLOOR_", "LOCK_"))]
    checkpoint, floor = view.checkpoint, read_floor(view.store_dir)
    rows: list[Row] = [
        {"kind": "checkpoint", **_file_columns(view, "checkpoint")}
        | {
            "physicMsgTimestamp": None if checkpoint is None else checkpoint.physic_timestamp,
            "logicsMsgTimestamp": None if checkpoint is None else checkpoint.logics_timestamp,
            "indexMsgTimestamp": None if checkpoint is None else checkpoint.index_timestamp,
        },
        {"kind": "floor", **_file_columns(view, _FLOOR)}
        | wide(offset=None if floor is None else floor.offset)
        | {"mappedFileSize": None if floor is None else floor.file_bytes},
        {"kind": "abort", **_file_columns(view, "abort")},
        {"kind": "lock", **_file_columns(view, "lock"), "held": view.live},
    ]
    if query.hex:
        for row, name, cut in ((rows[0], "checkpoint", checkpoint_fields), (rows[1], _FLOOR, floor_fields)):
            try:
                row |= hex_of(cut(read_small(view.store_dir / name, 4096) or b""), 0)
            except OSError as error:
                findings.append(_no_access(name, error))
    figures = {"live": int(view.live), "unclean": int(view.is_unclean)}
    shown = rows if query.limit is None else rows[: query.limit]
    return part_document(figures, shown, findings) | {"rowsLeftOut": len(rows) - len(shown)}


def config_files(view: StoreView, name: str | None, query: Query) -> Document:
    """Return a row per file below `config/`, with its content.

    With a name, only that file and its backup are returned.
    """
    directory = view.store_dir / "config"
    findings: list[Finding] = []
    try:
        paths = sorted(path for path in directory.iterdir() if path.is_file())
    except FileNotFoundError:
        paths = []
    except OSError as error:
        findings.append(_no_access("config", error))
        paths = []
    paths = [path for path in paths if path.name != Path(_FLOOR).name]
    if name is not None:
        wanted = {name, f"{name}.bak", f"{name}.json", f"{name}.json.bak"}
        paths = [path for path in paths if path.name in wanted]
        if not paths:
            raise InspectError(f"no file {name!r} below config; `inspect STORE config` lists them")
    rows = [row for path in paths if (row := _config_row(view, path, findings)) is not None]
    _judge_backups(view, rows, findings)
    figures = {"config_files": len(rows)}
    shown = rows if query.limit is None else rows[: query.limit]
    return part_document(figures, shown, findings) | {"rowsLeftOut": len(rows) - len(shown)}


def config_rows(view: StoreView, labels: Iterable[str], findings: list[Finding]) -> list[Row]:
    """Return the rows of some files and their backups; findings name unusable ones."""
    paths = [view.store_dir / name for label in labels for name in (label, f"{label}.bak")]
    rows = [row for path in paths if (row := _config_row(view, path, findings)) is not None]
    _judge_backups(view, rows, findings)
    return rows


def _config_row(view: StoreView, path: Path, findings: list[Finding]) -> Row | None:
    label = f"config/{path.name}"
    try:
        stored = read_small(path, _CONFIG_BYTES_MAX + 1)
    except OSError as error:
        findings.append(_no_access(label, error))
        return None
    if stored is None:
        return None
    row: Row = {"kind": "config", "file": label, "size": len(stored), "state": "ok", "entries": None, "content": None}
    if not stored.strip():
        return row | {"state": "empty"}
    if label == _DELETED_TOPICS:
        return row | _deleted_topics(stored)
    if label == _DERIVED_FLOOR:
        return row | _derived_floor(stored)
    try:
        content = parse_config(stored[:_CONFIG_BYTES_MAX])
    except ValueError:
        return row | {"state": "no JSON"}
    return row | {"entries": _entries(content), "content": content}


def _derived_floor(stored: bytes) -> Row:
    """Return the content of the derived floor; its entries are the files that it names."""
    try:
        content = parse_derived_floor(stored)
    except ValueError:
        return {"state": "unreadable"}
    return {"entries": _entries(content), "content": content}


def _deleted_topics(stored: bytes) -> Row:
    """Return the columns of deleted topics.

    Each topic has the offset below which it has no messages.
    """
    try:
        offsets = parse_deleted_topics(stored)
    except ValueError:
        return {"state": "unreadable"}
    content = {topic.decode("utf-8", "backslashreplace"): offset for topic, offset in offsets.items()}
    return {"entries": len(content), "content": content}


def _judge_backups(view: StoreView, rows: list[Row], findings: list[Finding]) -> None:
    """Add findings for files whose readers take the backup, and for unreadable ones."""
    states = {row["file"]: row["state"] for row in rows}
    for file in sorted({file.removesuffix(".bak") for file in states if not file.endswith(".tmp")}):
        state, backup = states.get(file, "missing"), states.get(f"{file}.bak", "missing")
        if state == "ok" or not file.endswith(".json"):
            continue
        message = f"the file is {state}, its backup is {backup}"
        if backup == "ok":
            remedy = "none needed: readers take the backup, which is one version older"
            findings.append(Finding("CFG_FROM_BACKUP", "note", file, None, message, remedy))
        else:
            remedy = "restore it from a copy; a store that finds neither begins with empty tables"
            findings.append(Finding("CFG_UNREADABLE", derived_severity(view), file, None, message, remedy))


def _entries(content: Any) -> int | None:
    """Return the number of entries in the tables of a file: its maps and lists.

    The version is not counted.
    """
    if not isinstance(content, dict):
        return None
    tables = [value for name, value in content.items() if name != "dataVersion" and isinstance(value, dict | list)]
    return sum(map(len, tables))


def _file_columns(view: StoreView, name: str) -> Row:
    try:
        status = (view.store_dir / name).stat()
    except OSError:
        return {"file": name, "present": False, "size": None, "modified": None}
    return {"file": name, "present": True, "size": status.st_size, "modified": status.st_mtime_ns // 1_000_000}


def _no_access(label: str, error: OSError) -> Finding:
    message = f"cannot be read: {error.strerror or error}"
    return Finding("CL_NO_ACCESS", "note", label, None, message, "look again with permission to read it")
