"""Compare the code and the directories of driver and workers.

Rows depend on the code, so both must run the same. A worker of a cluster has a file system of its own: a directory that
it does not see must never become a finding about a store.
"""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import metadata

from tornpage.pipeline.spark.session import SparkUnavailable
from tornpage.properties.campaign.sources import sources_digest

__all__ = ["PathUnseen", "VersionsDiffer", "differing", "missing_module", "require_seen", "unseen", "versions"]

_PACKAGES = ("tornpage", "numpy", "pyarrow")


class VersionsDiffer(SparkUnavailable):
    """Driver and workers run different versions; the message is one line with the remedy."""


class PathUnseen(SparkUnavailable):
    """A worker does not see a directory; the message is one line with the remedy."""


@cache
def versions() -> dict[str, str]:
    """Return versions of Python and packages, and a digest of the project's code.

    They are those of this process, taken once.
    """
    found = {"Python": ".".join(map(str, sys.version_info[:2]))}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return {**found, "code of tornpage": sources_digest()}


def differing(workers: Mapping[str, str], driver: Mapping[str, str]) -> VersionsDiffer | None:
    """Return the error of workers that differ from the driver, or None.

    Only the code counts, not how it is installed: a tree that is run in place has no package versions.
    """
    counted = [name for name in driver if name != "tornpage" and workers.get(name) != driver[name]]
    if not counted:
        return None
    shown = [name for name in driver if workers.get(name) != driver[name]]
    said = ", ".join(f"{name} {workers.get(name, 'unknown')}, here {driver[name]}" for name in shown)
    return VersionsDiffer(f"workers have other versions: {said}; install there what is installed here")


def missing_module(error: BaseException) -> VersionsDiffer | None:
    """Return the error of a job that failed because workers lack a module, or None."""
    said = str(error)
    if "PYTHON_VERSION_MISMATCH" in said:
        return VersionsDiffer("workers run another version of Python; set PYSPARK_PYTHON to one like the driver's")
    names = re.findall(r"No module named '([^']+)'", said)
    if not names:
        return None
    return VersionsDiffer(f"workers have no module {names[-1]}; install there what is installed here")


def require_seen(directories: Iterable[str | os.PathLike[str]]) -> None:
    """Raise PathUnseen if this process does not see one of these absolute directories."""
    for directory in directories:
        if not os.path.isdir(directory):
            here = f"the worker on {socket.gethostname()}"
            raise PathUnseen(f"{here} does not see the directory {directory}; put it where all workers see it")


def unseen(error: BaseException) -> PathUnseen | None:
    """Return the error of a job whose worker did not see a directory, or None."""
    found = re.search(r"PathUnseen: (the worker on .+)", str(error))
    return None if found is None else PathUnseen(found[1])
