"""Compare all suites with a live library, or with the digests that were recorded of it.

A recording has a digest for each chunk of seed 0. It shows whether our answers are those of Java, and not how they
differ.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tornpage.peers.consumers.allocations import DRAWN, EXHAUSTIVE
from tornpage.peers.consumers.local_offsets import LOCAL_OFFSETS
from tornpage.peers.consumers.process_queues import SEQUENCES
from tornpage.peers.consumers.suites import Case, Difference, Suite, digest
from tornpage.peers.rocketmq.process import Process

__all__ = ["RECORDED", "SUITES", "Comparison", "compare", "compare_recorded", "recording"]

SUITES = (EXHAUSTIVE, DRAWN, SEQUENCES, LOCAL_OFFSETS)
RECORDED = Path(__file__).with_name("recorded.json")
_SHOWN = 5
"""Differences that are kept of each suite."""


@dataclass(slots=True)
class Comparison:
    """What a run has compared.

    `rules` counts the answers that each listed difference has changed.
    """

    compared: dict[str, int] = field(default_factory=dict)
    differing: dict[str, int] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)
    rules: Counter[str] = field(default_factory=Counter)
    digests: dict[str, list[str]] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)
    """Chunks whose recording differs: their differing cases are not known."""

    @property
    def unused_rules(self) -> list[str]:
        """The listed differences that changed no answer, so that nothing supports them."""
        listed = {f"{suite.name}: {rule}" for suite in SUITES if suite.name in self.compared for rule in suite.rules}
        return sorted(listed - {name for name, count in self.rules.items() if count})


def compare(
    process: Process, *, seed: int, suites: Sequence[Suite] = SUITES, progress: Callable[[int, str], None]
) -> Comparison:
    """Compare each case of each suite with a live library."""
    found, done = Comparison(), 0
    for suite in suites:
        found.compared[suite.name] = found.differing[suite.name] = 0
        applied: Counter[str] = Counter()
        digests = found.digests[suite.name] = []
        for chunk in range(suite.chunks):
            recorded, differences = suite.differences(process, seed, chunk, applied)
            digests.append(recorded)
            found.compared[suite.name] += _size(suite, suite.cases(seed, chunk))
            found.differing[suite.name] += len(differences)
            kept = [each for each in found.differences if each.suite == suite.name]
            found.differences += differences[: _SHOWN - len(kept)]
            done += 1
            progress(done, suite.name)
        found.rules.update({f"{suite.name}: {rule}": count for rule, count in applied.items()})
    return found


def compare_recorded(
    recorded: Mapping[str, Any],
    *,
    suites: Sequence[Suite] = SUITES,
    chunks: Callable[[Suite], Sequence[int]] = lambda suite: range(suite.chunks),
    progress: Callable[[int, str], None] = lambda done, name: None,
) -> Comparison:
    """Compare our answers with the digests of a recording."""
    found, done = Comparison(), 0
    for suite in suites:
        digests = recorded["digests"][suite.name]
        found.compared[suite.name] = found.differing[suite.name] = 0
        for chunk in chunks(suite):
            found.compared[suite.name] += _size(suite, suite.cases(0, chunk))
            if digest(suite.ours_of(0, chunk)) != digests[chunk]:
                found.differing[suite.name] += 1
                found.unknown.append(f"{suite.name}, chunk {chunk}")
            done += 1
            progress(done, suite.name)
    found.rules.update(recorded["rules"])
    return found


def recording(found: Comparison, version: str) -> str:
    """Return a recording of a comparison of seed 0, as JSON."""
    document = {"version": version, "digests": found.digests, "rules": dict(sorted(found.rules.items()))}
    return json.dumps(document, indent=1) + "\n"


def _size(suite: Suite, cases: Sequence[Case]) -> int:
    return sum(map(suite.counts, cases))
