"""The common parts of pages: templates, style sheet, content security policy, writing."""

import base64
import errno
import hashlib
import os
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import jinja2
from markupsafe import Markup, escape

from tornpage.reports.errors import ReportError
from tornpage.reports.palette import css_rules, css_values
from tornpage.reports.text import number, visible

__all__ = ["rendered", "style_sheet", "write_page"]

_CODE = re.compile(r"`([^`\n]+)`")
_TEMPLATES = Path(__file__).parents[1] / "templates"


def rendered(template: str, scripts: Sequence[str], **values: object) -> str:
    """Return a page: `template` extends base.html, `scripts` are the names of its scripts."""
    style, script = style_sheet(), _script_of(scripts)
    shared = {"style": Markup(style), "script": Markup(script), "policy": _content_policy(style, script)}
    return _environment().get_template(template).render(**shared, **values)


def write_page(path: Path, text: str) -> Path:
    """Write a page, whole or not at all; return its path. Raises ReportError."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        what = f"cannot be written: {error.strerror or error}"
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        remedy = "make room there" if is_full else "make the directory writable"
        raise ReportError(str(path), what, f"{remedy}, or copy it elsewhere") from error
    return path


@cache
def _environment() -> jinja2.Environment:
    """Return the template environment; all printed text is made visible and escaped."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["number"] = number
    made.filters["drawn"] = Markup
    made.filters["coded"] = _coded
    return made


def _coded(text: str) -> Markup:
    """Return escaped text in which what stands between backticks is code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(visible(text)))))


def _finalize(value: object) -> object:
    """Make text harmless before it is escaped; all template output passes here."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def style_sheet() -> str:
    """Return the style of all pages, with the colours of figures."""
    style = _read("style.css").replace("/*light*/", css_values(dark=False)).replace("/*dark*/", css_values(dark=True))
    return style + css_rules()


def _script_of(names: Sequence[str]) -> str:
    """Return the scripts of a page as one."""
    return "\n".join(map(_read, names))


def _content_policy(style: str, script: str) -> str:
    """Return the content security policy of a page: this style, this script, nothing else."""
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _read(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8").strip()


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
