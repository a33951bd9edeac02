"""One store beside its model on one recorded disk: the verbs, the disasters, and what the judges remember."""
