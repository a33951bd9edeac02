"""Test the imports between rooms, so that model, store and judges cannot share a mistake.

| room | may import of this project |
|---|---|
| model | nothing, and nothing of others beyond the standard library |
| impl, reports | nothing |
| sim | impl.config.policy, impl.consumer.allocation, and names: impl.config.broker_settings, impl.consumer.queues |
| properties | model, impl |
| properties.decode | nothing |
| a room of `ORDERS`, inside | its packages and modules of lower ranks |
| peers | properties, impl, model |
| pipeline | peers, properties, sim, model |
| bench, tornpage | every room |

Each room may import itself, and none imports tests. Imports inside functions and under TYPE_CHECKING count, and so do
`import_module` and `__import__`. Names built at run time are not seen; they are refused where a room may import nothing
of this project. Programs in strings are not seen either.

The folder of a room is at the top level, and its import name is `tornpage.` and the name of the folder: tornpage/ has a
link to each. `import model` would work in a checkout, as a second copy of each module, so bare names are refused
everywhere.
"""

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest


@dataclass(frozen=True, slots=True)
class Rule:
    """Allowed imports of the modules below one name: themselves, and those below `ours`."""

    ours: frozenset[str] = frozenset()
    standard_library_only: bool = False
    literal_names_only: bool = False


ROOMS = frozenset({"bench", "impl", "model", "peers", "pipeline", "properties", "reports", "sim"})
"""The folders at the top level that are packages of tornpage."""
OURS = ROOMS | {"tests", "tornpage"}
RULES = {
    "tornpage.model": Rule(standard_library_only=True, literal_names_only=True),
    "tornpage.impl": Rule(),
    "tornpage.sim": Rule(
        ours=frozenset(
            {
                "tornpage.impl.config.broker_settings",
                "tornpage.impl.config.policy",
                "tornpage.impl.consumer.allocation",
                "tornpage.impl.consumer.queues",
            }
        )
    ),
    "tornpage.properties": Rule(ours=frozenset({"tornpage.impl", "tornpage.model"})),
    "tornpage.properties.decode": Rule(literal_names_only=True),
    "tornpage.peers": Rule(ours=frozenset({"tornpage.impl", "tornpage.model", "tornpage.properties"})),
    "tornpage.pipeline": Rule(
        ours=frozenset({"tornpage.model", "tornpage.peers", "tornpage.properties", "tornpage.sim"})
    ),
    "tornpage.reports": Rule(),
    "tornpage.bench": Rule(ours=frozenset({"tornpage"})),
    "tornpage": Rule(),
}
ORDERS = {
    "impl": (
        ("errors", "guards", "parts"),
        ("message",),
        ("config",),
        ("io",),
        ("service", "statistics"),
        ("log",),
        ("index", "queue"),
        ("dispatch",),
        ("recovery",),
        ("durability",),
        ("background", "put", "read"),
        ("groups", "retention"),
        ("delay",),
        ("assembly",),
        ("store",),
        ("consumer", "kernels", "replication"),
        ("raft",),
        ("serving",),
    ),
    "properties": (
        ("bug_ids", "contract", "decode", "interrupts", "promises"),
        ("findings",),
        ("damage", "scheduler", "scratch"),
        ("program",),
        ("disk",),
        ("inspect",),
        ("judge",),
        ("lockstep",),
        ("explain", "planted"),
        ("cluster", "consumers", "foreign"),
        ("raft",),
        ("campaign",),
        ("explore",),
        ("score",),
        ("mutation",),
    ),
    "sim": (
        ("distributions", "events"),
        ("streams", "workload"),
        ("consumers", "device"),
        ("log", "pair"),
        ("kernels", "raft", "scenario"),
        ("actors", "broker_config", "fast_arrays", "results"),
        ("run",),
        ("fast",),
        ("sweep",),
        ("experiments",),
        ("choosing",),
    ),
    "peers": (
        ("errors",),
        ("board", "rocketmq"),
        ("consumers", "golden_figures", "judging", "matrix", "naming", "our_histories", "verdicts"),
        ("own_histories",),
        ("both_stores",),
        ("exhausting", "exploring", "shrinking"),
    ),
    "pipeline": (
        ("spark", "tables"),
        ("readers", "rows"),
        ("audit", "campaign", "sweep"),
        ("repairing",),
    ),
    "reports": (
        ("activation_names", "errors", "palette", "promises", "text"),
        ("kinds", "shape"),
        ("results",),
        ("plots",),
        ("pages",),
    ),
    "bench": (
        ("compared", "figures", "sizes"),
        ("calibration", "campaign", "crashes", "lab", "put", "replication", "sim", "targets"),
        ("audit", "experiments", "group_commit", "recover", "validation"),
        ("consumers", "java", "link", "raft", "read", "spark"),
        ("suite",),
    ),
}
"""The packages and modules of a room by rank: each may import itself and those of lower ranks.

Those of one rank import none of each other. Packages below `properties.explore` are explorers, which import none of
each other. impl/README.md describes each package of impl.
"""
RANKS = {room: {name: rank for rank, names in enumerate(order) for name in names} for room, order in ORDERS.items()}
UNKNOWN = "?"
"""Stands for a module whose name is built at run time."""


