"""Render the page of the board of real stores."""

from collections.abc import Mapping, Sequence
from typing import Any

from tornpage.reports.pages.templating import rendered

__all__ = ["render_board"]


def render_board(head: Sequence[str], rows: Sequence[Mapping[str, Any]], command: str) -> str:
    """Return the page: a table of all rows, then promise and counterexamples of each."""
    return rendered("board.html", (), head=head, rows=rows, command=command)
