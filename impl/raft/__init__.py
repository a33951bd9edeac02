"""A log that a majority of members keeps (Raft), in DLedger's file format."""