def violations(path: str, source: str) -> list[str]:
    """Return one line per forbidden import in `source`, the text of the file `path`.

    `path` is relative to the root.
    """
    parts = module_parts(path)
    is_package = parts[-1] == "__init__"
    module = ".".join(parts[:-1] if is_package else parts)
    owner = max((name for name in RULES if is_below(module, name)), key=len)
    found = []
    for line, targets in imports(ast.parse(source, path), package=module if is_package else module.rpartition(".")[0]):
        forbidden = [target for target in targets if not is_allowed(target, owner)]
        found += [f"{path}:{line}: {owner} must not import {target}" for target in forbidden]
    if is_package and parts[:2] == ("tornpage", "impl"):
        found += [f"{path}:{line}: must not import anything" for line, _ in imports(ast.parse(source), package=module)]
    return found


def module_parts(path: str) -> tuple[str, ...]:
    """Return the parts of the import name of a file, `__init__` included."""
    parts = PurePosixPath(path).with_suffix("").parts
    return ("tornpage", *parts) if parts[0] in ROOMS else parts


def bare_names(path: str, source: str) -> list[str]:
    """Return one line per import in `source` of a room without `tornpage.` before its name."""
    return [
        f"{path}:{line}: import tornpage.{target}, and not {target}"
        for line, targets in imports(ast.parse(source, path), package="")
        for target in targets
        if target.partition(".")[0] in ROOMS
    ]


def out_of_order(path: str, source: str) -> list[str]:
    """Return one line per import in `source` that its package, of a room of `ORDERS`, forbids."""
    parts = module_parts(path)
    module, room = ".".join(parts), ".".join(parts[:2])
    found = []
    for line, targets in imports(ast.parse(source, path), package=module.rpartition(".")[0]):
        ours = [target for target in targets if is_below(target, room) and target != room]
        found += [f"{path}:{line}: {module} must not import {target}" for target in ours if not keeps(module, target)]
    return found


def keeps(module: str, target: str) -> bool:
    """Return whether an import of `target` by `module`, both of one room, keeps the order.

    The order is that of packages.
    """
    ranks, importing, imported = RANKS[module.split(".")[1]], module.split(".")[2:4], target.split(".")[2:4]
    if importing[0] == imported[0]:
        return importing[0] != "explore" or importing == imported
    return ranks[imported[0]] < ranks[importing[0]]


def is_allowed(target: str, owner: str) -> bool:
    """Return whether a module below `owner` may import `target`."""
    rule = RULES[owner]
    root = target.partition(".")[0]
    if target == UNKNOWN:
        return not rule.literal_names_only
    if root in OURS:
        return any(is_below(target, name) for name in (owner, *rule.ours))
    return root in sys.stdlib_module_names or not rule.standard_library_only


def is_below(module: str, name: str) -> bool:
    """Return whether `module` is `name` or lies in it."""
    return module == name or module.startswith(f"{name}.")


