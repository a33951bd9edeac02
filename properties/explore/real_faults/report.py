"""Report a run of the faults: one row for each, and a verdict for all.

A fault is *enabled* when the disk was made to misbehave, *hit* when the store met the fault, and *effective* when the
outcome depended on it (docs/faults.md says how each is determined). The JSON keys are `armed`, `fired` and `mattered`.
"""

from dataclasses import dataclass, field
from typing import Any

from tornpage.properties.contract import GuaranteeBroken, Verdict

__all__ = ["FaultReport", "FaultsReport"]


@dataclass
class FaultReport:
    """Report one fault.

    `skipped` is the reason why it could not run here, `harness` what went wrong in the harness.
    """

    name: str
    enabled: int = 0
    hit: int = 0
    effective: int = 0
    seen: list[str] = field(default_factory=list)
    broken: GuaranteeBroken | None = None
    skipped: str = ""
    harness: str = ""
    seconds: float = 0.0

    @property
    def verdict(self) -> Verdict | None:
        """Return the verdict, or None for a skipped fault.

        It is vacuous when an enabled fault was never hit or never effective.
        """
        if self.harness:
            return Verdict.HARNESS
        if self.broken is not None:
            return Verdict.BROKEN
        if self.skipped:
            return None
        return Verdict.HOLDS if self.enabled and self.hit and self.effective else Verdict.VACUOUS

    def row(self) -> dict[str, Any]:
        """Return the fault as a row of a table."""
        verdict = self.verdict
        return {
            "fault": self.name,
            "armed": self.enabled,
            "fired": self.hit,
            "mattered": self.effective,
            "verdict": "skipped" if verdict is None else verdict.value,
            "contract": None if self.broken is None else self.broken.contract,
            "seen": list(self.seen),
            "reason": self.harness or self.skipped,
        }


@dataclass
class FaultsReport:
    """Report all faults of a run in order; `interrupted` if the user ended it early."""

    seed: int
    faults: list[FaultReport] = field(default_factory=list)
    interrupted: bool = False

    @property
    def verdict(self) -> Verdict:
        """Return the worst verdict. A run in which no fault could run is vacuous."""
        found = [fault.verdict for fault in self.faults]
        for verdict in (Verdict.HARNESS, Verdict.BROKEN, Verdict.VACUOUS):
            if verdict in found:
                return verdict
        return Verdict.HOLDS if Verdict.HOLDS in found else Verdict.VACUOUS
