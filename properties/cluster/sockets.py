"""Judge links over TCP and the thread of a node, once in a process.

| contract | what is judged |
|---|---|
| 8 | an address has a host and a port; a wrong one, or one in use, is refused with its name |
| 8 | without a free descriptor no network is made, and a network makes no link; nothing stays open |
| 15 | a link delivers the sent bytes in order, each once, and then its end |
| 16 | a wait ends when bytes, room, a connection or a wake-up has come, and not before its time without them |
| 16 | a thread steps its node when it is due, and a second after a failed step |
| 16 | each clock of the store counts the milliseconds of the monotonic clock of the system |

The sockets are real ones of loopback, and one thread uses both ends. Loopback delivers bytes before `send` returns, so
nothing here depends on the speed of the machine. Only the least time of a wait is judged, and a most of 10 s.
"""

import errno
import gc
import logging
import os
import resource
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from time import monotonic_ns, perf_counter
from typing import Any, cast

from tornpage.impl.consumer.running import monotonic_ms as consumer_ms
from tornpage.impl.replication.node_thread import NodeThread, monotonic_ms
from tornpage.impl.replication.tcp import TcpLink, TcpListener, TcpNetwork, host_and_port
from tornpage.impl.service.runner import Service, ThreadRunner
from tornpage.properties.contract import GuaranteeBroken

__all__ = ["descriptors_left", "sockets_hold", "threads_hold"]

_LOOPBACK = "127.0.0.1:0"
_SHORT_MS, _LONG_MS = 30, 10_000
_DESCRIPTORS_OF_A_NETWORK = 2
"""One for all waits, and one for wake-ups."""
_NS_PER_MS = 1_000_000
_ADDRESSES: dict[str, tuple[str, int] | None] = {
    "h:0": ("h", 0), "h:9": ("h", 9), "h:65535": ("h", 65_535), ":7": ("127.0.0.1", 7), "h:00007": ("h", 7),
    "a:b:7": None, "::1": None, "[::1]:7": None, "h:65536": None, "h:000007": None, "h:": None, "h": None, "": None,
    "h:-1": None, "h:x": None, "h:\u0661": None, "h: 7": None, "h:+7": None, "h:7 ": None,
}  # fmt: skip
"""Addresses with their host and port, None if they are refused: IPv6, or no port from 0 to 65535."""


def sockets_hold() -> None:
    """Judge addresses, links, listeners and waits. Raises GuaranteeBroken."""
    _addresses_hold()
    gc.collect()
    before = _descriptors()
    for judge in (
        _listeners_hold, _first_reads_hold, _links_hold, _ends_hold, _full_links_hold, _waits_hold, _limits_hold,
    ):  # fmt: skip
        _guarded(judge)
    gc.collect()
    if _descriptors() > before:
        raise GuaranteeBroken(8, "closed links and listeners keep descriptors open", str(before), str(_descriptors()))


def _guarded(judge: Callable[[], None]) -> None:
    try:
        judge()
    except (OSError, TypeError, ValueError, AttributeError) as error:
        raise GuaranteeBroken(8, f"a socket raises {type(error).__name__}: {error}") from error


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def _is(what: str, found: object, wanted: object, contract: int = 15) -> None:
    if found != wanted:
        raise GuaranteeBroken(contract, f"{what} is another one", str(wanted)[:200], str(found)[:200])


def _refused(make: Callable[[], object], address: str, code: int) -> None:
    """Contract 8: an address is refused with its name and a code."""
    try:
        make()
    except OSError as error:
        _is(f"the refusal of {address!r}", (error.errno, error.filename), (code, address), 8)
        return
    raise GuaranteeBroken(8, f"the address {address!r} is not refused")


def _addresses_hold() -> None:
    for address, wanted in _ADDRESSES.items():
        if wanted is not None:
            _is(f"the address {address!r}", host_and_port(address), wanted, 8)
            continue
        _refused(lambda address=address: host_and_port(address), address, errno.EINVAL)  # type: ignore[misc]
        if TcpNetwork().connect(address) is not None:
            raise GuaranteeBroken(8, f"a network connects to {address!r}")
    _refused(lambda: TcpNetwork().listen("127.0.0.1:x"), "127.0.0.1:x", errno.EINVAL)


