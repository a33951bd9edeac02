"""Measure time and memory of scans and audits of a large store, in all processes.

`tree` measures the processes, `stores` writes the store and damages it, `queries` has the scans, `shapes` names the
rows, and `running` measures them.
"""
