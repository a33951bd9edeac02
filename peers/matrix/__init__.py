"""Compare which release of RocketMQ reads whose stores, closed, killed and expired.

`workload` has the operations, `writing` our store in a process of its own, `answers` all reads of a store in one
form, `known` the differences that have a reason, `running` the run over all releases.
"""
