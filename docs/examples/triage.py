"""A support ticket is looked at from three sides at once, and then takes one of three routes.

It mixes agents that call an LLM with plain functions, sync and async. Run it with an API key:

    OPENAI_API_KEY=… python docs/examples/triage.py

Kill and resume it at each of its crash points, without a key:

    n00dles-testing explore docs/examples/triage.py:triage_pipeline --input ticket="I was charged twice."
"""

from typing import Literal

from pydantic import BaseModel

from n00dles import agent, branch, pipeline, run


class Topic(BaseModel):
    """Which department a ticket belongs to."""

    category: Literal["billing", "support", "other"]


class Case(BaseModel):
    """All that is known about a ticket. Its `category` chooses the route."""

    category: str
    text: str
    mood: str
    plan: str


@agent
def clean(ticket: str) -> str:
    """Collapse the white space that a mail program leaves behind."""
    return " ".join(ticket.split())


@agent(model="gpt-4o-mini")
def topic(text: str) -> Topic:
    """Decide which department this ticket belongs to."""


@agent(model="gpt-4o-mini")
def mood(text: str) -> str:
    """Describe the mood of this ticket in one word."""


@agent
async def customer(text: str) -> dict[str, str]:
    """Look the customer up. A real one would await a database."""
    return {"plan": "pro" if "invoice" in text or "charged" in text else "free"}


@agent
def triage(clean: str, topic: Topic, mood: str, customer: dict[str, str]) -> Case:
    """Put the three views together. Each parameter is filled with the output of the node of that name."""
    return Case(category=topic.category, text=clean, mood=mood, plan=customer["plan"])


@agent(model="gpt-4o-mini")
def refund(case: Case) -> str:
    """Write a reply about the customer's bill."""


@agent(model="gpt-4o-mini")
def answer(case: Case) -> str:
    """Write a reply that solves the customer's problem."""


@agent
def escalate(case: Case) -> str:
    """Leave everything else to a person."""
    return f"A colleague will look at this: {case.text}"


@agent
async def send(reply: str) -> dict[str, str]:
    """Hand the reply to the mail system."""
    return {"sent": reply}


triage_pipeline = pipeline(
    clean >> (topic | mood | customer) >> triage >> branch(billing=refund, support=answer, default=escalate) >> send,
    name="triage",
)


if __name__ == "__main__":
    result = run(triage_pipeline, ticket="I was   charged twice for one invoice.")
    print(result.output)
