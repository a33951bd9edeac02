"""Kill real processes on real disks with SIGKILL."""
