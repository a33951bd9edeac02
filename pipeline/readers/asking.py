"""The request to a reader, from Spark's options: format, table, columns and places."""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tornpage.pipeline.readers.conditions import Conditions
from tornpage.pipeline.readers.tables import FORMATS, PROBLEMS, ROWS, usual_columns
from tornpage.pipeline.tables.described import struct_of
from tornpage.properties.decode.record import drops_joined_pairs

__all__ = ["SPLIT_BYTES", "Ask", "ReaderError"]

SPLIT_BYTES = 256 * 1024 * 1024
"""The least size of the parts in which log files are read without the option `splitBytes`."""

_OPTIONS = (
    "columns", "filebytes", "maxbytespertrigger", "path", "paths", "rocketmqversion", "slots", "splitbytes", "table"
)  # fmt: skip
_SHOWN = ("columns", "fileBytes", "maxBytesPerTrigger", "path", "rocketmqVersion", "slots", "splitBytes", "table")
_TRIGGER_BYTES = 1 << 30
_DIGITS_MAX = 15
"""The digits of the largest size: a PiB is 10^15 bytes."""


class ReaderError(ValueError):
    """The options of a reader are wrong; the message is one line with the remedy."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Checked options.

    `file_bytes` is the configured size of a log file, `slots` the number of hash slots of an index file. `split_bytes`
    is 0 if files are not split, and None if planning chooses the size of parts. `conditions` leave out rows, for a
    reader that has them from Spark. `drops_joined` is as in `parse_properties`.
    """

    format: str
    stores: tuple[str, ...]
    table: str
    columns: tuple[str, ...]
    file_bytes: int | None = None
    slots: int | None = None
    split_bytes: int | None = None
    trigger_bytes: int = _TRIGGER_BYTES
    conditions: Conditions | None = None
    drops_joined: bool = False

    @classmethod
    def of(cls, name: str, options: Mapping[str, str]) -> Ask:
        """Read the options of a format; case does not matter in their names. Raises ReaderError."""
        given = {key.lower(): value for key, value in options.items()}
        if "provider" in given:  # Spark adds it for a table; Spark 4.3 opens the table later without any of its options
            raise ReaderError(
                f"Spark does not pass the options of a table to {name} when the table is read; "
                f"use CREATE TEMPORARY VIEW … USING `{name}` OPTIONS (path '…')"
            )
        for key in sorted(given.keys() - set(_OPTIONS)):
            raise ReaderError(f"{name} has no option {key!r}; it has {', '.join(_SHOWN)}")
        tables = FORMATS[name]
        table = given.get("table", ROWS)
        if table not in tables:
            raise ReaderError(f"{name} has no table {table!r}; it has {', '.join(tables)}")
        return cls(
            format=name,
            stores=_stores(name, given),
            table=table,
            columns=_columns(name, table, given.get("columns")),
            file_bytes=_number(name, "fileBytes", given, None, least=1),
            slots=_number(name, "slots", given, None, least=1),
            split_bytes=_number(name, "splitBytes", given, None, least=0),
            trigger_bytes=_number(name, "maxBytesPerTrigger", given, _TRIGGER_BYTES, least=1) or 1,
            drops_joined=_drops_joined(name, given.get("rocketmqversion")),
        )

    @property
    def schema(self) -> dict[str, Any]:
        """The schema of the table, as Spark's JSON."""
        return struct_of(FORMATS[self.format][self.table], self.columns)

    @property
    def wants_problems(self) -> bool:
        """Whether the request is for the table of problems, without rows."""
        return self.table == PROBLEMS


def _stores(name: str, given: Mapping[str, str]) -> tuple[str, ...]:
    stores: list[str] = [given["path"]] if "path" in given else []
    if "paths" in given:
        try:
            stores += map(str, json.loads(given["paths"]))
        except ValueError as error:
            raise ReaderError(f"{name}: the option paths is no JSON list of directories: {error}") from error
    if not stores:
        raise ReaderError(f"{name} reads store directories: name one or several in load(...)")
    stores = [re.sub(r"^file:(?://)?(?=/)", "", store) for store in stores]
    for store in stores:
        if "://" in store:
            raise ReaderError(
                f"{name} reads directories that all workers can see as files; {store} is none: copy the store first"
            )
        if not Path(store).is_dir():
            raise ReaderError(f"there is no store directory {store}; name one that driver and workers can see")
    return tuple(os.path.abspath(store) for store in stores)


def _columns(name: str, table: str, wanted: str | None) -> tuple[str, ...]:
    columns = FORMATS[name][table]
    if wanted is None:
        return usual_columns(columns)
    if wanted.strip() == "*":
        return tuple(columns)
    names = tuple(dict.fromkeys(each.strip() for each in wanted.split(",") if each.strip()))
    for each in names:
        if each not in columns:
            near = difflib.get_close_matches(each, columns, n=3) or columns
            raise ReaderError(f"{name} has no column {each!r} in its {table}; there is {', '.join(near)}")
    if not names:
        raise ReaderError(f"{name}: the option columns names no column; leave it out, or name some, or *")
    return names


def _drops_joined(name: str, version: str | None) -> bool:
    if version is None:
        return False
    try:
        return drops_joined_pairs(version)
    except ValueError as error:
        raise ReaderError(f"{name}: rocketmqVersion {version[:40]!r} names no release; {error}") from error


def _number(name: str, option: str, given: Mapping[str, str], usual: int | None, *, least: int) -> int | None:
    text = given.get(option.lower())
    if text is None:
        return usual
    is_number = text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX
    if not is_number or int(text) < least:
        raise ReaderError(f"{name}: {option} is a whole number of at least {least}, not {text[:40]!r}")
    return int(text)
