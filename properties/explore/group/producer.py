"""A producer that follows the leader of a group and notes which entries were acknowledged."""

import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

from tornpage.impl.serving.client import Client

__all__ = ["FILLER_BYTES_MAX", "TOPIC", "GroupProducer", "body_of", "number_of"]

TOPIC = "group"

FILLER_BYTES_MAX = 400
_NUMBER_DIGITS = 9
_ANSWER_S = 0.3
"""A member that does not answer for so long counts as hung, and another one is asked."""
_PAUSE_S = 0.005


class GroupProducer:
    """Appends numbered entries in a thread, `outstanding` at a time, until `stop`.

    With `messages` they are messages of one queue. `next` is the first number that was not sent. A number is sent once.
    `acknowledged` has the index of each acknowledged entry, or the queue offset of the message, by number. `answers`
    counts all statuses. `per_second` limits the rate, 0 does not. `leader` is the member that acknowledged last.
    """

    def __init__(
        self, addresses: Sequence[str], first: int, *, messages: bool, outstanding: int, per_second: int
    ) -> None:
        self._request = {"op": "put", "topic": TOPIC} if messages else {"op": "append"}
        self._place = "queue_offset" if messages else "index"
        self.next = first
        self.acknowledged: dict[int, int] = {}
        self.answers: Counter[str] = Counter()
        self.leader = -1
        self._addresses = addresses
        self._outstanding = outstanding
        self._per_second = per_second
        self._member = 0
        self._lost = -1
        self._found_s: float | None = None
        self._is_stopped = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def lose(self, member: int) -> None:
        """Wait for the first entry that another member acknowledges than the given one."""
        self._found_s = None
        self._lost = member

    @property
    def found_s(self) -> float | None:
        """The monotonic time of that entry in seconds, None before it."""
        return self._found_s

    def stop(self) -> None:
        """Append nothing more, and wait for the answers or the end of the connection."""
        self._is_stopped = True
        self._thread.join()

    def _run(self) -> None:
        while not self._is_stopped:
            with suppress(OSError), Client(self._addresses[self._member], timeout_s=_ANSWER_S) as client:
                self._append_to(client)
                continue
            self._turn_to((self._member + 1) % len(self._addresses))

    def _turn_to(self, member: int) -> None:
        self._member = member
        time.sleep(_PAUSE_S)

    def _append_to(self, client: Client) -> None:
        """Append while this member leads. Raises OSError, as for a lost connection."""
        unanswered, began, sent = 0, time.monotonic(), 0
        while unanswered or not self._is_stopped:
            count = 0 if self._is_stopped else self._outstanding - unanswered
            if count:
                numbers = range(self.next, self.next + count)
                client.send(*({**self._request, "id": n, "body": body_of(n)} for n in numbers))
                self.next += count
                sent += count
                unanswered += count
            answer = client.receive()
            unanswered -= 1
            if not self._note(answer):
                return
            if self._per_second and not self._is_stopped:
                time.sleep(max(0.0, began + (sent - unanswered) / self._per_second - time.monotonic()))

    def _note(self, answer: dict[str, object]) -> bool:
        """Take an answer; return whether to go on with this member."""
        status = str(answer.get("status", answer.get("error")))
        self.answers[status] += 1
        if status in ("OK", "PUT_OK"):
            self.acknowledged[int(str(answer["id"]))] = int(str(answer[self._place]))
            self.leader = self._member
            if self._found_s is None and self._member != self._lost:
                self._found_s = time.monotonic()
            return True
        if status == "NOT_LEADER" and answer.get("leader") is not None:
            self._turn_to(int(str(answer["leader"])))
            return False
        self._turn_to((self._member + 1) % len(self._addresses))
        return False


def body_of(number: int) -> str:
    """Return the body of a numbered entry: nine digits, then filler."""
    return f"{number:0{_NUMBER_DIGITS}}" + "x" * (number * 7919 % FILLER_BYTES_MAX)


def number_of(body: bytes) -> int | None:
    """Return the number of an entry, None for one that no producer appended."""
    digits = body[:_NUMBER_DIGITS]
    return int(digits) if len(digits) == _NUMBER_DIGITS and digits.isdigit() else None
