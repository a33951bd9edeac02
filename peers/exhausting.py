"""Open the crash states of every short workload with our store and with a peer.

The workloads and the crash states are those of `tornpage exhaust` (properties/explore/exhaustive). A peer opens each
distinct image once for each operation that it may come from. Shorter workloads come first, so the first image in which
a number is broken has the fewest operations. Workloads with delayed messages, retention or deleted topics are left out:
what a peer has to answer for them is not derived.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tornpage.peers.both_stores import BothStores, expected_of
from tornpage.peers.rocketmq.installing import Release
from tornpage.peers.rocketmq.process import Process
from tornpage.peers.rocketmq.store import Mode
from tornpage.properties.campaign.resume import LineFile
from tornpage.properties.campaign.workers import Control, Died, PartProgress, Work
from tornpage.properties.contract import HarnessError
from tornpage.properties.disk.dirty import DirtyTracker, choose_tracker
from tornpage.properties.disk.failing_disk import FailingDisk
from tornpage.properties.disk.images import compose, disk_state
from tornpage.properties.explore.exhaustive.explored import Plan
from tornpage.properties.explore.exhaustive.operation_set import Workload, workloads
from tornpage.properties.explore.exhaustive.outcomes import CachingJudge, Outcome, image_hash
from tornpage.properties.explore.exhaustive.resume import OtherPlan, source_fingerprint
from tornpage.properties.explore.exhaustive.workload import WorkloadStates
from tornpage.properties.judge.evidence import LegalLogs
from tornpage.properties.judge.ledgers import LegalVersions
from tornpage.properties.lockstep.lockstep import Lockstep
from tornpage.properties.program.case import Case
from tornpage.properties.scratch import memory_directory, scratch_directory

__all__ = ["LEFT_OUT", "PeerExhaustion", "PeerWorkload", "exhaust_with_peer", "peer_letters"]

LEFT_OUT = frozenset({"clean", "delayed", "deliver", "forget"})
"""Operations whose effect on the answers of a peer is not derived."""

RESUME_FILE = "peer-workloads.jsonl"


@dataclass
class PeerWorkload:
    """The counts of one workload.

    `states` have `images` distinct images, which the peer opened.

    `own` is the promise that our store broke, which ends the workload; empty if it broke none. `first` has the case and
    the sentence of the first state in which the peer broke each number.
    """

    workload: Workload
    states: int = 0
    images: int = 0
    certified: int = 0
    peer_states: int = 0
    peer_broken: dict[str, int] = field(default_factory=dict)
    first: dict[str, tuple[str, str]] = field(default_factory=dict)
    own: str = ""


@dataclass
class PeerExhaustion:
    """The sums over all finished workloads, in their order.

    `ops` is the greatest length of which all workloads are finished, or -1. `again` counts results kept from an earlier
    run.
    """

    peer: str
    plan: Plan
    ops: int = -1
    workloads: int = 0
    again: int = 0
    states: int = 0
    images: int = 0
    certified: int = 0
    peer_states: int = 0
    own_workloads: int = 0
    own_sentence: str = ""
    peer_broken: Counter[int] = field(default_factory=Counter)
    first: dict[int, tuple[str, str]] = field(default_factory=dict)
    interrupted: bool = False
    is_cut: bool = False

    def add(self, made: PeerWorkload) -> None:
        """Add a workload."""
        self.workloads += 1
        self.states += made.states
        self.images += made.images
        self.certified += made.certified
        self.peer_states += made.peer_states
        self.own_workloads += bool(made.own)
        self.own_sentence = self.own_sentence or made.own
        self.peer_broken.update({int(number): count for number, count in made.peer_broken.items()})
        for number, told in made.first.items():
            self.first.setdefault(int(number), (told[0], told[1]))


def peer_letters(plan: Plan) -> tuple[str, ...]:
    """Return the operations of a plan that a peer is judged for."""
    return tuple(entry.name for entry in plan.operation_set if entry.name not in LEFT_OUT)


def exhaust_with_peer(
    release: Release,
    plan: Plan,
    *,
    mode: Mode = "light",
    workers: int = 1,
    seconds: float | None = None,
    out: Path | None = None,
    progress: Callable[[int], None] = lambda states: None,
) -> PeerExhaustion:
    """Crash every workload of a plan, whose operations are those of `peer_letters`.

    Finished workloads are kept in `out`, and a later run continues. An interrupt ends the run and keeps its results.
    Raises PeerUnavailable, HarnessError, OtherPlan, OSError.
    """
    result = PeerExhaustion(f"rocketmq:{release.version}", plan)
    kept, file = _kept(out, plan, release, mode)

    def watch(told: PartProgress) -> None:
        progress(result.states + told.count)

    parts = [workload for length in range(plan.ops + 1) for workload in workloads(plan.operation_set, length)]
    last = {len(workload): number for number, workload in enumerate(parts)}
    work = Work(
        job=_Workloads(release, plan, mode), parts=iter(parts), workers=workers, seconds=seconds, holds_interrupts=True,
        watch=watch, known=kept.get,
    )  # fmt: skip
    results = work.results()
    try:
        for number, (part, made) in enumerate(results):
            if isinstance(made, Died):
                raise HarnessError(f"an exploring process has died: it {made.how}")
            if made is None:
                result.is_cut = True
                break
            result.again += part in kept
            result.add(made)
            if part not in kept and file is not None:
                file.append(asdict(made))
            if last[len(part)] == number:
                result.ops = len(part)
            progress(result.states)
    finally:
        results.close()
    result.interrupted = work.interrupted
    result.is_cut = result.is_cut or result.ops < plan.ops
    return result


def _kept(
    out: Path | None, plan: Plan, release: Release, mode: Mode
) -> tuple[dict[Workload, PeerWorkload], LineFile | None]:
    """Return the results of earlier runs of a plan, and the file to add to."""
    if out is None:
        return {}, None
    file = LineFile(out / RESUME_FILE)
    wanted = {name: value for name, value in asdict(plan).items() if name != "ops"}
    header = {
        "tornpage_exhaust_peer": 1,
        "peer": f"rocketmq:{release.version}",
        "peer_mode": mode,
        "source": source_fingerprint(),
        **wanted,
        "operation_names": list(plan.operation_names),
    }
    lines = file.lines()
    file.cut()
    if not lines:
        file.append(header)
        return {}, file
    try:
        if json.loads(lines[0]) != header:
            raise OtherPlan(f"{file.path} belongs to another bound, peer or source; give a new --out directory")
        rows: list[dict[str, Any]] = [json.loads(line) for line in lines[1:]]
        made = [PeerWorkload(**{**row, "workload": tuple(row["workload"])}) for row in rows]
    except (ValueError, TypeError, KeyError) as error:
        raise OtherPlan(f"{file.path} is not a file of finished workloads: {error}") from error
    return {each.workload: each for each in made}, file


@dataclass(frozen=True, slots=True)
class _Workloads:
    """The job of a run: a part is a workload."""

    release: Release
    plan: Plan
    mode: Mode

    @contextmanager
    def opened(self) -> Iterator[Callable[[Workload, Control], PeerWorkload | None]]:
        """Return the function that crashes one workload everywhere.

        It returns None if it was stopped.
        """
        with (
            choose_tracker("auto") as tracker,
            Process(self.release) as process,
            scratch_directory("tornpage-peer-images-", below=memory_directory()) as work,
        ):
            stores = BothStores(process, Path(work) / "store", self.mode)
            yield lambda workload, control: self._carry_out(workload, control, stores, tracker)

    def _carry_out(
        self, workload: Workload, control: Control, stores: BothStores, tracker: DirtyTracker
    ) -> PeerWorkload | None:
        made, settings = PeerWorkload(workload), self.plan.settings
        judges: list[_BothJudges] = []

        def judging() -> _BothJudges:
            judges.append(_BothJudges(stores))
            return judges[-1]

        states = WorkloadStates(workload, settings, self.plan.bound, tracker, judging=judging)
        broken: Counter[str] = Counter()
        for state in states.everywhere():
            if control.is_over() or control.is_stopped():
                return None
            if state.broken is not None and state.kind == "verb":
                made.own = str(state.broken)
                break
            made.states += 1
            control.tell(made.states, " ".join(workload))
            told = judges[-2].told
            made.peer_states += bool(told)
            broken.update(str(number) for number in told)
            for number, sentence in told.items():
                made.first.setdefault(str(number), (Case(settings, state.done).token(), sentence))
            if state.broken is not None:
                made.own = str(state.broken)
                break
        made.images, made.certified = sum(each.images for each in judges), states.certified
        made.peer_broken = dict(broken)
        return made


class _BothJudges:
    """The judge of the images of one operation by both stores.

    `told` has the sentence of each number that the peer broke in the last image.
    """

    def __init__(self, stores: BothStores) -> None:
        self.told: dict[int, str] = {}
        self.images = 0
        self._stores = stores
        self._ours = CachingJudge()
        self._known: dict[tuple[bytes, int], dict[int, str]] = {}

    def __call__(
        self,
        trial: Lockstep,
        image: bytes,
        disk: Callable[[], FailingDisk],
        legal: LegalLogs,
        versions: LegalVersions,
    ) -> Outcome:
        """Judge our store, and the peer unless it has opened the image before.

        Raises GuaranteeBroken.
        """
        files = disk()
        content = compose(disk_state(files.base, files.journal, len(files.journal), disk="kill"), {})
        floor, settings = min(key[0] for key in legal), trial.settings
        place = image_hash(content), floor
        known = self._known.get(place)
        if known is not None:
            self.told = known
            return self._ours(trial, image, disk, legal, versions)
        expected = expected_of(trial, trial.spans[-1].after, floor)
        asked = self._stores.ask(content, settings, expected)
        try:
            return self._ours(trial, image, disk, legal, versions)
        finally:
            self.images += 1
            rulings, _ = self._stores.rulings(asked, expected)
            self.told = {each.contract: each.sentence for each in reversed(rulings) if each.verdict == "broken"}
            self._known[place] = self.told
