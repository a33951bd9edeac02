"""Run threads in steps, as a function of a schedule.

Interpreter, machine and time have no influence.
"""

from tornpage.properties.scheduler.accesses import Access, prepare
from tornpage.properties.scheduler.choosers import Chooser, Priorities, bound_of
from tornpage.properties.scheduler.enumeration import every_schedule, following
from tornpage.properties.scheduler.lock import OUTSIDE, CooperativeCondition, CooperativeLock, CooperativeQueue
from tornpage.properties.scheduler.preemptions import PreemptionSearch, preemptions_of
from tornpage.properties.scheduler.run import HANG_SECONDS, POINTS_MAX, run_stepped
from tornpage.properties.scheduler.sleeping import SleepSets
from tornpage.properties.scheduler.task import Outcome, current_task, yield_point
from tornpage.properties.scheduler.trace import StepTrace, Turn
from tornpage.properties.scheduler.watch import Granularity

__all__ = [
    "HANG_SECONDS",
    "OUTSIDE",
    "POINTS_MAX",
    "Access",
    "Chooser",
    "CooperativeCondition",
    "CooperativeLock",
    "CooperativeQueue",
    "Granularity",
    "Outcome",
    "PreemptionSearch",
    "Priorities",
    "SleepSets",
    "StepTrace",
    "Turn",
    "bound_of",
    "current_task",
    "every_schedule",
    "following",
    "preemptions_of",
    "prepare",
    "run_stepped",
    "yield_point",
]
