"""Test the tester: machine and campaign catch every planted bug, small and by its token."""

from typing import Any

import pytest

from tornpage.model.operations import Crash
from tornpage.properties.campaign.replay import replay, signature
from tornpage.properties.contract import GuaranteeBroken, Verdict
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.crashes.campaign import Plan, run_campaign
from tornpage.properties.explore.machines.check import MACHINES, check
from tornpage.properties.judge.judges import JUDGES
from tornpage.properties.judge.log import nothing_behind_the_end
from tornpage.properties.planted import PLANTED, UnknownBug, parts_of, polling
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.case import Case, Settings

NOT_IN_CAMPAIGNS = (
    "queue-offset-believed",  # needs a damaged field that no checksum covers: `explore damage` finds it
    "deleted-topic-counts",  # needs a store that lost its list of deleted topics
    "flushed-part-cut",  # needs a store without a floor; the same
    "lost-end-accepted",  # the same
    "waits-for-what-is-lost",  # the same
    "zeros-are-log",  # needs a damaged store that has records; the same
    "files-ahead-are-damage",  # needs two files made ahead that a crash left incomplete; `explore damage` finds it
    "RMQ-B16",  # needs a mapped file that refuses
    "RMQ-B18",  # needs a message that is refused for what it is
    "topic-in-characters",  # needs a topic at the limit
    "RMQ-B19",  # needs properties at the limit
    "RMQ-B21",  # needs a batch with a unique key
    "RMQ-B14",  # needs a record with the checksum 0
    "RMQ-B65",  # needs a delayed half message
    "RMQ-B76",  # needs two producers at once
    "RMQ-B29",  # the same
    "RMQ-B31",  # the same
    "RMQ-B77",  # needs more light queues than the store allows
    "own-light-queue-not-counted",  # the same, and one that is named by its own messages
    "RMQ-B73",  # needs multi-dispatch without a trailer, which few runs have
    "RMQ-B42",  # needs a tag with a negative hash
    "torn-unit-stays",  # needs corruption that begins after the size of the last unit
    "extension-believed",  # needs an extension that is corrupted after a clean exit
    "known-by-its-tag",  # the same
    "refused-unit-forgotten",  # needs a failed file of dispatch, which few runs have
    "RMQ-B35",  # needs a pull after a failed sync, which few runs have
    "pulls-behind-the-end",  # the same
    "inherited-time",  # needs a second between two messages, and a new index file between them
    "RMQ-B51",  # needs a failed index file, which few runs have
    "equal-is-not-skipped",  # the same
    "one-queue-file",  # needs a pull from the begin of a long queue, which few runs have
    "RMQ-B47-IPv6",  # needs a first message with an IPv6 host
    "any-of-equal-times",  # needs messages of one time
    "RMQ-B43",  # needs more than 800 messages in a queue
    "RMQ-B45",  # the same
    "RMQ-B52",  # needs a query for more messages than there can be
    "one-message-at-least",  # needs a pull for no message
    "verified-after-failed-check",  # needs a record that changes while the store is open
    "verified-after-failure",  # the same
    "verified-past-the-check",  # the same
    "reads-unverified",  # the same
    "never-taken-back",  # needs a reader that keeps a buffer
    "larger-than-a-file",  # needs a message that no file takes
    "prefill-is-the-furthest",  # needs a queue that lost all but its pre-fill
    "prefill-is-seen",  # needs a queue that begins in the middle of a file
    "begins-behind-the-end",  # needs a session after a crash that left units of lost records
    "index-kept-for-an-empty-log",  # needs a crash that takes the whole log
    "scan-starts-by-time",  # needs a clock that is set back; properties/score/holes searches for it like this
    "RMQ-B08",  # needs an empty file that RocketMQ left; the store's own files are whole
    "gap-accepted",  # needs two new log files without a flush; the same
    "zero-unit-counts",  # needs a queue file for every other message; the same
    "three-files-compared",  # needs queues of four files; the same
    "RMQ-B04",  # needs a clean-up while dispatch lags by a log file
    "RMQ-B41",  # needs a reader whose buffer blocks a clean-up, and which releases it
    "buffer-taken-back",  # the same
    "RMQ-B50",  # needs a clean-up in the middle of a query
    "who-stays-is-passed-over",  # needs a clean-up on a disk that fails, which few runs have
    "queues-flushed-if-possible",  # the same
    "deleted-queue-known-again",  # needs a deletion of topics on a disk that fails, which few runs have
    "deleted-queue-left-behind",  # the same
    "refused-deletion-stays",  # the same
    "deleted-if-possible",  # the same
    "untrue-floor-kept",  # needs a failed sync right after the corruption of a queue
    "half-made-index-file-stays",  # needs two faults at once
    "refused-copy-put-again",  # needs a round of delivery on a disk that fails, which few runs have
    "RMQ-B53",  # needs days between the messages of a log file
    "RMQ-B54",  # needs a disk that fills up without a clean-up
    "RMQ-B55",  # needs a topic of the system
    "RMQ-B56",  # needs a dozen clean-ups that follow a requested one
    "last-file-deleted",  # needs a clean-up with nothing left to flush or dispatch
    "unlinks-not-in-order",  # needs a clean-up of three files in two directories
    "deletion-forgotten",  # needs a clean-up after a deletion of topics
    "deletion-outlives-the-log",  # needs a put in the session after a crash that cut a log with deleted topics
    "numbers-not-durable",  # needs a queue that loses its last message to a clean-up
    "backup-overwritten",  # needs a crash inside the first save after a start from a backup
    "offset-never-back",  # needs a group that goes back
    "filter-deletes-offsets",  # needs a query after the commit of that group
    "failed-save-forgotten",  # needs a sync that fails in a save, and a close
    "deleted-offsets-kept",  # needs a deletion of topics that a group has read
    "deleted-offsets-not-durable",  # needs a crash right after a deletion of topics that a group has read
    "RMQ-B22",  # needs a delayed message whose copy is too long, as RocketMQ accepts it
    "copy-not-asked-for",  # the same
    "half-message-delivered",  # needs a delayed half message, as RocketMQ accepts it
    "RMQ-B57",  # needs progress of delivery that was overwritten externally
    "RMQ-B58",  # the same
    "RMQ-B64",  # needs a slave that becomes a master
    "RMQ-B61",  # needs a refused copy, which few runs have
    "one-level-holds-all",  # the same
    "waits-for-the-expired",  # needs a level that continues after an expired message
    "due-when-the-clock-goes-back",  # needs a clock that is set back
    "delivery-sleeps-until-due",  # needs a clock that is set forward
    "saved-after-a-failed-sync",  # needs a save on a disk that fails, which few runs have
    *(bug.id for bug in polling.BUGS),  # need a consumer that waits in the store
)
"""Bugs that the standard workload rarely exercises; only machines see them.

The workload is program/workload.py.
"""

