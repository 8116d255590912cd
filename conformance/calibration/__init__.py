"""The table that says whether the power-loss explorer can be believed: ways of saving whose faults are known."""
