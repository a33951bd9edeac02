"""Compare parts of the consumer's library with those of RocketMQ 4.9.3."""
