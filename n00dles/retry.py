"""When a failed attempt is tried again, and after how long."""

from __future__ import annotations

import random
from dataclasses import dataclass

from .errors import PipelineBuildError
from .retry_after import retry_after

__all__ = ["RetryPolicy", "retry_policy"]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """At most `max_attempts` calls of a node, with exponential back-off between them.

    The n-th wait is `base_delay * 2 ** (n - 1)` seconds, at most `max_delay`. Where the error says how long to wait, as
    a provider's `retry-after` does, it is at least that long, also beyond `max_delay`, but no header is waited for
    longer than 60 seconds. With `jitter`, up to 10 % is added. The next attempt's `timeout` begins after the wait.

    Only `retryable_exceptions` are tried again; a missing key or an output that cannot be stored never is. Attempts
    count over all lives of a run, as far as they were saved: a process that dies does not start them anew, and only the
    call that its death has cut short is not counted. The wait itself is not stored: a run that is resumed
    tries again at once.
    """

    max_attempts: int = 3
    base_delay: float = 1.0
    max_delay: float = 30.0
    jitter: bool = True
    retryable_exceptions: tuple[type[Exception], ...] = (Exception,)

    def __post_init__(self) -> None:
        if self.max_attempts < 1:
            raise PipelineBuildError(f"retry={self.max_attempts} leaves no attempt at all; 1 means no retry.")
        if self.base_delay < 0 or self.max_delay < 0:
            raise PipelineBuildError("the delays of a RetryPolicy are seconds, and cannot be negative.")

    def delay(self, failed_attempts: int, error: BaseException | None = None) -> float:
        """Seconds to wait after so many failed attempts, the last of which has ended with `error`."""
        delay = min(self.base_delay * 2.0 ** min(failed_attempts - 1, 64), self.max_delay)
        if error is not None:
            delay = max(delay, retry_after(error))
        return delay + (random.uniform(0, delay * 0.1) if self.jitter else 0.0)  # noqa: S311 - no secret

    def allows(self, error: Exception) -> bool:
        """Whether an attempt that ended with `error` may be followed by another, if one is left."""
        return isinstance(error, self.retryable_exceptions)


def retry_policy(retry: int | RetryPolicy | None) -> RetryPolicy | None:
    """Return the policy that `retry=` of an agent or a pipeline means; an int is the number of attempts."""
    if retry is None or isinstance(retry, RetryPolicy):
        return retry
    if isinstance(retry, bool) or not isinstance(retry, int):
        raise PipelineBuildError(f"retry={retry!r} is neither a number of attempts nor a RetryPolicy.")
    return RetryPolicy(max_attempts=retry)
