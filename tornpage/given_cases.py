"""Cases as users give them: a token, a case file, or a directory of them; of counterexamples and of interleavings."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tornpage.document import refuse

if TYPE_CHECKING:
    from properties.program.case import Case

__all__ = ["GivenCase", "given_case", "given_cases", "is_directory", "text_of"]

_TOKENS = ("tp1-", "ti1-")


@dataclass(frozen=True, slots=True)
class GivenCase:
    """One case: where it is from, its token or its text, and what its failure was when it was saved ("" if unknown)."""

    name: str
    text: str
    is_token: bool
    was: str = ""

    @property
    def is_interleaving(self) -> bool:
        """Whether it is an interleaving of threads, which has its own form."""
        return self.text.startswith("ti1-") if self.is_token else "tornpage_interleaving" in self.text

    def case(self) -> "Case":
        """Read it. Raises BadToken."""
        from properties.program.case import Case

        return Case.from_token(self.text) if self.is_token else Case.from_text(self.text)


def text_of(given: str) -> GivenCase:
    """Return a token or the text of a case file; refuses what is neither."""
    if given.startswith(_TOKENS):
        return GivenCase(f"{given[:12]}…", given, is_token=True)
    try:
        text = Path(given).read_text()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no text"
        refuse(f"{given} is neither a token (tp1-…) nor a readable case file: {reason}")
    return GivenCase(given, text, is_token=False, was=_was(text))


def given_case(given: str) -> "Case":
    """Read the case of a counterexample; refuses what cannot be read, and interleavings."""
    from properties.program.case import BadToken

    found = text_of(given)
    if found.is_interleaving:
        refuse("an interleaving is made small and told when it is found; `tornpage replay` shows it again")
    try:
        return found.case()
    except BadToken as error:
        refuse(str(error))


def is_directory(given: str) -> bool:
    """Whether a directory of cases was given; a token is none, however long it is."""
    return not given.startswith(_TOKENS) and os.path.isdir(given)


def given_cases(given: str) -> list[GivenCase]:
    """Return the cases below a directory (case files, and tokens of findings whose file is gone), or the one given."""
    if not is_directory(given):
        return [text_of(given)]
    texts = [(path, _read(path)) for path in sorted(Path(given).rglob("*.json"))]
    found = [
        GivenCase(str(path), text, is_token=False, was=_was(text)) for path, text in texts if _is_a_case(path, text)
    ]
    there = {_told_by(_document(case.text)) for case in found}
    for path, text in texts:
        if path.name == "run.json":
            found += [case for case in _of_findings(path, text) if _key(case) not in there]
    if not found:
        refuse(f"{given} holds no case file and no finding with a token; name a directory that a run wrote with --out")
    return found


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""


def _is_a_case(path: Path, text: str) -> bool:
    """Whether a file is a case, or was meant to be one: then it is told why it cannot be read."""
    return path.name.startswith(("case-", "interleaving-")) or '"tornpage_case"' in text[:400]


def _document(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _was(text: str) -> str:
    was = _document(text).get("was")
    return f"contract {was.get('contract')}: {was.get('sentence')}" if isinstance(was, dict) else ""


def _of_findings(path: Path, text: str) -> Iterator[GivenCase]:
    findings = _document(text).get("findings")
    for number, finding in enumerate(findings if isinstance(findings, list) else ()):
        if isinstance(finding, dict) and str(finding.get("token", "")).startswith(_TOKENS):
            was = f"contract {str(finding.get('code', '')).removeprefix('contract-')}: {finding.get('sentence')}"
            yield GivenCase(f"{path} finding {number}", finding["token"], is_token=True, was=was)


def _key(case: GivenCase) -> str:
    """Return what tells the case of a token from others; one that cannot be read is told by its place."""
    from properties.program.packing import BadToken, unpacked

    try:
        return _told_by(_document(unpacked(case.text[:4], case.text)))
    except BadToken:
        return case.name


def _told_by(document: dict[str, Any]) -> str:
    told = ("settings", "operations", "before", "tasks", "order", "switches")
    return json.dumps([document.get(name) for name in told], sort_keys=True)