def _pair(network: TcpNetwork, listener: TcpListener) -> tuple[TcpLink, TcpLink]:
    """Return both ends of a new connection: the one that connects, and the accepted one."""
    near = network.connect(listener.address)
    network.wait(_LONG_MS)
    far = listener.accept()
    if near is None or far is None:
        raise GuaranteeBroken(15, "a network does not connect to its own listener")
    _is("the address of an accepted link", near.peer, listener.address)
    _is("the host of a link that connects", far.peer.rpartition(":")[0], "127.0.0.1")
    return near, far


def _listeners_hold() -> None:
    """Contract 8: an address has one listener, and can be used again at once after its end."""
    network = TcpNetwork()
    listener = network.listen(":0")
    address = listener.address
    _is("the host of a listener", address.rpartition(":")[0], "127.0.0.1", 8)
    if listener.accept() is not None:
        raise GuaranteeBroken(15, "a listener accepts a link that was not made")
    _refused(lambda: network.listen(address), address, errno.EADDRINUSE)
    links = [_pair(network, listener) for _ in range(3)]
    _is("the number of waiting links", listener.accept(), None)
    for near, far in links:
        far.close()
        network.wait(_LONG_MS)
        _is("what a link receives after its end", near.receive(10), None)
        near.close()
    listener.close()
    listener.close()
    gone = network.connect(address)
    if gone is not None:
        network.wait(_LONG_MS)
        _is("what a link to no listener receives", (gone.receive(10), gone.send(b"x")), (None, 0))
        gone.close()
    network.listen(address).close()


def _links_hold() -> None:
    """Contract 15: bytes arrive in order, in pieces of the asked size."""
    network = TcpNetwork()
    listener = network.listen(_LOOPBACK)
    for near, far in (_pair(network, listener), _pair(network, listener)[::-1]):
        _is("what arrives of nothing", near.receive(10), b"")
        _is("the number of sent bytes", (near.send(b"abcdef"), far.send(memoryview(b"123"))), (6, 3))
        network.wait(_LONG_MS)
        _is("what arrives", (far.receive(4), near.receive(10)), (b"abcd", b"123"))
        network.wait(_LONG_MS)
        _is("what arrives next", (far.receive(4), near.receive(10)), (b"ef", b""))
        near.close()
        far.close()
    listener.close()


def _first_reads_hold() -> None:
    """Contracts 15 and 16: a network without a wait reads what is there.

    It remembers a wake-up.
    """
    network = TcpNetwork()
    network.wake()
    _is_awake(network, "was woken before its first wait")
    network = TcpNetwork()
    listener = network.listen(_LOOPBACK)
    near = network.connect(listener.address)
    far = listener.accept()
    if near is None or far is None:
        raise GuaranteeBroken(15, "a network does not connect before its first wait")
    _is("what arrives of nothing", (near.receive(10), far.receive(10)), (b"", b""))
    near.send(b"abc")
    _is("what arrives before a wait", (far.receive(10), far.receive(10)), (b"abc", b""))
    for each in (near, far, listener):
        each.close()


def _ends_hold() -> None:
    """Contract 15: what was sent before an end arrives, then the end. A reset is an end too."""
    network = TcpNetwork()
    listener = network.listen(_LOOPBACK)
    near, far = _pair(network, listener)
    near.send(b"last")
    near.close()
    near.close()
    _is("what a closed link does", (near.send(b"x"), near.receive(1)), (0, None))
    network.wait(_LONG_MS)
    _is("what arrives before an end", far.receive(10), b"last")
    network.wait(_LONG_MS)
    _is("what arrives at an end", [far.receive(10), far.receive(10), far.send(b"x")], [None, None, 0])
    far.close()
    near, far = _pair(network, listener)
    near.send(b"unread")
    far.close()  # with unread bytes the kernel resets the connection
    network.wait(_LONG_MS)
    _is("what arrives at a reset", (near.receive(10), near.receive(10), near.send(b"x")), (None, None, 0))
    near.close()
    near, far = _pair(network, listener)
    near.send(b"unread")
    far.close()
    _is("what a link takes after a reset", (near.send(b"x"), near.receive(10)), (0, None))
    near.close()
    listener.close()


