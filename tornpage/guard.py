"""Start the command line, after checks of system and Python version.

1. Until the checks have passed, only the standard library is imported.
2. The checks: Linux; Python 3.11 or newer.
3. A refusal is one line on standard error and exit code 2.

The syntax stays that of Python 3.7, so that an old Python reaches check 2.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys

__all__ = ["HOME", "main", "python_command", "unsupported"]

HOME = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
"""Directory that holds the tornpage package."""


def main() -> int:
    """Run the command line. Return 2 if a check fails, 130 after an early interrupt."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed: the next opened file would take its number and get the output
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    try:
        refusal = unsupported(sys.platform, sys.version_info[:3])
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
    """Print a line on standard error, without an import of `tornpage.cli.document`."""
    with contextlib.suppress(OSError):
        sys.stderr.write(line + "\n")


def python_command(module: str, *args: str) -> list[str]:
    """Return the command that runs `module` with this interpreter and a safe path."""
    return [sys.executable, "-P", "-m", module, *args]


def unsupported(platform: str, version: tuple[int, ...]) -> str | None:
    """Return why tornpage cannot run here, or None; arguments as in `sys`."""
    if platform != "linux":
        return f"runs on Linux only; this is {platform}"
    if version < (3, 11):
        found = ".".join(map(str, version))
        return f"needs Python 3.11 or newer; this is {found}"
    return None
