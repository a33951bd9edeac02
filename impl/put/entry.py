"""The entry of the store: whether a put may begin at all. Source: `DefaultMessageStore.checkStoreStatus`."""

from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.message.message import PutStatus
from tornpage.impl.service.running_flags import RunningFlags
from tornpage.impl.statistics.store_statistics import PutRefusals

__all__ = ["PutEntry"]


class PutEntry:
    """Checks role, running flags and page cache, in this order (docs/statuses.md, "every put").

    `busy_after_ms` is how long the put lock may be held. RocketMQ counts a lock held for more than 10,000 s as free;
    here it stays busy.
    """

    __slots__ = ("_busy_after_ms", "_flags", "_is_slave", "_refusals")

    def __init__(self, *, role: BrokerRole, flags: RunningFlags, busy_after_ms: int) -> None:
        self._is_slave = role is BrokerRole.SLAVE
        self._flags = flags
        self._busy_after_ms = busy_after_ms
        self._refusals = PutRefusals()

    def refusal(self, *, now_ms: int, begin_time_in_lock: int) -> PutStatus | None:
        """Return why a put may not begin, or None. `begin_time_in_lock` is 0 while the put lock is free."""
        if self._is_slave or not self._flags.writeable:
            self._refusals.refused("role" if self._is_slave else "flags", bits=self._flags.bits)
            return PutStatus.SERVICE_NOT_AVAILABLE
        if self._refusals.count:
            self._refusals.writeable_again()
        if begin_time_in_lock and now_ms - begin_time_in_lock > self._busy_after_ms:
            return PutStatus.OS_PAGECACHE_BUSY
        return None
