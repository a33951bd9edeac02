"""Output directories that belong to one run: a file has the request, which is compared.

A file of a run gets its name when it is complete and synced, so that a power failure leaves all of it or nothing. A
resumed run counts a named file as done.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tornpage.properties.campaign.sources import sources_digest

__all__ = ["OutputTaken", "claim", "name_durably", "read_json", "whole"]


class OutputTaken(Exception):
    """The output directory belongs to another run; the message is one line with the remedy."""


@contextlib.contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Yield a place for a file, which gets its name when everything is durable.

    After an error nothing is left. The directory of the file is made. Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        yield unfinished
        name_durably(unfinished, path)
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)


def name_durably(unfinished: Path, path: Path) -> None:
    """Give a written file its name: its content is durable before, the name after.

    Raises OSError.
    """
    _sync(unfinished)
    unfinished.replace(path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def read_json(path: Path) -> Any:
    """Return the content of a JSON file.

    Raises OSError, and ValueError with a reason in one line.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def claim(out: Path, asked: Mapping[str, Any], *, name: str, what: str, resume: bool) -> None:
    """Make the directory and write the request to its file `name`, or compare it.

    The request has a digest of the sources too: rows of two versions have no common result. `what` is the word for such
    a run in messages. Raises OutputTaken and OSError.
    """
    path = out / name
    asked = {**asked, "sources": sources_digest()}
    if not (out.is_dir() and any(out.iterdir())):
        with whole(path) as unfinished:
            unfinished.write_text(json.dumps(asked, indent=2, sort_keys=True) + "\n")
        return
    if not path.is_file():
        raise OutputTaken(f"{out} is not empty and has no {what}; name another --out directory")
    if not resume:
        raise OutputTaken(f"{out} holds a {what}; continue with --resume, or name another --out directory")
    try:
        before = read_json(path)
    except ValueError as error:
        raise OutputTaken(f"{path} cannot be read: {error}; name another --out directory") from error
    differing = sorted(key for key in asked if not isinstance(before, dict) or before.get(key) != asked[key])
    if differing == ["sources"]:
        why = "rows of two versions have no common result"
        raise OutputTaken(f"{out} holds a {what} of other sources of tornpage; {why}; name another --out directory")
    if differing or before != asked:
        others = f" (other {', '.join(differing)})" if differing else ""
        raise OutputTaken(f"{out} holds another {what}{others}; name another --out directory")
