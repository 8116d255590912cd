"""The torture: workers and servers are killed again and again, and not a call that was paid for is made twice.

`python -m conformance.torture --store sqlite|postgres|redis` submits runs, starts `n00dles worker` processes, ends one
of them by SIGKILL every half second and starts another in its place, and kills the server of the store twice, until
every run has ended. `flow` is the pipeline, `torment` does the killing, `judge` reads the ledger of what has happened.
"""
