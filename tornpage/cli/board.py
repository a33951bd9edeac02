"""`tornpage board` and its verbs."""

import shlex
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from tornpage.cli import options
from tornpage.cli.document import emit, say

__all__ = ["command"]

_STATES, _SECONDS = 200, 60.0


def _names(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from tornpage.peers.board.catalogue import ROWS

    return [CompletionItem(row.name) for row in ROWS if row.name.startswith(incomplete)]


@click.group("board", invoke_without_command=True)
@click.option(
    "--only",
    metavar="NAME",
    multiple=True,
    shell_complete=_names,
    help="A row, a software or an ecosystem (`tornpage board list`); may be repeated.",
)
@click.option(
    "--states", type=click.IntRange(min=1), default=_STATES, show_default=True, help="Power losses of each row."
)
@click.option(
    "--seconds", type=options.Seconds(min=0.2), default=_SECONDS, show_default=True, help="Longest time of each row."
)
@click.option(
    "--disk",
    "disks",
    type=click.Choice([disk for disk in options.DISKS if disk != "kill"]),
    multiple=True,
    help="Only on this disk; may be repeated (default: the disks of each row).",
)
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Rows at the same time.")
@click.option("--resume", is_flag=True, help="Continue the kept results of earlier runs.")
@click.option("--kept", is_flag=True, help="Make no crash states: show the kept results of earlier runs.")
@click.option("--no-confirm", is_flag=True, help="Do not run the reproductions of broken rows.")
@click.option("--out", type=click.Path(file_okay=False), default=None, help="Directory of the kept results.")
@click.option("--markdown", type=click.Path(dir_okay=False), default=None, help="Write the page as Markdown.")
@click.option("--html", type=click.Path(dir_okay=False), default=None, help="Write the page as HTML.")
@options.seed_option
@options.json_option
@click.pass_context
def command(context: click.Context, /, as_json: bool, markdown: str | None, html: str | None, **asked: Any) -> None:
    """Test real stores against what they promise, and write the page of the results.

    Each row is a store in one mode on one disk. Stores that are not installed are skipped with a reason.

    \b
    tornpage board install all
    tornpage board --only sqlite --states 100
    tornpage board --kept --html board.html
    tornpage board --states 5000 --seconds 600 --resume --markdown board.md --html board.html
    """
    if context.invoked_subcommand is not None:
        return
    from tornpage.outcomes.board import BoardRequest, board_outcome, run_board
    from tornpage.run.writing import new_file, new_page, write_whole, writing

    if html is not None:
        new_page(html, option="--html", overwrite=False)
    if markdown is not None:
        new_file(markdown, option="--markdown", overwrite=Path(markdown).is_file() and _is_board(Path(markdown)))
    asked["confirm"] = not asked.pop("no_confirm")
    asked["out"] = None if asked["out"] is None else Path(asked["out"])
    request = BoardRequest(**asked)
    results, interrupted = run_board(request, progress=say)
    again = _command_line(request)
    if markdown is not None:
        from tornpage.render.board import board_markdown

        with writing(markdown, option="--markdown"):
            write_whole(markdown, board_markdown(results, command=again))
    if html is not None:
        from tornpage.render.board import page_values
        from tornpage.reports.pages.board_page import render_board

        with writing(html, option="--html"):
            write_whole(html, render_board(**page_values(results, command=again)))
    outcome, text = board_outcome(results, request, interrupted=interrupted)
    emit(outcome, as_json=as_json, text=text)


def _is_board(path: Path) -> bool:
    """Return whether a file is a page that this command wrote."""
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.readline().startswith("# The board")


def _command_line(request: Any) -> str:
    words = ["tornpage", "board", *(word for name in request.only for word in ("--only", name))]
    words += ["--states", str(request.states), "--seconds", f"{request.seconds:g}", "--seed", str(request.seed)]
    words += [word for disk in request.disks for word in ("--disk", disk)]
    words += ["--resume"] if request.resume else []
    return shlex.join([*words, *(["--kept"] if request.kept else [])])


@command.command("list", short_help="The rows of the board.")
@click.argument("names", nargs=-1, shell_complete=_names)
@options.json_option
def _list(names: tuple[str, ...], as_json: bool) -> None:
    """List the rows of the board, and whether each can run here.

    \b
    tornpage board list
    """
    from tornpage.outcomes.board import list_outcome

    outcome, text = list_outcome(names)
    emit(outcome, as_json=as_json, text=text)


@command.command("install", short_help="Install the stores of the board.")
@click.argument("names", nargs=-1, required=True, shell_complete=_names)
@click.option("--offline", is_flag=True, help="Take packages from local caches only.")
@options.json_option
def _install(names: tuple[str, ...], offline: bool, as_json: bool) -> None:
    """Install the stores of some rows, or of `all`, into the cache directory.

    The cache directory is $XDG_CACHE_HOME/tornpage/board, or ~/.cache/tornpage/board. Python libraries need pip, the
    other adapters Go, Rust (cargo), or a JDK and Maven.

    \b
    tornpage board install all
    tornpage board install lmdb-sync go
    """
    from tornpage.outcomes.board import install_outcome

    outcome, text = install_outcome(names, offline=offline)
    emit(outcome, as_json=as_json, text=text)
