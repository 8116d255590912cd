"""Broken stores: at least one for each clause, realistic and small, caught by its own clause and by no other.

They are the suite's own test: a check that passes its mutant checks nothing. Each names in `breaks` the clause that it
breaks, and is a correct store of JSON files but for that.
"""
