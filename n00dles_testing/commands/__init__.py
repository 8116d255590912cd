"""What can be typed, a command a file: its arguments, its options, and what `--help` says of it.

To read a command line nothing else is imported. What a command starts is beside this folder, in `command_check` and the
like, and is imported when it is started.
"""
