"""Broken stores that the torture must catch; each module has the pipeline `flow` for a worker to work on."""
