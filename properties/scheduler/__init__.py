"""Threads in steps: which one runs when is a function of a schedule, not of the interpreter, the machine or time."""

from tornpage.properties.scheduler.enumeration import every_schedule, following
from tornpage.properties.scheduler.lock import OUTSIDE, CooperativeLock
from tornpage.properties.scheduler.run import HANG_SECONDS, POINTS_MAX, run_stepped
from tornpage.properties.scheduler.task import Outcome, yield_point
from tornpage.properties.scheduler.trace import StepTrace, Turn
from tornpage.properties.scheduler.watch import Granularity

__all__ = [
    "HANG_SECONDS",
    "OUTSIDE",
    "POINTS_MAX",
    "CooperativeLock",
    "Granularity",
    "Outcome",
    "StepTrace",
    "Turn",
    "every_schedule",
    "following",
    "run_stepped",
    "yield_point",
]
