"""Real processes on real disks, ended by SIGKILL."""
