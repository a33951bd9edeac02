"""The runner of the services of a store, and the states that forbid its use."""
