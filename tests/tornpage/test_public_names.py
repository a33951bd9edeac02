"""Test the public names: lazy at run time, known to a type checker, and complete."""

import ast
import builtins
import importlib
import inspect
import re
import subprocess
import sys
import textwrap
import typing
from collections.abc import Iterator
from enum import EnumType
from pathlib import Path
from types import ModuleType

import mypy.api
import pytest

import tornpage
import tornpage.consumer
import tornpage.testing

ROOMS = ("impl", "model", "properties", "tornpage")
MADE_BY_THE_STORE = {"MessageStore", "ReadBuffer", "RecordBuffer"}
"""Classes that users do not construct.

The parameters of their constructors are not public.
"""
DESCRIBED_ELSEWHERE = {"CommitLog", "Files"}
"""Types whose members are not walked.

They are a state of the model (model/README.md) and the interface to the disk (impl/io/files.py).
"""
RAISED = re.compile(r"\b[Rr]aises? ([^.]*(?:\.\w[^.]*)*)")
CAMEL_CASE = re.compile(r"\b(?:[A-Z]+[a-z0-9]+){2,}\b")


def sources() -> tuple[ModuleType, ...]:
    """Return the modules that export public names."""
    return tornpage, tornpage.consumer, tornpage.testing


def exported() -> dict[str, object]:
    """Return every public name with its value."""
    return {name: getattr(module, name) for module in sources() for name in module.__all__}


# ---- at run time -----------------------------------------------------------------------------------------------------


