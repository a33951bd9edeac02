"""Find what each step of a task may read and write, from the bytecode that runs.

An access is a pair of bit sets of locations. A location is the name of an attribute, of a variable of an enclosing
function, of a lock, or `ITEMS` for the content of any container, file or mapping. Attributes of different objects with
one name share a location. So two steps without a conflict never touch the same state, and two steps with a conflict may
touch different state: the relation errs on the safe side.
"""

import dis
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from functools import lru_cache
from mmap import mmap
from types import CodeType
from typing import Final, NamedTuple

__all__ = [
    "ANYTHING",
    "ITEMS",
    "NOTHING",
    "Access",
    "access_of_code",
    "access_of_line",
    "access_of_opcode",
    "location_bit",
    "prepare",
    "shared_offsets",
]

ITEMS: Final = "[items]"
"""The content of containers, files and mappings."""


class Access(NamedTuple):
    """Hold the locations that a step may read and write, each as bits of an integer."""

    reads: int
    writes: int

    def conflicts(self, other: "Access") -> bool:
        """Return whether the two steps may touch one location, and one of them writes it."""
        return bool(self.writes & (other.reads | other.writes) or other.writes & self.reads)

    def joined(self, other: "Access") -> "Access":
        """Return the accesses of both."""
        return Access(self.reads | other.reads, self.writes | other.writes)


NOTHING: Final = Access(0, 0)
ANYTHING: Final = Access(-1, -1)
"""The access of a step whose effect is unknown: every location."""

_BITS: dict[str, int] = {}

_READS_OF_ITEMS = frozenset(
    (
        "BINARY_SUBSCR",
        "BINARY_SLICE",
        "CONTAINS_OP",
        "COMPARE_OP",
        "GET_ITER",
        "FOR_ITER",
        "UNPACK_SEQUENCE",
        "UNPACK_EX",
        "LIST_EXTEND",
        "SET_UPDATE",
        "DICT_UPDATE",
        "DICT_MERGE",
        "CALL",
        "CALL_FUNCTION_EX",
        "CALL_KW",
        "TO_BOOL",
        "POP_JUMP_IF_TRUE",
        "POP_JUMP_IF_FALSE",
        "BINARY_OP",
        "GET_LEN",
        "MATCH_KEYS",
        "MATCH_SEQUENCE",
        "SEND",
        "POP_JUMP_FORWARD_IF_TRUE",
        "POP_JUMP_FORWARD_IF_FALSE",
        "UNARY_NOT",
        "FORMAT_VALUE",
        "FORMAT_SIMPLE",
        "JUMP_IF_TRUE_OR_POP",
        "JUMP_IF_FALSE_OR_POP",
        "POP_JUMP_BACKWARD_IF_TRUE",
        "POP_JUMP_BACKWARD_IF_FALSE",
    )
)
_WRITES_OF_ITEMS = frozenset(("STORE_SUBSCR", "STORE_SLICE", "DELETE_SUBSCR"))
_READING_METHODS = frozenset(
    (
        "get",
        "keys",
        "values",
        "items",
        "copy",
        "count",
        "index",
        "startswith",
        "endswith",
        "encode",
        "decode",
        "join",
        "format",
        "split",
        "partition",
        "rpartition",
        "removeprefix",
        "done",
        "tobytes",
        "union",
        "difference",
        "lower",
    )
)
_UNKNOWN_FUNCTIONS = frozenset(("setattr", "delattr", "exec", "eval", "vars", "globals"))
_WRITING_FUNCTIONS = frozenset(("next", "insort", "heappush", "heappop", "heapify", "pack_into"))
_METHODS_OF_CONTAINERS = frozenset(
    name for kind in (list, dict, set, deque, bytearray, memoryview, mmap, Future) for name in dir(kind)
)
_TRACED: set[str] = set()
_CONSTANT: set[str] = set()


def location_bit(name: str) -> int:
    """Return the bit of a location."""
    return _BITS.setdefault(name, 1 << len(_BITS))


