"""Other implementations of the store, opened on the same crash images as our store.

`peers.rocketmq` is the Java store of RocketMQ. Our own driver class runs beside its published jars, in a process of its
own. `peers.judging` gives a ruling on each contract number from the answers of a peer. `peers.exploring` opens crash
images of our store's histories with a peer.

`peers.board` has adapters for stores that are no message stores, the list of their promises, their installation, and
programs that reproduce their failures without tornpage.
"""
