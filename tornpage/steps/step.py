"""What a step of the main job hands back."""

from dataclasses import dataclass
from typing import Any

from tornpage.document import Outcome

__all__ = ["Step"]


@dataclass(frozen=True)
class Step:
    """One step's name, outcome, and the sentence for the table. A skipped step has no verdict and says why."""

    name: str
    outcome: Outcome
    sentence: str

    def row(self) -> dict[str, Any]:
        """Return the row of the steps table."""
        seconds = self.outcome.figures.get("seconds", 0.0)
        return {
            "step": self.name,
            "verdict": self.outcome.verdict or "skipped",
            "sentence": self.sentence,
            "seconds": seconds,
        }
