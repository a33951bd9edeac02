"""The smallest known case of each planted bug that one thread can show.

Its last operation breaks a promise, and the store without the bug keeps all of them. Bugs that need threads to meet
have none: which switch shows them depends on each line of the store (properties/explore/interleavings).
"""

from dataclasses import replace

from properties.planted.smallest import (
    delivery,
    failing_disks,
    flushes,
    log,
    polling,
    progress,
    puts,
    queues,
    reads,
    rebuilt,
    retention,
)
from properties.program.case import Case

__all__ = ["BROKEN_FIRST", "SMALLEST"]

SMALLEST: dict[str, Case] = {
    bug_id: Case(replace(settings, bug=bug_id), operations)
    for module in (log, puts, flushes, queues, reads, rebuilt, retention, delivery, polling, progress, failing_disks)
    for bug_id, (settings, operations) in module.PROGRAMS.items()
}
"""Cases by the id of the bug, with the bug in their settings."""

BROKEN_FIRST = {
    "early-acknowledgement": 9,
    "position-not-checked": 7,
    "erase-not-synced": 6,
    "RMQ-B20": 8,
    "RMQ-B21": 8,
    "forgotten-at-shutdown": 8,
    "short-commit-ignored": 9,
    "buffer-kept": 9,
    "readers-see-buffers": 9,
    "flush-of-buffers": 2,
    "allocation-ends": 16,
    "last-file-first": 8,
    "second-sync-trusted": 2,
    "unread-is-empty": 17,
}
"""The contract that the smallest case breaks where that is another one than the bug is about: it is looked at first."""
