"""Measure a master and its slave over loopback, beside a pair of Java stores.

The master of our pair is in this process, its slave is `tornpage serve`. The Java pair is two processes of RocketMQ's
store. Both write log files of the same size below the same directory and flush asynchronously. All messages have 1,024
body bytes. A ratio is that of one round: the Java pair works first, then ours, so that both meet the same machine. The
Java pair has replicated `WARM_UP` rounds before, since a Java process becomes faster while it runs.
"""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from os import sysconf
from pathlib import Path
from queue import SimpleQueue
from statistics import median
from time import perf_counter, process_time, sleep

from tornpage.bench.figures import Figure, Skipped, figure, scratch
from tornpage.bench.sizes import FULL, Sizes
from tornpage.front import wall_clock_ms
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import BrokerRole
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.kernels.compiled import compiled_parts
from tornpage.impl.message.message import Message, PutResult, PutStatus
from tornpage.impl.replication.node import ReplicatedStore
from tornpage.impl.replication.settings import ReplicationSettings
from tornpage.impl.replication.tcp import TcpNetwork
from tornpage.peers.errors import PeerUnavailable
from tornpage.peers.rocketmq.installing import REFERENCE, Release, installed
from tornpage.peers.rocketmq.replica import JavaNode, java_node
from tornpage.properties.cluster.served_process import NodeProcess
from tornpage.properties.contract import HarnessError

__all__ = [
    "java_first_confirmed_s",
    "replica_async_1024",
    "replica_async_over_java_1024",
    "replica_first_confirmed_s",
    "replica_lag_ms",
    "replica_sync64_1024",
    "replica_sync64_cpu_us",
    "replica_sync64_over_java_1024",
    "replica_transfer_mb_per_s",
]

OUTSTANDING = 64
WARM_UP = 3
LAG_PER_S = 1_000
_BODY_BYTES = 1_024
_MESSAGE = Message("T", bytes(_BODY_BYTES), queue_id=0)
_ASYNC, _SYNC = BrokerRole.ASYNC_MASTER, BrokerRole.SYNC_MASTER
_PATIENCE_S = 60.0
_LOOK_S = 0.0005


