"""System calls of a program and its threads, recorded and disturbed, without strace, a compiler or any privilege."""
