"""A finding: one entry of the `findings` of a run document."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tornpage.properties.contract import GuaranteeBroken

__all__ = ["Finding", "Severity"]

Severity = Literal["broken", "harness", "vacuous", "unknown", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What a run established.

    `sentence` states it; `more` are further keys of its document, in order.
    """

    code: str
    severity: Severity
    sentence: str
    more: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of_broken(cls, broken: GuaranteeBroken, **more: Any) -> "Finding":
        """Return the finding for a broken promise."""
        return cls(f"contract-{broken.contract}", "broken", broken.sentence, more)

    def document(self) -> dict[str, Any]:
        """Return the finding as plain values."""
        return {"code": self.code, "severity": self.severity, "sentence": self.sentence, **self.more}
