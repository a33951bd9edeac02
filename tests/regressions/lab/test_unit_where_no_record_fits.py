"""The reference of recoveries took a unit for proof where no record fits.

Symptom: an hour of `explore crashes` ended with a false alarm of `try_functions` (contract 8).
Cause: the unit pointed across the end of a log file. Recovery takes such a unit for a damaged one, which proves nothing
(impl/recovery/evidence.py). The reference expected missing records.
Fix: the reference reads only units of places where a record and a blank fit.
Found by: an hour of `explore crashes` with seed 19301.
"""

from tornpage.properties.lockstep.parts.recovered_logs import _bytes_of, _Log, _open, _Record


def test_a_unit_across_the_end_of_a_file_proves_nothing() -> None:
    record = _Record(offset=0, size=200, topic="A", number=0, time=1_700_000_000_000)
    data = bytearray(_bytes_of(record).ljust(1024, b"\0"))
    _open(_Log(0, {0: data}, [record], is_clean=True, units=[(0, 0, 200), (1, 950, 100)]))
