"""Send requests to a store under test and check the form of its answers.

An error, or an answer of another form than requested, breaks contract 8. A missing answer breaks contract 16.
"""

import base64
import binascii
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.foreign.process import Died, Hung, StoreFailed, StoreProcess
from tornpage.properties.foreign.protocol import BadHandshake, printable, read_handshake

__all__ = ["StoreSession", "broken_by"]


def broken_by(failed: StoreFailed, contract: int = 8) -> GuaranteeBroken:
    """Return the broken promise of a store that gave no answer."""
    number = 16 if isinstance(failed, Hung) else contract
    return GuaranteeBroken(number, failed.sentence, "an answer", failed.last_words or "none")


class StoreSession:
    """Represent one session of a store, which starts with the handshake.

    `opens_again` says that the store had opened before. An error then breaks contract 7. Raises BadHandshake,
    StoreFailed or, for a store that opens again, GuaranteeBroken.
    """

    def __init__(self, process: StoreProcess, *, opens_again: bool) -> None:
        self.process = process
        try:
            answer = process.greet()
        except StoreFailed as failed:
            if opens_again:
                what = "hangs as it opens" if isinstance(failed, Hung) else f"does not open: {failed.sentence}"
                broken = broken_by(failed, contract=7)
                broken.sentence = f"the store {what}"
                raise broken from failed
            raise
        if "error" in answer:
            sentence = f"the store does not open: {printable(answer['error'])}"
            if opens_again:
                raise GuaranteeBroken(7, sentence)
            raise Died(sentence, process.said())
        try:
            said = read_handshake(answer)
            process.opens_many, process.reads_ahead = answer.get("open", False), answer.get("ahead", False)
        except BadHandshake as wrong:
            if opens_again:
                raise GuaranteeBroken(7, f"the store does not open as it did before: {wrong}") from wrong
            raise
        self.name, self.shape = said.name, said.shape
        self.promises: Any = said.promises
        """The promises, of the class of the shape."""

    def call(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Send a request of any shape; return its answer. Raises GuaranteeBroken for an error."""
        return self._ask(do, **arguments)

    def together(self, calls: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, int, dict[str, Any]]]:
        """Send concurrent calls; yield each answer as it comes.

        It is the number of events of the disk before which the answer came, the number of the call, and the answer. A
        store may give all answers at once, as `answers`. Raises GuaranteeBroken for an error.
        """
        left = set(range(len(calls)))
        try:
            for moment, answer in self.process.ask_each("together", calls=list(calls)):
                for number, each in self._answers_of_calls(answer, left):
                    left.discard(number)
                    yield moment, number, each
                if not left:
                    return
        except StoreFailed as failed:
            raise broken_by(failed) from failed

    def _answers_of_calls(self, answer: dict[str, Any], left: Collection[int]) -> list[tuple[int, dict[str, Any]]]:
        """Return the answers in one line, with the numbers of their calls. Raises GuaranteeBroken."""
        if "error" in answer:
            sentence = "the store answers a concurrent call with an error"
            raise GuaranteeBroken(8, sentence, "an answer", printable(answer["error"]))
        if "answers" not in answer:
            number = answer.pop("call", None)
            if number not in left or isinstance(number, bool):
                raise self.odd("together", answer, f"'call', one of {sorted(left)}, or 'answers'")
            return [(number, answer)]
        answers = answer["answers"]
        if not isinstance(answers, list) or len(answers) != len(left) or not all(isinstance(a, dict) for a in answers):
            raise self.odd("together", answer, f"{len(left)} answers")
        return [
            one
            for number, each in zip(sorted(left), answers, strict=True)
            for one in self._answers_of_calls({**each, "call": number}, {number})
        ]

    def ahead(self, do: str, requests: Iterable[Mapping[str, Any]]) -> None:
        """Send requests that only read before they are asked, if the store allows it.

        A wait for each answer takes longer than the read.
        """
        if self.process.reads_ahead:
            self.process.send_ahead([{"do": do, **request} for request in requests])

    def put(self, topic: str, queue: int, body: bytes, keys: list[str]) -> tuple[int, int]:
        """Put a message; return its offset and number, 0 where a value is not promised."""
        coded = base64.b64encode(body).decode()
        answer = self._ask("put", topic=topic, queue=queue, body=coded, keys=keys)
        offset = self._number("put", answer, "offset") if self.promises.offsets else 0
        return offset, self._number("put", answer, "number") if self.promises.queues else 0

    def get(self, offset: int) -> bytes | None:
        """Return the body at an offset."""
        return self._body("get", self._ask("get", offset=offset))

    def read(self, topic: str, queue: int, number: int) -> bytes | None:
        """Return the body of a message of a queue."""
        return self._body("read", self._ask("read", topic=topic, queue=queue, number=number))

    def find(self, topic: str, key: str) -> list[bytes]:
        """Return the bodies of the messages with a key."""
        answer = self._ask("find", topic=topic, key=key)
        bodies = answer.get("bodies")
        if not isinstance(bodies, list):
            raise self.odd("find", answer, "a list of bodies")
        return [self._decoded("find", answer, body) for body in bodies]

    def flush(self) -> None:
        """Request a flush."""
        self._ask("flush")

    def close(self) -> None:
        """Request a close, after which the process ends."""
        self._ask("close")
        try:
            self.process.closed()
        except StoreFailed as failed:
            raise broken_by(failed) from failed

    def _ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        try:
            answer = self.process.ask(do, **arguments)
        except StoreFailed as failed:
            raise broken_by(failed) from failed
        if "error" in answer:
            raise GuaranteeBroken(8, f"the store answers {do} with an error", "an answer", printable(answer["error"]))
        return answer

    def _number(self, do: str, answer: dict[str, Any], name: str) -> int:
        value = answer.get(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.odd(do, answer, f"a whole number {name!r}")
        return value

    def _body(self, do: str, answer: dict[str, Any]) -> bytes | None:
        if "body" not in answer:
            raise self.odd(do, answer, "a body, or null for none")
        return None if answer["body"] is None else self._decoded(do, answer, answer["body"])

    def _decoded(self, do: str, answer: dict[str, Any], body: object) -> bytes:
        if isinstance(body, str):
            try:
                return base64.b64decode(body, validate=True)
            except (binascii.Error, ValueError):
                pass
        raise self.odd(do, answer, "a body in base64")

    def odd(self, do: str, answer: Any, expected: str) -> GuaranteeBroken:
        """Return the failure of an answer of another form than requested."""
        return GuaranteeBroken(
            8, f"the store answers {do} in a form that the protocol does not allow", expected, str(answer)
        )
