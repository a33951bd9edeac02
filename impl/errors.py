"""What the store refuses with an exception: mistakes of the caller and of the environment, never of the data.

    StoreError
    ├── BadConfig          a setting that cannot work
    ├── BadDirectory       the store directory cannot be used
    ├── StoreInUse         another opener holds the lock
    ├── WrongFileSize      the directory was written with another mapped file size
    ├── NoSpace            the disk cannot hold one commit log file
    ├── BadFilter          a filter expression that means nothing
    ├── BadProgress        a group, topic, queue or offset that no state file can hold
    ├── NotReadable        an operator has stopped reads
    ├── ReadOnlyStore      a change to a store that is damaged or whose disk has failed
    ├── TooManyHeldPulls   so many pulls wait for messages that no other may
    ├── BufferReleased     a buffer of a read that was given back, or taken back
    ├── StoreClosed        a verb after close()
    └── ForkedStore        a verb in a process that did not open the store

Refused messages are no exceptions: `put` answers them with a status (docs/contract.md, number 8).
"""

__all__ = [
    "BadConfig",
    "BadDirectory",
    "BadFilter",
    "BadProgress",
    "BufferReleased",
    "ForkedStore",
    "NoSpace",
    "NotReadable",
    "ReadOnlyStore",
    "StoreClosed",
    "StoreError",
    "StoreInUse",
    "TooManyHeldPulls",
    "WrongFileSize",
]


class StoreError(Exception):
    """Base class; raised only through its children."""


class BadConfig(StoreError):
    """A setting of the configuration cannot work."""

    def __init__(self, name: str, value: object, remedy: str) -> None:
        super().__init__(f"configuration {name}={value!r} cannot work: {remedy}")
        self.name = name


class BadDirectory(StoreError):
    """The store directory cannot be used at all."""

    def __init__(self, path: str, reason: str, remedy: str) -> None:
        super().__init__(f"store directory {path}: {reason}; {remedy}")
        self.path = path


class StoreInUse(StoreError):
    """Another opener, ours or RocketMQ's, holds the lock of the store."""

    def __init__(self, path: str) -> None:
        super().__init__(f"store {path} is in use by another process: close it first (lock file {path}/lock)")
        self.path = path


class WrongFileSize(StoreError):
    """The commit log files have another size than the configuration says."""

    def __init__(self, path: str, *, found_bytes: int, configured_bytes: int) -> None:
        super().__init__(
            f"commit log file {path} has {found_bytes} bytes, mapped_file_size_commit_log is {configured_bytes}: "
            f"open the store with mapped_file_size_commit_log={found_bytes}"
        )
        self.found_bytes = found_bytes
        self.configured_bytes = configured_bytes


class NoSpace(StoreError):
    """The disk has no room for one commit log file."""

    def __init__(self, path: str, *, needed_bytes: int, free_bytes: int) -> None:
        super().__init__(
            f"no space in {path}: one commit log file needs {needed_bytes} bytes, {free_bytes} are free; "
            "free some space or choose a smaller mapped_file_size_commit_log"
        )
        self.needed_bytes = needed_bytes
        self.free_bytes = free_bytes


class BadFilter(StoreError):
    """The expression of a filter cannot be compiled."""

    def __init__(self, expression: str, reason: str) -> None:
        super().__init__(f"filter {expression!r} means nothing: {reason}")
        self.expression = expression


class BadProgress(StoreError):
    """What is to be remembered of a consumer group cannot be."""

    def __init__(self, what: str, value: object, remedy: str) -> None:
        super().__init__(f"{what} {value!r} cannot be remembered: {remedy}")
        self.what = what


class NotReadable(StoreError):
    """The running flag for reads is set."""

    def __init__(self, path: str) -> None:
        super().__init__(f"store {path} may not be read now: clear the running flag NOT_READABLE")
        self.path = path


class TooManyHeldPulls(StoreError):
    """As many pulls wait for messages as the configuration allows."""

    def __init__(self, held_max: int) -> None:
        super().__init__(f"{held_max} pulls wait for messages already: pull later, or raise max_held_pulls")
        self.held_max = held_max


class ReadOnlyStore(StoreError):
    """Nothing may be written: the store is damaged, or a sync has failed."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"store {path} is read-only: {reason}")
        self.path = path


class BufferReleased(StoreError):
    """A buffer was released by its reader, or by the store when that was closed."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"the buffer of the bytes at offset {offset} was released: read them again")
        self.offset = offset


class StoreClosed(StoreError):
    """The store was closed before this call."""

    def __init__(self, path: str) -> None:
        super().__init__(f"store {path} is closed: open it again")
        self.path = path


class ForkedStore(StoreError):
    """This process did not open the store; a mapping and a lock must not be shared by accident."""

    def __init__(self, path: str) -> None:
        super().__init__(f"store {path} was opened by another process: open it in this process instead")
        self.path = path
