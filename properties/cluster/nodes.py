"""The nodes of a cluster run: a recorded disk each, services stepped by hand, one clock."""

import errno
from concurrent.futures import Future
from dataclasses import dataclass

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import BrokerRole, FlushDiskType
from tornpage.impl.io.files import DiskUsage, OpenFile
from tornpage.impl.io.mapped_file import MappedFile
from tornpage.impl.message.message import Message, PutResult
from tornpage.impl.parts import Parts
from tornpage.impl.replication.node import ReplicatedStore
from tornpage.impl.replication.settings import ReplicationSettings
from tornpage.impl.service.runner import Service, ThreadRunner
from tornpage.impl.store import MessageStore
from tornpage.model.replication.operations import PutOn
from tornpage.model.replication.state import Role
from tornpage.properties.cluster.network import RecordedNetwork
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.recording_files import EMPTY_DISK, RecordingFiles
from tornpage.properties.program.cluster_case import ClusterSettings
from tornpage.properties.program.hand_driven import HandDriven
from tornpage.properties.program.log_places import ROOT, log_files

__all__ = [
    "BORN_MS",
    "IDLE_MS",
    "SLAVE_TIMEOUT_MS",
    "TOPIC",
    "ClusterClock",
    "ClusterDisk",
    "Node",
    "OpenPut",
    "address_of",
    "message_of",
]

TOPIC = "T"
BORN_MS = 1_700_000_000_000
SLAVE_TIMEOUT_MS = 3_000
IDLE_MS = 20_000
_QUEUE_FILE_BYTES = 400
_GENERATIONS = f"{ROOT}/config/replication.json"
_NEARLY_FULL = DiskUsage(total_bytes=100, free_bytes=13)
"""So full that retention ignores the age of files, and puts are still accepted."""
_CLEANING_PAUSE_MS = 10_000
_STEPS_OF_A_CLEANING_MAX = 200


def address_of(node: int) -> str:
    """Return the address at which a node listens as a master."""
    return f"node-{node}:10912"


def message_of(put: PutOn) -> Message:
    """Return the message of a put."""
    body = bytes((put.fill * 7 + at) % 251 + 1 for at in range(put.body_bytes))
    properties = f"KEYS\x01{put.key}\x02" if put.key else ""
    return Message(
        TOPIC, body, queue_id=put.queue_id, properties=properties,
        born_host=("127.0.0.1", 50_000), born_timestamp=BORN_MS,
    )  # fmt: skip


@dataclass
class ClusterClock:
    """Monotonic time in milliseconds, for all nodes, and a counter for identities."""

    now_ms: int = BORN_MS
    _tokens: int = 0

    def token(self) -> bytes:
        """Return a new identity."""
        self._tokens += 1
        return self._tokens.to_bytes(16, "big")


@dataclass(slots=True)
class OpenPut:
    """A put without an answer: its future, its record, and when it was made."""

    answer: "Future[PutResult]"
    end: int
    identity: int
    made_ms: int
    waits: bool
    asks: bool = True
    """Whether enough replicas had acknowledged something, so that it asks them."""


class ClusterDisk(RecordingFiles):
    """A recorded disk on which only syncs of log files and of the file of generations fail.

    `failed_syncs` counts those of log files, `failing_generations` the requested ones of the other file.
    """

    failed_syncs = 0
    failing_generations = 0

    def sync(self, file: OpenFile) -> None:
        """Sync, or fail if that is requested for the file."""
        if self.failing_generations and file.path.startswith(_GENERATIONS):
            self.failing_generations -= 1
            raise OSError(errno.EIO, "the sync failed", file.path)
        requested = self.failing_syncs
        if not log_files([file.path]):
            self.failing_syncs = 0
        try:
            super().sync(file)
        except OSError:
            self.failed_syncs += 1
            requested -= 1
            raise
        finally:
            self.failing_syncs = requested


