"""Test the changes that each mutation operator makes."""

import ast
import textwrap

import pytest

from tornpage.properties.mutation.edits import REACHED, edits_of


def changes(source: str) -> list[tuple[str, str]]:
    """Return operator and changed source of each edit, without the marker."""
    text = textwrap.dedent(source)
    found = []
    for number, _ in enumerate(edits_of(ast.parse(text))):
        tree = ast.parse(text)
        edit = list(edits_of(tree))[number]
        edit.apply()
        changed = ast.unparse(ast.fix_missing_locations(tree))
        lines = [line for line in changed.splitlines() if line.strip() != f"{REACHED}()"]
        assert len(changed.splitlines()) == len(lines) + 1, "one marker"
        found.append((edit.operator, "\n".join(lines)))
    return found


def of(operator: str, source: str) -> list[str]:
    return [changed for name, changed in changes(source) if name == operator]


@pytest.mark.parametrize(
    ("operator", "source", "expected"),
    [
        ("comparison", "x = a < b", ["x = a <= b"]),
        ("comparison", "x = a < b == c", ["x = a <= b == c", "x = a < b != c"]),
        ("comparison", "x = a not in b", ["x = a in b"]),
        ("constant", "x = 7", ["x = 8"]),
        ("constant", "x = True", ["x = False"]),
        ("constant", "x = 'text'", []),
        ("arithmetic", "x = a + b * c", ["x = a - b * c", "x = a + (b + c)"]),
        ("arithmetic", "x = a + 'text'", []),
        ("and-or", "x = a and b and c", ["x = a or b or c"]),
        ("removed not", "x = not a", ["x = a"]),
        ("min-max", "x = min(a, b)", ["x = max(a, b)"]),
        ("slice", "x = a[b:c]", ["x = a[b + 1:c]", "x = a[b:c + 1]"]),
        ("swapped arguments", "x = f(a, b, c)", ["x = f(b, a, c)"]),
        ("swapped arguments", "x = f(a, a)", []),
        ("swapped arguments", "x = f(*a, b)", []),
        ("removed condition", "x = a if b else c", ["x = a"]),
        ("removed condition", "if a:\n    b = c", ["if True:\n    b = c"]),
        ("removed call", "f(a)", ["pass"]),
        ("removed sync", "file.fsync()", ["pass"]),
        ("removed assignment", "def f(a):\n    a.b = c", ["def f(a):\n    pass"]),
        ("removed assignment", "def f(a):\n    b = c", []),
        ("removed lock", "with self._lock:\n    x = y\n    z = x", ["x = y\nz = x"]),
        ("removed lock", "with self._lock, open(a) as b:\n    x = y", ["with open(a) as b:\n    x = y"]),
        ("removed lock", "with open(a):\n    x = y", []),
        ("swapped statements", "def f():\n    a()\n    b()", ["def f():\n    b()\n    a()"]),
        ("swapped statements", "def f():\n    a = g()\n    b(a)", []),
        ("swapped statements", "def __init__(self, a, b):\n    self.a = a\n    self.b = b", []),
        ("swapped in lock", "def f():\n    with lock:\n        a()\n        b()",
         ["def f():\n    with lock:\n        b()\n        a()"]),
        ("early return", "def f() -> None:\n    a()\n    b()", ["def f() -> None:\n    a()\n    return"]),
        ("early return", "def f() -> int:\n    a()\n    return b", []),
    ],
)  # fmt: skip
def test_operator_makes_its_changes(operator: str, source: str, expected: list[str]) -> None:
    assert of(operator, source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "import os",
        "'''Hold 7 pages.'''",
        "_LOG.info('size %d', 7 + a)",
        "__all__ = ['a', f(b, 7)]",
        "def __repr__(self) -> str:\n    return str(self.a + 7)",
        "if TYPE_CHECKING:\n    from a import b",
    ],
)
def test_what_has_no_behaviour_of_the_store_is_left_alone(source: str) -> None:
    assert changes(source) == []


def test_message_of_an_exception_is_left_alone() -> None:
    assert changes("raise ValueError(f'{a + 7} of {b}')") == []


def test_guard_of_a_match_is_changed() -> None:
    source = "match a:\n    case int() if a < b:\n        c()"
    assert ("comparison", "match a:\n    case int() if a <= b:\n        c()") in changes(source)
