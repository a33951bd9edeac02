"""What the kernels are made of: big-endian integers and the checksum, inlined into each of them.

Numba's cache on disk looks at a kernel's own file only: whoever changes a function here has to remove
`impl/kernels/__pycache__`, or the kernels keep what they were compiled with.

The CRC-32 is ISA-L's, which `isal` is made of, called through its address: tables in the kernel took nine times as
long for 1 KiB. Importing raises ImportError where `isal` does not give it away; the plain functions serve there.
"""

import ctypes
from typing import Any

import llvmlite.binding
import numpy as np
from isal import isal_zlib
from numba import njit, types
from numpy.typing import NDArray

__all__ = ["INT", "READ", "WRITE", "Bytes", "checksum", "get16", "get32", "get64", "has_zero", "put32", "put64"]

Bytes = NDArray[np.uint8]

READ = types.Array(types.uint8, 1, "C", readonly=True)
WRITE = types.Array(types.uint8, 1, "C")
INT = types.int64

try:
    _crc32_address = ctypes.cast(ctypes.CDLL(isal_zlib.__file__).crc32_gzip_refl, ctypes.c_void_p).value
except (AttributeError, OSError) as error:
    raise ImportError(f"{isal_zlib.__file__} hides crc32_gzip_refl; use the plain functions instead") from error
# Known to the compiled code by name: an address in it would be wrong in the next process that loads it.
llvmlite.binding.add_symbol("tornpage_crc32", _crc32_address)
_crc32: Any = types.ExternalFunction("tornpage_crc32", types.uint32(types.uint32, types.uintp, types.uint64))


@njit(nogil=True)
def get16(data: Bytes, at: int) -> int:
    """Read 16 bits without a sign. Nobody checks `at`, here and below."""
    return int((data[at] << 8) | data[at + 1])


@njit(nogil=True)
def get32(data: Bytes, at: int) -> int:
    """Read 32 bits with a sign."""
    value = int((data[at] << 24) | (data[at + 1] << 16) | (data[at + 2] << 8) | data[at + 3])
    return value - ((value & 0x80000000) << 1)


@njit(nogil=True)
def get64(data: Bytes, at: int) -> int:
    """Read 64 bits with a sign."""
    return (get32(data, at) << 32) | (get32(data, at + 4) & 0xFFFFFFFF)


@njit(nogil=True)
def put32(data: Bytes, at: int, value: int) -> None:
    """Write the low 32 bits."""
    for index in range(4):
        data[at + index] = (value >> (24 - 8 * index)) & 0xFF


@njit(nogil=True)
def put64(data: Bytes, at: int, value: int) -> None:
    """Write 64 bits."""
    for index in range(8):
        data[at + index] = (value >> (56 - 8 * index)) & 0xFF


@njit(nogil=True)
def checksum(data: Bytes, start: int, end: int) -> int:
    """Return the CRC-32 of a stretch, without its highest bit, as records hold it."""
    return int(_crc32(0, data.ctypes.data + start, end - start) & 0x7FFFFFFF)


@njit(nogil=True)
def has_zero(data: Bytes, start: int, end: int) -> bool:
    """Return whether a stretch holds a NUL."""
    zeros = 0
    for byte in data[start:end]:  # no branches, so that the compiler takes many bytes at once
        zeros += byte == 0
    return zeros > 0
