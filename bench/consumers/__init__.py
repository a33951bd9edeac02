"""The consumer library in virtual time, beside the simulator."""