def test_import_loads_no_part_of_the_store() -> None:
    program = "import sys, tornpage; print(sorted({n.partition('.')[0] for n in sys.modules} & set(%r)))"
    heavy = ("bench", "click", "hypothesis", "impl", "model", "numba", "numpy", "pipeline", "properties", "sim")
    done = subprocess.run([sys.executable, "-P", "-c", program % (heavy,)], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_lists_of_names_agree() -> None:
    """The imports for type checkers, the modules for run time, and `__all__`."""
    tree = ast.parse(Path(str(tornpage.__file__)).read_text("utf-8"))
    typed = {
        alias.name: node.module
        for statement in tree.body
        if isinstance(statement, ast.If)
        for node in statement.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed == tornpage._HOMES
    assert sorted({*typed, "__version__"}) == sorted(tornpage.__all__) == dir(tornpage)


@pytest.mark.parametrize("name", [name for name in tornpage.__all__ if name != "__version__"])
def test_name_is_the_one_of_its_module(name: str) -> None:
    home = importlib.import_module(tornpage._HOMES[name])
    assert name in home.__all__
    assert getattr(tornpage, name) is getattr(home, name)


def test_misspelt_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'tornpage' has no attribute 'MesageStore'"):
        _ = tornpage.MesageStore  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["ReferenceStore", "assert_store_holds"])
def test_moved_name_works_with_a_notice(name: str) -> None:
    with pytest.warns(DeprecationWarning, match="import it from tornpage.testing"):
        moved = getattr(tornpage, name)
    assert moved is getattr(tornpage.testing, name)


# ---- for a type checker ----------------------------------------------------------------------------------------------


def checked(program: str, tmp_path: Path, repository: Path) -> list[str]:
    """Return the output of mypy for a program, a line each, without the path."""
    path = tmp_path / "user.py"
    path.write_text(program, encoding="utf-8")
    cache = repository / ".mypy_cache"
    output, errors, _ = mypy.api.run(
        [
            *("--strict", "--no-error-summary", "--hide-error-context", "--follow-imports=silent", "--no-color-output"),
            *("--config-file", "", "--cache-dir", str(cache / "of-tests"), "--python-version", "3.11", str(path)),
        ]
    )
    assert errors == ""
    return [line.rpartition("user.py:")[2] for line in output.splitlines()]  # of an earlier run, if cached


def test_type_checker_knows_every_name_and_refuses_misspelt_ones(
    tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No name is Any.

    A misspelt import, method, parameter or setting is an error in its line.
    """
    monkeypatch.setenv("MYPYPATH", str(repository))
    lines = ["import tornpage", "import tornpage.consumer", "import tornpage.testing"]
    names = [(module.__name__, name) for module in sources() for name in module.__all__]
    lines += [f"reveal_type({module}.{name})" for module, name in names]
    wrong = [
        "from tornpage import MesageStore",
        "tornpage.MessageStore.open('s').putt(tornpage.Message('T', b''))",
        "tornpage.MessageStore.open('s', arrving=[])",
        "tornpage.MessageStoreConfig(flush_disk_typ=tornpage.FlushDiskType.SYNC_FLUSH)",
        "tornpage.MessageStore.open('s').pull_async('g', 'T', 0, 0, hold_ms=1)",
        "tornpage.MessageStore.open('s').commit_log_offset_in_queue('T', 0, 0) + 1",
    ]
    said = checked("\n".join([*lines, *wrong]) + "\n", tmp_path, repository)
    revealed = dict(line.split(': note: Revealed type is "') for line in said if ": note: Revealed" in line)
    assert len(revealed) == len(names)
    for number, (module, name) in enumerate(names, start=4):
        assert not re.fullmatch(r'Any"|object"|.*\bUnknown\b.*', revealed[str(number)]), f"{module}.{name}"
    first = len(lines) + 1
    refused = {int(line.partition(":")[0]) for line in said if ": error: " in line}
    assert refused == set(range(first, first + len(wrong)))


# ---- names in public signatures and docstrings ---------------------------------------------------------------------


def walk(value: object, found: dict[str, str], texts: dict[str, str]) -> None:
    """Record in `found` each type that a public class or function names.

    `texts` gets its docstrings.
    """
    classes = value.__mro__ if isinstance(value, type) else (value,)
    for each in classes:
        if not (inspect.isclass(each) or inspect.isfunction(each)) or each.__module__.partition(".")[0] not in ROOMS:
            continue
        (node,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
        texts[each.__qualname__] = inspect.getdoc(each) or ""
        texts[each.__module__] = sys.modules[each.__module__].__doc__ or ""
        if each.__name__ in DESCRIBED_ELSEWHERE:
            continue
        members = node.body if isinstance(node, ast.ClassDef) else [node]
        for member in members:
            match member:
                case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation) if not name.startswith("_"):
                    note_names(annotation, each.__module__, f"{each.__name__}.{name}", found)
                case ast.FunctionDef(name=name) if is_public(name, each.__name__):
                    where = f"{each.__name__}.{name}"
                    texts[where] = ast.get_docstring(member) or ""
                    every = [*member.args.posonlyargs, *member.args.args, *member.args.kwonlyargs]
                    for one in [member.returns, *(argument.annotation for argument in every)]:
                        if one is not None:
                            note_names(one, each.__module__, where, found)


def is_public(method: str, owner: str) -> bool:
    """Return whether users call a method."""
    return not method.startswith("_") or (method == "__init__" and owner not in MADE_BY_THE_STORE)


def note_names(annotation: ast.expr, module: str, where: str, found: dict[str, str]) -> None:
    """Record each class or alias of this project that an annotation names."""
    for node in ast.walk(annotation):
        name = node.id if isinstance(node, ast.Name) else node.value if isinstance(node, ast.Constant) else None
        value = vars(sys.modules[module]).get(name) if isinstance(name, str) else None
        if not isinstance(name, str) or value is None or isinstance(value, ModuleType | typing.TypeVar):
            continue
        is_foreign_class = isinstance(value, type) and value.__module__.partition(".")[0] not in ROOMS
        if not is_foreign_class and not hasattr(typing, name):
            found.setdefault(name, where)


def named_by_public_signatures() -> tuple[dict[str, str], dict[str, str]]:
    """Return the types that public signatures name, each with a place.

    Every public docstring comes with its place too.
    """
    found: dict[str, str] = {}
    texts: dict[str, str] = {}
    for value in exported().values():
        walk(value, found, texts)
    return found, texts


def raised(texts: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each error that a docstring says is raised, and its place."""
    for where, text in texts.items():
        for sentence in RAISED.findall(text):
            yield from ((name, where) for name in CAMEL_CASE.findall(sentence))


def test_every_type_of_a_public_signature_is_exported() -> None:
    found, _ = named_by_public_signatures()
    assert {"StatisticsSnapshot", "Finding", "DiskFall", "WarmUp", "PutLockKind", "Clock", "Host"} <= found.keys()
    missing = {name: where for name, where in found.items() if name not in exported()}
    assert missing == {}


def test_every_error_that_a_docstring_names_is_exported() -> None:
    _, texts = named_by_public_signatures()
    named = dict(raised(texts))
    assert {"StoreInUse", "WrongFileSize", "NoSpace", "BadDirectory", "BadConfig", "StoreClosed"} <= named.keys()
    missing = {name: where for name, where in named.items() if name not in exported() and not hasattr(builtins, name)}
    assert missing == {}


def test_every_error_and_enum_of_the_store_is_exported() -> None:
    from tornpage.impl import errors
    from tornpage.impl.config import policy

    enums = {name for name in policy.__all__ if isinstance(getattr(policy, name), EnumType)}
    assert enums == {"BrokerRole", "FlushDiskType", "PutLockKind", "WarmUp"}
    assert {*errors.__all__} | enums <= exported().keys()


# ---- units -----------------------------------------------------------------------------------------------------------


def test_every_time_setting_states_its_unit() -> None:
    """A setting without a unit in its name begins its docstring with ms or hours."""
    config = importlib.import_module("tornpage.impl.config.message_store_config")
    (settings,) = (
        node
        for node in ast.parse(inspect.getsource(config)).body
        if isinstance(node, ast.ClassDef) and node.name == "MessageStoreConfig"
    )
    fields = list(zip(settings.body, [*settings.body[1:], None], strict=True))
    described = {
        node.target.id: ast.literal_eval(following.value)
        for node, following in fields
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and isinstance(following, ast.Expr)
    }
    assert described.keys() == set(config.MessageStoreConfig.__dataclass_fields__)
    times = [name for name in described if re.search(r"interval|time_?out|time_mills|reserved_time|delete_when", name)]
    assert len(times) >= 18
    assert [name for name in times if not re.match(r"`\w+`, (ms|hours) ", described[name])] == []
