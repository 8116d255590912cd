"""`python -m n00dles_testing` is the command `n00dles-testing`."""

from .cli import main

if __name__ == "__main__":
    main(prog_name="n00dles-testing")
