"""Load a mutant in the place of the original module.

In a new process a finder loads the mutant at the import of its module. In a process that has imported the store, the
code of the changed function is exchanged. A change outside of functions, or of a function that ran during the import,
needs another import of the store.
"""

import gc
import importlib
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from inspect import CO_OPTIMIZED
from types import CodeType, FunctionType, ModuleType

from tornpage.properties.mutation.edits import REACHED
from tornpage.properties.mutation.mutants import Mutant, original_tree, tree_of

__all__ = [
    "LoadedMutant",
    "ModuleFinder",
    "StoreIsLoaded",
    "exchange_code",
    "forget_store",
    "load_beside",
    "load_mutant",
]

_ROOM = "tornpage.impl"
_KEPT = (
    "tornpage.model",
    "tornpage.properties.campaign.resume",
    "tornpage.properties.campaign.workers",
    "tornpage.properties.interrupts",
    "tornpage.properties.mutation",
)
"""The modules, and the packages of modules, that do not need another import with the store."""


class StoreIsLoaded(RuntimeError):
    """Raise this if a module of the store was imported before its mutant could be loaded."""


class ModuleFinder(MetaPathFinder):
    """Compile some modules of the store from other code.

    `code_of` returns the code of a module by its import name and path, or None for a module that stays as it is.
    `names` are set in each of these modules.
    """

    def __init__(self, code_of: Callable[[str, str], CodeType | None], names: dict[str, object]) -> None:
        self._code_of = code_of
        self._names = names

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the specification of a changed module, and None for all others."""
        if not fullname.startswith(f"{_ROOM}."):
            return None
        found = PathFinder.find_spec(fullname, path, target)
        if found is None or found.origin is None:
            return None
        code = self._code_of(fullname, found.origin)
        if code is None:
            return None
        loader = _Loader(fullname, found.origin, code, self._names)
        return importlib.util.spec_from_file_location(fullname, found.origin, loader=loader)


class _Loader(SourceFileLoader):
    """Run other code. The files of compiled modules are neither read nor written."""

    def __init__(self, fullname: str, path: str, code: CodeType, names: dict[str, object]) -> None:
        super().__init__(fullname, path)
        self._code = code
        self._names = names

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of the module."""
        return self._code

    def exec_module(self, module: ModuleType) -> None:
        """Run the module with the additional names."""
        vars(module).update(self._names)
        super().exec_module(module)


class LoadedMutant:
    """Note whether the changed statement of a mutant runs."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant
        self.is_reached = False

    def note(self) -> None:
        """Note that the changed statement runs."""
        self.is_reached = True

    def code_of(self, module: str, path: str) -> CodeType | None:
        """Return the code of the mutant's module, and None for all others."""
        if module != self.mutant.module:
            return None
        code = compile(tree_of(self.mutant), path, "exec", dont_inherit=True)
        assert isinstance(code, CodeType)
        return code


def load_mutant(mutant: Mutant) -> LoadedMutant:
    """Make every later import of the mutant's module load the mutant.

    Raises StoreIsLoaded and UnknownMutant.
    """
    loaded = sorted(name for name in sys.modules if name.startswith(f"{_ROOM}."))
    if loaded:
        raise StoreIsLoaded(f"{loaded[-1]} is imported already; load a mutant in a new process")
    placed = LoadedMutant(mutant)
    sys.meta_path.insert(0, ModuleFinder(placed.code_of, {REACHED: placed.note}))
    return placed


def load_beside(mutant: Mutant) -> ModuleFinder:
    """Make the next import of the mutant's module load the mutant beside the imported store.

    Return the finder, which the caller removes from `sys.meta_path`.
    """
    placed = LoadedMutant(mutant)
    finder = ModuleFinder(placed.code_of, {REACHED: placed.note})
    sys.meta_path.insert(0, finder)
    return finder


def forget_store() -> None:
    """Remove the store and every module that may have imported it from the imported modules.

    Their next import runs them again. Objects of the removed modules stay as they are.
    """
    for name in list(sys.modules):
        if name.startswith("tornpage.") and not any(name == kept or name.startswith(f"{kept}.") for kept in _KEPT):
            del sys.modules[name]


def exchange_code(mutant: Mutant, run_at_import: set[tuple[str, str, int]]) -> LoadedMutant | None:
    """Give the changed function of the imported module the code of the mutant.

    Return None if this is not possible: a change outside of functions, or of a function that is in `run_at_import`.
    Raises UnknownMutant.
    """
    module = sys.modules.get(mutant.module)
    if module is None or module.__file__ is None:
        return None
    placed, path = LoadedMutant(mutant), module.__file__
    original = compile(original_tree(mutant.module), path, "exec", dont_inherit=True)
    changed = placed.code_of(mutant.module, path)
    assert isinstance(original, CodeType)
    assert changed is not None
    pairs = _changed_functions(original, changed) or []
    if len(pairs) != 1:
        return None
    ((old, new),) = pairs
    key = (old.co_filename, old.co_qualname, old.co_firstlineno)
    functions = [each for each in gc.get_objects() if isinstance(each, FunctionType) and _key(each.__code__) == key]
    if key in run_at_import or not functions or old.co_freevars != new.co_freevars:
        return None
    setattr(module, REACHED, placed.note)
    for function in functions:
        function.__code__ = new
    return placed


def _key(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _changed_functions(old: CodeType, new: CodeType) -> list[tuple[CodeType, CodeType]] | None:
    """Return the outermost functions that differ.

    Return None if code outside of functions differs.
    """
    if old == new:
        return []
    if old.co_flags & CO_OPTIMIZED:
        return [(old, new)]
    inner_old, inner_new = ([each for each in code.co_consts if isinstance(each, CodeType)] for code in (old, new))
    plain = [[each for each in code.co_consts if not isinstance(each, CodeType)] for code in (old, new)]
    is_same = old.co_code == new.co_code and old.co_names == new.co_names and repr(plain[0]) == repr(plain[1])
    if not is_same or len(inner_old) != len(inner_new):
        return None
    found: list[tuple[CodeType, CodeType]] = []
    for pair in zip(inner_old, inner_new, strict=True):
        inside = _changed_functions(*pair)
        if inside is None:
            return None
        found += inside
    return found
