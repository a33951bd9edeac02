"""Damage stores at random and show them to all judges.

Damage concerns one or several parts of a store: the view of its process, the content of its disk, its past, or its
answers. `judge_everywhere` shows the damaged store to the judges of recorded disks, of directories, of killed
processes, of foreign stores and of interleavings, and returns their rulings. Damage is a function of a seed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path, PurePosixPath
from random import Random
from types import SimpleNamespace
from typing import Any

from tornpage.impl.parts import Parts
from tornpage.impl.service.runner import ThreadRunner
from tornpage.impl.store import MessageStore
from tornpage.model.operations import Clean, Flush, Operation, Pull, Put, Step
from tornpage.model.state import CommitLog
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.decode.judge import LogJudge
from tornpage.properties.decode.opening import InspectError
from tornpage.properties.decode.store import iter_items
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.disk.disk import Image
from tornpage.properties.disk.recording_files import RecordingFiles
from tornpage.properties.explore.crashes.violations import right_recovery
from tornpage.properties.explore.interleavings import judges as of_interleavings
from tornpage.properties.explore.interleavings.stage import Stage
from tornpage.properties.explore.kills.judge import JUDGES_OF_KILLS, evidence_of, judge_directory, legal_after
from tornpage.properties.foreign.judging import Expectation, judge_survivors
from tornpage.properties.foreign.shapes.messages import MessagePromises
from tornpage.properties.judge import judgement as of_images
from tornpage.properties.judge.evidence import Recovered
from tornpage.properties.judge.idempotence import Crashes, is_idempotent
from tornpage.properties.judge.image import AcknowledgedRecord, Truth, read_image, write_image
from tornpage.properties.judge.judges import JUDGES
from tornpage.properties.judge.linearizability.linearise import linearise
from tornpage.properties.judge.linearizability.specification import points_of, shared_at
from tornpage.properties.judge.rulings import Ruling, ruling_of
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.bit_maps import filters_of
from tornpage.properties.program.case import Settings
from tornpage.properties.program.hand_driven import HandDriven
from tornpage.properties.program.log_places import ROOT
from tornpage.properties.program.translation import store_config

__all__ = ["FILE_KINDS", "HOW", "Stores", "judge_everywhere"]

Files = Mapping[str, bytes]
_SMALL = Settings(file_bytes=1024, queue_units=2, index_entries=4)
_KEYED = Put(body_bytes=300, properties="KEYS\x01k")
_SETTLED = (Step(service="reput"), Flush(), Step(service="flush-queues", after_ms=60_000))

# ---- damage to files -------------------------------------------------------------------------------------------------

FILE_KINDS = (
    "commitlog/",
    "consumequeue/",
    "consumequeue_ext/",
    "index/",
    "checkpoint",
    "config/durableFloor",
    "config/derivedFloor",
    "config/deletedTopics",
    "config/consumerOffset.json",
    "config/delayOffset.json",
    "config/",
    "",
)
"""Prefixes of the file names of each kind; the last kind is every file."""


def _truncate(rng: Random, files: dict[str, bytes], name: str) -> None:
    files[name] = files[name][: rng.randrange(len(files[name]) + 1)]


def _zero(rng: Random, files: dict[str, bytes], name: str) -> None:
    data = bytearray(files[name])
    start = rng.randrange(len(data) + 1)
    size = min(rng.choice((1, 8, 20, 512, 1 << 20)), len(data) - start)
    data[start : start + size] = bytes(size)
    files[name] = bytes(data)


def _flip(rng: Random, files: dict[str, bytes], name: str) -> None:
    data = bytearray(files[name])
    for _ in range(rng.choice((1, 1, 8)) if data else 0):
        data[rng.randrange(len(data)) // rng.choice((1, 64))] ^= 1 << rng.randrange(8)
    files[name] = bytes(data)


def _remove(rng: Random, files: dict[str, bytes], name: str) -> None:
    del files[name]


def _extend(rng: Random, files: dict[str, bytes], name: str) -> None:
    files[name] += rng.choice((b"\0", b"\xff", b"{", rng.randbytes(8))) * rng.choice((1, 3, 20, 600))


def _swap(rng: Random, files: dict[str, bytes], name: str) -> None:
    other = rng.choice(sorted(files))
    files[name], files[other] = files[other], files[name]


def _empty(rng: Random, files: dict[str, bytes], name: str) -> None:
    files[name] = b""


def _rename(rng: Random, files: dict[str, bytes], name: str) -> None:
    directory, _, last = name.rpartition("/")
    new = rng.choice((f"{last}.bak", "stray", f"{rng.randrange(1 << 40):020d}", last[:-1], f"9{last[1:]}", f"x/{last}"))
    files[f"{directory}/{new or 'x'}"] = files.pop(name)


def _scribble(rng: Random, files: dict[str, bytes], name: str) -> None:
    files[name] = rng.choice((rng.randbytes(len(files[name])), b"[]", b'{"offsetTable":{"a":[1]}}', b"\xff" * 24))


def _put_directory(rng: Random, files: dict[str, bytes], name: str) -> None:
    del files[name]
    files[f"{name}/"] = b""


HOW: tuple[Callable[[Random, dict[str, bytes], str], None], ...] = (
    _truncate, _zero, _flip, _remove, _extend, _swap, _empty, _rename, _scribble, _put_directory,
)  # fmt: skip
"""The ways to damage a file; a name that ends with a slash is a directory in place of a file."""


def damaged(rng: Random, files: Files) -> dict[str, bytes]:
    """Return files of which one or several are damaged.

    Names that end with a slash are directories.
    """
    changed = dict(files)
    for _ in range(rng.choice((1, 1, 2, 4))):
        beginning = f"{ROOT}/{rng.choice(FILE_KINDS)}"
        names = sorted(name for name in changed if name.startswith(beginning) and not name.endswith("/"))
        if names:
            rng.choice(HOW)(rng, changed, rng.choice(names))
    return changed


def _image(files: Files, directories: frozenset[str]) -> Image:
    """Return an image of these files, with the directories that their names need."""
    content = {name: data for name, data in files.items() if not name.endswith("/")}
    needed = {str(parent) for name in files for parent in PurePosixPath(name).parents}
    made = {name.rstrip("/") for name in files if name.endswith("/")}
    found = frozenset((directories | needed | made) - content.keys())
    return Image(found, {name: data for name, data in content.items() if str(PurePosixPath(name).parent) in found})


# ---- damage to answers -----------------------------------------------------------------------------------------------

_NUMBERS = ("min_offset", "flushed_offset", "committed_offset", "max_offset", "dispatch_behind_bytes")
_VERBS = (
    "delay_offsets", "earliest_message_time", "get_message", "max_offset_in_queue", "messages", "min_offset_in_queue",
    "offset_in_queue_by_time", "query_message", "query_offset", "queues",
)  # fmt: skip


class LyingStore:
    """A store with wrong or failing answers to some questions, and the real answers to others."""

    def __init__(self, store: object, rng: Random) -> None:
        self._store = store
        self._lies: dict[str, Any] = {}
        for _ in range(rng.choice((0, 1, 1, 3))):
            if rng.random() < 0.5:
                self._lies[rng.choice(_NUMBERS)] = rng.choice((-1, 0, 1, 400, 1024, 4096, 1 << 40, 1 << 63))
            else:
                self._lies[rng.choice(_VERBS)] = _failing(rng.choice((OSError, KeyError, ValueError, RuntimeError)))

    def __getattr__(self, name: str) -> Any:
        return self._lies[name] if name in self._lies else getattr(self._store, name)


def _failing(kind: type[Exception]) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> Any:
        raise kind("the store is broken")

    return fail


# ---- stores ----------------------------------------------------------------------------------------------------------


@dataclass
class Stores:
    """The right stores before the damage.

    The images of killed stores lie below `directory`.
    """

    recovered: Sequence[Recovered]
    stage: Stage
    tracker: DirtyTracker
    directory: Path

    @classmethod
    def make(cls, tracker: DirtyTracker, directory: Path) -> "Stores":
        """Make three stores: a full one, one whose first messages have gone, and an interleaving."""
        recovered: list[Recovered] = []
        programs: tuple[tuple[Operation, ...], ...] = (
            (*[_KEYED] * 5, *_SETTLED, Clean(percent=88), *[_KEYED] * 4, *_SETTLED),
            (_KEYED, Flush()),
        )
        for operations in programs:
            run = lockstep_of(_SMALL, tracker=tracker)
            for operation in operations:
                run.run(operation)
            legal = run.recovery.legal_between(run.log, run.log, kill=True)
            disk = run.pair.new_disk(run.pair.durable(run.files))
            recovered.append(run.recovery.judged(disk, legal, run.recovery.versions_now()))
        stage = Stage(replace(_SMALL, index=False), tracker=tracker, parts=Parts())
        for step in (Put(), Put(body_bytes=600), Flush(), Put(), Flush(), Step(service="reput"), Pull()):
            stage.do(0, step)
        return cls((right_recovery(tracker), *recovered), stage, tracker, directory)


def judge_everywhere(stores: Stores, seed: int, *, images: bool = True) -> Iterator[tuple[str, Ruling]]:
    """Yield the ruling of every judge on the store that `seed` damages, with the judge's name.

    Without `images` it is not judged as an image, which recovers it many times.
    """
    rng = Random(f"damage {seed}")
    right = rng.choice(stores.recovered)
    yield from _evidence_damaged(right, rng)
    files = damaged(rng, right.durable.files)
    image = _image(files, right.durable.directories)
    yield from _recovered_from(image, right, stores.tracker)
    yield from _killed(image, right, rng, stores.directory / f"killed{seed}")
    if images:
        yield from _as_an_image(image, right, rng, stores.directory / f"image{seed}")
    yield from _foreign(rng)
    yield from _interleaved(stores.stage, rng)


# ---- recorded disks --------------------------------------------------------------------------------------------------


def _evidence_damaged(right: Recovered, rng: Random) -> Iterator[tuple[str, Ruling]]:
    """Show judges a recovered store of which one or several parts are changed."""
    live = {path: right.files.peek(path, 0, 1 << 40) for path in right.files.paths()}
    base, durable = right.files.base, right.durable
    parts = rng.choice(("live", "base", "durable", "live base", "live base durable", "answers"))
    if "live" in parts:
        live = dict(_image(damaged(rng, live), frozenset()).files)
    if "base" in parts:
        base = _image(damaged(rng, base.files), base.directories)
    if "durable" in parts:
        durable = _image(damaged(rng, durable.files), durable.directories)
    files: Any = SimpleNamespace(
        paths=lambda: sorted(live), peek=lambda path, at, size: live[path][at : at + size], base=base
    )
    store: Any = LyingStore(right.store, rng)
    try:
        found = replace(right, store=store, files=files, durable=durable, was_corrupted=rng.random() < 0.3)
    except GuaranteeBroken:  # the store does not answer the question that distinguishes the logs
        return
    for judge in JUDGES:
        yield judge.__name__, judge(found)


def _opened(image: Image, settings: Settings, tracker: DirtyTracker) -> tuple[MessageStore, RecordingFiles] | None:
    """Open the store on a disk with an image; return None where the open fails."""
    files, clock = RecordingFiles(image, tracker=tracker), lambda: 1_700_000_000_000
    parts = Parts({ThreadRunner: lambda service: HandDriven(service, clock)})
    try:
        config = store_config(settings)
        store = MessageStore.open(
            ROOT, config, files=files, clock=clock, parts=parts, filter_bit_map=filters_of(settings)
        )
    except Exception:
        return None
    return store, files


def _recovered_from(image: Image, right: Recovered, tracker: DirtyTracker) -> Iterator[tuple[str, Ruling]]:
    """Let the store recover a damaged disk, and show judges the result."""
    opened = _opened(image, right.settings, tracker)
    if opened is None:
        return
    store, files = opened
    found = replace(right, store=store, files=files, durable=image)
    for judge in JUDGES:
        yield judge.__name__, judge(found)


# ---- directories -----------------------------------------------------------------------------------------------------


def _killed(image: Image, right: Recovered, rng: Random, path: Path) -> Iterator[tuple[str, Ruling]]:
    """Show a damaged directory to the judges of killed processes.

    They also see its content beside a right store.
    """
    log = right.legal[right.key]
    legal = {log.end_offset: log.changed(min_offset=0), 0: CommitLog()}
    below = len(ROOT) + 1
    content = {name[below:]: data for name, data in image.files.items()}
    store: Any = LyingStore(right.store, rng)
    try:
        found = evidence_of(store, content, legal, settings=right.settings)
    except GuaranteeBroken as broken:
        yield "kills: records", ruling_of(broken)
    else:
        for judge in JUDGES_OF_KILLS:
            yield f"kills: {judge.__name__}", judge(found)
    write_image(image, path)
    survived = judge_directory(str(path), legal, settings=right.settings, components=Parts(), now_ms=1_700_000_000_000)
    yield "judge_directory", survived.ruling
    ends = (*legal, rng.randrange(1 << 40))
    progress: Any = SimpleNamespace(returned=1, begun=1, end_of=lambda verb: rng.choice(ends))
    start_ms = 1_700_000_000_000
    yield "legal_after", legal_after(legal, progress, (Put(),), settings=right.settings, start_ms=start_ms).ruling


def _as_an_image(image: Image, right: Recovered, rng: Random, path: Path) -> Iterator[tuple[str, Ruling]]:
    """Judge a damaged directory as an image.

    It is judged again with files that change after the recovery.
    """
    write_image(image, path)
    try:
        seen = read_image(path)
    except InspectError:  # no image
        return
    audit = LogJudge(seen.view)
    for item in iter_items(seen.view, on_file=audit.see_file_end):
        audit.see(item)
    audit.finish()

    truth = rng.choice((None, _told(right)))
    try:
        for ruling in of_images.judge_image(seen, truth=truth, samples=1, losses=0, seed=rng.randrange(9)).rulings:
            yield f"image: {ruling.name}", ruling
        with of_images.evidence_of(seen, truth=truth) as evidence:
            evidence.__dict__["content"] = _below(damaged(rng, _above(evidence.content)))
            evidence.__dict__["durable"] = _image(
                damaged(rng, dict(evidence.durable.files)), evidence.durable.directories
            )
            if evidence.did_open:
                lying: Any = LyingStore(evidence.store, rng)
                evidence.opened = replace(evidence.opened, store=lying)
            for ruling in of_images.rulings_on(evidence):
                yield f"image: {ruling.name}", ruling
            ruling = is_idempotent(evidence, Crashes(), samples=1, losses=0)
            yield f"image: {ruling.name}", ruling
    except InspectError:  # the settings that it shows fit no files
        return


def _above(content: Files) -> dict[str, bytes]:
    return {f"{ROOT}/{name}": data for name, data in content.items()}


def _below(files: Files) -> dict[str, bytes]:
    return {name[len(ROOT) + 1 :]: data for name, data in files.items() if not name.endswith("/")}


def _told(right: Recovered) -> Truth:
    """Return the acknowledgements of the producer of a store."""
    records = right.legal[right.key].retained
    told = [(record, right.ledger.stored(record)) for record in records]
    return Truth(
        {
            record.offset: AcknowledgedRecord(
                record.offset, record.size_bytes, sha256(stored).hexdigest(), flushed=True
            )
            for record, stored in told
        },
        power_loss=True,
        has_copies=False,
    )


# ---- foreign stores and interleavings --------------------------------------------------------------------------------


def _foreign(rng: Random) -> Iterator[tuple[str, Ruling]]:
    """Show a foreign store with legal content that answers some requests wrongly."""
    flushed = ("flush", "close")
    promised = MessagePromises(
        queues=rng.random() < 0.7, offsets=rng.random() < 0.7, index=rng.random() < 0.5, durable=flushed, kill=flushed
    )
    reference = promised.reference()
    offsets: dict[int, int] = {}
    for number in range(rng.randrange(6)):
        offset, _ = reference.put("T", number % 2, bytes([number]) * 5, ["k"])
        offsets[offset] = offset
        if rng.random() < 0.3:
            reference.flush()
    legal = reference.survivors("power")
    held = promised.reference()
    records = reference.log.records
    for record in records[: rng.randrange(len(records) + 1)]:
        held.put("T", record.message.queue_id, record.message.body or b"", ["k"])

    def answering(verb: Callable[..., Any]) -> Callable[..., Any]:
        def answer(*asked: Any) -> Any:
            kind = rng.randrange(12)
            if kind == 0:
                raise GuaranteeBroken(8, "the store answers with an error")
            right = verb(*asked)
            lies: Sequence[Any] = ([], [b"x"], [b"x", b"x"]) if isinstance(right, list) else (None, b"", b"other")
            return rng.choice(lies) if kind == 1 else right

        return answer

    asked: Any = SimpleNamespace(
        promises=promised,
        get=answering(held.get),
        read=answering(held.read),
        find=answering(held.find),
        ahead=lambda do, requests: None,
    )
    known = Expectation(records, min(legal), offsets, frozenset({1 << 20}), frozenset({("T", 0), ("T", 1)}))
    yield "foreign", judge_survivors(asked, known, legal, reference).ruling


def _interleaved(stage: Stage, rng: Random) -> Iterator[tuple[str, Ruling]]:
    """Show the judges of interleavings a stage with changed files and a lying store."""
    live = {path: stage.files.peek(path, 0, 1 << 40) for path in stage.files.paths()}
    changed = damaged(rng, live)
    base = _image(changed, frozenset())

    def peek(path: str, at: int, size: int) -> bytes:
        if path not in base.files:
            raise FileNotFoundError(2, "no such file", path)
        return base.files[path][at : at + size]

    files: Any = SimpleNamespace(
        base=stage.files.base, journal=stage.files.journal, peek=peek, paths=lambda: sorted(base.files)
    )
    store: Any = LyingStore(stage.store, rng)
    damaged_stage: Any = SimpleNamespace(
        files=files, layout=stage.layout, store=store, promises=stage.promises, history=stage.history,
        services=stage.services, is_closed=stage.is_closed,
    )  # fmt: skip
    yield "dispatch_has_caught_up", of_interleavings.dispatch_has_caught_up(damaged_stage)
    yield "promises_are_kept", of_interleavings.promises_are_kept(damaged_stage)
    moments = points_of(stage.history.calls, stage.layout, clock_moves=True)
    found = linearise(moments, shared_at(stage.wall_ms))
    yield "an_order_explains", of_interleavings.an_order_explains(stage.history.calls, moments, found)
    store.check = store.flush = store.close = lambda: None
    yield "ends_as_explained", of_interleavings.ends_as_explained(damaged_stage, found.state.state)
    yield (
        "escaped",
        of_interleavings.escaped(rng.choice((OSError(), ValueError("released"), GuaranteeBroken(1, "broken")))),
    )