def imports(tree: ast.Module, package: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, absolute names) per import in `tree`, a module of `package`.

    Relative names are resolved.
    """
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield node.lineno, [alias.name for alias in names]
            case ast.ImportFrom(module=module, names=names, level=level):
                base = absolute("." * level + (module or ""), package)
                # `from impl.config import policy` may load impl.config.policy; the longest name is judged
                yield node.lineno, [f"{base}.{alias.name}".lstrip(".") for alias in names]
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__") | ast.Attribute(attr="import_module"), args=args
            ):
                yield node.lineno, [called(args, node.keywords, package)]


def called(args: list[ast.expr], keywords: list[ast.keyword], package: str) -> str:
    """Return the module that `import_module` or `__import__` loads, UNKNOWN if not literal."""
    named = {keyword.arg: keyword.value for keyword in keywords}
    name = args[0] if args else named.get("name")
    anchor = args[1] if len(args) > 1 else named.get("package")
    match name, anchor:
        case ast.Constant(value=str(text)), ast.Constant(value=str(base)):
            return absolute(text, base)
        case ast.Constant(value=str(text)), _:
            return absolute(text, package)
    return UNKNOWN


def absolute(name: str, package: str) -> str:
    """Return the absolute form of `name` in `package`; outside the room it starts at the root."""
    stripped = name.lstrip(".")
    level = len(name) - len(stripped)
    if not level:
        return stripped
    kept = package.split(".")[: max(0, package.count(".") + 2 - level)]
    return ".".join(filter(None, [*kept, stripped]))


FORBIDDEN = [
    ("model/a.py", "import tornpage.impl"),
    ("model/a.py", "import numpy as np"),
    ("model/a.py", "import os, tornpage.impl.message.codec"),
    ("model/a.py", "from tornpage.impl import codec"),
    ("model/a.py", "from tornpage.impl.message.codec import *"),
    ("model/a.py", "def f():\n    import tornpage.impl.message.codec"),
    (
        "model/a.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from tornpage.impl.message.codec import Record",
    ),
    ("model/a.py", "import importlib\nimportlib.import_module('tornpage.impl.message.codec')"),
    ("model/a.py", "import importlib\nimportlib.import_module(name='tornpage.impl.message.codec')"),
    ("model/a.py", "from importlib import import_module\nimport_module('.codec', 'tornpage.impl')"),
    ("model/a.py", "from importlib import import_module\nimport_module('.codec', package='tornpage.impl')"),
    ("model/a.py", "from importlib import import_module\nimport_module('im' + 'pl')"),
    ("model/a.py", "__import__('tornpage.impl')"),
    ("model/b/a.py", "from ... import impl"),
    ("model/__init__.py", "from ..impl import codec"),
    ("model/a.py", "from tests.conftest import repository"),
    ("impl/a.py", "from tornpage.model import commitlog"),
    ("impl/a.py", "import tornpage"),
    ("impl/a.py", "from .. import model"),
    ("impl/__init__.py", "import os"),
    ("impl/__init__.py", "from tornpage.impl.store import Store"),
    ("impl/message/__init__.py", "from tornpage.impl.message.codec import decode"),
    ("impl/__init__.py", "def __getattr__(name):\n    import importlib\n    return name"),
    ("sim/a.py", "import tornpage.impl"),
    ("sim/a.py", "from tornpage.impl import codec"),
    ("sim/a.py", "from tornpage.impl import policy, codec"),
    ("sim/a.py", "import tornpage.impl.config.policy_of_another"),
    ("properties/a.py", "import tornpage.pipeline.audit.audit"),
    ("properties/a.py", "from tornpage import guard"),
    ("properties/decode.py", "from tornpage.impl import codec"),
    ("properties/decode.py", "import tornpage.model"),
    ("properties/decode.py", "from tornpage.properties import invariants"),
    ("properties/decode/walk.py", "from tornpage.properties.invariants import check"),
    ("properties/decode/walk.py", "from ..invariants import check"),
    ("pipeline/a.py", "import tornpage.impl.message.codec"),
    ("peers/a.py", "import tornpage.pipeline.audit"),
    ("peers/a.py", "from tornpage.cli import document"),
    ("properties/a.py", "from tornpage.peers import judging"),
    ("reports/a.py", "import tornpage.model"),
    ("bench/a.py", "import tests"),
    ("tornpage/a.py", "from tests import conftest"),
]
ALLOWED = [
    ("model/a.py", "from __future__ import annotations\nimport dataclasses, collections.abc"),
    ("model/a.py", "from tornpage.model.values import Record\nfrom . import values\nfrom .values import Record"),
    ("model/__init__.py", "from .values import Record\nfrom .b.c import d"),
    ("impl/a.py", "import numpy\nimport tornpage.impl.message.codec\nfrom .codec import decode"),
    ("impl/a.py", "import importlib\nimportlib.import_module(kernel)"),
    ("impl/__init__.py", '"""The store."""'),
    (
        "sim/a.py",
        "import tornpage.impl.config.policy, simpy\nfrom tornpage.impl.config import policy\n"
        "from tornpage.impl.config.policy import FlushPolicy",
    ),
    (
        "properties/a.py",
        "import hypothesis\nfrom tornpage.impl import codec\nfrom tornpage.model import *\n"
        "from tornpage.properties import decode",
    ),
    ("properties/decode.py", "import struct\nimport zlib"),
    (
        "properties/decode/walk.py",
        "from tornpage.properties.decode import fields\nfrom . import fields\nfrom .fields import F",
    ),
    ("properties/decoders.py", "import tornpage.impl"),
    (
        "pipeline/a.py",
        "from tornpage.properties import decode\nimport tornpage.sim, tornpage.model\n"
        "from pyspark.sql import DataFrame",
    ),
    ("peers/a.py", "from tornpage.properties import decode\nimport tornpage.impl, tornpage.model"),
    ("pipeline/a.py", "from tornpage.peers import judging"),
    ("bench/a.py", "import tornpage.impl, tornpage.model, tornpage.properties, tornpage"),
    ("tornpage/a.py", "import importlib\nimport tornpage.bench\nimportlib.import_module(name)"),
]


@pytest.mark.parametrize(("path", "source"), FORBIDDEN)
def test_rules_catch_a_forbidden_import(path: str, source: str) -> None:
    assert violations(path, source)


@pytest.mark.parametrize(("path", "source"), ALLOWED)
def test_rules_let_an_allowed_import_pass(path: str, source: str) -> None:
    assert violations(path, source) == []


def test_violation_names_the_line_the_room_and_the_module() -> None:
    source = "import os\nfrom tornpage.impl.message import codec\n"
    assert violations("model/a.py", source) == [
        "model/a.py:2: tornpage.model must not import tornpage.impl.message.codec"
    ]


def test_rooms_keep_the_rules(repository: Path) -> None:
    files = python_files(repository, *ROOMS, "tornpage")
    assert len({path.relative_to(repository).parts[0] for path in files}) == len(ROOMS) + 1
    found = [
        violation
        for path in files
        for violation in violations(path.relative_to(repository).as_posix(), path.read_text(encoding="utf-8"))
    ]
    assert found == []


def python_files(repository: Path, *folders: str) -> list[Path]:
    """Return the modules below some folders of the repository, except those reached by a link."""
    found = []
    for folder in folders:
        for directory, _, names in os.walk(repository / folder):
            found += [Path(directory, name) for name in names if name.endswith(".py")]
    return sorted(found)


@pytest.mark.slow
def test_rooms_have_no_second_import_name(repository: Path) -> None:
    files = python_files(repository, *ROOMS, "tornpage", "tests", "examples", "docs")
    found = [
        line
        for path in files
        for line in bare_names(path.relative_to(repository).as_posix(), path.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    "source", ["import model", "from impl.codec import f", "from sim import run", "__import__('reports.page')"]
)
def test_bare_name_of_a_room_is_found(source: str) -> None:
    assert bare_names("tests/a.py", source)


def test_each_room_is_linked_into_the_package(repository: Path) -> None:
    links = {path.name: path.readlink() for path in (repository / "tornpage").iterdir() if path.is_symlink()}
    assert {name: link for name, link in links.items() if name in ROOMS} == {room: Path("..", room) for room in ROOMS}


OUT_OF_ORDER = [
    ("properties/program/case.py", "from tornpage.properties.disk import journal"),
    ("properties/decode/walk.py", "from tornpage.properties.contract import Ruling"),
    ("properties/judge/log.py", "from tornpage.properties.lockstep.lockstep import Lockstep"),
    (
        "properties/judge/log.py",
        "if TYPE_CHECKING:\n    import tornpage.properties.lockstep.memory",
    ),
    ("properties/lockstep/lockstep.py", "from tornpage.properties import planted"),
    ("properties/explore/crashes/explore.py", "def late():\n    from tornpage.properties.explore.kills import run"),
    ("properties/planted/log.py", "from ..campaign import replay"),
    ("impl/queue/units.py", "from tornpage.impl.dispatch.derived import Derived"),
    ("impl/queue/units.py", "from tornpage.impl.index import index_file"),
    ("impl/io/files.py", "def late():\n    import tornpage.impl.log.scan"),
    ("impl/errors.py", "from tornpage.impl.message.codec import check_record"),
    ("impl/put/put_path.py", "from ..store import MessageStore"),
    ("sim/log/log.py", "from tornpage.sim.actors.flushers import flusher"),
    ("pipeline/rows/columns.py", "from tornpage.pipeline.audit import stores"),
    ("reports/results/tables.py", "from tornpage.reports.plots.svg import Drawing"),
    ("peers/rocketmq/process.py", "from tornpage.peers.judging import Asked"),
    ("bench/put.py", "from tornpage.bench import suite"),
]
IN_ORDER = [
    (
        "properties/disk/journal.py",
        "import tornpage.impl\nfrom tornpage.properties.program import case\nfrom . import state",
    ),
    (
        "properties/explore/crashes/explore.py",
        "from tornpage.properties import campaign, contract",
    ),
    (
        "properties/score/board.py",
        "from tornpage.properties.explore.crashes import explore\nimport tornpage.properties.decode.walk",
    ),
    (
        "impl/queue/units.py",
        "from tornpage.impl.queue import queue_files\nfrom tornpage.impl.message.dispatching import UNIT_BYTES",
    ),
    ("impl/store.py", "from tornpage.impl.errors import BadDirectory\nfrom . import parts"),
]


@pytest.mark.parametrize(("path", "source"), OUT_OF_ORDER)
def test_order_catches_an_import_of_a_higher_package(path: str, source: str) -> None:
    assert out_of_order(path, source)


@pytest.mark.parametrize(("path", "source"), IN_ORDER)
def test_order_lets_an_import_of_a_lower_package_pass(path: str, source: str) -> None:
    assert out_of_order(path, source) == []


@pytest.mark.parametrize("room", ORDERS)
def test_packages_of_a_room_keep_their_order(repository: Path, room: str) -> None:
    files = sorted({*(repository / room).rglob("*.py")} - {repository / room / "__init__.py"})
    assert {path.relative_to(repository).with_suffix("").parts[1] for path in files} == RANKS[room].keys()
    found = [
        line
        for path in files
        for line in out_of_order(path.relative_to(repository).as_posix(), path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_the_readme_of_impl_states_the_order(repository: Path) -> None:
    rows = re.findall(r"^\| (\d+) \| (.+?) \|", (repository / "impl" / "README.md").read_text(), re.MULTILINE)
    stated = {name: int(rank) for rank, names in rows for name in re.findall(r"`(\w+)/?`", names)}
    assert stated == RANKS["impl"]


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_no_package_has_more_than_thirty_modules(repository: Path, room: str) -> None:
    packages = [path.parent for path in (repository / room).glob("**/__init__.py")]
    assert packages
    assert [package.name for package in packages if len(list(package.glob("*.py"))) > 30] == []


def test_rooms_on_disk_and_packaging_name_the_same_packages(repository: Path) -> None:
    with (repository / "pyproject.toml").open("rb") as file:
        include = tomllib.load(file)["tool"]["setuptools"]["packages"]["find"]["include"]
    assert include == ["tornpage", "tornpage.*"]
    packages = {path.parent.name for path in repository.glob("*/__init__.py")} - {"tests"}
    assert packages == ROOMS | {"tornpage"}


def test_decoder_loads_no_test_tool_and_no_other_room() -> None:
    """Spark workers and auditors import the decoder alone.

    It must stay light and independent.
    """
    program = (
        "import sys, tornpage.properties.decode; "
        "print(sorted({'hypothesis', 'tornpage.impl', 'tornpage.model', 'numpy', 'pytest'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")