def _full_links_hold() -> None:
    """Contracts 15 and 16: a full link takes a part, and a wait ends when it has room again."""
    network = TcpNetwork()
    listener = network.listen(_LOOPBACK)
    near, far = _pair(network, listener)
    data = bytes(range(251)) * (1 << 16)
    sent = near.send(data)
    while count := near.send(data[sent:]):
        sent += count
    if not 0 < sent < len(data):
        raise GuaranteeBroken(15, f"a link takes {sent} of {len(data)} bytes that no peer reads")
    arrived = bytearray()
    network.wait(0)
    while len(arrived) < sent:
        piece = far.receive(1 << 20)
        if piece is None:
            raise GuaranteeBroken(15, "a full link ends")
        arrived += piece
        if not piece:
            network.wait(_LONG_MS)
    _is("what arrives on a full link", bytes(arrived) == data[:sent], True)
    _is_awake(network, "has room again")
    _is("the number of bytes that a link with room takes", near.send(b"yz"), 2)
    network.wait(_LONG_MS)
    _is("what arrives after a full link", far.receive(10), b"yz")
    _sleeps(network, "a link with room")
    for each in (near, far, listener):
        each.close()


def _waits_hold() -> None:
    """Contract 16: a wake-up ends the present or the next wait, and one wait only."""
    network = TcpNetwork()
    listener = network.listen(_LOOPBACK)
    _sleeps(network, "nothing")
    network.wake()
    network.wake()
    _is_awake(network, "was woken")
    _sleeps(network, "an old wake-up")
    network.wake()
    _is_awake(network, "was woken again")
    waker = threading.Timer(_SHORT_MS / 1_000, network.wake)
    waker.start()
    _is_awake(network, "is woken by another thread")
    waker.join()
    near, far = _pair(network, listener)
    near.send(b"x")
    _is_awake(network, "has bytes")
    network.wait(0)
    _is("what arrives after waits", far.receive(10), b"x")
    other = socket.create_connection(host_and_port(listener.address))
    _is_awake(network, "has a connection")
    accepted = listener.accept()
    if accepted is None:
        raise GuaranteeBroken(15, "a listener does not accept a connection")
    for each in (near, far, other, accepted, listener):
        each.close()
    _sleeps(network, "closed links")


@contextmanager
def descriptors_left(left: int) -> Iterator[None]:
    """Let this process open only so many further descriptors."""
    listed = set(map(int, os.listdir("/proc/self/fd")))  # with the one that reads the list
    free = (number for number in count() if number not in listed or not _is_open(number))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = next(number for at, number in enumerate(free) if at == left)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _limits_hold() -> None:
    """Contract 8: each call at each limit of descriptors either works or changes nothing."""
    for left in range(_DESCRIPTORS_OF_A_NETWORK + 2):
        before = _descriptors()
        with descriptors_left(left):
            network = _made(TcpNetwork)
        what = f"with {left} descriptors left"
        _is(f"whether a network is made {what}", network is not None, left >= _DESCRIPTORS_OF_A_NETWORK, 8)
        network = None
        gc.collect()
        _is(f"the open descriptors after a network {what}", _descriptors(), before, 8)
    network = TcpNetwork()
    before = _descriptors()
    for left in (0, 1):
        with descriptors_left(left):
            listener = _made(lambda: network.listen(_LOOPBACK))
        _is(f"whether a listener is made with {left} descriptors left", listener is not None, left > 0, 8)
    for left in (0, 1):
        with descriptors_left(left):
            near = network.connect(listener.address)
        _is(f"whether a network connects with {left} descriptors left", near is not None, left > 0, 8)
    for left in (0, 1):
        network.wait(_LONG_MS)
        with descriptors_left(left):
            far = listener.accept()
        _is(f"whether a listener accepts with {left} descriptors left", far is not None, left > 0, 8)
    for each in (near, far, listener):
        if each is not None:
            each.close()
    _is("the open descriptors after calls without descriptors", _descriptors(), before, 8)


def _made(make: Callable[[], Any]) -> Any:
    """Return what is made, None without a free descriptor."""
    try:
        return make()
    except OSError as error:
        _is("the error of a call without a free descriptor", error.errno, errno.EMFILE, 8)
        return None


def _sleeps(network: TcpNetwork, what: str) -> None:
    """Require that nothing ends a wait before its time."""
    began = perf_counter()
    network.wait(_SHORT_MS)
    if perf_counter() - began < _SHORT_MS / 1_000 - 0.002:
        raise GuaranteeBroken(16, f"a wait ends early: {what} ends it")


