"""The promises of docs/contract.md, in the words of its table, by number."""

__all__ = ["PROMISES"]

PROMISES: dict[int, str] = {
    1: (
        "After recovery the log is the beginning of `A` from its first retained record, byte for byte, "
        "without a hole or a stranger."
    ),
    2: ("Power loss leaves at least `D`, the death of the process at least `K`, a clean close all of `A`."),
    3: "What a recovery has cut stays gone, whatever is appended and restarted afterwards.",
    4: (
        "A consume queue lists exactly the surviving messages of its queue, in order and without a gap, "
        "and points nowhere else."
    ),
    5: (
        "A query by key finds every surviving message with that key in its time window, up to the limit, and no other."
    ),
    6: (
        "Recovering again changes nothing; a crash in the middle of recovery is one more crash and keeps all promises."
    ),
    7: (
        "From every state inside the crash model the store opens for writing. What lies outside is named "
        "with file and offset; the store then serves what verifies and changes nothing. It never serves "
        "bytes that fail a check."
    ),
    8: ("Every input gets the answer of statuses.md. A refused message changes nothing; bad data raises nothing."),
    9: (
        "Minimum, flushed, committed and written offset stay in this order and never go down while the "
        "store is open. A failed sync moves none of them, and nothing is accepted behind it."
    ),
    10: (
        "Only closed, expired, unused files go, from the head and never the last; queues, index and "
        "readers follow. A deleted topic stays deleted."
    ),
    11: (
        "A buffer in the hands of a reader stays readable until it is given back or forcibly ended; then "
        "its use is an error, not the end of the process."
    ),
    12: (
        "A delayed message appears when it is due, not before, at least once, in the order of its level, crash or not."
    ),
    13: "After a crash a small state file is its old or its new version, never empty and never torn.",
    14: "A second opener is refused before it has changed anything.",
    15: (
        "A success that waited for a replica means the replica has the bytes; a replica's log is the "
        "beginning of its master's."
    ),
    16: "On a healthy disk, with time, queues catch up, every request is answered and shutdown ends.",
    17: (
        "Readers see committed messages only, each queue in order and never shrinking while open; puts "
        "and gets can be put into one order; no consumer is led past a message after a crash."
    ),
    18: (
        "A put is never acknowledged into a place that no consumer reaches, whatever damage the store has; "
        "damage makes no intact message unreachable without a finding."
    ),
}
