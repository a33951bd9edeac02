"""One HTML file per run: what was proven, what was not checked, the figures, and how to do it again.

The page is whole in itself: no network, no font, no image but inline SVG; a content security policy forbids anything
else, and its only script copies command lines. Everything that comes from tables is escaped. Equal input gives equal
bytes: the page knows no time but that of the run.
"""

import base64
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import jinja2
from markupsafe import Markup

from reports.errors import ReportError
from reports.figures import (
    Drawing,
    crash_images_figure,
    discovery_figure,
    frontier_figure,
    page_map_figure,
    put_latency_figure,
    stalls_figure,
)
from reports.gaps import gaps_of, headline_of
from reports.palette import css_rules, css_values
from reports.summaries import summarise_activation
from reports.tables import PageMapRow, Run, Table, read_run
from reports.text import number, visible

__all__ = ["PAGE", "build_report", "render"]

PAGE = "index.html"
MAPS_MAX = 12
"""Counterexamples that get a figure; further ones are told in words."""

_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A counterexample and its drawing (None beyond MAPS_MAX)."""

    row: PageMapRow
    drawing: Drawing | None

    @property
    def settings(self) -> tuple[tuple[str, str], ...]:
        """The settings as text, by name."""
        return tuple((name, str(value)) for name, value in sorted((self.row.settings or {}).items()))


def build_report(directory: Path) -> Path:
    """Write the page of a run directory and return its path. Raises ReportError."""
    text = render(read_run(directory))
    path = directory / PAGE
    beside = directory / f".{PAGE}.{os.getpid()}"
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        what = f"cannot be written: {error.strerror or error}"
        raise ReportError(str(path), what, "make the directory writable, or copy it elsewhere") from error
    return path


def render(run: Run) -> str:
    """Return the page of a run."""
    style = _read("style.css").replace("/*light*/", css_values(dark=False)).replace("/*dark*/", css_values(dark=True))
    style += css_rules()
    script = _read("copy.js")
    return (
        _environment()
        .get_template("page.html")
        .render(
            run=run,
            record=run.record,
            headline=headline_of(run),
            gaps=gaps_of(run),
            activation=summarise_activation(run.activation.rows) if run.activation else None,
            discovery=discovery_figure(run.discovery) if run.discovery else None,
            policies=[
                put_latency_figure(run.put_latency) if run.put_latency and run.put_latency.rows else None,
                frontier_figure(run.at_risk) if run.at_risk and run.at_risk.rows else None,
                stalls_figure(run.stalls) if run.stalls and run.stalls.rows else None,
            ],
            counterexamples=_counterexamples(run.page_map),
            crash_images=crash_images_figure(run.crash_images) if run.crash_images and run.crash_images.rows else None,
            style=Markup(style),
            script=Markup(script),
            policy=f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
            "base-uri 'none'; form-action 'none'",
        )
    )


def _counterexamples(table: Table[PageMapRow] | None) -> list[Counterexample]:
    if table is None:
        return []
    return [
        Counterexample(row, page_map_figure(row, table.caption, place=place) if place <= MAPS_MAX else None)
        for place, row in enumerate(table.rows, 1)
    ]


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = number
    environment.filters["drawn"] = Markup
    return environment


def _finalize(value: object) -> object:
    """Make text harmless before it is escaped; everything the templates print passes here."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _read(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8").strip()


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
