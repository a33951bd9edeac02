"""Two processes that replicate over loopback, killed at drawn moments."""
