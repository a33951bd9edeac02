"""Test that damage at a drawn place is named exactly: code, file, position and offset.

The stores are those of RocketMQ.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.pipeline.handmade import copied
from tests.support.pipeline.plants import PLANTS, Place, plant
from tornpage.pipeline.audit.audit import StoreAudit, audit_store

STORES = ("01-plain-ascii", "03-rollover-blanks-retention", "06-index-files-collisions")


def damaged_places(audited: StoreAudit) -> set[Place]:
    return {
        (each.code, each.file, each.position, each.offset) for each in audited.findings if each.severity == "damage"
    }


@pytest.mark.parametrize("kind", PLANTS)
@settings(max_examples=4, deadline=None)
@given(store=st.sampled_from(STORES), data=st.data())
def test_planted_damage_is_named_exactly(kind: str, store: str, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        root = copied(store, Path(directory) / "store")
        wanted = plant(root, kind, lambda below: data.draw(st.integers(0, below - 1)))
        audited = audit_store(root)
        assert damaged_places(audited) == wanted
        assert audited.verdict == "broken"


@pytest.mark.deep
@pytest.mark.parametrize("kind", PLANTS)
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1 << 32), store=st.sampled_from(STORES))
def test_damage_planted_many_times_is_named_exactly(kind: str, seed: int, store: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        root = copied(store, Path(directory) / "store")
        wanted = plant(root, kind, random.Random(seed).randrange)
        assert damaged_places(audit_store(root)) == wanted
