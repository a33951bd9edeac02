"""The simulated commit log: messages as rows of arrays, and the watermarks over them."""
