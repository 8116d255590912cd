"""The suite on the stores of others: `make field-trial`."""
