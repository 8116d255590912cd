"""Telling results: `terminal` to a person, `json_file` to a program, `html_page` to somebody who was not there.

Works on verdicts and plain rows only; what checks and explores is none of its business. Whatever came from a store, a
run id or a model is data: it is shown escaped, and never interpreted.
"""
