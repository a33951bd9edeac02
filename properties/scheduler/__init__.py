"""Run threads in steps, as a function of a schedule.

Interpreter, machine and time have no influence.
"""

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
