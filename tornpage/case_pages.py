"""Pages of counterexamples beside the report of a run: `case-….html`, one for each cause, which the report links to."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tornpage.document import warn

if TYPE_CHECKING:
    from reports.tables import Run

__all__ = ["write_case_pages"]


def write_case_pages(
    directory: Path, *, pages_max: int, progress: Callable[[str], None] = lambda name: None
) -> list[Path]:
    """Write the missing pages of a run's causes, the gravest first, `pages_max` at most; return those written.

    A case that does not fail any more, or cannot be read, has no page, and a line on standard error says why. Raises
    ReportError for what is no run directory, and OSError.
    """
    from properties.planted import UnknownBug
    from properties.program.packing import BadToken
    from reports.findings import page_name
    from reports.tables import read_run
    from tornpage.counterexamples import case_page
    from tornpage.given_cases import text_of

    written: list[Path] = []
    for token in _tokens(read_run(directory)):
        if len(written) == pages_max:
            break
        given = text_of(token)
        if given.is_interleaving:
            continue
        progress(given.name)
        try:
            case = given.case()
            if case.settings.target:  # there are pages of cases of our own store alone
                continue
            page = case_page(case)
        except (BadToken, UnknownBug) as error:
            warn(f"no page for {given.name}: {error}")
            continue
        if page is None:
            warn(f"no page for {given.name}: every promise holds now")
            continue
        path = directory / page_name(token)
        path.write_text(page, encoding="utf-8")
        written.append(path)
    return written


def _tokens(run: "Run") -> Iterator[str]:
    """Yield a token for each cause without a page, then those of the counterexamples that are no finding."""
    from reports.causes import causes_of

    for cause in causes_of(run.record.findings):
        token = next((finding.token for finding in cause.findings if finding.token), None)
        if token and not cause.pages:
            yield token
    known = {finding.token for finding in run.record.findings}
    for row in run.page_map.rows if run.page_map else ():
        if row.token not in known and not row.page:
            yield row.token
