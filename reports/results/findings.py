"""The findings of a run in its `run.json`."""

from dataclasses import dataclass
from typing import Any

from tornpage.reports.shape import Count

__all__ = ["Finding", "page_name"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding of the run; commands write `sentence` or `message`.

    `history` is the seed that drew it, and `histories` the number of histories with it. `page` is the file beside the
    report that explains it, or empty. The reader of a run directory fills it in; commands do not write it.
    """

    code: str | None = None
    severity: str | None = None
    step: str | None = None
    sentence: str | None = None
    message: str | None = None
    remedy: str | None = None
    token: str | None = None
    expected: str | None = None
    found: str | None = None
    program: tuple[str, ...] = ()
    losses: Count | None = None
    lost_pages: Count | None = None
    history: Any = None
    histories: Count | None = None
    file: str | None = None
    offset: int | None = None
    place: str | None = None
    image: str | None = None
    page: str = ""

    @property
    def said(self) -> str:
        """The finding in a sentence."""
        return self.sentence or self.message or "no sentence was given"

    @property
    def where(self) -> str:
        """Its image, file and place, or nothing."""
        file = self.file or self.place or ""
        at = f" at {self.offset}" if self.offset is not None else ""
        return ": ".join(filter(None, (self.image or "", f"{file}{at}".strip())))

    @property
    def drawn_by(self) -> str:
        """The history that showed it, or nothing."""
        return "" if self.history is None else str(self.history)


def page_name(token: str) -> str:
    """Return the name of the page for the case of a token, beside its case file."""
    return f"case-{token[4:12]}.html"
