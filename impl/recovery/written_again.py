"""What an open after an unclean exit writes once more: queues and index, as far as nobody has proved them durable.

A kernel whose sync fails counts the pages as clean, so that the next sync succeeds and writes nothing, as long as the
machine lives. Whoever opens a store next finds what should be there in memory and cannot tell that the disk does not
have it. What a derived floor speaks of was durable before it was written. Source: none, RocketMQ believes its page
cache (docs/faults.md, "sync-lost").
"""

from tornpage.impl.dispatch.derived import Derived
from tornpage.impl.message.dispatching import UNIT_BYTES
from tornpage.impl.recovery.derived_floor import DerivedProof

__all__ = ["write_again"]


def write_again(derived: Derived, directory: str, proof: DerivedProof | None) -> None:
    """Have the next sync of each file below `directory` write what the proof does not speak of. Raises OSError.

    Cost: one copy of the units and entries behind the proof, and of the slots of index files with such entries.
    """
    units: dict[str, int] = {}
    for queue_file in () if proof is None else proof.queue_files:
        path, _, name = f"{directory}/{queue_file.path}".rpartition("/")
        units[path] = (int(name) + queue_file.size_bytes) // UNIT_BYTES
    for queue in derived.queues.all():
        queue.write_again(units.get(queue.directory, 0))
    entries = (
        {} if proof is None else {f"{directory}/{each.path}": each.header.next_number for each in proof.index_files}
    )
    for index_file in () if derived.index is None else derived.index.index_files:
        proved = entries.get(index_file.path, 0)
        if index_file.header.next_number > proved:
            index_file.write_again(max(1, proved))
