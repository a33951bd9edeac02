"""Real faults of real disks, on the real store in real processes: a full disk, a sync that fails, a write cut short.

Each fault runs in a stage, a process with mounts of its own (`mounts`), which forks the processes that hold the store
(`children`, `writer`) and judges what they leave. `run` runs them all. What each of them shows: docs/faults.md.
"""
