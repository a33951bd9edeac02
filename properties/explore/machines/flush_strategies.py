"""Define Hypothesis strategies of the flush machine: durability modes and service steps."""

from dataclasses import replace

from hypothesis import strategies as st

from tornpage.model.operations import Concurrent, Put, Step
from tornpage.properties.explore.machines.strategies import one_of
from tornpage.properties.program.case import Settings

__all__ = ["large_puts", "meetings", "plain_puts", "settings_of_flushes", "steps_of"]

_WAITING_MS = (0, 1, 200, 500, 1_000, 5_000, 10_000, 60_000)


def settings_of_flushes() -> st.SearchStrategy[Settings]:
    """Draw stores of all durability modes: synchronous, asynchronous, with a small pool."""
    disk = st.sampled_from(("posix-strict", "journal"))
    files_max = st.sampled_from((1000, 1000, 4))
    file_bytes = st.sampled_from((16384, 4096, 65536, 1024))
    files_ahead = st.sampled_from((1, 0, 1, 2))
    role = st.sampled_from(("ASYNC_MASTER", "SYNC_MASTER"))
    synchronous = st.builds(
        Settings,
        file_bytes=file_bytes,
        sync_flush=st.just(True),
        files_max=files_max,
        files_ahead=files_ahead,
        role=role,
        disk=disk,
    )
    asynchronous = st.builds(
        Settings,
        file_bytes=st.sampled_from((65536, 16384, 4096)),
        files_max=files_max,
        files_ahead=files_ahead,
        least_pages=st.sampled_from((1, 2, 4, 1, 0)),
        disk=disk,
    )
    pools = st.sampled_from(((1, False), (2, True), (2, False)))  # one buffer with fast fail is not a valid setting
    pooled = st.builds(lambda one, pool: replace(one, pool_buffers=pool[0], fast_fail=pool[1]), asynchronous, pools)
    return st.sampled_from((synchronous, pooled, synchronous, asynchronous, pooled)).flatmap(lambda mode: mode)


def plain_puts() -> st.SearchStrategy[Put]:
    """Draw messages that any store with room accepts; a few do not wait for the disk."""
    return st.builds(
        Put,
        queue_id=st.sampled_from((0, 1)),
        body_bytes=st.sampled_from((40, 300, 700, 0)),
        fill=st.integers(0, 5),
        properties=one_of(("", "", "", "WAIT\x01false")),
        later=st.sampled_from((False, False, True)),
        advance_ms=st.sampled_from((1, 0, 100)),
    )


def large_puts(settings: Settings) -> st.SearchStrategy[Put]:
    """Draw messages of which two or three fill a file."""
    return st.builds(
        Put,
        body_bytes=st.sampled_from(
            (settings.file_bytes // 2 - 100, settings.file_bytes // 3, settings.file_bytes - 200)
        ),
        fill=st.integers(0, 5),
        later=st.sampled_from((False, True)),
    )


def meetings() -> st.SearchStrategy[tuple[Concurrent, ...]]:
    """Draw two producers that meet a few times, the second one line later each time.

    The second starts during the put of the first, or while that put waits. In a store with a pool both commit.
    """
    put = st.builds(Put, body_bytes=st.sampled_from((40, 0, 300)), advance_ms=st.just(0))
    return st.builds(_meetings, put, put, st.sampled_from((60, 50, 70, 80)))


def _meetings(first: Put, second: Put, lines: int) -> tuple[Concurrent, ...]:
    schedules = [(*(0,) * late, 1) for late in range(lines, lines + 10)]
    return tuple(Concurrent(first=(first,), second=(second,), schedule=each, commits=True) for each in schedules)


def steps_of(services: tuple[str, ...]) -> st.SearchStrategy[Step]:
    """Draw a step of one of the services of a store, at once or after a while."""
    return st.builds(Step, service=st.sampled_from(services), after_ms=st.sampled_from(_WAITING_MS))
