"""Where planted bugs come from: defects of RocketMQ's history (RMQ-B..), and the holes of 4.9.3 (score/holes).

Of each defect: what it is called, the release that has it no more, and whether 4.9.3 still has it. Read from the
project's history up to September 2025 and from the sources of 4.9.3.
"""

import re
from dataclasses import dataclass

__all__ = ["ORIGINS", "Origin", "origins_of"]


@dataclass(frozen=True, slots=True)
class Origin:
    """A defect of RocketMQ. `fixed_in` is a release, or says that none has it fixed."""

    id: str
    title: str
    fixed_in: str
    in_493: str


ORIGINS: dict[str, Origin] = {
    origin.id: origin
    for origin in (
        Origin("RMQ-B01", "Clean-shutdown marker removed while dispatch is still behind", "4.2.0", "no"),
        Origin("RMQ-B02", "Normal recovery cuts the commit log but not the consume queues", "4.3.2", "no"),
        Origin("RMQ-B03", "Dispatcher starts at the end of the log instead of at the queues' progress", "4.5.0", "no"),
        Origin("RMQ-B04", "Dispatch cursor below the oldest retained log byte", "4.5.0", "no"),
        Origin("RMQ-B05", "Consume queues are built over bytes that are not yet flushed", "5.3.0", "yes"),
        Origin(
            "RMQ-B06", "Physical checkpoint never advances for no-wait messages under sync flush", "not fixed", "yes"
        ),
        Origin("RMQ-B08", "A zero-length last segment blocks start-up", "5.1.3", "yes"),
        Origin("RMQ-B09", "Mis-sized segment silently ends the load", "4.9.3", "no"),
        Origin("RMQ-B10", "Multi-directory log loaded in path order", "4.9.2", "no"),
        Origin("RMQ-B11", "Record length trusted before it is checked", "5.3.2", "yes"),
        Origin("RMQ-B12", "Dispatcher thread dies on a non-Exception error", "5.3.0", "yes"),
        Origin("RMQ-B13", "Recovery checksum covers the body only", "5.2.0", "yes"),
        Origin("RMQ-B14", "Whole-record checksum of zero treated as missing", "5.3.2", "no"),
        Origin("RMQ-B15", "Slave dispatcher skips the rest of the buffer on a half-received record", "4.5.1", "no"),
        Origin("RMQ-B16", "Lock-begin time not cleared when an append throws", "4.9.3", "no"),
        Origin("RMQ-B18", "Queue offset consumed by a rejected message", "5.1.1", "no"),
        Origin("RMQ-B19", "Property length wraps a signed 16-bit field", "4.9.3", "no"),
        Origin("RMQ-B20", "Separator lost between message and batch properties", "4.9.3", "no"),
        Origin("RMQ-B21", "Batch-level properties overwrite each member's unique key", "after 5.3.3", "yes"),
        Origin("RMQ-B22", "Message that fits once no longer fits when re-stored", "4.9.4", "yes"),
        Origin("RMQ-B23", "Disk-flush timeout reported as slave timeout", "4.7.1", "no"),
        Origin("RMQ-B24", "Segment lookup returns a neighbour after the head was deleted", "4.3.0", "no"),
        Origin("RMQ-B25", "Flushed position advanced although the flush failed", "after 5.3.3", "yes"),
        Origin("RMQ-B26", "Reset-offset walks an iterator from the wrong end", "5.0.0", "yes"),
        Origin("RMQ-B27", "Reset-offset removes through an iterator that cannot remove", "5.2.0", "latent"),
        Origin("RMQ-B28", "Sync flush with a write buffer always times out", "5.2.0", "no"),
        Origin("RMQ-B29", "Commit called from two threads without mutual exclusion", "5.0.0", "yes"),
        Origin("RMQ-B30", "Group commit and transfer services spin", "4.0.0", "no"),
        Origin("RMQ-B31", "Group-commit request lists swapped under a writer", "4.1.0", "no"),
        Origin("RMQ-B32", "Consume-queue entries appended twice after recovery", "4.2.0", "no"),
        Origin("RMQ-B33", "Empty last queue segment", "merged upstream in 2026", "yes"),
        Origin(
            "RMQ-B34",
            "Stale minimum after all segments of a queue were truncated away",
            "merged upstream in 2026",
            "latent",
        ),
        Origin("RMQ-B35", "Jump to the next segment boundary overshoots the queue end", "not fixed", "yes"),
        Origin("RMQ-B37", "Offset-by-time is approximate in several ways", "5.1.1", "yes"),
        Origin("RMQ-B38", "Reading creates the queue it asks for", "5.3.1", "yes"),
        Origin("RMQ-B39", "Deleted topic's queue comes back on restart", "not fixed", "yes"),
        Origin("RMQ-B40", "Queue append writes into an unmapped segment", "5.3.1 avoids the map by default", "yes"),
        Origin("RMQ-B41", "A queue segment that was half destroyed can never be deleted", "4.0.0", "no"),
        Origin("RMQ-B42", "Negative tag hash mistaken for an extension address", "4.2.0", "no"),
        Origin("RMQ-B43", "Large pulls cut at 800 entries", "4.1.0", "no"),
        Origin("RMQ-B44", "Overflowing offset sent back to zero", "4.9.4", "yes"),
        Origin("RMQ-B45", "Scan bound compared in different units", "5.1.0", "no"),
        Origin("RMQ-B46", "Message counter of a pull result never incremented", "5.1.0", "no"),
        Origin("RMQ-B47", "Earliest store time needs more bytes than the log has", "5.1.0", "yes"),
        Origin("RMQ-B48", "Last index segment not flushed on clean shutdown", "5.0.0", "yes"),
        Origin("RMQ-B49", "Used-slot counter equals entry counter", "4.7.1", "no"),
        Origin("RMQ-B50", "Index list cleared under a read lock", "4.2.0", "no"),
        Origin("RMQ-B51", "Failed index segment creation unlocks a lock it does not hold", "not fixed", "yes"),
        Origin("RMQ-B52", "Result list sized by the caller before the limit is applied", "5.3.3", "yes"),
        Origin("RMQ-B53", "Expiry is computed from file modification time", "not fixed", "yes"),
        Origin("RMQ-B54", "Disk-full check waits behind slow deletion", "4.7.1", "no"),
        Origin("RMQ-B55", "System topic's queues removed by topic clean-up", "4.9.0", "no"),
        Origin("RMQ-B56", "Manual-delete counter updated without atomicity", "5.3.0", "yes"),
        Origin("RMQ-B57", "Delay offset beyond the queue end is never corrected", "4.9.2", "no"),
        Origin("RMQ-B58", "Delay offsets corrected on load but not on start", "4.9.4", "yes"),
        Origin("RMQ-B61", "Failed delivery skips the message", "5.3.3", "no"),
        Origin("RMQ-B62", "Delivery progress not saved on shutdown", "4.9.3", "no"),
        Origin("RMQ-B63", "Configuration files are replaced non-atomically", "after 5.3.3", "yes"),
        Origin("RMQ-B64", "Delay offsets not reloaded when a node becomes master", "4.9.0", "no"),
        Origin("RMQ-B65", "Delayed half message re-enters the half queue", "4.6.1", "no"),
        Origin("RMQ-B73", "Message without properties breaks dispatch when multi-dispatch is on", "4.9.4", "yes"),
        Origin("RMQ-B74", "Light-queue counters not restored on restart", "4.9.5 / 5.1.0", "yes"),
        Origin("RMQ-B75", "Retry copies dispatched to the light queues again", "5.1.1", "yes"),
        Origin("RMQ-B76", "Light-queue offset taken under the wrong lock", "5.2.0", "no"),
        Origin("RMQ-B77", "Light-queue quota checks the wrong variable", "not fixed on 4.9.x", "yes"),
        Origin("RMQ-B78", "Two processes on one store directory", "4.2.0", "no"),
        Origin("RMQ-B79", "Directory literally named after the path list", "4.9.4", "yes"),
    )
}


def origins_of(bug_id: str, sentence: str) -> tuple[Origin, ...]:
    """Return the defects that the id or the sentence of a planted bug names, in order."""
    named = dict.fromkeys(re.findall(r"RMQ-B\d+", f"{bug_id} {sentence}"))
    return tuple(ORIGINS[name] for name in named if name in ORIGINS)
