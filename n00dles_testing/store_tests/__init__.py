"""The clauses of a state store as pytest items: by `--n00dles-store=TARGET`, and by a class of three lines.

Loaded by the plugin only when one of the two is used. `suite` is the class, `items` are the items of the option,
`outcome` turns a verdict into what pytest knows, `runners` keeps one open store for all items of a target, `summary`
is what is said at the end.
"""
