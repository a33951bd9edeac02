"""The write-back of the kernel: it writes old dirty pages, or many, without a request.

Pages that it wrote cost the next sync nothing. They are not durable: no barrier covers them. So the store's promises,
`durable_ns` and the figures at risk do not count on them.
"""

from functools import partial

from simpy import Environment
from simpy.events import ProcessGenerator

from tornpage.sim.device.device import DeviceTimes
from tornpage.sim.events.bell import now_ns, until_due
from tornpage.sim.events.probe import Probe
from tornpage.sim.events.turns import KERNEL, Turn
from tornpage.sim.log.log import Log
from tornpage.sim.scenario import Writeback

__all__ = ["writeback"]

NS_PER_MS = 1_000_000


def writeback(env: Environment, log: Log, times: DeviceTimes, *, settings: Writeback, probe: Probe) -> ProcessGenerator:
    """Write old pages at each check, and all pages while more than the limit is dirty.

    This generator never returns.
    """
    look_ns = settings.wake_ms * NS_PER_MS
    yield Turn(env, 0, KERNEL)
    while True:
        yield from until_due(
            env,
            log.planned,
            partial(log.reaches_ns, log.clean_offset + settings.background_bytes + 1),
            until_ns=look_ns,
            wake_ns=0,
            rank=KERNEL,
        )
        start_ns, first = now_ns(env), log.clean_offset
        end = log.written_offset(start_ns)
        if end - first <= settings.background_bytes:
            end = log.written_offset(start_ns - settings.expire_ms * NS_PER_MS) if start_ns >= look_ns else first
        if start_ns >= look_ns:
            look_ns += settings.wake_ms * NS_PER_MS
        if end > first:
            yield Turn(env, (end - first) * times.sync_ns_per_kib // 1024, KERNEL)
            log.clean(end)
            probe.written_back((start_ns, now_ns(env), first, end))
