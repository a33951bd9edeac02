"""Run a message store whose log a majority of members keeps (Raft)."""

from typing import Self

from tornpage.front import wall_clock_ms
from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.io.files import Clock, Files
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.kernels.compiled import compiled_parts
from tornpage.impl.parts import Parts
from tornpage.impl.raft import raft_store
from tornpage.impl.raft.hard_state import HardStateDamaged
from tornpage.impl.raft.messages import (
    AppendAnswer,
    AppendEntries,
    Carried,
    Envelope,
    LeadNow,
    Message,
    RequestVote,
    VoteAnswer,
)
from tornpage.impl.raft.raft_commit_log import Send
from tornpage.impl.raft.raft_log import RaftLogDamaged
from tornpage.impl.raft.raft_store import Membership, NotReplicated

__all__ = [
    "AppendAnswer",
    "AppendEntries",
    "Carried",
    "Envelope",
    "HardStateDamaged",
    "LeadNow",
    "Membership",
    "Message",
    "NotReplicated",
    "RaftLogDamaged",
    "RaftStore",
    "RequestVote",
    "Send",
    "VoteAnswer",
]


class RaftStore(raft_store.RaftStore):
    """One member of a group with its store, opened by `open`.

    Its methods are the events of the member, and return the messages to send to other members. `store` puts and reads.
    """

    @classmethod
    def open(
        cls,
        directory: str,
        config: MessageStoreConfig,
        membership: Membership,
        *,
        send: Send,
        files: Files | None = None,
        clock: Clock = wall_clock_ms,
        parts: Parts | None = None,
    ) -> Self:
        """Open or create the store of a member, as a follower.

        `send` gets the messages of each put, in the thread of the put.
        `files`, `clock` and `parts` are those of `tornpage.MessageStore.open`.

        Raises what `tornpage.MessageStore.open` raises, RaftLogDamaged, HardStateDamaged, OSError, and BadConfig for a
        setting that a Raft log does not have.
        """
        return super().open(
            directory,
            config,
            membership,
            files=files or OsFiles(),
            clock=clock,
            send=send,
            parts=parts or compiled_parts(),
        )