def prepare(*, methods: Iterable[str], constants: Iterable[str]) -> None:
    """Name what the traced code defines, so that fewer steps seem to touch shared state.

    Args:
        methods: Names of functions whose Python code is traced. A call of one touches nothing beyond that code, unless
            a container has a method of that name.
        constants: Names of attributes that no code assigns after the creation of their object.
    """
    _TRACED.update(set(methods) - _METHODS_OF_CONTAINERS)
    _CONSTANT.update(constants)
    _accesses.cache_clear()
    shared_offsets.cache_clear()


def access_of_code(code: CodeType) -> Access:
    """Return what one call of a function may touch by itself."""
    return _accesses(code)[0]


def access_of_line(code: CodeType, line: int) -> Access:
    """Return what a line of a function may touch by itself."""
    return _accesses(code)[1].get(line, NOTHING)


def access_of_opcode(code: CodeType, offset: int) -> Access:
    """Return what the bytecode at an offset may touch by itself."""
    return _accesses(code)[2].get(offset, NOTHING)


@lru_cache(maxsize=8192)
def shared_offsets(code: CodeType) -> frozenset[int]:
    """Return the offsets of the bytecodes of a function that may touch shared state."""
    return frozenset(offset for offset, access in _accesses(code)[2].items() if access != NOTHING)


@lru_cache(maxsize=8192)
def _accesses(code: CodeType) -> tuple[Access, dict[int, Access], dict[int, Access]]:
    lines: dict[int, Access] = {}
    opcodes: dict[int, Access] = {}
    whole = NOTHING
    for offset, line, access in _found(code):
        whole = whole.joined(access)
        lines[line] = lines.get(line, NOTHING).joined(access)
        opcodes[offset] = access
    return whole, lines, opcodes


def _found(code: CodeType) -> Iterator[tuple[int, int, Access]]:
    """Yield the offset, the line and the access of each bytecode."""
    line = code.co_firstlineno
    cells = {*code.co_cellvars, *code.co_freevars}
    for instruction in dis.get_instructions(code):
        position = instruction.positions
        if position is not None and position.lineno is not None:
            line = position.lineno
        yield instruction.offset, line, _access_of(instruction, cells)


def _access_of(instruction: dis.Instruction, cells: set[str]) -> Access:
    operation, name = instruction.opname, str(instruction.argval)
    items = location_bit(ITEMS)
    match operation:
        case "LOAD_METHOD":
            # a method of the standard library's containers changes their content unless it is known to read it
            return _method(name, items)
        case "LOAD_ATTR":
            is_method = "NULL" in str(instruction.argrepr)
            return _method(name, items) if is_method else Access(_attribute(name), 0)
        case "STORE_ATTR" | "DELETE_ATTR":
            return Access(0, location_bit(name))
        case "LOAD_GLOBAL" if name in _UNKNOWN_FUNCTIONS:
            return ANYTHING
        case "LOAD_GLOBAL" | "LOAD_NAME" if name in _WRITING_FUNCTIONS:
            return Access(items, items)
        case "STORE_GLOBAL" | "DELETE_GLOBAL":
            return ANYTHING
        case "STORE_DEREF" | "DELETE_DEREF":
            return Access(0, location_bit(f"[cell {name}]"))
        case "LOAD_DEREF" | "LOAD_CLASSDEREF" if name in cells:
            return Access(location_bit(f"[cell {name}]"), 0)
        case "BEFORE_WITH":
            return Access(items, 0)
    if operation in _WRITES_OF_ITEMS:
        return Access(items, items)
    if operation in _READS_OF_ITEMS:
        return Access(items, items if operation == "BINARY_OP" and "=" in str(instruction.argrepr) else 0)
    return NOTHING


def _method(name: str, items: int) -> Access:
    """Return the access of a method call.

    An unknown method may change the content of its object.
    """
    writes = 0 if name in _READING_METHODS or name in _TRACED else items
    return Access(_attribute(name) | (0 if name in _TRACED else items), writes)


def _attribute(name: str) -> int:
    return 0 if name in _CONSTANT or name in _TRACED else location_bit(name)
