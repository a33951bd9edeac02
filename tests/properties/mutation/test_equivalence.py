"""Test which mutants are proved equivalent."""

import ast

import pytest

from tornpage.properties.mutation.equivalence import _are_independent, proof_of
from tornpage.properties.mutation.mutants import all_mutants


@pytest.mark.parametrize(
    ("text", "is_new", "expected"),
    [
        ("self.checked_ms = 0\nself.room = Room()", True, True),
        ("self.checked_ms = 0\nself.room = Room()", False, False),  # another thread may look between them
        ("self._result = result\nself._state = FINISHED", False, False),
        ("size = len(topic) + _I16.size\ndata, ends = bytearray(), []", False, True),
        ("self.a = 0\nself.b = make(self)", True, False),  # the call may read the attribute
        ("self.a = 0\nself.b = self.other()", True, False),
        ("offset = proof.offset\nqueues.trust(proof.files)", False, False),
        ("count = len(items)\nfirst = items.pop()", False, False),
        ("one = first()\nother = second()", False, False),
        ("a = 1\nb = a", False, False),
        ("self.a = settings\nself.b = listen(settings.me)", True, True),  # a name stays the same object
        ("self.a = (settings, 1)\nself.b = listen(settings.me)", True, True),
        ("self.a = list(peers)\nself.b = listen(peers)", True, False),  # the call may change what is copied
        ("self.a = list(peers)\nself.b = len(peers)", True, True),
        ("self.a = deque()\nself.b = Guard()", True, True),
        ("self.a = me + 1\nself.b = other(me)", True, False),  # the call may change what is added
        ("self.a = count\nself.b = listen(count := 3)", True, False),
        ("self.a = self\nself.b = other(self)", True, False),
        ("a[0] = 1\nb = 2", False, False),
        ("a = 1\nb += 2", False, False),
    ],
)
def test_assignments_are_independent_only_if_nothing_can_see_their_order(
    text: str, is_new: bool, expected: bool
) -> None:
    first, second = ast.parse(text).body
    assert _are_independent(first, second, is_new=is_new) is expected
    assert _are_independent(second, first, is_new=is_new) is expected


@pytest.mark.slow
def test_only_swaps_have_proofs() -> None:
    proved = [each for each in all_mutants() if each.module.endswith("disk_watch") and proof_of(each)]
    assert {(each.scope, each.operator) for each in proved} == {("DiskWatch.__init__", "swapped statements")}
