"""Three plain functions in a chain: no LLM, no network, the smallest pipeline worth killing.

Run it, then kill and resume it at each of its crash points:

    python docs/examples/body.py
    n00dles-testing explore docs/examples/body.py:body_pipeline --input text="the cat and the dog"
"""

from n00dles import agent, pipeline, run


@agent
def split(text: str) -> list[str]:
    """Cut the text into words."""
    return text.lower().split()


@agent
def count(words: list[str]) -> dict[str, int]:
    """Count each word."""
    return {word: words.count(word) for word in sorted(set(words))}


@agent
def report(counts: dict[str, int]) -> str:
    """Name the commonest word, the first in the alphabet if several are."""
    word, times = max(counts.items(), key=lambda item: item[1])
    return f"{word!r} occurs {times} times"


body_pipeline = pipeline(split >> count >> report, name="body")


if __name__ == "__main__":
    print(run(body_pipeline, text="the cat and the dog").output)
