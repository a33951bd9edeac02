"""Parts of a store that are functions of the bytes they are given, remembered by these bytes.

The walk along a log file and what dispatch makes of it are such: of thousands of crash images of one history few have
a log of their own. The parts themselves are those of the store, or of a planted bug. One answer in `AGAIN_EVERY` that
is known is worked out all the same and compared (docs/adr/0024).
"""

from collections.abc import Callable, Hashable
from typing import Any

import mmh3

from impl.dispatching import Dispatched, Dispatcher, DispatchRules
from impl.scan import LogWalker, RecordChecker
from properties.contract import HarnessError

__all__ = ["AGAIN_EVERY", "remembered_dispatch", "remembered_walk"]

AGAIN_EVERY = 16


class _Answers:
    """Answers by what was asked."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Any] = {}
        self._asked = 0

    def to(self, question: Hashable, work_out: Callable[[], Any]) -> Any:
        """Return the answer to a question. Raises HarnessError when it is another one than it was."""
        if question not in self._known:
            self._known[question] = work_out()
            return self._known[question]
        answer, self._asked = self._known[question], self._asked + 1
        if self._asked % AGAIN_EVERY == 0 and (now := work_out()) != answer:
            raise HarnessError(f"what is a function of bytes gave {answer}, and then {now}")
        return answer


def remembered_walk(walk: LogWalker) -> LogWalker:
    """Return a walker that knows the files it has walked along."""
    answers = _Answers()

    def known(
        view: memoryview, position: int, *, file_bytes: int, base_offset: int, check: RecordChecker
    ) -> tuple[int, str | None]:
        question = mmh3.mmh3_x64_128_digest(view), position, file_bytes, base_offset, check
        found: tuple[int, str | None] = answers.to(
            question, lambda: walk(view, position, file_bytes=file_bytes, base_offset=base_offset, check=check)
        )
        return found

    return known


def remembered_dispatch(dispatch: Dispatcher) -> Dispatcher:
    """Return a dispatcher that knows the files it has read; the rules are always those of one configuration."""
    answers = _Answers()

    def known(view: memoryview, position: int, end: int, rules: DispatchRules) -> Dispatched:
        question = mmh3.mmh3_x64_128_digest(view), position, end, rules.batch_bytes_max
        found: Dispatched = answers.to(question, lambda: dispatch(view, position, end, rules))
        return found

    return known
