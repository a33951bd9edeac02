"""The broker of a run: a real store on a recorded disk, stepped by hand."""

from collections.abc import Callable, Iterator

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.config.policy import FlushDiskType
from tornpage.impl.consumer.broker import ConsumerBroker
from tornpage.impl.consumer.settings import BrokerSettings
from tornpage.impl.groups.broker_configs import TopicConfig
from tornpage.impl.message.message import Message, PutResult, StoredMessage
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import Service, ThreadRunner
from tornpage.impl.store import MessageStore
from tornpage.model.consumers.operations import Produce
from tornpage.model.consumers.state import Entry, Queue, Record
from tornpage.properties.consumers import judge
from tornpage.properties.decode.config_files import parse_config, parse_consumer_offsets
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.recording_files import EMPTY_DISK, RecordingFiles
from tornpage.properties.program.group_case import GroupSettings
from tornpage.properties.program.hand_driven import HandDriven
from tornpage.properties.program.log_places import ROOT

__all__ = ["BORN_MS", "BROKER", "GROUP", "TAG", "TOPIC", "BrokerHost", "entry_of"]

TOPIC, GROUP, BROKER = "T", "G", "broker-a"
BORN_MS = 1_700_000_000_000
_QUEUE_FILE_BYTES = 400
_IN_MEMORY_RATIO = 40
_ROUNDS_OF_A_STEP = 3
_FILE_BYTES_MAX = 1 << 20
_ROUNDS_OF_DELETION = 8
_SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
_SEPARATOR = b":"
TAG = "Aa"
_TAGS = {"A": TAG, "C": "BB"}
"""Tags of messages. Those of A and C have equal hashes in Java."""


def entry_of(message: StoredMessage) -> Entry:
    """Return the entry that a record of a run holds."""
    identity = int(message.body.partition(_SEPARATOR)[0])
    return Entry(identity, message.reconsume_times, message.properties.get("TAGS") == TAG)


_OF_COPIES = ("RETRY_TOPIC", "ORIGIN_MESSAGE_ID", "REAL_TOPIC", "REAL_QID", "DELAY", "WAIT")
"""The properties that a copy may have and its message has not. WAIT shows in the durability of the copy."""


def _described(message: StoredMessage, origin: str) -> dict[str, object]:
    """Return what a copy has from its message; `origin` is the id of the message."""
    properties = {name: value for name, value in message.properties.items() if name not in _OF_COPIES}
    return {
        "topic": message.properties.get("RETRY_TOPIC", message.topic),
        "message id": origin,
        "body": bytes(message.body),
        "flag": message.flag,
        "born": (message.born_timestamp, message.born_host),
        "properties": properties,
    }


