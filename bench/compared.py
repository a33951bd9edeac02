"""One figure of the simulator beside the same figure of the code that it simulates."""

from dataclasses import dataclass

__all__ = ["WITHIN", "Compared"]

WITHIN = 0.10
"""The allowed relative error."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One figure of one group: of the simulator and of the library."""

    group: str
    figure: str
    simulated: float
    measured: float

    @property
    def error(self) -> float:
        """The relative error; 0 if both are 0."""
        return (
            0.0 if self.simulated == self.measured else abs(self.simulated - self.measured) / max(self.measured, 1e-9)
        )

    @property
    def is_close(self) -> bool:
        """Whether the error is allowed."""
        return self.error <= WITHIN
