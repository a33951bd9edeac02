"""Kill or hang the leader of a group, and look for acknowledged entries.

Three processes of `tornpage serve` are a group on loopback. A producer appends to the leader. A fail-over is the time
from the kill of the leader to the first entry that another member acknowledges. After it the killed member starts
again. At the end all members have to have the same log, with every acknowledged entry at the index of its
acknowledgement.

A process kill leaves the page cache, so this says nothing about power losses (`explore raft` does).
"""

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path

from tornpage.impl.kernels.compiled import load_compiled_parts
from tornpage.properties.cluster.served_process import ServedProcess, free_address
from tornpage.properties.contract import HarnessError
from tornpage.properties.explore.group.judge import judged, lost_of
from tornpage.properties.explore.group.producer import TOPIC, GroupProducer
from tornpage.properties.scratch import memory_directory, scratch_directory

__all__ = ["GroupReport", "quantile", "run_group"]

_FILE_BYTES = 1 << 20
_INDEX_FILE_BYTES = 1 << 16
_ANSWERS_BEFORE_KILL = 50
_LIVES_S = 0.3
_PATIENCE_S = 60.0
_LOOK_S = 0.002
_PER_SECOND = 200
"""Appends in a second while leaders are killed, so that most of the time is waiting."""
_KILL_OUTSTANDING = 16
_RATE_OUTSTANDING = 64
_RATE_S = 3.0
_READ_MAX = 500


@dataclass
class GroupReport:
    """The result: fail-overs, answers, and what is missing.

    `failovers_ms` has the time of each fail-over. `lost` are numbers of acknowledged entries. `unequal` is a sentence
    if the logs differ at the end, else an empty text.
    """

    members: int
    hangs: bool
    messages: bool = False
    failovers_ms: list[float] = field(default_factory=list)
    restarts_ms: list[float] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    acknowledged: int = 0
    appends_per_s: float = 0.0
    entries: int = 0
    terms: int = 0
    lost: tuple[int, ...] = ()
    unequal: str = ""
    log_bytes: int = 0
    seconds: float = 0.0
    interrupted: bool = False

    @property
    def is_vacuous(self) -> bool:
        """Whether too few entries were acknowledged to lose any."""
        return self.acknowledged < _ANSWERS_BEFORE_KILL * max(1, len(self.failovers_ms))


def quantile(values: list[float], share: float) -> float:
    """Return the smallest value that a share of all values does not exceed, 0 without values."""
    ordered = sorted(values)
    return ordered[max(0, ceil(share * len(ordered)) - 1)] if ordered else 0.0


def run_group(
    kills: int,
    *,
    seed: int,
    members: int = 3,
    hangs: bool = False,
    messages: bool = False,
    directory: str | None,
    progress: Callable[[int], None],
) -> GroupReport:
    """Run a group in a new directory, kill its leader `kills` times, and judge.

    With `hangs` a leader is stopped by SIGSTOP instead, and goes on after the fail-over. With `messages` the group has
    a message store, and each member is asked for its messages at the end. Raises HarnessError and OSError.
    """
    if messages:
        load_compiled_parts()  # into the cache: a member that compiled them would be killed before it is ready
    report, began = GroupReport(members, hangs, messages), time.monotonic()
    with scratch_directory("tornpage-group-", below=directory or memory_directory()) as place:
        run = _Group(Path(place), random.Random(seed), report)
        try:
            run.start()
            for number in range(kills):
                run.lose_leader()
                progress(number + 1)
            run.end()
        except KeyboardInterrupt:
            report.interrupted = True
        finally:
            run.stop()
    report.seconds = time.monotonic() - began
    return report