class BrokerHost:
    """The broker, open or down. `services` are those of its store."""

    def __init__(
        self, settings: GroupSettings, *, clock: Callable[[], int], parts: Parts, tracker: DirtyTracker
    ) -> None:
        self.files = RecordingFiles(EMPTY_DISK, tracker=tracker)
        self.queues = settings.queues
        self.is_cold = settings.is_cold
        self._broker_settings = BrokerSettings(broker_name=BROKER, long_polling=settings.holds_pulls)
        self._settings = settings
        self._clock = clock
        self.services: list[HandDriven] = []
        self._parts = parts.replacing({ThreadRunner: self._service})
        self._store: MessageStore | None = None
        self._broker: ConsumerBroker | None = None
        self._seen_end = 0
        self._originals: dict[int, dict[str, object]] = {}

    def _service(self, service: Service) -> HandDriven:
        driven = HandDriven(service, self._clock)
        self.services.append(driven)
        return driven

    @property
    def is_up(self) -> bool:
        """Whether the broker is open."""
        return self._store is not None

    @property
    def store(self) -> MessageStore:
        """The open store."""
        assert self._store is not None
        return self._store

    @property
    def broker(self) -> ConsumerBroker:
        """The open broker."""
        assert self._broker is not None
        return self._broker

    def open(self) -> None:
        """Open the store by the real load path, and begin to serve."""
        self.services = []
        syncs = self._settings.has_sync_flush
        config = MessageStoreConfig(
            mapped_file_size_commit_log=self._settings.log_file_bytes,
            file_reserved_time=0,
            flush_disk_type=FlushDiskType.SYNC_FLUSH if syncs else FlushDiskType.ASYNC_FLUSH,
            mapped_files_ahead=0,
            mapped_file_size_consume_queue=_QUEUE_FILE_BYTES,
            max_hash_slot_num=16,
            max_index_num=64,
            time_zone="UTC",
            access_message_in_memory_max_ratio=0 if self._settings.is_cold else _IN_MEMORY_RATIO,
        )
        self._store = MessageStore.open(ROOT, config, files=self.files, clock=self._clock, parts=self._parts)
        self._broker = self._parts.of(ConsumerBroker)(
            self._store, self._broker_settings, now_ms=self._clock(), parts=self._parts
        )
        self._seen_end = self._store.max_offset
        config_of_topic = self._store.topic_configs().get(TOPIC)
        self.queues = self.queues if config_of_topic is None else config_of_topic.read_queue_nums

    def set_queues(self, number: int) -> None:
        """Give the topic a number of queues."""
        self.queues = number
        self.store.put_topic_config(TopicConfig(TOPIC, read_queue_nums=number, write_queue_nums=number))

    def put(self, produce: Produce, identity: int) -> PutResult:
        """Put a message of a producer."""
        message = Message(
            TOPIC, b"%d:" % identity + bytes(max(0, produce.body_bytes)), queue_id=produce.queue % self.queues,
            properties=f"TAGS\x01{_TAGS.get(produce.tag, produce.tag)}\x02",
            born_host=("127.0.0.1", 50_000), born_timestamp=BORN_MS,
        )  # fmt: skip
        return self.store.put(message)

    def step(self, name: str = "", *, slow: str = "") -> None:
        """Do a round of each service that a thread would run now, and of what that woke.

        With a name, only of that. `slow` names a service to leave out.
        """
        for _ in range(_ROUNDS_OF_A_STEP):
            due = [each for each in self.services if not each.is_stopped and each.will_step(self._clock())]
            due = [each for each in due if each.name == name or (not name and each.name != slow)]
            for service in due:
                service.step()
            if not due:
                break
        self.broker.step(self._clock())

    def delete_files(self) -> None:
        """Let retention delete all files that it may delete."""
        self.store.delete_expired_files_manually()
        for service in self.services:
            if service.name == "clean":
                for _ in range(_ROUNDS_OF_DELETION):
                    service.step()

    def next_due_ms(self) -> int | None:
        """Return when the next round of a service is due."""
        return min((each.due_ms for each in self.services if each.due_ms is not None), default=None)

    def new_records(self) -> Iterator[Record]:
        """Yield the records appended since the last call."""
        while self._seen_end < self.store.max_offset:
            message = self.store.get(self._seen_end).message
            if message is None:  # the unused end of a file
                file_bytes = self._settings.log_file_bytes
                self._seen_end = (self._seen_end // file_bytes + 1) * file_bytes
                continue
            self._seen_end = message.offset + message.size_bytes
            yield self._record(message)

    def _compare_copy(self, message: StoredMessage) -> None:
        """Note a message of a producer, and compare a copy with it."""
        identity = entry_of(message).identity
        if message.topic == TOPIC:
            self._originals[identity] = _described(message, message.message_id)
        elif identity in self._originals:
            found = _described(message, message.properties.get("ORIGIN_MESSAGE_ID", ""))
            judge.copy_is_whole(identity, self._originals[identity], found)

    def _record(self, message: StoredMessage) -> Record:
        self._compare_copy(message)
        queue, level = Queue(message.topic, message.queue_id), 0
        if message.topic == _SCHEDULE_TOPIC:
            queue = Queue(message.properties["REAL_TOPIC"], int(message.properties["REAL_QID"]))
            level = message.queue_id + 1
        end = message.offset + message.size_bytes
        return Record(message.offset, end, queue, entry_of(message), level, self._clock())

    def progress(self, queue: Queue) -> int | None:
        """Return the stored progress of the group, None without any."""
        return self.store.consumer_offsets(queue.topic).get(GROUP, {}).get(queue.queue_id)

    def all_progress(self) -> dict[Queue, int]:
        """Return the stored progress of every queue of the group."""
        return {
            Queue(topic, queue_id): offset
            for topic in self.store.topics_of_group(GROUP)
            for queue_id, offset in self.store.consumer_offsets(topic).get(GROUP, {}).items()
        }

    def saved_progress(self) -> dict[tuple[str, str, int], int]:
        """Return the progress in the state file, by topic, group and queue id."""
        path = f"{ROOT}/config/consumerOffset.json"
        if self.files.stat(path) is None:
            return {}
        file = self.files.open(path, writable=False)
        try:
            return parse_consumer_offsets(parse_config(self.files.read(file, 0, _FILE_BYTES_MAX)))
        finally:
            self.files.close(file)

    def die(self) -> None:
        """Forget the process; its disk stays."""
        self._store, self._broker, self.services = None, None, []

    def use_disk(self, files: RecordingFiles) -> None:
        """Continue with another disk."""
        self.files = files