class Node:
    """One node, open or down."""

    def __init__(
        self,
        number: int,
        settings: ClusterSettings,
        *,
        network: RecordedNetwork,
        clock: ClusterClock,
        parts: Parts,
        tracker: DirtyTracker,
    ) -> None:
        self.number = number
        self.role: Role = "slave" if number else "master"
        self.master = 0
        self.clock_ahead_ms = 0
        self.puts: list[OpenPut] = []
        self.last_event = 0
        self.due_ms = 0
        self.files = ClusterDisk(EMPTY_DISK, tracker=tracker)
        self.replicated: ReplicatedStore | None = None
        self._settings = settings
        self._network = network
        self._clock = clock
        self._services: list[HandDriven] = []
        self._cleaning: HandDriven | None = None
        self.copies_to_fail = 0
        self._parts = parts.replacing({ThreadRunner: self._service, MappedFile: _failing(parts.of(MappedFile), self)})
        network.events[number] = lambda: len(self.files.events)

    def _service(self, service: Service) -> HandDriven:
        driven = HandDriven(service, lambda: self._clock.now_ms)
        self._services.append(driven)
        if service.name == "clean":
            self._cleaning = driven
        return driven

    @property
    def is_up(self) -> bool:
        """Whether the node is open."""
        return self.replicated is not None

    @property
    def store(self) -> MessageStore:
        """The open store."""
        assert self.replicated is not None
        return self.replicated.store

    @property
    def end(self) -> int:
        """The end of the log of an open node."""
        return self.store.max_offset

    @property
    def begin(self) -> int:
        """The begin of the log of an open node."""
        return self.store.min_offset

    @property
    def acknowledged(self) -> int | None:
        """The offset that enough connected replicas have confirmed; None if too few are connected."""
        assert self.replicated is not None
        return self.replicated.acknowledged_offset

    def config(self) -> MessageStoreConfig:
        """Return the configuration in the present role."""
        settings, is_master = self._settings, self.role == "master"
        syncs = settings.master_syncs if is_master else settings.slave_syncs
        return MessageStoreConfig(
            mapped_file_size_commit_log=settings.file_bytes,
            broker_role=BrokerRole.SYNC_MASTER if is_master else BrokerRole.SLAVE,
            flush_disk_type=FlushDiskType.SYNC_FLUSH if syncs else FlushDiskType.ASYNC_FLUSH,
            slave_timeout=SLAVE_TIMEOUT_MS,
            sync_flush_timeout=SLAVE_TIMEOUT_MS,
            mapped_files_ahead=0,
            mapped_file_size_consume_queue=_QUEUE_FILE_BYTES,
            max_hash_slot_num=16,
            max_index_num=64,
            time_zone="UTC",
        )

    def replication(self) -> ReplicationSettings:
        """Return the settings of replication in the present role."""
        settings = self._settings
        return ReplicationSettings(
            ha_listen_address=address_of(self.number),
            ha_master_address="" if self.role == "master" else address_of(self.master),
            ha_transfer_batch_size=settings.batch_bytes,
            in_sync_replicas=settings.quorum,
            acknowledge=settings.acknowledge,
            send_flushed_only=settings.send_flushed_only,
            discard_when_gone=settings.discard_when_gone,
        )

    def open(self) -> None:
        """Open the node in its role, by the real load path."""
        self._services = []
        self.replicated = ReplicatedStore.open(
            ROOT,
            self.config(),
            self.replication(),
            files=self.files,
            clock=self._wall_clock,
            network=self._network.of(self.number),
            parts=self._parts,
            now_ms=lambda: self._clock.now_ms,
            new_token=self._clock.token,
        )

    def _wall_clock(self) -> int:
        return self._clock.now_ms + self.clock_ahead_ms

    def step(self) -> None:
        """Do one round of services that are due, of replication, and of what that woke.

        A round of replication in which a sync fails is repeated, as by a thread.
        """
        assert self.replicated is not None
        self.step_services()
        while True:
            failed = self.files.failed_syncs, self.files.failing_generations
            try:
                self.due_ms = self.replicated.step(self._clock.now_ms)
                break
            except OSError:
                if failed == (self.files.failed_syncs, self.files.failing_generations):
                    raise
        self.step_services()

    def clean(self) -> None:
        """Run retention to its end on a nearly full disk."""
        assert self._cleaning is not None
        self.files.scripted_usage = _NEARLY_FULL
        for _ in range(_STEPS_OF_A_CLEANING_MAX):
            found = self._cleaning.step()
            if found is None or found.due_ms is None or found.due_ms >= found.now_ms + _CLEANING_PAUSE_MS:
                break
        self.files.scripted_usage = None

    def step_services(self) -> None:
        """Do one round of each service that a thread would run now."""
        for service in tuple(self._services):
            if not service.is_stopped and service.will_step(self._clock.now_ms):
                service.step()

    def die(self) -> None:
        """Forget the process; its disk stays."""
        self.replicated, self._services, self.puts = None, [], []

    def use_disk(self, files: ClusterDisk) -> None:
        """Continue with another disk."""
        self.files, self.last_event = files, 0


def _failing(kind: type[MappedFile], node: Node) -> type[MappedFile]:
    """Return a kind of log files whose next copy fails half way if the node says so."""

    class FailingCopy(kind):  # type: ignore[misc, valid-type]
        def append(self, record: bytearray) -> None:
            if node.copies_to_fail and self._mark == "record":
                node.copies_to_fail -= 1
                half = len(record) // 2
                self.target[self.written_position : self.written_position + half] = record[:half]
                raise OSError(errno.EIO, "the copy failed", self.path)
            super().append(record)

    return FailingCopy
