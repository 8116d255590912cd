"""Everything that n00dles raises on purpose, in one hierarchy.

Every message names what happened, to which run and node, and what to do next. Two branches matter to a caller:
a `PipelineFailure` says that a node failed, a `StateStoreError` says that the store did, and that the node's output
is not the problem.
"""

from __future__ import annotations

from pydantic import ValidationError

__all__ = [
    "AgentInputError",
    "AgentOutputError",
    "AnswerError",
    "BranchError",
    "ConfigurationError",
    "CorruptCheckpointError",
    "InputsChangedError",
    "InputsError",
    "N00dlesError",
    "PipelineBuildError",
    "PipelineChangedError",
    "PipelineFailure",
    "RunLockedError",
    "RunNotFoundError",
    "SerializationError",
    "StaleContextError",
    "StateStoreError",
    "StoreVersionError",
]


class N00dlesError(Exception):
    """The root: catch it to catch whatever n00dles raises on purpose."""


class ConfigurationError(N00dlesError):
    """Something outside the pipeline is missing: an SDK, an API key, a store URL that means something.

    Raised before any node is called; set up what the message names and run again.
    """


class PipelineBuildError(N00dlesError, ValueError):
    """A pipeline cannot be built as written: two nodes of one name, no node at all, a step that is not one."""


class InputsError(N00dlesError, TypeError):
    """The inputs of a new run do not fit the pipeline: one is missing, or nothing reads it.

    Raised before the first node is called, so nothing has been paid for.
    """


class PipelineFailure(N00dlesError):
    """A node failed after its retries and its fallback; what was completed before is kept.

    `cause` is the error of the last attempt. Call `resume(pipeline, run_id)` once the reason is gone: completed nodes
    are not called again. `hint` are sentences on what has probably led to it, where that can be seen.
    """

    def __init__(self, run_id: str, node_name: str, cause: BaseException, hint: str = "") -> None:
        self.run_id = run_id
        self.node_name = node_name
        self.cause = cause
        self.hint = hint
        super().__init__(
            f"run {run_id!r} failed at node {node_name!r}: {described(cause).rstrip('.')}. {hint}{' ' if hint else ''}"
            f"Completed nodes are kept; resume(pipeline, {run_id!r}) continues from them."
        )


class AgentInputError(N00dlesError):
    """What a node is about to get does not fit the annotation of its parameter; the node was not called."""

    def __init__(self, agent_name: str, parameter: str, value: object, cause: Exception) -> None:
        self.agent_name = agent_name
        self.parameter = parameter
        self.value = value
        self.cause = cause
        super().__init__(
            f"node {agent_name!r} cannot take {_shown(repr(value))} as its parameter {parameter!r}: {_reason(cause)}. "
            "Change the annotation, or what the node before it returns."
        )


class AgentOutputError(N00dlesError):
    """What a node returned does not fit the return type that it declares.

    `raw_output` is the text of the LLM, or the repr of what a function body returned.
    """

    def __init__(self, agent_name: str, raw_output: str, cause: Exception) -> None:
        self.agent_name = agent_name
        self.raw_output = raw_output
        self.cause = cause
        super().__init__(
            f"node {agent_name!r} returned {_shown(raw_output)!r}, which does not fit its declared return type: "
            f"{_reason(cause)}"
        )


class AnswerError(N00dlesError):
    """A model was called and paid for, and gave no usable answer: cut off, refused, filtered or empty.

    `reason` is one of these: "truncated", "refused", "filtered", "empty", "malformed". The tokens are those billed.
    """

    def __init__(
        self, message: str, *, reason: str, model: str, provider: str, input_tokens: int = 0, output_tokens: int = 0
    ) -> None:
        self.reason = reason
        self.model = model
        self.provider = provider
        self.input_tokens = input_tokens
        self.output_tokens = output_tokens
        super().__init__(f"{provider} model {model!r} {message}")


