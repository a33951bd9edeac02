"""Specify which reads may return a record that changed meanwhile (contract 7).

A byte of the record changes while the store is open. The setting `verify_reads` decides:

1. `always`: none. Every read verifies every record.
2. `once`: a read may return it if this process has appended or verified the record since the last of these events: the
   store was opened, a check failed, an operation on a log file failed. A record is trusted by its own check only, never
   by that of another record.
3. `never`: every read through a queue or by key may return it.

Whatever the setting is, a get by physical offset verifies. No read raises an error. A read that does not return the
record returns the records after it. When the bytes are what they were, every read returns the record again.
"""

from tornpage.model.operations import ReadBefore, VerifyReads

__all__ = ["is_trusted", "may_return_changed"]


def is_trusted(read_before: ReadBefore) -> bool:
    """Return whether a process that verifies once trusts the record when its bytes change."""
    return read_before == "verified"


def may_return_changed(setting: VerifyReads, read_before: ReadBefore) -> bool:
    """Return whether a read through a queue or by key may return the changed record."""
    return setting == "never" or (setting == "once" and is_trusted(read_before))
