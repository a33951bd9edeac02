"""Run what compares our Raft members with DLedger."""