class _Group:
    """The members, a producer, and what was acknowledged."""

    def __init__(self, place: Path, rng: random.Random, report: GroupReport) -> None:
        self._place = place
        self._rng = rng
        self._report = report
        self._peers = [free_address() for _ in range(report.members)]
        self._clients = [free_address() for _ in range(report.members)]
        self._nodes: dict[int, ServedProcess] = {}
        self._producer: GroupProducer | None = None
        self._acknowledged: dict[int, int] = {}

    def start(self) -> None:
        """Start all members, and measure the rate of appends."""
        for member in range(self._report.members):
            self._start(member)
        producer = self._produce(_RATE_OUTSTANDING, 0)
        self._await(lambda: bool(producer.acknowledged), "the first acknowledged entry")
        first, began = len(producer.acknowledged), time.monotonic()
        time.sleep(_RATE_S)
        self._report.appends_per_s = (len(producer.acknowledged) - first) / (time.monotonic() - began)
        self._stop_producer()
        self._produce(_KILL_OUTSTANDING, _PER_SECOND)

    def _start(self, member: int) -> None:
        values = {"data_file_bytes": _FILE_BYTES, "index_file_bytes": _INDEX_FILE_BYTES}
        options = [text for name, value in values.items() for text in ("--set", f"{name}={value}")]
        options += ["--raft-messages"] if self._report.messages else []
        options += ["--raft-id", str(member), "--raft-peers", ",".join(self._peers), "--listen", self._clients[member]]
        self._nodes[member] = ServedProcess(self._place / f"m{member}", options)

    def _produce(self, outstanding: int, per_second: int) -> GroupProducer:
        first = 0 if self._producer is None else self._producer.next
        self._producer = GroupProducer(
            self._clients,
            first,
            messages=self._report.messages,
            outstanding=outstanding,
            per_second=per_second,
        )
        return self._producer

    def _stop_producer(self) -> None:
        if self._producer is not None:
            self._producer.stop()
            self._acknowledged |= self._producer.acknowledged
            self._report.answers.update(self._producer.answers)
            self._producer.acknowledged = {}
            self._producer.answers.clear()

    # ---- one fail-over -------------------------------------------------------------------------------------------

    def lose_leader(self) -> None:
        """Kill or stop the leader, wait for another one, and bring the member back."""
        producer, report = self._producer, self._report
        assert producer is not None
        before = len(producer.acknowledged)
        self._await(lambda: len(producer.acknowledged) >= before + _ANSWERS_BEFORE_KILL, "acknowledged entries")
        time.sleep(self._rng.uniform(0, _LIVES_S))
        leader = producer.leader
        began = time.monotonic()
        if report.hangs:
            self._nodes[leader].hang()
        else:
            self._nodes[leader].kill()
        producer.lose(leader)
        self._await(lambda: producer.found_s is not None, "an entry that another member acknowledges")
        assert producer.found_s is not None
        report.failovers_ms.append((producer.found_s - began) * 1_000)
        if report.hangs:
            self._nodes[leader].resume()
        else:
            began = time.monotonic()
            self._start(leader)
            report.restarts_ms.append((time.monotonic() - began) * 1_000)

    def _await(self, holds: Callable[[], bool], what: str) -> None:
        limit = time.monotonic() + _PATIENCE_S
        while not holds():
            if time.monotonic() > limit:
                raise HarnessError(f"waited {_PATIENCE_S:g} s for {what}")
            time.sleep(_LOOK_S)

    # ---- the end -------------------------------------------------------------------------------------------------

    def end(self) -> None:
        """Wait until all logs are committed, close the members, and judge their files."""
        self._stop_producer()
        self._await(self._is_even, "equal ends of all logs")
        report, leader = self._report, self._nodes[0].status()["leader"]
        queues = [self._queue_of(member) for member in sorted(self._nodes)] if report.messages else []
        for member in sorted(self._nodes, key=lambda each: each == leader):
            self._nodes[member].close()  # the leader last, so that no other one begins a term
        logs = [self._place / f"m{member}" / f"dledger-n{member}" / "data" for member in sorted(self._nodes)]
        found = judged(logs, {} if report.messages else self._acknowledged)
        report.acknowledged = len(self._acknowledged)
        report.lost, report.unequal = found.lost, found.unequal
        if report.messages:
            report.lost = tuple(sorted({lost for queue in queues for lost in lost_of(queue, self._acknowledged)}))
            if not all(queue == queues[0] for queue in queues):
                report.unequal = "the members have different messages in their queue"
        report.entries, report.log_bytes = found.entries, found.log_bytes

    def _queue_of(self, member: int) -> list[bytes]:
        """Return the bodies of all messages of the queue of a member, by queue offset."""
        bodies: list[bytes] = []
        with self._nodes[member].client() as client:
            self._await(lambda: client.ask("status")["dispatch_behind_bytes"] == 0, "dispatch")
            while True:
                answer = client.ask("get", topic=TOPIC, offset=len(bodies), max=_READ_MAX)
                if not answer.get("messages"):
                    return bodies
                for each in answer["messages"]:
                    if each["queue_offset"] != len(bodies):
                        return bodies
                    bodies.append(each["body"].encode())

    def _is_even(self) -> bool:
        found = [node.status() for node in self._nodes.values()]
        self._report.terms = max(each["term"] for each in found)
        ends = {each[name] for each in found for name in ("end", "durable_end", "commit_end")}
        return len(ends) == 1

    def stop(self) -> None:
        """Kill whatever still runs."""
        for node in self._nodes.values():
            node.kill()
        if self._producer is not None:
            self._producer.stop()
