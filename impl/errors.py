"""The exceptions of the store: errors of the caller or environment, never of a message.

    StoreError
    ├── BadConfig          a setting with an invalid value
    ├── BadDirectory       the store directory cannot be used
    ├── StoreInUse         another process holds the lock
    ├── WrongFileSize      the directory was written with another mapped file size
    ├── NoSpace            the disk has no room for one commit log file
    ├── BadFilter          a filter expression with a syntax error
    ├── BadProgress        a group, topic, queue or offset that no state file can hold
    ├── NotReadable        an operator has stopped reads
    ├── ReadOnlyStore      a change to a store that is damaged or whose disk has failed
    ├── TooManyHeldPulls   as many pulls wait for messages as the configuration allows
    ├── BufferReleased     use of a read buffer after its release
    ├── StoreClosed        a method called after close()
    └── ForkedStore        a method called in a process that did not open the store

A refused message is no exception: `put` returns a status (docs/contract.md, number 8).
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
    """Base class of all exceptions of the store; never raised itself."""


class BadConfig(StoreError):
    """A setting of the configuration has an invalid value."""

    def __init__(self, name: str, value: object, remedy: str) -> None:
        super().__init__(f"configuration {name}={value!r} is invalid: {remedy}")
        self.name = name


class BadDirectory(StoreError):
    """The store directory cannot be used."""

    def __init__(self, path: str, reason: str, remedy: str) -> None:
        super().__init__(f"store directory {path}: {reason}; {remedy}")
        self.path = path


class StoreInUse(StoreError):
    """Another process, of this project or of RocketMQ, holds the lock of the store."""

    def __init__(self, path: str) -> None:
        super().__init__(f"store {path} is in use by another process: close it first (lock file {path}/lock)")
        self.path = path


class WrongFileSize(StoreError):
    """The commit log files have another size than the configuration."""

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
    """A filter expression cannot be compiled."""

    def __init__(self, expression: str, reason: str) -> None:
        super().__init__(f"filter {expression!r} is invalid: {reason}")
        self.expression = expression


class BadProgress(StoreError):
    """A group, topic, queue or offset cannot be stored as consumer progress."""

    def __init__(self, what: str, value: object, remedy: str) -> None:
        super().__init__(f"{what} {value!r} cannot be stored: {remedy}")
        self.what = what


class NotReadable(StoreError):
    """The running flag NOT_READABLE is set."""

    def __init__(self, path: str) -> None:
        super().__init__(f"store {path} may not be read: clear the running flag NOT_READABLE")
        self.path = path


class TooManyHeldPulls(StoreError):
    """As many pulls wait for messages as the configuration allows."""

    def __init__(self, held_max: int) -> None:
        super().__init__(f"{held_max} pulls already wait for messages: pull later, or raise max_held_pulls")
        self.held_max = held_max


class ReadOnlyStore(StoreError):
    """The store cannot be changed: it is damaged, or a sync has failed."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"store {path} is read-only: {reason}")
        self.path = path


class BufferReleased(StoreError):
    """A buffer was released by its reader, or by the store during its close."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"the buffer of the bytes at offset {offset} was released: read them again")
        self.offset = offset


class StoreClosed(StoreError):
    """The store was closed before this call."""

    def __init__(self, path: str) -> None:
        super().__init__(f"store {path} is closed: open it again")
        self.path = path


class ForkedStore(StoreError):
    """This process did not open the store; mappings and locks must not be shared after a fork."""

    def __init__(self, path: str) -> None:
        super().__init__(f"store {path} was opened by another process: open it in this process instead")
        self.path = path
