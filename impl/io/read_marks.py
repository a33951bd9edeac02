"""The records of one log file that this process has appended or verified.

Records from `appended_from` on were appended by this process. For the others the file has one bit for each 64 bytes,
set after a check. No two records begin in the same 64 bytes, because the shortest record has 92 bytes.
"""

__all__ = ["SLOT_SHIFT", "ReadMarks"]

SLOT_SHIFT = 6
"""A record that begins at position `p` has bit `p >> SLOT_SHIFT`."""


class ReadMarks:
    """The marks of one file since they were last taken back.

    `generation` says when that was. Threads may set bits at the same time; a bit that is lost costs another check.
    """

    __slots__ = ("_size_bytes", "appended_from", "bits", "generation")

    def __init__(self, size_bytes: int, *, appended_from: int, generation: int) -> None:
        self._size_bytes = size_bytes
        self.appended_from = appended_from
        self.generation = generation
        self.bits = bytearray()

    def trusts(self, position: int) -> bool:
        """Return whether the record that begins at a position was appended or verified."""
        if position >= self.appended_from:
            return True
        bits, slot = self.bits, position >> SLOT_SHIFT
        return bool(bits) and bool(bits[slot >> 3] >> (slot & 7) & 1)

    def add(self, position: int) -> None:
        """Mark the record that begins at a position as verified."""
        slot = position >> SLOT_SHIFT
        self.all_bits()[slot >> 3] |= 1 << (slot & 7)

    def all_bits(self) -> bytearray:
        """Return the bits of the file; the first call creates them."""
        if not self.bits:
            self.bits = bytearray((self._size_bytes >> SLOT_SHIFT >> 3) + 1)
        return self.bits
