"""The process to kill: it opens a store and puts at random moments until it dies.

Run it as `python -P -m tornpage.bench.crashes.killed_producer DIRECTORY POLICY FILE_BYTES RATE SEED PAGE PARENT`. Its
progress is in the page that it shares with its parent: three counters, and the latency of each answered put, from the
moment at which it was due. So latency includes the lateness of the process itself, as a producer on this machine sees
it. If the store cannot be opened, or a put is not answered PUT_OK, the process ends with CANNOT_PUT and one line: what
was never stored is no loss.
"""

import gc
import mmap
import os
import random
import struct
import sys
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from time import perf_counter_ns, sleep
from typing import NoReturn

from tornpage.bench.crashes.policies import MESSAGE, store_config
from tornpage.front import MessageStore
from tornpage.impl.errors import StoreError
from tornpage.impl.message.message import PutResult, PutStatus
from tornpage.properties.explore.real_faults.mounts import die_with_parent
from tornpage.sim.experiments.policies import POLICIES

__all__ = ["ANSWERED", "BEGAN_NS", "CANNOT_PUT", "HEADER_BYTES", "PAGE_BYTES", "PUT", "PUTS_MAX", "put_until_killed"]

PUT, ANSWERED, BEGAN_NS, HEADER_BYTES = 0, 8, 16, 24
"""Places in the page: messages put, messages answered, clock of the first due message.

The clock is 0 before the first message.
"""
CANNOT_PUT = os.EX_CANTCREAT
"""Exit status of a process whose store cannot work in its directory.

The reason is on its standard error.
"""
PUTS_MAX = 1 << 17
PAGE_BYTES = HEADER_BYTES + 8 * PUTS_MAX
SPIN_NS = 300_000
"""The last part of each wait is spun, since a sleep may take longer than asked."""


def put_until_killed(directory: str, policy: str, file_bytes: int, rate_per_s: float, seed: int, page: str) -> None:
    """Put forever, or as long as the page has places."""
    rng = random.Random(seed)
    with open(page, "r+b") as file, mmap.mmap(file.fileno(), PAGE_BYTES) as shared:
        try:
            store = MessageStore.open(directory, store_config(POLICIES[policy], file_bytes=file_bytes))
        except (StoreError, OSError) as error:
            _give_up(str(error))
        put_place = partial(struct.pack_into, "<q", shared)

        def answered(number: int, meant_ns: int, answer: "Future[PutResult]") -> None:
            status = answer.result().status
            if status is not PutStatus.PUT_OK:
                _give_up(f"a put was answered {status.name}")
            put_place(HEADER_BYTES + 8 * number, perf_counter_ns() - meant_ns)
            put_place(ANSWERED, number + 1)

        _put_all(store, rng, rate_per_s, put_place, answered)


def _put_all(
    store: MessageStore,
    rng: random.Random,
    rate_per_s: float,
    put_place: Callable[[int, int], None],
    answered: "Callable[[int, int, Future[PutResult]], None]",
) -> None:
    meant_ns = perf_counter_ns()
    put_place(BEGAN_NS, meant_ns)
    for number in range(PUTS_MAX):
        meant_ns += round(rng.expovariate(rate_per_s) * 1e9)
        left_ns = meant_ns - perf_counter_ns()
        if left_ns > SPIN_NS:
            sleep((left_ns - SPIN_NS) / 1e9)
        while perf_counter_ns() < meant_ns:
            pass
        answer = store.put_async(MESSAGE)
        put_place(PUT, number + 1)
        answer.add_done_callback(partial(answered, number, meant_ns))


def _give_up(why: str) -> NoReturn:
    """End the process at once from any thread, without closing the store.

    A store that refuses puts is left unchanged.
    """
    os.write(2, f"{why}\n".encode(errors="replace"))
    os._exit(CANNOT_PUT)


if __name__ == "__main__":
    gc.disable()
    directory, policy, file_bytes, rate, seed, page, parent = sys.argv[1:]
    die_with_parent()
    if os.getppid() != int(parent):  # the parent ended before this process asked for its death signal
        sys.exit(1)
    put_until_killed(directory, policy, int(file_bytes), float(rate), int(seed), page)
