"""A real store whose services are stepped at their due times in virtual time."""

from collections.abc import Callable
from pathlib import Path

from tornpage.impl.config.message_store_config import MessageStoreConfig
from tornpage.impl.io.os_files import OsFiles
from tornpage.impl.message.message import Message, PutStatus
from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import Service, ThreadRunner
from tornpage.impl.store import MessageStore
from tornpage.properties.contract import HarnessError
from tornpage.properties.program.hand_driven import HandDriven

__all__ = ["SteppedStore"]

_FILE_BYTES = 64 << 20
_STEPS_MAX = 100


class SteppedStore:
    """A store below a directory. `clock` is the virtual time in milliseconds."""

    def __init__(self, place: Path, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._services: list[HandDriven] = []
        config = MessageStoreConfig(mapped_file_size_commit_log=_FILE_BYTES, mapped_file_size_consume_queue=20 * 30_000)
        self.store = MessageStore.open(
            place / "store", config, files=OsFiles(), clock=clock, parts=Parts({ThreadRunner: self._driven})
        )

    def _driven(self, service: Service) -> HandDriven:
        driven = HandDriven(service, self._clock)
        self._services.append(driven)
        return driven

    def put(self, message: Message) -> None:
        """Put a message. Raises HarnessError unless it is stored."""
        status = self.store.put(message).status
        if status is not PutStatus.PUT_OK:
            raise HarnessError(f"a put was answered {status.name}")

    def step(self) -> None:
        """Step each service that is woken or due, until none is."""
        for _ in range(_STEPS_MAX):
            due = [service for service in self._services if service.will_step(self._clock())]
            if not due:
                return
            for service in due:
                service.step()
        raise HarnessError(f"services of the store are not settled after {_STEPS_MAX} steps")

    def dues(self) -> list[int]:
        """Return when services are due."""
        return [service.due_ms for service in self._services if service.due_ms is not None]

    def close(self) -> None:
        """Close the store."""
        self.store.close()
