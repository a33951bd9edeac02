"""Cache verdicts on the crash states at one point of a run: equal images are judged once.

Recovery is a function of the image. The answers of a store are a function of its process view: the bytes of all files
as it sees them, and its memory of them. So a recovered image keeps its verdict while the same log is legal for it, and
a store with a judged view answers as the first one did. A random share is judged again and compared, so that neither
claim is only assumed (docs/adr/0024).

The walk along a log file and the dispatch of its records are functions of bytes as well, and only few of thousands of
crash images of one run have a log of their own. Their answers are cached by these bytes.
"""

import random
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, fields
from typing import Any, Self

import mmh3

from tornpage.impl.log.scan import LogWalker, RecordChecker
from tornpage.impl.message.dispatching import Dispatched, Dispatcher, DispatchRules
from tornpage.model.state import CommitLog
from tornpage.properties.contract import HarnessError
from tornpage.properties.disk.fingerprint import fingerprint
from tornpage.properties.judge.evidence import Key, LegalLogs, ProcessView, Recovered
from tornpage.properties.judge.ledgers import LegalVersions, SavedVersion

__all__ = ["AGAIN_EVERY", "AGAIN_SHARE", "Outcome", "VerdictCache", "cached_dispatch", "cached_walk"]

AGAIN_SHARE = 1 / 16
"""The share of cached verdicts that is judged again."""
AGAIN_EVERY = 16
"""One cached answer in this many is computed again and compared."""

_JudgeInput = tuple[Hashable, ...]
_Views = dict[ProcessView, list[tuple[_JudgeInput, object]]]


def _judge_input(log: CommitLog) -> _JudgeInput:
    """Return the part of a legal log that judges read.

    The rest follows from that part, is on the disk (`saved_delays`), or concerns queues without messages (`cut`), which
    no judge reads.
    """
    return log.records, log.end_offset, log.min_offset, log.deleted, log.delivered


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdict on an image without a fault, with its evidence.

    `judged` and `said` are what judges read of the legal log and of the progress files. `fired` are the judges that had
    something to compare in the recovered store, `effects` its coverage points.
    """

    key: Key
    judged: _JudgeInput
    said: tuple[tuple[str, SavedVersion], ...]
    findings: tuple[Hashable, ...]
    view: ProcessView | None
    durable: bytes
    effects: frozenset[str]
    fired: tuple[str, ...]

    @classmethod
    def of(cls, found: Recovered, effects: frozenset[str], fired: tuple[str, ...]) -> Self:
        """Return the outcome of an image whose store was recovered and judged."""
        return cls(
            key=found.key,
            judged=_judge_input(found.legal[found.key]),
            said=tuple(sorted(found.versions_before.items())),
            findings=tuple(found.store.findings),
            view=found.view,
            durable=fingerprint(found.durable.files, found.durable.directories),
            effects=effects,
            fired=fired,
        )

    def is_legal(self, legal: LegalLogs, versions: LegalVersions) -> bool:
        """Whether judges would reach the same verdict with these legal logs and versions."""
        log = legal.get(self.key)
        if log is None or _judge_input(log) != self.judged:
            return False
        return all(said in versions[path] for path, said in self.said)


@dataclass(slots=True)
class VerdictCache:
    """Outcomes by image, and the judged process views; `rng` draws what is judged again.

    `work` counts verdicts that were computed and reused, `looked` the evaluations of each judge by name. A recovery and
    the recovery after it may share a cache (`of_one_recovery`).
    """

    rng: random.Random
    work: Counter[str]
    looked: Counter[str]
    of_one_recovery: bool = False
    images: dict[bytes, Outcome] = field(default_factory=dict)
    views: _Views = field(default_factory=dict)
    delivered: _Views = field(default_factory=dict)

    def is_done_again(self) -> bool:
        """Draw whether a cached verdict is computed again."""
        return self.rng.random() < AGAIN_SHARE

    def outcome(self, image: bytes, legal: LegalLogs, versions: LegalVersions) -> Outcome | None:
        """Return the outcome of an image; None if there is none, or if other logs are legal now."""
        outcome = self.images.get(image)
        return outcome if outcome is not None and outcome.is_legal(legal, versions) else None

    def note(self, image: bytes, outcome: Outcome) -> Outcome:
        """Store the outcome of an image.

        Raises HarnessError if an equal recovery had another outcome.
        """
        before = self.images.setdefault(image, outcome)
        if before != outcome:
            if before.judged == outcome.judged:
                names = (each.name for each in fields(outcome))
                other = ", ".join(name for name in names if getattr(before, name) != getattr(outcome, name))
                raise HarnessError(f"two recoveries of one image differ in {other}")
            self.images[image] = outcome
        return outcome

    def is_judged(self, found: Recovered) -> bool:
        """Whether an equal process view was judged before; adds this view."""
        is_judged = self._is_seen(self.views, found) and not self.is_done_again()
        self.work["viewed"] += is_judged
        return is_judged

    def has_delivered(self, found: Recovered) -> bool:
        """Whether a store with an equal process view has delivered what was due; adds this view."""
        return self._is_seen(self.delivered, found) and not self.is_done_again()

    @staticmethod
    def _is_seen(views: _Views, found: Recovered) -> bool:
        judged = (_judge_input(found.legal[found.key]), dict(found.versions_before))
        assert found.view is not None
        seen = views.setdefault(found.view, [])
        if judged in seen:
            return True
        seen.append(judged)
        return False


# ---- answers that are functions of bytes -----------------------------------------------------------------------------


class _CachedAnswers:
    """Answers by the bytes that they depend on."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Any] = {}
        self._asked = 0

    def to(self, question: Hashable, work_out: Callable[[], Any]) -> Any:
        """Return the answer to a question. Raises HarnessError if a cached answer is wrong."""
        if question not in self._known:
            self._known[question] = work_out()
            return self._known[question]
        answer, self._asked = self._known[question], self._asked + 1
        if self._asked % AGAIN_EVERY == 0 and (now := work_out()) != answer:
            raise HarnessError(f"a function of bytes returned {answer}, and then {now}")
        return answer


def cached_walk(walk: LogWalker) -> LogWalker:
    """Return a walker that caches its answers by the bytes of the file."""
    answers = _CachedAnswers()

    def known(
        view: memoryview, position: int, *, file_bytes: int, base_offset: int, check: RecordChecker
    ) -> tuple[int, str | None]:
        question = mmh3.mmh3_x64_128_digest(view), position, file_bytes, base_offset, check
        found: tuple[int, str | None] = answers.to(
            question, lambda: walk(view, position, file_bytes=file_bytes, base_offset=base_offset, check=check)
        )
        return found

    return known


def cached_dispatch(dispatch: Dispatcher) -> Dispatcher:
    """Return a dispatcher that caches its answers by the bytes of the file and its rules."""
    answers = _CachedAnswers()

    def known(view: memoryview, position: int, end: int, rules: DispatchRules) -> Dispatched:
        question = mmh3.mmh3_x64_128_digest(view), position, end, rules.batch_bytes_max, rules.index, rules.ext
        found: Dispatched = answers.to(question, lambda: dispatch(view, position, end, rules))
        return found

    return known
