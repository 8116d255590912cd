"""`python -m n00dles`: the same as the command `n00dles`."""

from .cli import main

if __name__ == "__main__":
    raise SystemExit(main())
