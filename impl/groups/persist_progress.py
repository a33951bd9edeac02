"""The service that saves progress: each owner of a state file once his interval is over, if something changed.

Source: `BrokerController.initialize`, which lets a fixed timer write every file each time, changed or not.
"""

import logging
from collections.abc import Callable, Sequence

from tornpage.impl.groups.progress_owner import ProgressOwner

__all__ = ["PersistProgress"]

_LOG = logging.getLogger("tornpage.store")

_PAUSE_AFTER_FAILURE_MS = 1_000


class PersistProgress:
    """One step saves for everybody whose time has come; a save that fails is logged, and tried again a second later.

    `owners` may grow until the first step.
    """

    def __init__(self, owners: Sequence[ProgressOwner], *, may_save: Callable[[], bool]) -> None:
        self._owners = owners
        self._may_save = may_save
        self._due_ms: dict[str, int] = {}

    @property
    def name(self) -> str:
        """What threads and log lines call it."""
        return "progress"

    @property
    def first_ms(self) -> int | None:
        """How long after the start the first step is wanted, None without an owner who waits for one."""
        return min((owner.interval_ms for owner in self._owners if owner.interval_ms), default=None)

    def step(self, now_ms: int) -> int | None:
        """Save what is due."""
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
