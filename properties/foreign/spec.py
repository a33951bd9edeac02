"""Parse the address of a store under test: a command, or a module or file with a callable.

The forms are `cmd:COMMAND --dir {dir}`, `module:callable` and `path/to/file.py:callable`. The callable receives a
directory (a Path) and opens or recovers the store there. Literal keyword arguments for it may follow in parentheses:
`path/to/file.py:callable(sync='full')`. The command is run without a shell; `{dir}` in it stands for that directory.
"""

import ast
import importlib
import importlib.util
import inspect
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

from tornpage.properties.foreign.protocol import Target, TargetUnusable

__all__ = ["BadSpec", "CommandSpec", "PythonSpec", "Spec", "read_spec", "without_arguments"]

_MOVED = {
    f"{folder}.{name}": f"tornpage.properties.foreign.{name}"
    for folder in ("properties.targets", "properties.explore.foreign", "properties.foreign")
    for name in ("memory", "own")
}
"""Built-in stores by the module names in old tokens and case files."""

COMMAND_PREFIX = "cmd:"
_FORMS = "cmd:./mystore --dir {dir}, mymodule:open_store or path/to/file.py:open_store"
_NAME = re.compile(r"[A-Za-z_][\w.]*")
_CALL = re.compile(r"(.+:[A-Za-z_][\w.]*)(\(.*\))", re.DOTALL)


class BadSpec(TargetUnusable):
    """Raise this if a target cannot be found or loaded."""


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """Hold a command that speaks JSON lines."""

    arguments: tuple[str, ...]

    def command(self, directory: Path) -> list[str]:
        """Return the command line for a store in a directory."""
        return [argument.replace("{dir}", str(directory)) for argument in self.arguments]


@dataclass(frozen=True, slots=True)
class PythonSpec:
    """Hold a callable that opens a store; it runs in a process forked off this one."""

    open_store: Callable[[Path], Target]


Spec = CommandSpec | PythonSpec


def read_spec(text: str, bug: str = "") -> Spec:
    """Parse a target, with a planted bug if its callable accepts one.

    A changed file is loaded again. Raises BadSpec.
    """
    place = without_arguments(text)[0].rpartition(":")[0]
    changed_ns = os.stat(place).st_mtime_ns if place.endswith(".py") and os.path.isfile(place) else 0
    return _read(text, bug, (os.getcwd(), changed_ns))


@lru_cache(maxsize=64)
def _read(text: str, bug: str, _: tuple[str, int]) -> Spec:
    if text.startswith(COMMAND_PREFIX):
        if bug:
            raise BadSpec(
                f"{text}: a bug can be planted only in tornpage's own store (properties.foreign.own:open_store)"
            )
        return _command(text)
    callable_text, call = without_arguments(text)
    given = _arguments(text, call) if call else {}
    place, colon, name = callable_text.rpartition(":")
    if not colon or not place or not _NAME.fullmatch(name):
        raise BadSpec(f"{text!r} is no target: give {_FORMS}")
    found: Any = _module(text, place)
    for part in name.split("."):
        if not hasattr(found, part):
            if isinstance(found, ModuleType) and getattr(found, "__file__", None) is None:
                raise BadSpec(f"{text}: {place} is a directory without Python code; give a file: path/to/file.py:name")
            raise BadSpec(f"{text}: {place} has no {name!r}")
        found = getattr(found, part)
    if not callable(found):
        raise BadSpec(f"{text}: {name} is {type(found).__name__}, and must be callable with a directory")
    if bug and "bug" not in inspect.signature(found).parameters:
        raise BadSpec(f"{text}: a bug can be planted only in tornpage's own store (properties.foreign.own:open_store)")
    _require_taken(text, found, given)
    if bug:
        given = {**given, "bug": bug}
    return PythonSpec(partial(found, **given) if given else found)


def without_arguments(text: str) -> tuple[str, str]:
    """Return a target without its arguments, and the arguments in their parentheses."""
    call = None if text.startswith(COMMAND_PREFIX) else _CALL.fullmatch(text)
    return (call[1], call[2]) if call else (text, "")


def _arguments(text: str, call: str) -> dict[str, Any]:
    """Return the keyword arguments of a call such as `(sync='full', pages=3)`. Raises BadSpec."""
    try:
        parsed = ast.parse(f"f{call}", mode="eval").body
        if not isinstance(parsed, ast.Call) or parsed.args or any(each.arg is None for each in parsed.keywords):
            raise ValueError("only name=value is allowed")
        return {str(each.arg): ast.literal_eval(each.value) for each in parsed.keywords}
    except (SyntaxError, ValueError) as error:
        raise BadSpec(f"{text}: the arguments {call} are not literals by name, as in (sync='full', pages=3)") from error


def _require_taken(text: str, found: Any, given: dict[str, Any]) -> None:
    """Check that a callable takes a directory and these arguments. Raises BadSpec."""
    if not given:
        return
    try:
        inspect.signature(found).bind("", **given)
    except TypeError as error:
        raise BadSpec(f"{text}: {error}") from error
    except ValueError:
        return  # a callable without a readable signature


def _command(text: str) -> CommandSpec:
    try:
        arguments = shlex.split(text.removeprefix(COMMAND_PREFIX))
    except ValueError as error:
        raise BadSpec(f"{text}: the command cannot be read: {error}") from error
    if not arguments:
        raise BadSpec(f"{text!r} has no command: give {_FORMS}")
    if not any("{dir}" in argument for argument in arguments):
        raise BadSpec(f"{text}: the command does not name the store's directory; write {{dir}} in its place")
    if shutil.which(arguments[0]) is None:
        reason = "is not executable: chmod +x" if os.path.exists(arguments[0]) else "does not exist"
        raise BadSpec(f"{text}: the command {arguments[0]} {reason}")
    return CommandSpec(tuple(arguments))


def _module(text: str, place: str) -> Any:
    """Import a file by its path, or a module by its name, also from the working directory.

    Both stay loaded. The working directory, and for a file its own directory, are searched last, so that nothing in
    them hides another module.
    """
    try:
        beside = str(Path(place).parent.resolve()) if place.endswith(".py") else os.getcwd()
        if beside not in sys.path:
            sys.path.append(beside)
        if place.endswith(".py"):
            return _file(text, Path(place))
        return importlib.import_module(_MOVED.get(place, place))
    except BadSpec:
        raise
    except ModuleNotFoundError as error:
        if error.name is not None and (place == error.name or place.startswith(f"{error.name}.")):
            raise BadSpec(f"{text}: there is no module {place!r} here; give its file: path/to/file.py:name") from error
        raise BadSpec(f"{text}: {place} cannot be imported: {error}") from error
    except Exception as error:
        raise BadSpec(f"{text}: {place} cannot be imported: {type(error).__name__}: {error}") from error


def _file(text: str, path: Path) -> Any:
    if not path.is_file():
        raise BadSpec(f"{text}: there is no file {path}")
    name = f"_target_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look up their module
    spec.loader.exec_module(module)
    return module
