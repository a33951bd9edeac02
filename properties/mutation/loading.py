"""Load a mutant in the place of the original module, before the store is imported."""

import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

from tornpage.properties.mutation.edits import REACHED
from tornpage.properties.mutation.mutants import Mutant, tree_of

__all__ = ["LoadedMutant", "StoreIsLoaded", "load_mutant"]

_ROOM = "tornpage.impl"


class StoreIsLoaded(RuntimeError):
    """Raise this if a module of the store was imported before its mutant could be loaded."""


class LoadedMutant(MetaPathFinder):
    """Find the changed module at its import, and note whether its changed statement runs."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant
        self.is_reached = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the specification of the changed module, and None for all others."""
        if fullname != self.mutant.module:
            return None
        found = PathFinder.find_spec(fullname, path, target)
        if found is None or found.origin is None:
            return None
        return importlib.util.spec_from_file_location(
            fullname, found.origin, loader=_Loader(fullname, found.origin, self)
        )

    def note(self) -> None:
        """Note that the changed statement runs."""
        self.is_reached = True


class _Loader(SourceFileLoader):
    """Compile the changed tree. The files of compiled modules are neither read nor written."""

    def __init__(self, fullname: str, path: str, loaded: LoadedMutant) -> None:
        super().__init__(fullname, path)
        self._loaded = loaded

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of the mutant."""
        code = compile(tree_of(self._loaded.mutant), self.path, "exec", dont_inherit=True)
        assert isinstance(code, CodeType)
        return code

    def exec_module(self, module: ModuleType) -> None:
        """Run the module with the function that notes its changed statement."""
        setattr(module, REACHED, self._loaded.note)
        super().exec_module(module)


def load_mutant(mutant: Mutant) -> LoadedMutant:
    """Make every later import of the mutant's module load the mutant.

    Raises StoreIsLoaded and UnknownMutant.
    """
    loaded = sorted(name for name in sys.modules if name == _ROOM or name.startswith(f"{_ROOM}."))
    if any(name != _ROOM for name in loaded):
        raise StoreIsLoaded(f"{loaded[-1]} is imported already; load a mutant in a new process")
    finder = LoadedMutant(mutant)
    sys.meta_path.insert(0, finder)
    return finder
