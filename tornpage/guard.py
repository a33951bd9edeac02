"""Start the command line, after checks of system and Python version.

1. Until the checks have passed, only the standard library is imported.
2. The checks: Linux; Python 3.11 or newer.
3. A refusal is one line on standard error and exit code 2.
4. An interrupt is one line from the first statement of `main` on. So this module imports only what the interpreter has
   loaded before it.

The syntax stays that of Python 3.7, so that an old Python reaches check 2.
"""

from __future__ import annotations

import os
import sys

__all__ = ["HOME", "main", "python_command", "unsupported"]

HOME = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
"""Directory that holds the tornpage package."""


def main() -> int:
    """Run the command line. Return 2 if a check fails, 130 after an early interrupt."""
    try:
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is None:  # it was closed: the next opened file would take its number and the output
                setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        refusal = unsupported(sys.platform, sys.version_info[:3])
        if refusal is not None:
            _say("tornpage: " + refusal)
            return 2

        from tornpage.cli.interrupts import hear_all_interrupts

        hear_all_interrupts()
        from tornpage.cli.main import main as cli

        cli()
    except KeyboardInterrupt:  # before there was a command
        _leave_interrupted()
    return 0


def _leave_interrupted() -> None:
    """Print the line and end at once.

    In Python's own clean-up a second interrupt would print a traceback.
    """
    try:
        _say("interrupted")
    finally:
        os._exit(130)


def _say(line: str) -> None:
    """Print a line on standard error, without an import of `tornpage.cli.document`."""
    try:  # contextlib is not loaded yet
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
    except OSError:
        pass


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
