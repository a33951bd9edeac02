"""Compile the lab's kernels, with their primitives: big-endian integers, search, checksum.

Reads are not checked for bounds: a kernel first compares each place with the end of its bytes.

Compiled kernels that Numba keeps on disk are named after all sources of this package. Numba itself looks only at the
kernel's own file and would reuse a kernel of which only a part in another file changed.

Only the third-party CRC-32 (of ISA-L, from `isal`) is shared with the store; it is called by its address. Importing
raises ImportError if `isal` does not export that address; the plain walk is used instead.
"""

import ctypes
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import llvmlite.binding
import numpy as np
from isal import isal_zlib
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

__all__ = ["INT", "READ", "Bytes", "Table", "crc32", "find_byte", "i32_at", "i64_at", "kernel", "kernel_part", "u8_at"]

Bytes = NDArray[np.uint8]
Table = NDArray[np.int64]

READ = types.Array(types.uint8, 1, "C", readonly=True)
INT = types.int64

_OPTIONS: Any = {"nogil": True, "_nrt": False}  # kernels create no arrays, so no references are counted
_SOURCES = zlib.crc32(b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))))
_Function = TypeVar("_Function", bound=Callable[..., Any])

try:
    _crc32_address = ctypes.cast(ctypes.CDLL(isal_zlib.__file__).crc32_gzip_refl, ctypes.c_void_p).value
except (AttributeError, OSError) as error:
    raise ImportError(f"{isal_zlib.__file__} hides crc32_gzip_refl; use the plain walk instead") from error
# Registered by name: an address in a compiled kernel on disk would be wrong in the next process.
llvmlite.binding.add_symbol("tornpage_judge_crc32", _crc32_address)
_crc32: Any = types.ExternalFunction("tornpage_judge_crc32", types.uint32(types.uint32, types.uintp, types.uint64))


def kernel(*signature: Any) -> Callable[[_Function], _Function]:
    """Compile a function for calls from Python with this signature, and keep it on disk."""

    def wrap(function: _Function) -> _Function:
        function.__qualname__ = f"{function.__name__}_{_SOURCES:08x}"
        compiled: Any = njit([signature], cache=True, **_OPTIONS)
        wrapped: _Function = compiled(function)
        return wrapped

    return wrap


def kernel_part(function: _Function) -> _Function:
    """Compile a function that kernels call, into each of them."""
    compiled: Any = njit(**_OPTIONS)
    wrapped: _Function = compiled(function)
    return wrapped


def _address(context: Any, builder: Any, signature: Any, arguments: Any, kind: ir.Type) -> Any:
    """Return a pointer to a byte of the first argument; the second one is its index."""
    start = context.make_array(signature.args[0])(context, builder, arguments[0]).data
    return builder.bitcast(builder.gep(start, [arguments[1]]), kind.as_pointer())


def _reader(bits: int) -> Any:
    """Return `(data, at) -> value`, which reads a big-endian integer, signed if not a byte."""

    def read(_: Any, data: Any, _at: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = ir.IntType(bits)
            value = builder.load(_address(context, builder, signature, arguments, kind), align=1)
            if bits == 8:
                return builder.zext(value, ir.IntType(64))
            value = builder.bswap(value)
            return value if bits == 64 else builder.sext(value, ir.IntType(64))

        return types.int64(data, types.int64), generate

    return intrinsic(read)


u8_at: Callable[[Bytes, int], int] = _reader(8)
i32_at: Callable[[Bytes, int], int] = _reader(32)
i64_at: Callable[[Bytes, int], int] = _reader(64)


@kernel_part
def find_byte(data: Bytes, start: int, end: int, byte: int) -> int:
    """Return the first place of a byte between two places, or the second place."""
    for at in range(start, end):
        if data[at] == byte:
            return at
    return max(start, end)


@kernel_part
def crc32(data: Bytes, start: int, end: int) -> int:
    """Return the CRC-32 of the bytes between two places, without its top bit as in records."""
    return int(_crc32(0, data.ctypes.data + start, end - start) & 0x7FFFFFFF)
