"""Run the real store in real processes on disks with real faults.

The faults are a full disk, a failing sync and a short write. Each runs in a stage, a process with its own mounts
(`mounts`). The stage forks the processes that hold the store (`children`, `writer`) and judges what they leave. `run`
runs all faults. docs/faults.md says what each of them shows.
"""
