"""The parts of a member of a group, as functions of time and of the answers of brokers."""
