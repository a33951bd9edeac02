"""Complete arguments in a shell, without slow imports.

Names from a store directory are offered only if they are plain text, because a shell prints them.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

import click
from click.shell_completion import CompletionItem

__all__ = ["bug_ids", "case_files", "codes_and_case_files", "fault_names", "names_in_a_store"]

_PLAIN = re.compile(r"[\w.%@/-]+", re.ASCII)
_NAMES_MAX = 500


def bug_ids(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Return the planted bugs whose id begins with the text."""
    from tornpage.properties.bug_ids import planted_ids

    return _beginning(planted_ids(), incomplete)


def fault_names(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Return the I/O faults whose name begins with the text."""
    from tornpage.properties.program.fault_effects import EFFECTS

    return _beginning(EFFECTS, incomplete)


def case_files(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Make the shell offer files; tokens are pasted."""
    return [CompletionItem(incomplete, type="file")]


def codes_and_case_files(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the codes of findings that begin with the text, or make the shell offer files."""
    from tornpage.render.finding_codes import finding_codes

    codes = _beginning(finding_codes(), incomplete) if incomplete else []
    return [CompletionItem(code) for code in codes] or [CompletionItem(incomplete, type="file")]


def names_in_a_store(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return values of NAME for a view of `inspect`: queues, index files, files below config."""
    store, view = Path(ctx.params.get("store") or ""), ctx.params.get("view")
    if view == "queue":
        return _beginning(_queues(store / "consumequeue", incomplete), incomplete)
    if view == "ext":
        return _beginning(_queues(store / "consumequeue_ext", incomplete), incomplete)
    return _beginning(_listed(store / view), incomplete) if view in ("index", "config") else []


def _queues(directory: Path, incomplete: str) -> list[str]:
    topics = _beginning(_listed(directory), incomplete.partition("/")[0])
    return [f"{topic}/{queue}" for topic in topics for queue in _listed(directory / topic)]


def _listed(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _beginning(names: Iterable[str], incomplete: str) -> list[str]:
    found = sorted({name for name in names if name.startswith(incomplete) and _PLAIN.fullmatch(name)})
    return found[:_NAMES_MAX]
