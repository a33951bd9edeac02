"""What the kernels do with bytes: big-endian integers, a search, a comparison, the checksum; nobody checks the places.

Integers are one load or store, wherever they lie. Indexing an array byte by byte would ask of each index whether it is
negative, and would keep the compiler from seeing an integer there.

Numba's cache on disk looks at a kernel's own file only: whoever changes a function here has to remove
`impl/kernels/__pycache__`, or the kernels keep what they were compiled with.

The CRC-32 is ISA-L's, which `isal` is made of, called through its address: tables in the kernel took nine times as
long for 1 KiB. Importing raises ImportError where `isal` does not give it away; the plain functions serve there.
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
    raise ImportError(f"{isal_zlib.__file__} hides crc32_gzip_refl; use the plain functions instead") from error
# Known to the compiled code by name: an address in it would be wrong in the next process that loads it.
llvmlite.binding.add_symbol("tornpage_crc32", _crc32_address)
_crc32: Any = types.ExternalFunction("tornpage_crc32", types.uint32(types.uint32, types.uintp, types.uint64))

_LANES = 32
"""So many bytes are searched at once."""

_LINE_BYTES = 64


def _pointer(context: Any, builder: Any, signature: Any, arguments: Any, pointee: ir.Type) -> Any:
    """Return where the second argument points to in the bytes that are the first one."""
    data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
    return builder.bitcast(builder.gep(data, [arguments[1]]), pointee.as_pointer())


def _loads(bits: int, *, signed: bool) -> Any:
    """Return the function `(data, at) -> value` that reads an integer of so many bits."""

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
    """`(data, at, byte) -> count`: how many of the next bytes lie in front of the first such one, all without one."""

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
    """`(data, at)`: have a cache line soon, without waiting for it; places that are not there do no harm."""

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
    """Return where a byte first lies in a stretch, the end of the stretch if it does not."""
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
    """Return whether so many bytes from two places on are the same."""
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
    """Return the CRC-32 of a stretch, without its highest bit, as records hold it."""
    return int(_crc32(0, data.ctypes.data + start, end - start) & 0x7FFFFFFF)


@kernel_part
def fetch_ahead(data: Bytes, start: int, end: int) -> None:
    """Have a stretch, its end included, in the cache soon, without waiting for it; it need not lie in the data."""
    for at in range(start, end, _LINE_BYTES):
        _will_need(data, at)
    _will_need(data, end)
