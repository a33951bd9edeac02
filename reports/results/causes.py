"""Group findings by cause.

A cause is one code and one sentence, without its numbers and names of queues: places differ from history to history,
the mistake does not. Findings that a missing event proves nothing are one cause per code, whatever they name.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tornpage.reports.results.findings import Finding

__all__ = ["Cause", "causes_of", "codes_of", "contract_of", "without_places"]

_SEVERITIES = ("broken", "damage", "error", "harness", "tear", "vacuous", "note")
"""The most serious first; other severities come after these."""
_BY_CODE = frozenset({"vacuous", "note"})
_NUMBERS = re.compile(r"\b(0x[0-9a-f]+|\d+)\b")
_QUEUES = re.compile(r"(?<=\bconsumequeue/)[^/\s]+(?=/)|(?<=\bconsumequeue_ext/)[^/\s]+(?=/)|(?<=\(')[^']*(?=', \d+\))")
"""The topic in the name of a queue file, and in a queue as Python prints it."""
_CONTRACT = re.compile(r"contract-(\d+)")


@dataclass(frozen=True, slots=True)
class Cause:
    """Findings with the same sentence.

    `number` counts causes from 1. `sentence` is that of the first finding.
    """

    number: int
    code: str
    severity: str
    sentence: str
    findings: tuple[Finding, ...]

    @property
    def contract(self) -> int | None:
        """The number of the contract, if the code names one."""
        return contract_of(self.code)

    @property
    def tone(self) -> str:
        """The severity if it has a style, otherwise "other": the name of a style."""
        return self.severity if self.severity in _SEVERITIES else "other"

    @property
    def times(self) -> int:
        """The number of histories with it; a finding without a number counts once."""
        return sum(finding.histories or 1 for finding in self.findings)

    @property
    def pages(self) -> tuple[str, ...]:
        """The pages that explain one of its findings, each once."""
        return tuple(dict.fromkeys(finding.page for finding in self.findings if finding.page))

    @property
    def has_places(self) -> bool:
        """Whether a finding names a program or a place."""
        return any(finding.program or finding.where for finding in self.findings)


def contract_of(code: str) -> int | None:
    """Return the number of the contract that a code names, as 3 for contract-3."""
    named = _CONTRACT.fullmatch(code)
    return int(named[1]) if named else None


def causes_of(findings: Iterable[Finding]) -> tuple[Cause, ...]:
    """Return the causes, the most serious first, then the most frequent, then by order."""
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in findings:
        severity = finding.severity or ""
        sentence = "" if severity in _BY_CODE else without_places(finding.said)
        key = (severity, finding.code or "finding", sentence)
        groups.setdefault(key, []).append(finding)
    ordered = sorted(groups.items(), key=lambda group: (_rank(group[0][0]), -len(group[1])))
    return tuple(
        Cause(number, code, severity, _sentence(members, severity), tuple(members))
        for number, ((severity, code, _), members) in enumerate(ordered, 1)
    )


def without_places(sentence: str) -> str:
    """Return the sentence with # for each number and topic.

    They differ from run to run. The mistake does not.
    """
    return _NUMBERS.sub("#", _QUEUES.sub("#", sentence))


def _sentence(members: Sequence[Finding], severity: str) -> str:
    others = len(members) - 1
    return members[0].said + (f", and {others} more" if others and severity in _BY_CODE else "")


def codes_of(causes: Sequence[Cause]) -> tuple[tuple[str, int], ...]:
    """Return each code with its number of findings, in the order of the causes."""
    counts: dict[str, int] = {}
    for cause in causes:
        counts[cause.code] = counts.get(cause.code, 0) + len(cause.findings)
    return tuple(counts.items())


def _rank(severity: str) -> int:
    return _SEVERITIES.index(severity) if severity in _SEVERITIES else len(_SEVERITIES)
