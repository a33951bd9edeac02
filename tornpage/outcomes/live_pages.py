"""Parts of pages that a command writes, between two comments in Markdown.

A part begins with `<!-- begin NAME -->` and ends with `<!-- end NAME -->`, each on a line of its own.
"""

from pathlib import Path

from tornpage.cli.document import refuse
from tornpage.run.writing import write_whole, writing

__all__ = ["part_of", "write_part"]


def _marks(name: str) -> tuple[str, str]:
    return f"<!-- begin {name} -->\n", f"<!-- end {name} -->"


def part_of(page: str, name: str) -> str:
    """Return the text of a part of a page. A page without that part ends the command."""
    begin, end = _marks(name)
    try:
        text = Path(page).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        refuse(f"cannot read {page}: {getattr(error, 'strerror', None) or error}; name another --page")
    if begin not in text or end not in text.partition(begin)[2]:
        refuse(f"{page} has no part {name!r}; name the page that has the line {begin.strip()}")
    return text.partition(begin)[2].partition(end)[0]


def write_part(page: str, name: str, part: str) -> None:
    """Replace a part of a page; the rest of the page stays."""
    begin, end = _marks(name)
    if not Path(page).exists():
        text = f"{begin}{part}{end}\n"
    else:
        part_of(page, name)
        before, _, rest = Path(page).read_text(encoding="utf-8").partition(begin)
        text = f"{before}{begin}{part}{end}{rest.partition(end)[2]}"
    with writing(page, option="--page"):
        write_whole(page, text)
