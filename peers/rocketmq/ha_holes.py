"""The defects R1 to R32 of replication in RocketMQ 4.9.3, and schedules that show them.

A defect without a schedule has a reason. A schedule drives Java stores over a network that it holds (ha_lab.py). It
returns what it saw if the defect is there, and None if it is not. Times and sizes are those of 4.9.3 unless the
schedule opens a store with others.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass

from tornpage.peers.rocketmq.ha_lab import FILE_BYTES, HaLab, HaLink, HaStore, frames_of, heartbeat

__all__ = ["REPLICATION_HOLES", "ReplicationHole", "replication_holes_named"]

Schedule = Callable[[HaLab], str | None]
_HUGE = 10**9
_LARGE_BYTES = 24 << 20
_STALLED_FILE_BYTES = 16 << 20
_STALLED_FRAME_BYTES = 4_000_000
"""Less than a slave of 4.9.3 takes, and more than the buffers of a link, so that the first frame waits."""
_RECORD_BYTES = 592
"""The length of the records that the Java stores put here: bodies have 500 bytes."""


@dataclass(frozen=True, slots=True)
class ReplicationHole:
    """One defect.

    Without a `schedule` there is a `reason`. `instead` is what this project does.
    """

    id: str
    sentence: str
    instead: str
    schedule: Schedule | None = None
    reason: str = ""


# ---- the master ------------------------------------------------------------------------------------------------------


def _a_new_slave_gets_the_last_file_only(lab: HaLab) -> str | None:
    master = lab.store("master", "ASYNC_MASTER")
    master.put(70)
    link = master.connect()
    link.report(0)
    frame = link.frame(5)
    if frame is None or frame.offset == 0:
        return None
    return f"the log begins at 0, and the first byte sent is at {frame.offset}"


def _an_offset_past_the_end_confirms(lab: HaLab) -> str | None:
    master = lab.store("master", "SYNC_MASTER")
    master.put(10)
    master.kill()
    master.lose_tail(6 * _RECORD_BYTES)
    master = _again(lab, master, "SYNC_MASTER")
    link = master.connect()
    link.report(10 * _RECORD_BYTES)
    lab.wait(0.3)
    answer = master.put(2, fill="b")
    frames = [frame for frame in link.frames(0.5) if frame.body]
    if answer.get("PUT_OK") != 2 or frames:
        return None
    return "2 puts are answered PUT_OK after a replica reported an end that the master has lost; no byte was sent"


def _again(lab: HaLab, store: HaStore, role: str, **options: object) -> HaStore:
    return lab.store(store.name, role, **options)


def _histories_are_joined(lab: HaLab) -> str | None:
    peer = lab.listen()
    slave = lab.store("slave", "SLAVE", master=peer.address)
    first = lab.store("first", "ASYNC_MASTER")
    first.put(2, fill="a")
    (content, *_) = first.log().values()
    link = peer.accepted()
    link.reported(10)
    link.send(0, content[: 2 * _RECORD_BYTES])
    link.reported(5)
    slave.close()
    second = lab.store("second", "ASYNC_MASTER")
    second.put(2, fill="b")
    slave = _again(lab, slave, "SLAVE", master=f"127.0.0.1:{second.port}")
    second.put(1, fill="c")
    lab.wait(14)
    end = slave.state()["max"]
    ours, theirs = slave.log()[0][:end], second.log()[0][:end]
    if end != 3 * _RECORD_BYTES or ours == theirs:
        return None
    at = next(n for n, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b)
    return f"a slave of one master joins another: it ends at {end} as its master, and differs from byte {at} on"


def _a_request_past_the_end_waits(lab: HaLab) -> str | None:
    master = lab.store("master", "ASYNC_MASTER")
    master.put(1)
    link = master.connect()
    link.report(5_000)
    frame = link.frame(8)
    if frame is None or frame.body:
        return None
    return f"a request of 5000 to a log of {_RECORD_BYTES} bytes gets a heartbeat at {frame.offset}, and no refusal"


def _a_slave_below_the_begin_waits(lab: HaLab) -> str | None:
    master = lab.store("master", "SYNC_MASTER")
    master.put(90)
    for _ in range(2):
        master.ask("delete_first")
    begin = master.state()["min"]
    link = master.connect()
    link.report(_RECORD_BYTES)
    frame = link.frame(8)
    answer = master.put(1)
    if not begin or frame is None or frame.body or "FLUSH_SLAVE_TIMEOUT" not in answer:
        return None
    return (
        f"a replica that needs {_RECORD_BYTES} stays connected to a master whose log begins at {begin}: "
        "heartbeats, no data, no error"
    )


def _unflushed_bytes_are_sent(lab: HaLab) -> str | None:
    master = lab.store("master", "SYNC_MASTER", flush=60_000, thorough=600_000)
    link = master.connect()
    link.report(0)
    lab.wait(0.3)
    master.ask("put_async 500")
    frame = link.frame(5)
    flushed = master.state()["flushed"]
    if frame is None or not frame.body or flushed >= frame.offset + len(frame.body):
        return None
    return f"bytes up to {frame.offset + len(frame.body)} are sent, and the log is flushed to {flushed}"


def _sockets_count(lab: HaLab) -> str | None:
    master = lab.store("master", "SYNC_MASTER")
    alone = master.put(1)
    master.connect()
    lab.wait(0.3)
    answer = master.put(1)
    if "SLAVE_NOT_AVAILABLE" not in alone or "FLUSH_SLAVE_TIMEOUT" not in answer:
        return None
    return f"a connection without a report counts as a slave: the put waits {answer['ms']} ms and times out"


def _a_report_outlives_its_replica(lab: HaLab) -> str | None:
    master = lab.store("master", "SYNC_MASTER")
    master.put(1)
    liar = master.connect()
    liar.report(_HUGE)
    lab.wait(0.3)
    liar.close()
    lab.wait(1.5)
    master.connect()
    lab.wait(0.3)
    answer = master.put(3)
    if answer.get("PUT_OK") != 3:
        return None
    return f"3 puts are answered PUT_OK in {answer['ms']} ms; the only connected socket has reported nothing"


def _requests_are_dropped_at_shutdown(lab: HaLab) -> str | None:
    master = lab.store("master", "SYNC_MASTER")
    master.put(1)
    master.connect()
    lab.wait(0.3)
    for _ in range(3):
        master.ask("put_async 500")
        lab.wait(0.1)
    answer = master.close()
    if answer["answered"] >= answer["asked"]:
        return None
    return f"after the shutdown {answer['answered']} of {answer['asked']} waiting puts are answered"


def _time_outs_overshoot(lab: HaLab) -> str | None:
    master = lab.store("master", "SYNC_MASTER")
    link = master.connect()
    link.report(0)
    lab.wait(0.3)
    master._process.stdin.write(b"put 1 500 a\n")  # type: ignore[union-attr]
    frame = link.frame(5)
    if frame is None:
        return None
    lab.wait(0.5)
    link.report(100)
    answer = master.ask("state")
    waited = answer.get("ms", 0)
    return f"a put with a time-out of 3000 ms is answered after {waited} ms" if waited > 3_300 else None


def _idle_senders_poll(lab: HaLab) -> str | None:
    master = lab.store("master", "ASYNC_MASTER")
    link = master.connect()
    link.report(0)
    lab.wait(0.5)
    slowest = 0
    for _ in range(10):
        lab.wait(0.13)
        answer = master.put(1)
        before = len(lab.events)
        link.frame(2)
        sent, came = (float(line.split()[0]) for line in (lab.events[before - 1], lab.events[-1]))
        slowest = max(slowest, int(came - sent) - answer["ms"])
    return f"the slowest of 10 messages leaves an idle master {slowest} ms after its put" if slowest > 20 else None


def _a_close_drains_nothing(lab: HaLab) -> str | None:
    master = lab.store("master", "ASYNC_MASTER", file=1 << 20)
    master.put(1)
    link = master.connect()
    link.report(_RECORD_BYTES)
    lab.wait(0.3)
    master.put(300, size=60_000)
    end = master.state()["max"]
    master.tell_close()
    lab.wait(4)
    frames = link.frames(2)
    received = frames[-1].offset + len(frames[-1].body) if frames else 0
    if received >= end:
        return None
    return f"the master closes with a log up to {end}; a connected replica that reads slowly gets it up to {received}"


def _anyone_reads(lab: HaLab) -> str | None:
    master = lab.store("master", "ASYNC_MASTER")
    master.put(3)
    link = master.connect()
    link.report(_RECORD_BYTES)
    frame = link.frame(5)
    if frame is None or not frame.body:
        return None
    return f"8 bytes of a stranger get {len(frame.body)} bytes of the log"


# ---- the slave -------------------------------------------------------------------------------------------------------


def _slave(lab: HaLab, **options: object) -> tuple[HaStore, HaLink, int]:
    """Return a Java slave, its link to a master of the schedule, and its first report."""
    peer = lab.listen()
    slave = lab.store("slave", "SLAVE", master=peer.address, **options)
    link = peer.accepted()
    reported = link.reported(12)
    return slave, link, -1 if reported is None else reported


def _zero_is_ambiguous(lab: HaLab) -> str | None:
    peer = lab.listen()
    slave = lab.store("slave", "SLAVE", master=peer.address)
    link = peer.accepted()
    link.reported(12)
    link.send(0, b"")
    lab.wait(0.5)
    peer.close()
    link.close()
    master = lab.store("master", "ASYNC_MASTER")
    master.put(60)
    slave.ask(f"master 127.0.0.1:{master.port}")
    lab.wait(13)
    end = slave.state()["max"]
    found, expected = slave.log()[0], b"".join(master.log().values())
    first = found.rstrip(b"\0")[:_RECORD_BYTES]
    if not end or found[:_RECORD_BYTES] == expected[:_RECORD_BYTES] or first not in expected:
        return None
    at = expected.index(first)
    return f"bytes of the master's log at {at} are at 0 in the log of the slave, which ends at {end}"


def _any_offset_is_accepted(lab: HaLab) -> str | None:
    slave, link, _ = _slave(lab)
    link.send(FILE_BYTES + 100, b"x" * 50)
    link.reported(5)
    files = slave.log()
    base = min(files, default=0)
    if files.get(base, b"")[:50] != b"x" * 50:
        return None
    return f"bytes for offset {FILE_BYTES + 100} are written at offset {base} of an empty log"


def _file_sizes_are_not_compared(lab: HaLab) -> str | None:
    slave, link, _ = _slave(lab, file=8192)
    link.send(0, b"x" * 11_840)
    again = link.reported(7)
    end = slave.state()["max"]
    if again is None or link.is_over or end:
        return None
    return (
        f"a frame that does not fit a file of the slave is dropped: the slave reports {again} again, without an error"
    )


def _an_acknowledgement_is_the_page_cache(lab: HaLab) -> str | None:
    slave, link, _ = _slave(lab, flush=60_000, thorough=600_000)
    master = lab.store("master", "ASYNC_MASTER")
    master.put(1)
    link.send(0, master.log()[0][:_RECORD_BYTES])
    reported = link.reported(5)
    flushed = slave.state()["flushed"]
    if reported != _RECORD_BYTES or flushed >= reported:
        return None
    return f"the slave reports {reported}, and has flushed its log to {flushed}"


def _garbage_is_acknowledged(lab: HaLab) -> str | None:
    slave, link, _ = _slave(lab)
    link.send(0, b"x" * 100)
    reported = link.reported(5)
    lab.wait(1)
    behind = slave.state()["behind"]
    if reported != 100 or not behind:
        return None
    return f"100 bytes of garbage are acknowledged, and dispatch stops {behind} bytes before the end"


def _a_silent_master_is_not_noticed(lab: HaLab) -> str | None:
    _, link, _ = _slave(lab, heartbeat=500, housekeeping=2_000)
    reports = 0
    while reports < 12 and link.reported(3) is not None:
        reports += 1
    if link.is_over or reports < 12:
        return None
    return "the slave sends 12 reports to a master that is silent for three times haHousekeepingInterval"


def _the_first_report_waits(lab: HaLab) -> str | None:
    peer = lab.listen()
    lab.store("slave", "SLAVE", master=peer.address)
    link = peer.accepted()
    early = link.reported(4.5)
    late = link.reported(4)
    if early is not None or late is None:
        return None
    return "a slave sends its first report over 4.5 s after it has connected"


def _a_negative_size_moves_back(lab: HaLab) -> str | None:
    slave, link, _ = _slave(lab)
    link.send(0, b"x" * 150)
    link.reported(5)
    link.send(150, b"", size=-20)
    lab.wait(0.7)
    end = slave.state()["max"]
    return f"a frame of -20 bytes moves the end of the log from 150 to {end}" if end == 130 else None


def _a_large_frame_spins(lab: HaLab) -> str | None:
    slave, link, _ = _slave(lab, file=1 << 23)
    idle = slave.cpu_share(2)
    lab.note(f"the master sends a frame at 0 of {_LARGE_BYTES} bytes")
    taken = link.send_some(heartbeat(0)[:8] + _LARGE_BYTES.to_bytes(4, "big") + bytes(_LARGE_BYTES))
    share = slave.cpu_share(3)
    if taken or slave.state()["max"] or link.is_over:
        return None
    return (
        f"a frame of {_LARGE_BYTES >> 20} MiB is never taken, and the link stays; the slave uses {share:.0%} of a "
        f"processor, {idle:.0%} before it"
    )


def _an_old_link_stays(lab: HaLab) -> str | None:
    slave, link, _ = _slave(lab)
    other = lab.listen()
    slave.ask(f"master {other.address}")
    moved = other.accept(7)
    still = link.reported(6)
    if moved is not None or still is None:
        return None
    return "after a change of the address the slave reports to the old master, and does not connect to the new one"


def _half_a_record_keeps_the_abort_file(lab: HaLab) -> str | None:
    slave, link, _ = _slave(lab)
    master = lab.store("master", "ASYNC_MASTER")
    master.put(2)
    link.send(0, master.log()[0][:1000])
    link.reported(5)
    lab.wait(0.5)
    slave.close()
    if not os.path.exists(slave.root / "abort"):
        return None
    return "a clean shutdown with 1000 of 1184 bytes of two records leaves the abort file"


def _begins_differ(lab: HaLab) -> str | None:
    slave, link, _ = _slave(lab)
    master = lab.store("master", "ASYNC_MASTER")
    master.put(60)
    content = master.log()
    for base in (0, FILE_BYTES):
        for at in range(0, FILE_BYTES, 8192):
            link.send(base + at, content[base][at : at + 8192])
            link.reported(5)
    master.ask("delete_first")
    ours, theirs = slave.state()["min"], master.state()["min"]
    return f"the log of the master begins at {theirs}, that of its slave at {ours}" if ours != theirs else None


def _a_stalled_reader_holds_an_unmapped_file(lab: HaLab) -> str | None:
    master = lab.store("master", "ASYNC_MASTER", file=_STALLED_FILE_BYTES, batch=_STALLED_FRAME_BYTES)
    master.put(5_000, 4_000)
    content = master.log()[0]
    reader = master.connect()
    reader.report(_RECORD_BYTES)
    if frames_of(reader.stream(2))[1] is not None:
        return None  # a reader that does not stall gets whole frames
    link = master.connect(receive_bytes=1 << 16)
    link.report(_RECORD_BYTES)
    lab.wait(2)
    for _ in range(2):  # the second one is forced, as after destroyMapedFileIntervalForcibly (120 s)
        master.ask("delete_first")
    frames, broken, size = frames_of(link.stream(5))
    for frame in (*frames, *([] if broken is None else [broken])):
        if frame.body != content[frame.offset : frame.offset + len(frame.body)]:
            return f"a waiting frame, at {frame.offset}, has bytes that are not in the log, since its file is unmapped"
    if broken is None:
        return None
    return (
        f"the file of a waiting frame is unmapped: the frame at {broken.offset} stops after {len(broken.body)} "
        f"of {size} bytes, and the link {'ends' if link.is_over else 'stays'}"
    )


def _copies_of_delayed_messages_do_not_wait(lab: HaLab) -> str | None:
    master = lab.store("master", "SYNC_MASTER")
    link = master.connect()
    link.report(0)
    lab.wait(0.5)
    master.ask("put_delayed 500 1")
    frame = link.frame(5)
    if frame is None:
        return None
    acknowledged = frame.offset + len(frame.body)
    link.report(acknowledged)
    progress = master.root / "config" / "delayOffset.json"
    for _ in range(15):  # the replica is silent now; the message is due after 1 s, its progress is written every 10 s
        lab.wait(1)
        state = master.state()
        passed = progress.exists() and "1:1" in progress.read_text().replace(" ", "").replace('"', "")
        if state["queue"] == 1 and passed and state["acknowledged"] == acknowledged < state["max"]:
            return (
                "the copy of a delayed message is delivered and its progress is written, and the replica of a "
                f"SYNC_MASTER has confirmed {acknowledged} of {state['max']} bytes"
            )
    return None


# ---- all of them -----------------------------------------------------------------------------------------------------

_BROKER = "the code is in the broker, and the tests run its store alone"

REPLICATION_HOLES: dict[str, ReplicationHole] = {
    hole.id: hole
    for hole in (
        ReplicationHole("R1", "a request of 0 is of an empty log and of an empty file", "the greeting states both",
                        _zero_is_ambiguous),
        ReplicationHole("R2", "an empty log accepts bytes of any offset", "an empty log begins at a file",
                        _any_offset_is_accepted),
        ReplicationHole("R3", "a slave that is ahead confirms everything", "it is cut before it counts",
                        _an_offset_past_the_end_confirms),
        ReplicationHole("R4", "logs of different histories are joined", "generations are compared",
                        _histories_are_joined),
        ReplicationHole("R5", "a request past the end is waited for", "the slave is cut",
                        _a_request_past_the_end_waits),
        ReplicationHole("R6", "a slave below the begin of its master waits without end", "it gets GONE",
                        _a_slave_below_the_begin_waits),
        ReplicationHole("R7", "file sizes are not compared", "another size is refused", _file_sizes_are_not_compared),
        ReplicationHole("R8", "a new slave gets the last file only", "it gets the whole log",
                        _a_new_slave_gets_the_last_file_only),
        ReplicationHole("R9", "bytes are sent before they are flushed", "`send_flushed_only`, or a cut later",
                        _unflushed_bytes_are_sent),
        ReplicationHole("R10", "an acknowledgement is the page cache", "`acknowledge` \"durable\"",
                        _an_acknowledgement_is_the_page_cache),
        ReplicationHole("R11", "a slave checks nothing that it appends", "frames and records have checksums",
                        _garbage_is_acknowledged),
        ReplicationHole("R12", "a failed copy advances the log", "the append is refused and the link ends",
                        reason="needs a failing copy into a mapping (SIGBUS); a network cannot cause it"),
        ReplicationHole("R13", "a silent master is not noticed", "the last received byte is timed",
                        _a_silent_master_is_not_noticed),
        ReplicationHole("R14", "the first report comes after 5 s", "the greeting is sent at once",
                        _the_first_report_waits),
        ReplicationHole("R15", "a negative size moves the log back", "sizes have limits", _a_negative_size_moves_back),
        ReplicationHole("R16", "a frame over 4 MiB hangs a slave", "sizes have limits", _a_large_frame_spins),
        ReplicationHole("R17", "sockets count as slaves", "a replica counts after an acknowledgement", _sockets_count),
        ReplicationHole("R18", "a report outlives its replica", "only connected replicas count",
                        _a_report_outlives_its_replica),
        ReplicationHole("R19", "waiting puts are dropped at shutdown", "a close answers them",
                        _requests_are_dropped_at_shutdown),
        ReplicationHole("R20", "a change of the master's address keeps the old link", "the link ends first",
                        _an_old_link_stays),
        ReplicationHole("R21", "the status of a replica hides the status of the disk", "kept, and documented",
                        reason="needs a failing or slow sync of the master; a network cannot cause it"),
        ReplicationHole("R22", "a time-out comes up to 1 s late", "a put has its own deadline", _time_outs_overshoot),
        ReplicationHole("R23", "an idle sender looks for new bytes every 100 ms", "every 5 ms", _idle_senders_poll),
        ReplicationHole("R24", "a close drains nothing", "`drain`", _a_close_drains_nothing),
        ReplicationHole("R25", "a slave that joined inside the log keeps filler in its queues", "there is no filler",
                        reason="needs a crash image of queue files; a network cannot make it"),
        ReplicationHole("R26", "half a record keeps the abort file", "there are no half records",
                        _half_a_record_keeps_the_abort_file),
        ReplicationHole("R27", "copies of delayed messages wait for no replica",
                        "kept; copies of asynchronous delivery wait", _copies_of_delayed_messages_do_not_wait),
        ReplicationHole("R28", "a stalled reader holds an unmapped file", "frames are copies",
                        _a_stalled_reader_holds_an_unmapped_file),
        ReplicationHole("R29", "the topic table of a slave is empty for a moment", "not built", reason=_BROKER),
        ReplicationHole("R30", "any host reads the log and confirms puts", "`peers`, and loopback by default",
                        _anyone_reads),
        ReplicationHole("R31", "retention of master and slave are independent", "judged from the higher begin",
                        _begins_differ),
        ReplicationHole("R32", "timers use the wall clock", "monotonic time",
                        reason="needs a step of the wall clock of a process; a network cannot cause it"),
    )
}  # fmt: skip
"""All defects by id."""


def replication_holes_named(ids: str) -> tuple[ReplicationHole, ...]:
    """Return the defects in a comma-separated list of ids, or all for an empty list.

    Raises KeyError.
    """
    wanted = [each.strip().upper() for each in ids.split(",") if each.strip()]
    return tuple(REPLICATION_HOLES[each] for each in wanted) or tuple(REPLICATION_HOLES.values())