class BranchError(N00dlesError):
    """A branch got a key that none of its routes has, and it has no `default`."""

    def __init__(self, branch_name: str, key: object) -> None:
        self.branch_name = branch_name
        self.key = key
        super().__init__(
            f"{branch_name} has no route for the key {key!r} and no default. The key is the previous output itself "
            "when it is a string, else its field 'category'. Add the route, or default=."
        )


class SerializationError(N00dlesError, TypeError):
    """A value cannot be stored so that exactly the same comes back, so it is refused before anything is written.

    `path` says where in the value, in the notation of Python: `output['facts'][2]`.
    """

    def __init__(self, path: str, why: str, *, node: str | None = None) -> None:
        self.path = path
        self.why = why
        self.node = node
        super().__init__(f"node {node!r}: {path} {why}" if node is not None else f"{path} {why}")


class StateStoreError(N00dlesError):
    """The store failed, not the node: it is not called again for it, and its output is still in hand.

    `run_id` is the run, where the error belongs to one.
    """

    def __init__(self, message: str, *, run_id: str | None = None) -> None:
        self.run_id = run_id
        super().__init__(message)


class StaleContextError(StateStoreError):
    """A save came from an older revision than the stored one, or for a run that was deleted; nothing was written.

    Somebody else has continued the run (or removed it) since this context was loaded. Load it again.
    """


class CorruptCheckpointError(StateStoreError):
    """A stored record is damaged; it is neither used nor overwritten.

    Restore it from a backup, or `delete` the run and start it anew.
    """


class StoreVersionError(StateStoreError):
    """A store was written by a newer release than this one; it is left as it is."""


class ReadOnlyStoreError(StateStoreError):
    """The server of a store can be read and takes no writes: it is a replica, or in read-only mode.

    Name the primary in the URL. A worker does not begin with such a store; one at work waits, since a failover may end.
    """


class RunLockedError(StateStoreError):
    """Another worker holds the run: it is at work on it at this moment, and no second one is let in.

    Raised before anything is called or changed, unless the message says that a run under way was taken over: then its
    worker had not renewed its lease in time. `holder` names the other worker, where it is known. Wait for it
    (`wait=60`), or end it. It is final: the executor does not try again.
    """

    def __init__(self, message: str, *, run_id: str | None = None, holder: str | None = None) -> None:
        self.holder = holder
        super().__init__(message, run_id=run_id)


class RunNotFoundError(StateStoreError):
    """No run of this id is stored. `n00dles runs list` shows those that are."""


class PipelineChangedError(StateStoreError):
    """A run is resumed with a pipeline whose completed part differs from the one that it was started with.

    Its completed outputs belong to the old shape, so using them could give a wrong answer without a word. Resume with
    the pipeline as it was, or start a new run. Steps after the completed ones may be changed freely.
    """


class InputsChangedError(StateStoreError):
    """A run is resumed with other inputs than it was started with.

    Its completed outputs were computed from the first inputs, so using them would mix two runs. Resume without inputs,
    or start a new run.
    """


def described(error: BaseException) -> str:
    """Return the type and the message of any error, as text that can be stored."""
    return f"{type(error).__name__}: {message_of(error)}"


def message_of(error: BaseException) -> str:
    """Return the message of any error as text that can be stored: a file name in it may hold lone surrogates."""
    try:
        message = str(error)
    except Exception as mistake:
        message = f"(its message cannot be told: {type(mistake).__name__})"
    return message.encode("utf-8", "backslashreplace").decode()


_SHOWN_CHARACTERS = 200


def _reason(cause: Exception) -> str:
    """Return what a `pydantic.ValidationError` says, in one line and without its links; any other error as it is."""
    if not isinstance(cause, ValidationError):
        return str(cause)
    return "; ".join(
        f"{'.'.join(map(str, detail['loc'])) or 'it'}: {detail['msg']}" for detail in cause.errors(include_url=False)
    )


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"