def _is_awake(network: TcpNetwork, what: str) -> None:
    """Require that a wait ends before its time."""
    began = perf_counter()
    network.wait(_LONG_MS)
    if perf_counter() - began >= _LONG_MS / 1_000 - 0.002:
        raise GuaranteeBroken(16, f"a wait does not end when its network {what}")


# ---- threads ---------------------------------------------------------------------------------------------------------


class _Waits:
    """A network that notes each wait.

    After the last one it waits for a wake-up, which only the end of the thread makes. So a wake-up returns after the
    thread has ended.
    """

    def __init__(self, count: int) -> None:
        self.timeouts: list[int] = []
        self.is_done = threading.Event()
        self._count = count
        self._woken = threading.Event()
        self._was_woken = False
        self._thread: threading.Thread | None = None

    def wait(self, timeout_ms: int) -> None:
        """Note a wait."""
        self._thread = threading.current_thread()
        if self._was_woken:
            raise GuaranteeBroken(16, "a thread waits again after it was woken to stop")
        self.timeouts.append(timeout_ms)
        if len(self.timeouts) >= self._count:
            self.is_done.set()
            if not self._woken.wait(_LONG_MS / 1_000):
                raise GuaranteeBroken(16, "a thread that is to stop is not woken")
            self._was_woken = True

    def wake(self) -> None:
        """End the last wait, and let the thread go on before the caller does."""
        self._woken.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_LONG_MS / 1_000)

    def listen(self, address: str) -> TcpListener:
        """Refuse to listen."""
        raise OSError(errno.EINVAL, "no address", address)

    def connect(self, address: str) -> None:
        """Connect to nothing."""


def threads_hold() -> None:
    """Contract 16: a thread waits as long as its step says, or a second after a failure.

    Raises GuaranteeBroken.
    """
    log = logging.getLogger("tornpage.replication")
    was_disabled, log.disabled = log.disabled, True  # the failed steps are meant
    _clocks_hold()
    try:
        for due in ((7, 0, 1), (3, None, 5), (None, None, 2), (-4, 250, -1)):
            _thread_holds(due)
        _stops_itself()
    finally:
        log.disabled = was_disabled


def _clocks_hold() -> None:
    """Contract 16: compare each clock with two looks at the clock of the system."""
    runner = ThreadRunner(cast(Service, None))  # not started, so that it calls no service
    for name, clock in (("node", monotonic_ms), ("consumer", consumer_ms), ("service", runner.now_ms)):
        before_ns = monotonic_ns()
        found = clock()
        after_ns = monotonic_ns()
        _is(f"the type of the time of a {name}", type(found), int, 16)
        if not before_ns // _NS_PER_MS <= found <= after_ns // _NS_PER_MS:
            between = f"{before_ns} ns to {after_ns} ns"
            raise GuaranteeBroken(16, f"the clock of a {name} shows another time", between, f"{found} ms")


def _thread_holds(due_ms: Sequence[int | None]) -> None:
    """Step a node that is due after these times. None is a step that fails."""
    network, now_ms = _Waits(len(due_ms)), 1_000
    times: list[int] = []
    threads: list[threading.Thread] = []

    def step(at_ms: int) -> int:
        times.append(at_ms)
        threads.append(threading.current_thread())
        due = due_ms[min(len(times), len(due_ms)) - 1]
        if due is None:
            raise ValueError("a failed step")
        return at_ms + due

    thread = NodeThread(step, network, lambda: now_ms, name="judged")
    network.is_done.wait(_LONG_MS / 1_000)
    thread.stop()
    thread.stop()
    wanted = [1_000 if each is None else max(0, each) for each in due_ms]
    _is("the waits of a thread", network.timeouts, wanted, 16)
    _is("the times of the steps of a thread", times, [now_ms] * len(due_ms), 16)
    ended = [each.is_alive() or not each.daemon or each.name != "judged" for each in threads]
    _is("the thread of a node", any(ended), False, 16)


def _stops_itself() -> None:
    """Contract 16: a step may stop its own thread."""
    network, made, stopped = _Waits(1), threading.Event(), threading.Event()
    threads: list[NodeThread] = []

    def step(at_ms: int) -> int:
        made.wait(_LONG_MS / 1_000)
        threads[0].stop()
        stopped.set()
        return at_ms

    threads.append(NodeThread(step, network, lambda: 0))
    made.set()
    threads[0].stop()
    _is("whether a step can stop its thread", stopped.is_set(), True, 16)
