"""A topic becomes an edited article: three agents in a chain, each one call to an LLM.

Run it with an API key (or with any server that speaks the same protocol, named by OPENAI_BASE_URL):

    OPENAI_API_KEY=… python docs/examples/content.py

Kill and resume it at each of its crash points, without a key:

    n00dles-testing explore docs/examples/content.py:content_pipeline --input topic="agentic search"
"""

from pydantic import BaseModel

from n00dles import agent, pipeline, run


class Article(BaseModel):
    """What the writer hands to the editor."""

    title: str
    body: str


@agent(model="gpt-4o-mini")
def researcher(topic: str) -> str:
    """Research the topic. Return 3 key facts."""


@agent(model="gpt-4o-mini")
def writer(research: str) -> Article:
    """Write a short article from these facts."""


@agent(model="gpt-4o-mini")
def editor(article: Article) -> str:
    """Edit the article: shorter sentences, no jargon. Return its final text."""


content_pipeline = pipeline(researcher >> writer >> editor, name="content")


if __name__ == "__main__":
    result = run(content_pipeline, topic="agentic search")
    print(result.output)
    print(f"run {result.run_id}: {result.total_tokens} tokens, {result.duration_ms:.0f} ms")