ONLY_IN_GROUPS = tuple(bug.id for bug in PLANTED.values() if bug.needs_group)
"""Bugs of replication, of consumers and of Raft (tests/properties/cluster, consumers and raft)."""

ONLY_IN_INTERLEAVINGS = tuple(bug.id for bug in PLANTED.values() if bug.needs_threads)
"""Bugs that need threads to meet (tests/properties/explore/interleavings); campaigns and machines have one thread."""

FULL_FILES = ("whole-buffer-written", "buffer-kept")
"""Bugs that show when a buffer serves its second file.

Their minimal reproducers have this many more puts.
"""

SEVERAL_WAYS = ("furthest-queue-first", "one-queue-file-a-round", "place-kept", "refused-ten-times-a-second")
"""Bugs with several failures: the shrinker keeps to the one that was met."""

MANY_RUNS = ("RMQ-B56",)
"""A bug that shows when fewer requested clean-ups run than promised.

Its reproducer has this many more operations.
"""

MACHINE_HUNTS_IN_EVERY_RUN = (
    "lying-flush",
    "last-file-first",
    "RMQ-B16",
    "RMQ-B21",
    "RMQ-B74",
    "readers-see-buffers",
    "RMQ-B03",
    "named-queue-forgotten",
    "RMQ-B49",
    "RMQ-B61",
    "no-deadline",
    "RMQ-B63",
    "marker-stays",
)
"""Bugs that machines search for in each run of the tests, some of every machine.

The others are searched for with `-m deep`. In every run the minimal reproducer shows each bug that one thread can show
(test_smallest_cases.py).
"""

IN_EVERY_RUN = ("lying-flush", "no-erase-after-cut", "readers-see-buffers")
"""Bugs that campaigns search for in each run of the tests; `-m deep` takes the others."""


