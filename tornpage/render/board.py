"""The board as text, as Markdown and as values for the HTML page."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tornpage.outcomes.board import RowResult
from tornpage.properties.judge.rulings import counted

if TYPE_CHECKING:
    from tornpage.peers.board.catalogue import Row

__all__ = ["board_markdown", "board_text", "page_values", "story"]

_WORDS = {"put": "put", "open": "close and open", "flush": "flush", "close": "close", "crash": "crash"}
_HEAD = ("software", "version", "mode", "safe after", "disk", "states (power losses)", "verdict", "first failure")
_MARKED = {
    "holds": "holds",
    "broken": "**broken**",
    "vacuous": "vacuous",
    "unknown": "not judged",
    "skipped": "skipped",
}


def _row(result: RowResult) -> "Row":
    from tornpage.peers.board.catalogue import ROWS

    return next(row for row in ROWS if row.name == result.name)


def story(finding: dict[str, Any]) -> str:
    """Return a counterexample in words: operations, crash, what was lost and seen."""
    lines = [_plain(line) for line in finding.get("crash", [])]
    what = next((line.removeprefix("crash ").strip() for line in lines if line.startswith("crash")), "")
    lost = next((line.removeprefix("lost ").strip() for line in lines if line.startswith("lost")), "")
    begin = lines.index("legal because") + 1 if "legal because" in lines else len(lines)
    operations = [_operation(line) for line in finding.get("program", [])]
    parts = [f"Operations: {', '.join(operations)}", f"The crash: {what}" if what else ""]
    parts += [f"Lost: {lost}" if lost else "", *(f"This is legal: {line}" for line in lines[begin : begin + 1])]
    seen = f"Seen: {finding['sentence']}"
    if finding.get("expected") and finding.get("expected") != "an answer":
        seen += f"; expected {finding['expected']}; found {finding['found']}"
    elif finding.get("found"):
        seen += f" ({finding['found']})"
    return ". ".join(filter(None, [*parts, _plain(seen)])) + "."


def _plain(text: str) -> str:
    """Return a line without repeated blanks, addresses of this run and characters of tables."""
    text = re.sub(r"/\S*?(board-dque-|/tmp/)\d*\S*", "…", " ".join(text.split()))
    return text.replace("|", "/").replace("<", "‹").replace(">", "›").replace("`", "'")


def _operation(line: str) -> str:
    name = line.partition("(")[0]
    if name == "crash":
        return "kill" if "kill=True" in line else "power loss"
    return _WORDS.get(name, "read" if name in ("get", "get_message", "query_key") else name)


def _states(result: RowResult) -> str:
    return "" if result.skipped else f"{result.states:,} ({result.power:,})"


def _first(result: RowResult) -> str:
    return "" if result.first_failure_s is None or result.skipped else f"{result.first_failure_s:.1f} s"


def _verdict(result: RowResult) -> str:
    """Return the verdict with its reason and a note about the creation of the store."""
    why = result.reason or (result.left_out if result.verdict == "vacuous" else "")
    marked = _MARKED[result.verdict] + (f": {_plain(why)}" if why else "")
    marked += ", as documented" if result.verdict == "broken" and _row(result).allowed else ""
    return marked + ("; its creation does not survive" if result.creation and not result.skipped else "")


def _cells(result: RowResult) -> list[str]:
    row = _row(result)
    promised = result.promises.replace("durable after", "power:").replace("safe from a kill after", "kill:") or "-"
    return [
        row.software, result.version, row.mode, promised, result.disk, _states(result), _verdict(result), _first(result)
    ]  # fmt: skip


def board_text(results: Sequence[RowResult]) -> str:
    """Return the board as text: one line per row, then each failure in words."""
    lines = [
        f"{each.name:<22}{each.disk:<14}{each.verdict:<9}{_states(each):>16}  {_first(each):>8}"
        + (f"  {each.reason or each.left_out}" if each.reason or each.left_out else "")
        for each in results
    ]
    for each in results:
        for kind, findings in (("broken", each.findings), ("creation", each.creation)):
            lines += (
                ["", *(f"{each.name} on {each.disk}, {kind}. {story(found)}" for found in findings)] if findings else []
            )
        lines += [
            f"  {'confirmed' if done.shows else 'not shown'} by {done.program}: {done.said}"
            for done in each.confirmations
        ]
    return "\n".join(lines)


def board_markdown(results: Sequence[RowResult], *, command: str) -> str:
    """Return the board as a Markdown page."""
    from tornpage.peers.board.catalogue import ROWS

    counts = {name: sum(each.verdict == name for each in results) for name in _MARKED}
    said = ", ".join(f"{number} {_MARKED[name].strip('*')}" for name, number in counts.items() if number)
    days = sorted({each.day for each in results if each.day})
    lines = ["# The board: real stores and their promises", "", *_INTRODUCTION, "", *_COMMANDS, ""]
    lines += [
        f"{counted(len(results), 'row')}: {said}. Last run: {days[-1] if days else 'never'}. Command: `{command}`.",
        "",
    ]
    lines += [_table(_HEAD), _table(["---"] * len(_HEAD)), *(_table(_cells(each)) for each in results), ""]
    lines += ["## What the stores document", "", _table(("row", "promise", "source")), _table(["---"] * 3)]
    shown = {each.name for each in results}
    lines += [_table((row.name, row.quote, row.source)) for row in ROWS if row.name in shown] + [""]
    lines += ["## Counterexamples", ""]
    for each in results:
        if each.findings and not each.skipped:
            row = _row(each)
            lines += [
                f"### {row.software}, {row.mode}, on {each.disk}",
                "",
                *(story(found) for found in each.findings),
                "",
            ]
            lines += [f"The documents allow this: {row.allowed}", ""] if row.allowed else []
            lines += [_confirmation(each), ""]
    created = [each for each in results if each.creation and not each.skipped]
    if created:
        lines += ["## Crashes inside the very first open", "", *_CREATION, ""]
        lines += [
            f"* {_row(each).software}, {_row(each).mode}, on {each.disk}. {story(each.creation[0])}" for each in created
        ]
        lines += [""]
    return "\n".join(lines)


def _confirmation(result: RowResult) -> str:
    """Return how a failure was confirmed without tornpage."""
    shown = [each for each in result.confirmations if each.shows]
    if not shown:
        return "Not confirmed without tornpage."
    return "\n".join(
        f"Confirmed without tornpage by `peers/board/reproductions/{each.program}`: {_plain(each.said)}"
        for each in shown
    )


def _table(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


_INTRODUCTION = """\
`tornpage board` runs adapters for real stores. Each row is a store in one mode on one disk model. Most adapters keep
one ordered log of records in the store. Those of the modes "key-value" and "queues" use it as such a store. A power
loss or a kill may happen at every file operation. The row is broken if a promise of its adapter does not hold in one
state. A row that holds is as strong as its number of power losses. A row without a power loss that lost something is
vacuous. [The contract](../contract.md#crash-model) describes the disk models, and
[measured disks](../disks/measured.md) how the rules of `ext4`, `xfs` and `btrfs` were found. On `posix-strict` each
name that was not synced may be lost, so a store that never syncs its directory breaks there.""".splitlines()
_COMMANDS = """\
```text
$ tornpage board install all
$ tornpage board --states 5000 --seconds 600 --resume --markdown board.md --html board.html
```

`board install` puts the libraries and the compiled adapters into the cache directory of the user. A store that cannot
be had is a row with the reason. `--resume` continues the kept results, so the states of several runs add up. `--only`
takes a row, a software or an ecosystem (`tornpage board list`).""".splitlines()
_CREATION = """\
A crash inside the very first open leaves a store that does not open. Nothing was acknowledged, so no data is lost. The
files have to be removed by hand.""".splitlines()


def page_values(results: Sequence[RowResult], *, command: str) -> dict[str, Any]:
    """Return the values of the HTML page."""
    rows = [
        {
            "cells": [cell.replace("**", "") for cell in _cells(each)],
            "verdict": each.verdict,
            "quote": _row(each).quote,
            "source": _row(each).source,
            "stories": [story(found) for found in each.findings],
            "confirmation": _confirmation(each).replace("`", "") if each.findings else "",
            "creation": [story(found) for found in each.creation],
        }
        for each in results
    ]
    return {"head": _HEAD, "rows": rows, "command": command}
