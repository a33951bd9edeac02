"""Damage by field: every kind of place, one change at a time, the same for equal seeds."""

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from tests.support.impl.damaged_logs import filled
from tornpage.properties.damage.by_field import CHANGES, FIELDS, FILE_CHANGES, DamageSource, damaged

SLOTS = 16


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    directory: Path = tmp_path_factory.mktemp("store")
    filled(directory, 400, queues=3)
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_equal_seeds_draw_equal_damages(content: dict[str, bytes]) -> None:
    one, other = DamageSource(content, index_slots=SLOTS), DamageSource(content, index_slots=SLOTS)
    assert [one.draw(Random(n)) for n in range(50)] == [other.draw(Random(n)) for n in range(50)]


def test_a_damage_changes_what_it_says_and_nothing_else(content: dict[str, bytes]) -> None:
    source = DamageSource(content, index_slots=SLOTS)
    for number in range(400):
        damage = source.draw(Random(number))
        after = damaged(content, damage)
        changed = {name for name in content.keys() | after.keys() if content.get(name) != after.get(name)}
        assert changed, damage
        assert changed <= {damage.file, damage.other}, damage
        if damage.kind != "file":
            before, now = content[damage.file], after[damage.file]
            places = [at for at in range(len(before)) if before[at] != now[at]]
            assert len(before) == len(now)
            assert damage.at <= min(places) <= max(places) < damage.at + len(damage.before), damage


def test_every_field_and_every_change_comes(content: dict[str, bytes]) -> None:
    source = DamageSource(content, index_slots=SLOTS)
    fields, changes = Counter[tuple[str, str]](), Counter[str]()
    for number in range(6000):
        damage = source.draw(Random(number))
        fields[damage.kind, damage.field] += 1
        changes[damage.change] += 1
    assert changes.keys() == CHANGES.keys() | FILE_CHANGES.keys()
    for kind in source.kinds:
        missing = {field for field in FIELDS[kind] if not fields[kind, field]}
        assert missing <= {"properties"}, kind  # these records have none