def replica_async_1024(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Messages/s that an ASYNC_MASTER takes in one thread, until its slave has all of them."""
    return _own("replica_async_1024", _ASYNC, directory, seconds, sizes)


def replica_sync64_1024(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Messages/s that a SYNC_MASTER answers, with 64 puts outstanding."""
    return _own("replica_sync64_1024", _SYNC, directory, seconds, sizes)


def replica_sync64_cpu_us(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Processor microseconds of master and slave for each put of `replica_sync64_1024`.

    The load of the machine changes it less than it changes a rate.
    """
    name = "replica_sync64_cpu_us"
    with ExitStack() as stack:
        place = stack.enter_context(scratch(directory))
        master = stack.enter_context(_master(place, _SYNC, sizes))
        slave = stack.enter_context(_slave(place, master.ha_address, sizes))
        _await(lambda: master.acknowledged_offset is not None)

        def one_round() -> float:
            before_s = process_time() + _processor_s(slave.pid)
            _load(master, _SYNC, sizes)
            return (process_time() + _processor_s(slave.pid) - before_s) / sizes.puts * 1e6

        return figure(name, "us", one_round, directory=directory, seconds=seconds)


def _processor_s(process: int) -> float:
    """Return the processor seconds of a process, all threads. Source: proc(5), `stat`."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / sysconf("SC_CLK_TCK")


def replica_async_over_java_1024(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """`replica_async_1024`, divided by the same figure of a Java pair."""
    return _over_java("replica_async_over_java_1024", _ASYNC, directory, seconds, sizes)


def replica_sync64_over_java_1024(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """`replica_sync64_1024`, divided by the same figure of a Java pair."""
    return _over_java("replica_sync64_over_java_1024", _SYNC, directory, seconds, sizes)


def replica_transfer_mb_per_s(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """MB/s (10^6 bytes) at which an empty slave receives a whole log.

    The time is that from the begin of its connection to its last confirmation.
    """
    with scratch(directory) as place, _master(place, _ASYNC, sizes) as master:
        for _ in range(sizes.puts):
            master.store.put(_MESSAGE)

        def one_round() -> float:
            with scratch(place) as below, _slave(below, "127.0.0.1:9", sizes) as slave:
                began = perf_counter()
                _follow(slave, master)
                _await(lambda: master.acknowledged_offset == master.store.max_offset)
                return master.store.max_offset / (perf_counter() - began) / 1e6

        return figure("replica_transfer_mb_per_s", "MB/s", one_round, directory=directory, seconds=seconds)


def replica_first_confirmed_s(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Seconds from the begin of a slave's connection to the first put that is answered PUT_OK."""
    with scratch(directory) as place, _master(place, _SYNC, sizes) as master:

        def one_round() -> float:
            with scratch(place) as below, _slave(below, "127.0.0.1:9", sizes) as slave:
                _await(lambda: master.acknowledged_offset is None)
                began = perf_counter()
                _follow(slave, master)
                _await(lambda: master.store.put(_MESSAGE).status is PutStatus.PUT_OK)
                return perf_counter() - began

        return figure("replica_first_confirmed_s", "s", one_round, directory=directory, seconds=seconds)


def java_first_confirmed_s(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Seconds from the ready line of a Java slave to the first put answered PUT_OK."""
    del seconds  # one round takes more than five seconds
    release = _release()

    def one_round() -> float:
        with scratch(directory) as place, ExitStack() as stack:
            master, _ = _java_pair(release, stack, place, _SYNC, sizes)
            began = perf_counter()
            _await(lambda: "PUT_OK" in master.ask(f"put 1 {_BODY_BYTES}"))
            return perf_counter() - began

    return figure("java_first_confirmed_s", "s", one_round, directory=directory, seconds=0.0, rounds_min=1)


def replica_lag_ms(directory: str, *, seconds: float, sizes: Sizes = FULL) -> Figure:
    """Milliseconds from a put of an ASYNC_MASTER to the confirmation of its slave.

    The master takes 1,000 puts/s. A round gives the median of all its puts.
    """
    with scratch(directory) as place, _pair(place, _ASYNC, sizes) as master:

        def one_round() -> float:
            lags: list[float] = []
            waiting: deque[tuple[int, float]] = deque()
            began = perf_counter()
            number = 0
            while number < min(sizes.puts, LAG_PER_S) or waiting:
                if number < min(sizes.puts, LAG_PER_S) and perf_counter() - began >= number / LAG_PER_S:
                    answer = master.store.put(_MESSAGE)
                    waiting.append((answer.offset + answer.size_bytes, perf_counter()))
                    number += 1
                confirmed = master.acknowledged_offset or 0
                while waiting and waiting[0][0] <= confirmed:
                    lags.append(perf_counter() - waiting.popleft()[1])
                sleep(_LOOK_S / 5)
            return 1e3 * median(lags)

        return figure("replica_lag_ms", "ms", one_round, directory=directory, seconds=seconds)


# ---- our pair --------------------------------------------------------------------------------------------------------


def _own(name: str, role: BrokerRole, directory: str, seconds: float, sizes: Sizes) -> Figure:
    with scratch(directory) as place, _pair(place, role, sizes) as master:
        return figure(name, "messages/s", lambda: _load(master, role, sizes), directory=directory, seconds=seconds)


def _config(role: BrokerRole, sizes: Sizes) -> MessageStoreConfig:
    """Return the settings of a node.

    Its puts may wait for a minute, since both nodes also load compiled parts in the first round.
    """
    return MessageStoreConfig(
        mapped_file_size_commit_log=sizes.log_file_bytes,
        broker_role=role,
        os_page_cache_busy_time_out_mills=60_000,
        slave_timeout=int(1_000 * _PATIENCE_S),
    )


@contextmanager
def _master(place: str, role: BrokerRole, sizes: Sizes) -> Iterator[ReplicatedStore]:
    node = ReplicatedStore.open(
        f"{place}/master",
        _config(role, sizes),
        ReplicationSettings(ha_listen_address="127.0.0.1:0"),
        files=OsFiles(),
        clock=wall_clock_ms,
        network=TcpNetwork(),
        parts=compiled_parts(),
    )
    try:
        node.start()
        yield node
    finally:
        node.close()


@contextmanager
def _slave(place: str, address: str, sizes: Sizes) -> Iterator[NodeProcess]:
    options = ["--set", f"mapped_file_size_commit_log={sizes.log_file_bytes}"]
    slave = NodeProcess(Path(place) / "slave", "SLAVE", "127.0.0.1:0", master=address, options=options)
    try:
        yield slave
    finally:
        slave.kill()


def _follow(slave: NodeProcess, master: ReplicatedStore) -> None:
    with slave.client() as client:
        client.ask("follow", master=master.ha_address)


@contextmanager
def _pair(place: str, role: BrokerRole, sizes: Sizes) -> Iterator[ReplicatedStore]:
    with _master(place, role, sizes) as master, _slave(place, master.ha_address, sizes):
        _await(lambda: master.acknowledged_offset is not None)
        yield master


def _await(holds: Callable[[], bool]) -> None:
    limit = perf_counter() + _PATIENCE_S
    while not holds():
        if perf_counter() > limit:
            raise HarnessError(f"a pair was not ready within {_PATIENCE_S:g} s")
        sleep(_LOOK_S)


def _load(master: ReplicatedStore, role: BrokerRole, sizes: Sizes) -> float:
    """Put the messages of a round; return how many per second the pair took."""
    began = perf_counter()
    if role is _SYNC:
        _put_outstanding(master, sizes.puts)
    else:
        put = master.store.put
        if sum(put(_MESSAGE).status is not PutStatus.PUT_OK for _ in range(sizes.puts)):
            raise HarnessError("a put was refused")
    _await(lambda: master.acknowledged_offset == master.store.max_offset)
    return sizes.puts / (perf_counter() - began)


def _put_outstanding(master: ReplicatedStore, count: int) -> None:
    """Put messages with `OUTSTANDING` answers outstanding, as ReplicaNode.java does."""
    answers: SimpleQueue[Future[PutResult]] = SimpleQueue()
    put, answered, next_answer, ok = master.store.put_async, answers.put, answers.get, PutStatus.PUT_OK
    refused = 0
    for number in range(count):
        if number >= OUTSTANDING:
            refused += next_answer().result().status is not ok
        put(_MESSAGE).add_done_callback(answered)
    for _ in range(min(count, OUTSTANDING)):
        refused += next_answer().result().status is not ok
    if refused:
        raise HarnessError(f"{refused} of {count} puts were not confirmed")


# ---- the Java pair ---------------------------------------------------------------------------------------------------


def _over_java(name: str, role: BrokerRole, directory: str, seconds: float, sizes: Sizes) -> Figure:
    release = _release()
    with scratch(directory) as place, ExitStack() as stack:
        java_master, java_slave = _java_pair(release, stack, f"{place}/java", role, sizes)
        _await(lambda: java_master.ask(f"put 1 {_BODY_BYTES}") == "{PUT_OK=1}" and java_slave.end > 0)
        master = stack.enter_context(_pair(place, role, sizes))

        def java_round() -> float:
            began = perf_counter()
            _, end, statuses = java_master.ask(f"load {sizes.puts} {_BODY_BYTES} {OUTSTANDING}").split(maxsplit=2)
            java_slave.ask(f"await {end}")
            if statuses != f"{{PUT_OK={sizes.puts}}}":
                raise HarnessError(f"the Java master answered {statuses}")
            return sizes.puts / (perf_counter() - began)

        for _ in range(WARM_UP):
            java_round()
            _load(master, role, sizes)
        return figure(
            name, "ratio", lambda: 1 / java_round() * _load(master, role, sizes), directory=directory, seconds=seconds
        )


def _java_pair(
    release: Release, stack: ExitStack, place: str, role: BrokerRole, sizes: Sizes
) -> tuple[JavaNode, JavaNode]:
    addresses = []
    for _ in range(2):
        listener = TcpNetwork().listen("127.0.0.1:0")
        listener.close()
        addresses.append(listener.address)
    size = sizes.log_file_bytes
    master = java_node(release, Path(place) / "one" / "store", role.name, addresses[0], file_bytes=size)
    slave = java_node(
        release, Path(place) / "two" / "store", "SLAVE", addresses[1], file_bytes=size, master=addresses[0]
    )
    return stack.enter_context(master), stack.enter_context(slave)


def _release() -> Release:
    try:
        return installed(REFERENCE)
    except PeerUnavailable as missing:
        raise Skipped(str(missing)) from missing
