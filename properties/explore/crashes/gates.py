"""What must have fired in a campaign, or its silence proves nothing: every fault, every rule, every judge.

A rule that its mix has switched off in all histories has not fired: whoever chose the mix hears of it. A judge must
besides have refused its planted violation (explore/crashes/violations.py), in each shard. A judge of what few
stores have must have fired where histories had such a store: a short campaign may have drawn none.
"""

from collections.abc import Iterable

from model.operations import AimFault
from properties.campaign.coverage import ALL_JUDGES, OF_SOME_STORES, Tally
from properties.disk.disk import Disk
from properties.explore.crashes.harms import harm_classes
from properties.judge.queue_judges import MADE_GOOD
from properties.program.workload import RULES

__all__ = ["required", "silent"]

_POWER_FAULTS = ("lost_page", "older_version", "torn_page", "lost_size", "lost_name", "crash_in_recovery", "kill")


def required(disk: Disk) -> tuple[str, ...]:
    """Return the faults, rules and judges that must fire in a campaign on a disk, as activation tables call them."""
    power = ("kill",) if disk == "kill" else (*_POWER_FAULTS, *MADE_GOOD)
    faults = (*power, *harm_classes(disk), "progress_saved", "progress_being_saved", "delivered_after_recovery")
    return (*faults, *(f"rule_{name}" for name in RULES), *ALL_JUDGES)


def silent(tally: Tally, disk: Disk, aims: Iterable[AimFault] = ()) -> list[str]:
    """Return what never fired, one of the `aims` maybe, and the judges that did not refuse their violation."""
    return [
        name
        for name in (*required(disk), *dict.fromkeys(aim.text for aim in aims))
        if (not tally.fired[name] and _could_have_fired(name, tally))
        or (name.startswith("judge_") and not tally.mattered[name])
    ]


def _could_have_fired(name: str, tally: Tally) -> bool:
    return name not in OF_SOME_STORES or bool(tally.armed[name])
