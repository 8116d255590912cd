"""The tables of the conformance suite: that each broken store is caught in every run, and each correct one is clean."""
