"""Every default of the store in one place, with RocketMQ's name and the reason.

Source: `MessageStoreConfig` of RocketMQ 4.9.3.
"""

__all__ = ["MAPPED_FILE_SIZE_COMMIT_LOG", "MAX_MESSAGE_SIZE", "STORE_HOST"]

MAPPED_FILE_SIZE_COMMIT_LOG = 1 << 30
"""`mappedFileSizeCommitLog`, bytes. Reserved when the first message arrives; examples and tests use a few KiB."""

MAX_MESSAGE_SIZE = 4 << 20
"""`maxMessageSize`, bytes of the whole encoded record."""

STORE_HOST = ("127.0.0.1", 10911)
"""Address and port written as STOREHOSTADDRESS: RocketMQ's default listen port on loopback."""
