"""Start of the command line: refuse what cannot work, in one line, before anything else is imported.

1. Until the checks have passed, only the standard library is imported.
2. The checks: Linux; Python 3.11 or newer; each of our packages comes from the directory that holds this one.
   Our packages have common names (`model`, `reports`), so that a user's own folder can take their place.
3. A refusal is one line on standard error and exit code 2.

The syntax stays that of Python 3.7, so that an old Python reaches check 2.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import sys
from typing import NamedTuple

__all__ = ["HOME", "PACKAGES", "Shadow", "describe", "main", "python_command", "shadowing", "unsupported"]

HOME = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
"""Directory that holds the tornpage package, and has to hold the others."""

PACKAGES = ("bench", "impl", "model", "pipeline", "properties", "reports", "sim", "tornpage")
"""Our import packages. pyproject.toml names the same ones."""


class Shadow(NamedTuple):
    """A package of ours that an import would not take from where it belongs."""

    package: str
    path: str | None
    """What an import would take; None when it would find nothing."""


def main() -> int:
    """Run the command line, or say in one line why it cannot run and return 2; 130 if it is interrupted before that."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed: a file of ours would be opened in its place, and printed to
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    try:
        refusal = _refusal()
        if refusal is not None:
            _say("tornpage: " + refusal)
            return 2

        from tornpage.cli.interrupts import hear_all_interrupts

        hear_all_interrupts()
        from tornpage.cli.main import main as cli

        cli()
    except KeyboardInterrupt:  # before there was a command
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _say("interrupted")
        return 130
    return 0


def _say(line: str) -> None:
    """Print a line on standard error, as `tornpage.cli.document.say`, which must not be imported before the checks."""
    with contextlib.suppress(OSError):
        sys.stderr.write(line + "\n")


def python_command(module: str, *args: str) -> list[str]:
    """Return the command that runs `module` in a process of ours: this interpreter, with a safe path."""
    return [sys.executable, "-P", "-m", module, *args]


def _refusal() -> str | None:
    refusal = unsupported(sys.platform, sys.version_info[:3])
    if refusal is None:
        shadow = shadowing()
        refusal = None if shadow is None else describe(shadow)
    return refusal


def unsupported(platform: str, version: tuple[int, ...]) -> str | None:
    """Return why tornpage cannot run here, or None. `platform` and `version` are spelt as in `sys`."""
    if platform != "linux":
        return f"runs on Linux only; this is {platform}"
    if version < (3, 11):
        found = ".".join(map(str, version))
        return f"needs Python 3.11 or newer; this is {found}"
    return None


def shadowing(home: str = HOME, packages: tuple[str, ...] = PACKAGES) -> Shadow | None:
    """Return the first of `packages` that an import would not take from `home`, or None. Imports nothing."""
    for package in packages:
        found = _locations(package)
        if os.path.join(home, package) not in map(os.path.realpath, found):
            return Shadow(package, found[0] if found else None)
    return None


def describe(shadow: Shadow, home: str = HOME) -> str:
    """Return what is wrong and the remedy, in one line."""
    if shadow.path is None:
        return f"package {shadow.package!r} is missing from {home}; install tornpage again"
    return (
        f"package {shadow.package!r} is shadowed by {shadow.path}; start with `tornpage` or "
        f"`python -P -m tornpage`, and remove {os.path.dirname(shadow.path)} from PYTHONPATH"
    )


def _locations(package: str) -> list[str]:
    """Return the directories of `package` as an import would find it; for a plain module, its file."""
    spec = importlib.util.find_spec(package)
    if spec is None:
        return []
    if spec.submodule_search_locations is not None:
        return list(spec.submodule_search_locations)
    return [spec.origin or package]
