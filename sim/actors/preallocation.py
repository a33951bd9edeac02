"""The put lock, which needs files, and the allocator, which makes them; neither returns."""

from simpy import Environment, Event, Store
from simpy.events import ProcessGenerator

from tornpage.impl.config.policy import PAGE_BYTES, AllocationPolicy, FlushPolicy, WarmUp
from tornpage.sim.device.device import Device
from tornpage.sim.events.bell import now_ns
from tornpage.sim.events.probe import Probe
from tornpage.sim.log.log import Log
from tornpage.sim.log.pooled_log import Buffers

__all__ = ["Files", "allocator", "making_ns", "put_lock"]


class Files:
    """The requested log files, each with the event of its completion. The first file exists.

    With `fast_fail` no file is requested for which there is no free buffer. Source: `AllocateMappedFileService`.
    """

    def __init__(self, env: Environment, buffers: Buffers | None = None, *, fast_fail: bool = False) -> None:
        self._env = env
        self._buffers = buffers
        self._fast_fail = fast_fail
        self._queued = 0
        self.requests: Store = Store(env)
        self._ready: dict[int, Event] = {0: env.event().succeed()}

    def ask(self, file_index: int) -> None:
        """Request a file, unless it was requested before or has to fail."""
        if file_index in self._ready or not self._may_ask():
            return
        self._ready[file_index] = self._env.event()
        self._queued += 1
        self.requests.put((file_index, now_ns(self._env)))

    def ready(self, file_index: int) -> Event | None:
        """Return the event of a requested file, None for any other file."""
        return self._ready.get(file_index)

    def begin(self, file_index: int) -> None:
        """Begin to make a file; it takes a free buffer, if there is one."""
        self._queued -= 1
        if self._buffers is not None:
            self._buffers.borrow(file_index)

    def _may_ask(self) -> bool:
        return self._buffers is None or not self._fast_fail or self._buffers.free > self._queued


def put_lock(env: Environment, log: Log, files: Files, *, policy: AllocationPolicy, probe: Probe) -> ProcessGenerator:
    """Serve one put after another.

    When a record does not fit, the put waits, holding the lock, until the next file is ready.
    """
    for file_index in policy.wanted(file_index=0):
        files.ask(file_index)
    while True:
        while log.planned_rows == log.arrived_rows:
            yield log.arrived.wait()
        while not log.plan():
            row = log.planned_rows
            asked_ns = max(log.arrival_ns.item(row), log.lock_free_ns)
            yield env.timeout(asked_ns - now_ns(env))
            for file_index in policy.wanted(file_index=log.file_index + 1):
                files.ask(file_index)
            ready = files.ready(log.file_index + 1)
            if ready is None:
                log.refuse()
                continue
            yield ready
            log.roll(asked_ns=asked_ns)
            probe.rolled((log.file_index, row, asked_ns, now_ns(env)))


def allocator(
    env: Environment,
    files: Files,
    device: Device,
    *,
    policy: AllocationPolicy,
    flush: FlushPolicy,
    file_bytes: int,
    probe: Probe,
) -> ProcessGenerator:
    """Make the requested files, one at a time, in the order of requests."""
    while True:
        file_index, requested_ns = yield files.requests.get()
        start_ns = now_ns(env)
        files.begin(file_index)
        yield env.timeout(making_ns(device, policy=policy, flush=flush, file_bytes=file_bytes))
        ready = files.ready(file_index)
        assert ready is not None, "it was asked for"
        ready.succeed()
        probe.allocated((file_index, requested_ns, start_ns, now_ns(env)))


def making_ns(device: Device, *, policy: AllocationPolicy, flush: FlushPolicy, file_bytes: int) -> int:
    """Draw how long the next file takes: create and reserve it, touch its pages, sync them."""
    took_ns = device.times.allocation_ns(file_bytes)
    if policy.warm_up is not WarmUp.NONE:
        took_ns += device.warm_up_ns(file_bytes)
        pages = -(-file_bytes // PAGE_BYTES)
        for synced in policy.warm_up_syncs(file_pages=pages, flush_disk_type=flush.flush_disk_type):
            took_ns += device.sync_ns(synced * PAGE_BYTES, gap_ns=0, reserved_only=True)
    return took_ns
