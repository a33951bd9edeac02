"""Judging one crash image: our store recovers a copy of it, and each number of the contract gets a ruling.

The image is read into memory and never written to; recoveries happen on recorded disks. What must be there is read by
the judges' own decoder, before and after; queues and index are worked out from the records it finds by the model.
"""
