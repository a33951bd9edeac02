"""Compare the crash model with recorded trees of ext4, xfs and btrfs, without a mount.

`tests/data/file_systems/` has 39 workloads of each file system with what power losses left. They were chosen from
several hundred, so that each rule is shown that these show, and each kind of operation. Some of them were drawn before
the workloads had fallocate, and three have syncs of some bytes.
"""

import json
import random
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tornpage.properties.disk.certificate import certify
from tornpage.properties.disk.images import compose, disk_state, in_flight_writes
from tornpage.properties.disk.legality import objections
from tornpage.properties.disk.rules import DISK_RULES, DiskRules
from tornpage.properties.disk.sampling import draw
from tornpage.properties.explore.real_faults.file_systems.comparing import HALF_A_RENAME, PLANTED, Comparison
from tornpage.properties.explore.real_faults.file_systems.file_system import Kind
from tornpage.properties.explore.real_faults.file_systems.history import START, history_of
from tornpage.properties.explore.real_faults.file_systems.outcomes import Outcome, outcome_of
from tornpage.properties.explore.real_faults.file_systems.seen import NEVER_SEEN
from tornpage.properties.explore.real_faults.file_systems.workload import KINDS as OPERATIONS
from tornpage.properties.explore.real_faults.file_systems.workload import draw_workload
from tornpage.properties.program.case import Disk

KINDS: tuple[Kind, ...] = ("ext4", "xfs", "btrfs")
DATA = Path(__file__).parents[4] / "data" / "file_systems"


@cache
def recorded(kind: Kind) -> list[Outcome]:
    document = json.loads((DATA / f"{kind}.json").read_text())
    assert document["filesystem"] == kind
    return [outcome_of(item) for item in document["outcomes"]]


@cache
def compared(kind: Kind, disk: Disk, rules: DiskRules | None = None) -> Comparison:
    comparison = Comparison(kind, disk, rules)
    for outcome in recorded(kind):
        for mark, found in outcome.found:
            comparison.add(outcome.seed, outcome.operations, mark, found)
    return comparison


@pytest.mark.parametrize("kind", KINDS)
def test_each_tree_is_legal_and_each_rule_is_seen_or_known_not_to_be(kind: Kind) -> None:
    comparison = compared(kind, kind)
    assert comparison.states > 200
    assert len(comparison.distinct) > 50
    assert [tree.sentence() for tree in comparison.illegal] == []
    assert comparison.refused == comparison.unreadable == []
    assert set(comparison.never_seen) == NEVER_SEEN[kind]
    assert comparison.too_weak == []


@pytest.mark.parametrize("kind", KINDS)
def test_each_tree_is_legal_on_the_disk_that_all_have_in_common(kind: Kind) -> None:
    comparison = compared(kind, "journal")
    assert [tree.sentence() for tree in comparison.illegal] == []
    assert comparison.refused == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_recorded_workloads_have_each_operation(kind: Kind) -> None:
    operations = [operation for outcome in recorded(kind) for operation in outcome.operations]
    assert {operation.kind for operation in operations} == set(OPERATIONS)
    moves = [o for o in operations if o.kind == "rename" and o.path.rpartition("/")[0] != o.target.rpartition("/")[0]]
    assert len(moves) > 10


def test_btrfs_leaves_moved_files_at_both_names() -> None:
    whole_moves = replace(DISK_RULES["btrfs"], splits_moves=False)
    assert compared("btrfs", "btrfs").seen["moved file at both names"]
    assert compared("btrfs", "btrfs", whole_moves).illegal


def test_half_a_rename_of_btrfs_is_counted_and_not_legal() -> None:
    assert compared("btrfs", "btrfs").departures[HALF_A_RENAME] == 1
    assert not compared("ext4", "ext4").departures


@pytest.mark.parametrize("kind", ["xfs", "btrfs"])
def test_a_planted_rule_that_is_too_strong_makes_trees_illegal(kind: Kind) -> None:
    assert compared(kind, kind, PLANTED[kind]).illegal


def test_a_planted_rule_that_forgets_a_sync_is_found_out() -> None:
    """The rule loses the name of a new file after its sync. The name is kept each time."""
    forgetful = compared("ext4", "ext4", PLANTED["ext4"])
    assert not forgetful.illegal
    assert forgetful.forgets_a_sync
    assert "creation lost after a sync of the file" in forgetful.too_weak
    assert not compared("ext4", "ext4").forgets_a_sync


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_a_rule_that_forgets_the_sync_of_a_resized_file_is_found_out(kind: Kind) -> None:
    """It loses earlier names.

    They are kept each time on ext4 and xfs. Some of them are lost on btrfs.
    """
    rule = "earlier name lost after a sync of a resized file"
    forgetful = compared(kind, kind, replace(DISK_RULES[kind], resize_commits=False))
    assert not forgetful.illegal
    assert forgetful.forgets_a_sync
    assert rule in forgetful.too_weak
    assert compared("btrfs", "btrfs").seen[rule]


def test_a_rule_that_names_of_resized_files_commit_everything_is_too_strong_for_btrfs() -> None:
    assert compared("btrfs", "btrfs", replace(DISK_RULES["btrfs"], commits="before", resize_commits=True)).illegal


@pytest.mark.parametrize(("kind", "of_another"), [("ext4", "xfs"), ("btrfs", "ext4"), ("ext4", "btrfs")])
def test_no_file_system_follows_the_rules_of_another(kind: Kind, of_another: Kind) -> None:
    assert compared(kind, of_another, DISK_RULES[of_another]).illegal


@pytest.mark.parametrize("disk", DISK_RULES)
def test_drawn_power_losses_of_workloads_are_legal(disk: Disk) -> None:
    """The maker and the checker agree on workloads with renames and each kind of sync."""
    alone = 0
    for seed in range(25):
        rng = random.Random(f"{disk} {seed}")
        journal = history_of(draw_workload(rng, length=14)).journal
        for _ in range(4):
            position = rng.randrange(len(journal) + 1)
            state = disk_state(START, journal, position, disk=disk)
            choices = draw(in_flight_writes(state), rng)
            certificate = certify(START, journal, position, choices, disk=disk)
            assert objections(START, journal, compose(state, choices), certificate) == []
            alone += any(write.kind == "name" for write in in_flight_writes(state))
    assert bool(alone) == (disk in ("posix-strict", "journal", "btrfs"))
