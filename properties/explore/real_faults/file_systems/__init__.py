"""Compare what ext4, xfs and btrfs leave after a power loss with the crash model.

`block_device` serves an image as a file whose writes and flushes are logged. `block_log` makes the images of power
losses from the log. `workload` draws operations, `record` runs them on a mounted file system, `tree` reads a crash
image through the file system. `history` gives the journal entries of a workload, `explain` looks for a power loss of
the crash model that leaves a tree. `measure` runs all of it, and docs/disks/measured.md has the results.
"""
