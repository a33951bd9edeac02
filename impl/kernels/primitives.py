"""Operations of the kernels on bytes: big-endian integers, search, comparison, checksum.

Without bounds checks. Integers are one load or store at any address. Indexing an array byte by byte would test each
index for being negative, and would keep the compiler from seeing an integer.

Numba's cache on disk checks only a kernel's own file. After a change to a function here, remove
`impl/kernels/__pycache__`, or the kernels keep the old version.

The CRC-32 is ISA-L's, on which `isal` is built, called through its address. Tables in the kernel took nine times as
long for 1 KiB. Importing raises ImportError if `isal` does not export it; the plain functions are used then.
"""

import ctypes
from collections.abc import Callable
from typing import Any

import llvmlite.binding
from isal import isal_zlib
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tornpage.impl.kernels.compiling import Bytes, kernel_part

__all__ = ["are_equal", "checksum", "fetch_ahead", "find_byte", "get16", "get32", "get64", "put32", "put64"]

try:
    _crc32_address = ctypes.cast(ctypes.CDLL(isal_zlib.__file__).crc32_gzip_refl, ctypes.c_void_p).value
except (AttributeError, OSError) as error:
    raise ImportError(f"{isal_zlib.__file__} lacks crc32_gzip_refl; use the plain functions instead") from error
# Compiled code refers to it by name: an address would be wrong in the next process that loads the code.
llvmlite.binding.add_symbol("tornpage_crc32", _crc32_address)
_crc32: Any = types.ExternalFunction("tornpage_crc32", types.uint32(types.uint32, types.uintp, types.uint64))

_LANES = 32
"""The number of bytes searched at once."""

_LINE_BYTES = 64


def _pointer(context: Any, builder: Any, signature: Any, arguments: Any, pointee: ir.Type) -> Any:
    """Return a pointer into the bytes of the first argument, at the position in the second."""
    data = context.make_helper(builder, signature.args[0], arguments[0]).data
    return builder.bitcast(builder.gep(data, [arguments[1]]), pointee.as_pointer())


def _loads(bits: int, *, signed: bool) -> Any:
    """Return the function `(data, at) -> value` that reads an integer of `bits` bits."""

    def load(_: Any, data: Any, _at: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer = _pointer(context, builder, signature, arguments, ir.IntType(bits))
            value = builder.bswap(builder.load(pointer, align=1))
            extend = builder.sext if signed else builder.zext
            return value if bits == 64 else extend(value, ir.IntType(64))

        return types.int64(data, types.int64), generate

    return intrinsic(load)


def _stores(bits: int) -> Any:
    """Return the function `(data, at, value)` that writes the low bits of an integer."""

    def store(_: Any, data: Any, _at: Any, _value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer = _pointer(context, builder, signature, arguments, ir.IntType(bits))
            value = arguments[2] if bits == 64 else builder.trunc(arguments[2], ir.IntType(bits))
            builder.store(builder.bswap(value), pointer, align=1)
            return context.get_dummy_value()

        return types.void(data, types.int64, types.int64), generate

    return intrinsic(store)


def _search(_: Any, data: Any, _at: Any, _byte: Any) -> Any:
    """`(data, at, byte) -> count`: the number of bytes before the first equal one, or all."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes = ir.VectorType(ir.IntType(8), _LANES)
        nothing, first = ir.Constant(lanes, ir.Undefined), ir.Constant(ir.VectorType(ir.IntType(32), _LANES), None)
        one = builder.insert_element(nothing, builder.trunc(arguments[2], ir.IntType(8)), ir.IntType(32)(0))
        found = builder.load(_pointer(context, builder, signature, arguments, lanes), align=1)
        equal = builder.icmp_unsigned("==", found, builder.shuffle_vector(one, nothing, first))
        count = builder.cttz(builder.bitcast(equal, ir.IntType(_LANES)), ir.IntType(1)(0))
        return builder.zext(count, ir.IntType(64))

    return types.int64(data, types.int64, types.int64), generate


def _fetch(_: Any, data: Any, _at: Any) -> Any:
    """`(data, at)`: prefetch a cache line without a wait; an invalid address does no harm."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature, arguments, ir.IntType(8))
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, *[ir.IntType(32)] * 3])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", (pointer.type,), kind)
        builder.call(prefetch, [pointer, *(ir.IntType(32)(each) for each in (0, 3, 1))])  # a read, to stay, of data
        return context.get_dummy_value()

    return types.void(data, types.int64), generate


get16: Callable[[Bytes, int], int] = _loads(16, signed=False)
get32: Callable[[Bytes, int], int] = _loads(32, signed=True)
get64: Callable[[Bytes, int], int] = _loads(64, signed=True)
put32: Callable[[Bytes, int, int], None] = _stores(32)
put64: Callable[[Bytes, int, int], None] = _stores(64)
_will_need: Any = intrinsic(_fetch)
_count_before: Any = intrinsic(_search)


@kernel_part
def find_byte(data: Bytes, start: int, end: int, byte: int) -> int:
    """Return the position of the first byte of a value in a range, or the end of the range."""
    at = start
    while at < end and at + _LANES <= len(data):
        count: int = _count_before(data, at, byte)
        if count < _LANES:
            return min(at + count, end)
        at += _LANES
    while at < end and data[at] != byte:
        at += 1
    return min(at, end)


@kernel_part
def are_equal(data: Bytes, first: int, second: int, size: int) -> bool:
    """Return whether `size` bytes at two positions are equal."""
    index = 0
    while index + 8 <= size:
        if get64(data, first + index) != get64(data, second + index):
            return False
        index += 8
    while index < size and data[first + index] == data[second + index]:
        index += 1
    return index == size


@kernel_part
def checksum(data: Bytes, start: int, end: int) -> int:
    """Return the CRC-32 of a range without its highest bit, as in records."""
    return int(_crc32(0, data.ctypes.data + start, end - start) & 0x7FFFFFFF)


@kernel_part
def fetch_ahead(data: Bytes, start: int, end: int) -> None:
    """Prefetch a range, its end included, without a wait; it may lie outside the data."""
    for at in range(start, end, _LINE_BYTES):
        _will_need(data, at)
    _will_need(data, end)
