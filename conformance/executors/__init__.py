"""The executors of others under the explorer: `python -m conformance.executors`."""
