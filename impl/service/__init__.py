"""What steps the services of a store, and what forbids it to be used."""
