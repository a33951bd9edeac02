"""State the promises of the contract in sentences, for pages.

The sentences are those of the table in docs/contract.md. A test compares them.
"""

from dataclasses import dataclass

__all__ = ["PROMISES", "Promise", "promise_of"]


@dataclass(frozen=True, slots=True)
class Promise:
    """Name and sentence of a promise."""

    name: str
    sentence: str


PROMISES = {
    1: Promise(
        "Prefix",
        "After recovery the log is a prefix of what was appended since its first retained record, byte for "
        "byte, without holes or foreign records.",
    ),
    2: Promise(
        "Floor",
        "A power loss keeps everything durable, a process kill everything in the page cache, a clean close "
        "everything appended.",
    ),
    3: Promise(
        "No resurrection",
        "Records that a recovery cut never come back, whatever is appended or restarted later.",
    ),
    4: Promise(
        "Queues",
        "A consume queue lists exactly the surviving messages of its queue, in order, without gaps, and "
        "points nowhere else.",
    ),
    5: Promise(
        "Index",
        "A query by key finds every surviving message with that key in its time window, up to the limit, and no other.",
    ),
    6: Promise("Idempotent", "A second recovery changes nothing. A crash during recovery keeps all guarantees."),
    7: Promise(
        "Starts",
        "Every crash state opens for writing. Damage is named with file and offset; the store then changes "
        "nothing and serves only what verifies.",
    ),
    8: Promise(
        "Statuses",
        "Every input gets the answer of statuses.md. A refused message changes nothing. Bad data raises nothing.",
    ),
    9: Promise(
        "Watermarks",
        "Minimum, flushed, committed and written offset keep this order and never decrease while open. A "
        "failed sync moves none and ends all puts.",
    ),
    10: Promise(
        "Retention",
        "Only closed, expired, unused files are deleted, from the head, never the last. Queues, index and "
        "readers follow. A deleted topic stays deleted.",
    ),
    11: Promise(
        "Lifetimes",
        "A buffer stays readable until it is released or revoked. Later use raises an error and does not end "
        "the process.",
    ),
    12: Promise(
        "Delay",
        "A delayed message is delivered when due, not earlier, at least once, in the order of its level, crash or not.",
    ),
    13: Promise(
        "Progress files",
        "After a crash a small state file is its old or its new version, never empty and never torn.",
    ),
    14: Promise("Exclusive", "A second opener is refused before it has changed anything."),
    15: Promise(
        "Replication",
        "A success that waited for a replica means that the replica has the bytes. A replica's log is a "
        "prefix of its master's.",
    ),
    16: Promise(
        "Liveness",
        "On a healthy disk, given time, queues catch up, every request is answered, and shutdown ends.",
    ),
    17: Promise(
        "Visibility",
        "Readers see only committed messages, in queue order. Some order of all calls explains every answer. "
        "After a crash no consumer skips a message.",
    ),
    18: Promise(
        "Reachable",
        "A put is never acknowledged into a place that no consumer reaches. Damage makes no intact message "
        "unreachable without a finding.",
    ),
    19: Promise(
        "At least once",
        "Each message that a group subscribes is consumed with success, or becomes a "
        "dead letter. No other message is delivered.",
    ),
    20: Promise(
        "Order",
        "An orderly listener gets the messages of a queue in order, one batch at a time, under a valid lock.",
    ),
    21: Promise(
        "Not passed over",
        "Stored progress never passes over a message that is not finished, whatever "
        "joins, leaves, crashes or is corrected.",
    ),
    22: Promise(
        "Hand-over",
        "After a clean hand-over no finished message is delivered again. Otherwise only "
        "messages without a stored result come again.",
    ),
    23: Promise(
        "Retries",
        "A failed message is retried with growing delays, a stated number of times. Then it is a dead letter.",
    ),
    24: Promise(
        "Progress rises",
        "No request lowers the stored progress of a group. After a crash it is a value that it had.",
    ),
}
"""By number."""


def promise_of(number: int | None) -> Promise | None:
    """Return the promise with a number, or None for any other number."""
    return None if number is None else PROMISES.get(number)
