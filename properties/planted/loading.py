"""Bugs in what is taken for the log when a store is opened, after those that RocketMQ had (RMQ-B..)."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from impl.durable_floor import Floor
from impl.files import Files
from impl.loading import Finding, FoundLog, examine_log
from impl.log_directories import LogDirectories, directory_of
from impl.parts import Parts

__all__ = ["BUGS"]


def _empty_newest_blocks(
    files: Files, directories: LogDirectories, *, file_bytes: int, floor: Floor | None
) -> FoundLog:
    """A newest file without a byte keeps the store from starting."""
    found = examine_log(files, directories, file_bytes=file_bytes, floor=floor)
    empty = [path for path in found.leftovers if (stat := files.stat(path)) is not None and not stat.size_bytes]
    blocking = tuple(Finding("damage", "short_file", path, 0, f"{path} is empty") for path in empty)
    return replace(found, findings=found.findings + blocking)


def _short_file_ends_the_load(
    files: Files, directories: LogDirectories, *, file_bytes: int, floor: Floor | None
) -> FoundLog:
    """The files before one of another size are taken for the whole log, and nothing is said."""
    found = examine_log(files, directories, file_bytes=file_bytes, floor=floor)
    sizes = [stat.size_bytes if (stat := files.stat(path)) is not None else 0 for path in found.paths]
    whole = next((number for number, size in enumerate(sizes) if size != file_bytes), len(sizes))
    kept = tuple(finding for finding in found.findings if finding.code != "short_file")
    return replace(found, paths=found.paths[:whole], findings=kept)


def _in_the_order_of_paths(
    files: Files, directories: LogDirectories, *, file_bytes: int, floor: Floor | None
) -> FoundLog:
    """The files of several directories are put in a row by their paths."""
    found = examine_log(files, directories, file_bytes=file_bytes, floor=floor)
    return replace(found, paths=tuple(sorted(found.paths)))


class _NamedAfterTheList(LogDirectories):
    """Several directories become one that has the whole list for its name."""

    def __init__(self, files: Files, paths: Collection[str], **options: Any) -> None:
        names = [path.rpartition("/")[2] for path in paths]
        super().__init__(files, [f"{directory_of(min(paths))}/{','.join(names)}"], **options)


BUGS = (
    ("RMQ-B08", "an empty newest file keeps the store from starting", 7, Parts({examine_log: _empty_newest_blocks})),
    ("RMQ-B09", "a file of another size silently ends the log", 7, Parts({examine_log: _short_file_ends_the_load})),
    ("RMQ-B10", "files of several directories are loaded in the order of their paths", 1,
     Parts({examine_log: _in_the_order_of_paths})),
    ("RMQ-B79", "several directories become one named after the list", 1,
     Parts({LogDirectories: _NamedAfterTheList})),
)  # fmt: skip