def campaign_hunts() -> list[Any]:
    """Return the bugs that campaigns see, most of them for long runs only."""
    seen = [bug for bug in PLANTED if bug not in (*NOT_IN_CAMPAIGNS, *ONLY_IN_INTERLEAVINGS, *ONLY_IN_GROUPS)]
    return [pytest.param(bug, marks=() if bug in IN_EVERY_RUN else pytest.mark.deep) for bug in seen]


def machine_hunts() -> list[Any]:
    """Return each bug with its machine, most of them for long runs only."""
    return [
        pytest.param(bug.id, bug.machine, marks=() if bug.id in MACHINE_HUNTS_IN_EVERY_RUN else pytest.mark.deep)
        for bug in PLANTED.values()
        if bug.machine
    ]


def operations_max(bug: str) -> int:
    return 16 if bug in (*FULL_FILES, *SEVERAL_WAYS, *MANY_RUNS) else 8


def test_the_bugs_that_no_campaign_sees_are_few_and_of_puts_and_reads() -> None:
    assert len(set(NOT_IN_CAMPAIGNS)) < len(PLANTED) / 2
    assert set(IN_EVERY_RUN) <= PLANTED.keys() - set(NOT_IN_CAMPAIGNS)
    assert {PLANTED[bug].contract for bug in NOT_IN_CAMPAIGNS} <= {1, 4, 5, 7, 8, 9, 10, 11, 12, 13, 16, 17, 18}


@pytest.mark.slow
@pytest.mark.parametrize("bug", campaign_hunts())
def test_the_campaign_catches_it_and_its_token_replays(bug: str, tracker: DirtyTracker) -> None:
    plan = Plan(Settings(bug=bug), seed=3, states=60_000, failures_max=1)
    result = run_campaign(plan, tracker=tracker, progress=lambda states, seconds: None)
    assert result.verdict is Verdict.BROKEN
    assert result.failure is not None
    assert len(result.failure.case.operations) <= operations_max(bug)
    again = replay(Case.from_token(result.failure.case.token()), tracker=tracker)
    assert again is not None
    assert signature(again.broken) == signature(result.failure.broken)


def test_every_bug_has_a_machine_or_needs_what_machines_seldom_do() -> None:
    without = {bug.id for bug in PLANTED.values() if not (bug.machine or bug.needs_threads or bug.needs_group)}
    # The searches for known defects aim at files of zeros (properties/score/holes). A restart between a message that
    # names its own light queue and one over the limit is drawn seldom.
    assert without == {"zero-unit-counts", "three-files-compared", "own-light-queue-not-counted"}
    assert without <= set(NOT_IN_CAMPAIGNS)
    assert {bug.machine for bug in PLANTED.values()} <= {"", *MACHINES}


@pytest.mark.slow
@pytest.mark.parametrize(("bug", "machine"), machine_hunts())
def test_the_machine_catches_it(bug: str, machine: str, tracker: DirtyTracker) -> None:
    result = check(bug=bug, examples=10_000, steps=25, start_seed=2, tracker=tracker, machines=[machine])
    assert result.verdict is Verdict.BROKEN
    assert result.failure is not None
    assert len(result.failure.case.operations) <= operations_max(bug)


def test_an_unknown_bug_is_refused_with_the_ones_there_are() -> None:
    with pytest.raises(UnknownBug, match="lying-flush"):
        parts_of("lying-flash")


@pytest.mark.deep
def test_no_erase_is_seen_from_outside_too(tracker: DirtyTracker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the judge of the bytes past the end, another judge notices them as records.

    These are the records that reappear (hole H1).
    """
    from tornpage.properties.lockstep import recovery

    blind = tuple(judge for judge in JUDGES if judge is not nothing_behind_the_end)
    monkeypatch.setattr(recovery, "JUDGES", blind)
    plan = Plan(Settings(bug="no-erase-after-cut"), seed=0, states=60_000, failures_max=1)
    result = run_campaign(plan, tracker=tracker, progress=lambda states, seconds: None)
    assert result.verdict is Verdict.BROKEN


@pytest.mark.parametrize("bug", ["lying-flush", "directory-not-synced"])
def test_a_bug_of_durability_needs_a_power_loss(bug: str, tracker: DirtyTracker) -> None:
    """A kill alone shows neither, because the page cache survives it."""
    from tornpage.model.operations import Flush, Put

    trial = lockstep_of(Settings(bug=bug), tracker=tracker)
    for operation in (Put(), Flush()):
        trial.run(operation)
    with pytest.raises(GuaranteeBroken):
        trial.run(Crash())
