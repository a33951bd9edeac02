"""The service that saves progress.

It saves each state file after its interval, if something changed. Source: `BrokerController.initialize`, where a fixed
timer writes every file each time, changed or not.
"""

import logging
from collections.abc import Callable, Sequence

from tornpage.impl.groups.progress_owner import ProgressOwner

__all__ = ["PersistProgress"]

_LOG = logging.getLogger("tornpage.store")

_PAUSE_AFTER_FAILURE_MS = 1_000


class PersistProgress:
    """One step saves every owner that is due.

    A failed save is logged and tried again a second later. `owners` may grow until the first step.
    """

    def __init__(self, owners: Sequence[ProgressOwner], *, may_save: Callable[[], bool]) -> None:
        self._owners = owners
        self._may_save = may_save
        self._due_ms: dict[str, int] = {}

    @property
    def name(self) -> str:
        """The name used for threads and log lines."""
        return "progress"

    @property
    def first_ms(self) -> int | None:
        """Milliseconds from the start to the first step, None if no owner has an interval."""
        return min((owner.interval_ms for owner in self._owners if owner.interval_ms), default=None)

    def step(self, now_ms: int) -> int | None:
        """Save what is due; return when the next save is, in milliseconds."""
        for owner in self._owners:
            if owner.interval_ms and self._due_ms.get(owner.name, now_ms) <= now_ms:
                saved = self._save(owner)
                self._due_ms[owner.name] = now_ms + (owner.interval_ms if saved else _PAUSE_AFTER_FAILURE_MS)
        return min(self._due_ms.values(), default=None)

    def _save(self, owner: ProgressOwner) -> bool:
        if not self._may_save():
            return True
        try:
            owner.save()
        except OSError as error:
            _LOG.warning("progress_not_saved owner=%s error=%s", owner.name, error)
            return False
        return True
