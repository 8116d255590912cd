"""The checks, one file a clause; `registry.implemented` finds them."""
