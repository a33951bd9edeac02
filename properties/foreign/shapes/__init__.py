"""Say what a store of some shape promises, and what a crash may leave of it.

1. A shape is a set of verbs: messages, key-value, queue, log, file. A store names its shape in its handshake.
2. Each write of a run is an effect (history.py). An effect belongs to a cell: a key, a queue, the log, a file.
3. The effects of a cell are ordered. A crash leaves the first effects of each cell, at least up to the last one that
   was promised. Cells are independent of each other unless the store promises one order for all (`ordered`).
4. A point is an answer after which an effect is safe: that of the write itself, of a commit, of a flush, of a close.
   The points for a power loss (`durable`) and for a process kill (`kill`) are promised separately (language.py).
5. The effects of an atomic batch have a group. A crash leaves all effects of a group or none.
6. Effects of concurrent callers are a row. A crash leaves the first effects of a row in some order. One order of the
   calls of a row has to explain all answers and all later reads.
7. An effect whose call has no answer at the crash is not promised. It may be there or not.
8. The judge (book.py) reads the store after the crash and searches for a legal selection of effects that gives what it
   read. If there are several, it continues with the longest one. The longest selection allows every later state that a
   shorter one allows, because a longer history has more legal cuts.
9. An effect that a crash has taken is gone for good. It may not come back.
10. The judge knows the value of each write, and all values of a run differ. It never copies a state from the store.

A shape module has the promises, the draws of a program, the meaning of the verbs, the judge and a store in memory. The
in-memory store keeps its promises, and its liar forgets what it promised. `registry.SHAPES` lists all shapes.
"""
