"""Which release of RocketMQ reads which stores: our store and each release, closed and killed.

`workload` has the operations, `writing` a store of ours in a process of its own, `answers` all reads of a store in one
form, `known` the differences that have a reason, `running` the run over all releases.
"""
