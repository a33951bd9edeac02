"""Java string hashes for the kernels.

The remark about Numba's cache in `impl.kernels.primitives` applies here too.
"""

from tornpage.impl.kernels.compiling import Bytes, kernel_part
from tornpage.impl.kernels.primitives import get64

__all__ = ["java_hash"]

_NOT_ASCII = -0x7F7F7F7F7F7F7F80  # the highest bit of each of eight bytes


@kernel_part
def _hash_of_eight(characters: int) -> int:
    """Return the hash of eight ASCII characters, the first one in the highest byte.

    Pairs are joined to fours, and fours to all eight.
    """
    twos = (characters >> 8 & 0x00FF00FF00FF00FF) * 31 + (characters & 0x00FF00FF00FF00FF)
    fours = (twos >> 16 & 0x0000FFFF0000FFFF) * 31**2 + (twos & 0x0000FFFF0000FFFF)
    return (fours >> 32) * 31**4 + (fours & 0xFFFFFFFF)


@kernel_part
def java_hash(data: Bytes, start: int, end: int, seed: int) -> tuple[int, bool]:
    """Continue a Java string hash over the UTF-16 units of a UTF-8 range.

    Also return whether it is UTF-8. The rules of UTF-8 are those of Python's decoder. Source: `String.hashCode`,
    docs/format.md.
    """
    code, at = seed & 0xFFFFFFFF, start
    while at < end:
        if at + 8 <= end and get64(data, at) & _NOT_ASCII == 0:
            code = (code * 31**8 + _hash_of_eight(get64(data, at))) & 0xFFFFFFFF
            at += 8
            continue
        first = int(data[at])
        if first < 0x80:
            code = (31 * code + first) & 0xFFFFFFFF
            at += 1
            continue
        more, low, high = 3, 0x80, 0xBF
        if 0xC2 <= first <= 0xDF:
            more, unit = 1, first & 0x1F
        elif 0xE0 <= first <= 0xEF:
            more, unit = 2, first & 0x0F
            low, high = 0xA0 if first == 0xE0 else 0x80, 0x9F if first == 0xED else 0xBF
        elif 0xF0 <= first <= 0xF4:
            unit = first & 0x07
            low, high = 0x90 if first == 0xF0 else 0x80, 0x8F if first == 0xF4 else 0xBF
        else:
            return 0, False
        if at + more >= end:
            return 0, False
        for index in range(at + 1, at + 1 + more):
            if not low <= data[index] <= high:
                return 0, False
            unit = unit << 6 | data[index] & 0x3F
            low, high = 0x80, 0xBF
        if unit >= 0x10000:  # a pair of surrogates
            code = (31 * code + (0xD7C0 + (unit >> 10))) & 0xFFFFFFFF
            unit = 0xDC00 + (unit & 0x3FF)
        code = (31 * code + unit) & 0xFFFFFFFF
        at += 1 + more
    return code - ((code & 0x80000000) << 1), True
