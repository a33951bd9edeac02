"""Read codes of findings from docs/findings.md, packaged as `tornpage/findings.md`."""

import re
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from tornpage.cli.document import Outcome, refuse
from tornpage.pipeline.audit.advice import advice_of

__all__ = ["code_of", "explain_code_outcome", "finding_codes", "is_code"]

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


def code_of(text: str) -> str | None:
    """Return the code that a text names in any case, None for other texts."""
    name = text.upper()
    return name if name in finding_codes() else None


@cache
def finding_codes() -> dict[str, FindingCode]:
    """Return all codes."""
    return {code: FindingCode(*rest) for code, *rest in _ROW.findall(_page())}


def explain_code_outcome(code: str) -> tuple[Outcome, str]:
    """Return a code as document and text; refuses unknown codes with the nearest ones."""
    found = finding_codes().get(code)
    if found is None:
        near = get_close_matches(code, finding_codes(), n=3)
        remedy = f"did you mean {' or '.join(near)}?" if near else "docs/findings.md lists all codes"
        refuse(f"there is no finding {code}; {remedy}")
    lines = [f"{code} ({found.severity})", f"  {found.meaning}", f"  remedy: {found.remedy}", ""]
    lines += [
        f"  {name}: {meaning}; verdict: {verdict}"
        for name, meaning, verdict in _SEVERITY.findall(_page())
        if name in found.severity
    ]
    advice = advice_of(code)
    if not code.startswith("LOOK_"):
        lines += ["", f"  RocketMQ 4.9.3: {advice.rocketmq}", f"  tornpage: {advice.tornpage}"]
    outcome = Outcome("explain", None, {}, extra={"code": code, **found._asdict()})
    return outcome, "\n".join(lines).replace("`", "").rstrip()


@cache
def _page() -> str:
    return files("tornpage").joinpath("findings.md").read_text(encoding="utf-8")
