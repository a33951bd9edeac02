"""Read codes of findings from docs/findings.md, packaged as `tornpage/findings.md`."""

import re
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from tornpage.cli.document import Outcome, refuse

__all__ = ["explain_code_outcome", "finding_codes", "is_code"]

_CODE = re.compile(r"[A-Z]+(?:_[A-Z]+)+")
_ROW = re.compile(rf"^\| `({_CODE.pattern})` \| (.*?) \| (.*?) \| (.*?) \|$", re.MULTILINE)
_SEVERITY = re.compile(r"^\| (damage|tear|note) \| (.*?) \| (.*?) \|$", re.MULTILINE)


class FindingCode(NamedTuple):
    """Severity, meaning and remedy of a code."""

    severity: str
    meaning: str
    remedy: str


def is_code(text: str) -> bool:
    """Return whether a text looks like the code of a finding."""
    return _CODE.fullmatch(text) is not None


@cache
def finding_codes() -> dict[str, FindingCode]:
    """Return all codes."""
    return {code: FindingCode(*rest) for code, *rest in _ROW.findall(_page())}


def explain_code_outcome(code: str) -> tuple[Outcome, str]:
    """Return a code as document and text; refuses unknown codes with the nearest ones."""
    found = finding_codes().get(code)
    if found is None:
        near = get_close_matches(code, finding_codes(), n=3)
        refuse(f"there is no finding {code}" + (f"; did you mean {' or '.join(near)}?" if near else ""))
    lines = [f"{code} ({found.severity})", f"  {found.meaning}", f"  remedy: {found.remedy}", ""]
    lines += [
        f"  {name}: {meaning}; verdict: {verdict}"
        for name, meaning, verdict in _SEVERITY.findall(_page())
        if name in found.severity
    ]
    outcome = Outcome("explain", None, {}, extra={"code": code, **found._asdict()})
    return outcome, "\n".join(lines).replace("`", "").rstrip()


@cache
def _page() -> str:
    return files("tornpage").joinpath("findings.md").read_text(encoding="utf-8")
