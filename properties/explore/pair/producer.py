"""A producer that keeps puts outstanding and notes which were acknowledged."""

import threading
from contextlib import suppress

from tornpage.impl.serving.client import Client

__all__ = ["OUTSTANDING", "Producer"]

OUTSTANDING = 64
_BODY_BYTES = 400
_TOPIC = "pair"


class Producer:
    """Puts numbered messages in a thread, until its connection ends or `stop`.

    `acknowledged` has the number of each message whose put was answered PUT_OK, and `answers` counts all statuses.
    A message is its number in 9 digits, then filler whose length depends on the number.
    """

    def __init__(self, client: Client, first: int) -> None:
        self.next = first
        self.acknowledged: list[int] = []
        self.answers: dict[str, int] = {}
        self._client = client
        self._is_stopped = False
        self._unanswered = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with suppress(OSError):
            while not self._is_stopped:
                self._fill()
                self._take(self._client.receive())
        with suppress(OSError):  # answers that were sent before the end of the connection
            while self._unanswered:
                self._take(self._client.receive())
        self._client.close()

    def _fill(self) -> None:
        first, self.next = self.next, self.next + OUTSTANDING - self._unanswered
        self._unanswered = OUTSTANDING
        self._client.send(*({"op": "put", "id": n, "topic": _TOPIC, "body": _body(n)} for n in range(first, self.next)))

    def _take(self, answer: dict[str, object]) -> None:
        self._unanswered -= 1
        status = str(answer.get("status", answer.get("error")))
        self.answers[status] = self.answers.get(status, 0) + 1
        if status == "PUT_OK":
            self.acknowledged.append(int(str(answer["id"])))

    def stop(self) -> None:
        """Put nothing more, and wait for the answers or the end of the connection."""
        self._is_stopped = True
        self._thread.join()


def _body(number: int) -> str:
    return f"{number:09}" + "x" * (number * 7919 % _BODY_BYTES)
