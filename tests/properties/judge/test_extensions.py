"""Test that the judge of queue extensions refuses a recovered store with one mistake."""

import struct
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tornpage.model.operations import Crash, Flush, HarmDerived, Operation, Put
from tornpage.properties.campaign.coverage import OF_SOME_STORES, Tally, enabled_judges
from tornpage.properties.campaign.replay import replay
from tornpage.properties.contract import GuaranteeBroken
from tornpage.properties.disk.dirty import DirtyTracker
from tornpage.properties.explore.crashes import scheduling
from tornpage.properties.judge.evidence import Recovered, is_derived
from tornpage.properties.judge.queues import bit_maps_of, extensions_are_right
from tornpage.properties.planted.lockstep import lockstep_of
from tornpage.properties.program.bit_maps import BIT_MAP_BYTES_MAX, bit_map_of
from tornpage.properties.program.case import Case, Settings
from tornpage.properties.program.log_places import ROOT

QUEUE = f"consumequeue/T/0/{0:020d}"
EXTENSION = f"consumequeue_ext/T/0/{0:020d}"
SETTINGS = Settings(queue_units=4, queue_ext=True, bit_maps=True)
TAGS = ("TagA", "", "TagB", "TagZZZ", "TagA", "TagA")
Content = dict[str, bytes]


def recovered(tracker: DirtyTracker, settings: Settings, operations: Sequence[Operation]) -> Recovered:
    trial = lockstep_of(settings, tracker=tracker)
    for operation in operations:
        trial.run(operation)
    return trial.recovery.judged_at_rest()


def puts_of(tags: Sequence[str]) -> list[Operation]:
    return [Put(properties=f"TAGS\x01{tag}" if tag else "") for tag in tags]


@pytest.fixture
def found(tracker: DirtyTracker) -> Recovered:
    return recovered(tracker, SETTINGS, [*puts_of(TAGS), Flush(), Crash(kill=True)])


def content_of(found: Recovered) -> Content:
    """The process view of queues and extension, by name below the store."""
    paths = [path for path in found.files.paths() if is_derived(path)]
    return {path.removeprefix(f"{ROOT}/"): found.files.peek(path, 0, 1 << 20) for path in paths}


def judge(found: Recovered, content: Content, *, knows_bit_maps: bool = True) -> None:
    told_by = bit_maps_of(found.settings) if knows_bit_maps else None
    extensions_are_right(content, found.derived, found.store.max_offset, settings=found.settings, bit_map_of=told_by)


def addresses_in(content: Content) -> list[int]:
    """Positions in the extension, by number of the message."""
    return [code + 2**63 for _, _, code in struct.iter_unpack(">qiq", content[QUEUE])]


def test_the_right_extension_passes_with_units_of_several_sizes(found: Recovered) -> None:
    content = content_of(found)
    assert len({len(bit_map_of(b"T", {"TAGS": tag} if tag else {})) for tag in TAGS}) > 2
    assert addresses_in(content) == sorted(addresses_in(content))
    judge(found, content)


@pytest.mark.parametrize("at", [2, 9, 10, 17])
@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_another_tags_code_or_store_time_is_noticed(found: Recovered, number: int, at: int) -> None:
    content = content_of(found)
    changed = bytearray(content[EXTENSION])
    changed[addresses_in(content)[number] + at] ^= 1
    for knows_bit_maps in (True, False):
        with pytest.raises(GuaranteeBroken, match="another tags code or store time"):
            judge(found, {**content, EXTENSION: bytes(changed)}, knows_bit_maps=knows_bit_maps)


def test_another_bit_map_is_noticed_by_who_can_tell(found: Recovered) -> None:
    content = content_of(found)
    changed = bytearray(content[EXTENSION])
    changed[20] ^= 1
    with pytest.raises(GuaranteeBroken, match="another bit map"):
        judge(found, {**content, EXTENSION: bytes(changed)})
    judge(found, {**content, EXTENSION: bytes(changed)}, knows_bit_maps=False)


def test_a_unit_that_is_not_there_is_noticed(found: Recovered) -> None:
    content = content_of(found)
    for wrong in (bytes(len(content[EXTENSION])), content[EXTENSION][:30]):
        with pytest.raises(GuaranteeBroken, match="is not there"):
            judge(found, {**content, EXTENSION: wrong})


def test_the_unit_of_an_earlier_message_is_noticed(found: Recovered) -> None:
    """The address of message 0 in the unit of message 1."""
    content = content_of(found)
    units = content[QUEUE]
    with pytest.raises(GuaranteeBroken, match="is not past"):
        judge(found, {**content, QUEUE: units[:32] + units[12:20] + units[40:]})


def test_a_tags_code_in_place_of_an_address_is_no_harm(found: Recovered) -> None:
    content = content_of(found)
    units = content[QUEUE]
    judge(found, {**content, QUEUE: units[:12] + (2598919).to_bytes(8, "big") + units[20:]})


def test_without_filters_bit_maps_are_empty(tracker: DirtyTracker) -> None:
    plain = recovered(tracker, replace(SETTINGS, bit_maps=False), [*puts_of(TAGS), Flush()])
    content = content_of(plain)
    assert addresses_in(content) == [0, 20, 40, 60]
    judge(plain, content)
    with pytest.raises(GuaranteeBroken, match="another bit map"):
        judge(replace(plain, settings=SETTINGS), content)


def test_bit_maps_have_all_lengths() -> None:
    maps = [bit_map_of(b"T", {"TAGS": str(number)}) for number in range(100)]
    assert {len(each) for each in maps} == set(range(BIT_MAP_BYTES_MAX + 1))
    assert bit_map_of(b"T", {"TAGS": "", "OTHER": "x"}) == bit_map_of(b"T", {})
    assert bit_map_of(b"T", {}) != bit_map_of(b"U", {})


@pytest.mark.parametrize("harm", ["lost", "zeroed", "torn", "stale", "misdirected", "resized"])
def test_whatever_befalls_the_extension_it_says_what_the_log_says(tracker: DirtyTracker, harm: str) -> None:
    for amount in (0, 17, 21, 45):
        harmed = HarmDerived(file="extension", harm=harm, amount=amount)  # type: ignore[arg-type]
        program = (*puts_of(TAGS), Put(queue_id=1, properties="TAGS\x01TagA"), harmed, *puts_of(TAGS[:2]), Crash())
        assert replay(Case(SETTINGS, tuple(program)), tracker=tracker) is None


def test_a_store_without_an_extension_does_not_arm_the_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    (name,) = OF_SOME_STORES
    assert name not in enabled_judges(Settings())
    assert name in enabled_judges(SETTINGS)
    monkeypatch.setattr(scheduling, "required", lambda disk: (name,))
    tally = Tally()
    tally.effective[name] += 1  # it has refused its violation
    assert scheduling.silent(tally, "posix-strict") == []
    tally.count_judges(enabled_judges(SETTINGS), ())
    assert scheduling.silent(tally, "posix-strict") == [name]
    tally.count_judges(enabled_judges(SETTINGS), (name,))
    assert scheduling.silent(tally, "posix-strict") == []
