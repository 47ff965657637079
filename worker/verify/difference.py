"""Where two models part: the first tensor that both have by name and that drifts, and the one that is furthest off."""

from collections.abc import Callable

from worker.verify.emulate import emulate
from worker.verify.locate import Located
from worker.verify.trial import Trial
from worker.verify.types import VerifyRequest


def difference(request: VerifyRequest, limit: float, progress: Callable[[str, int, int], None]) -> Located | None:
    """Looks at every tensor on each input in turn, up to the first where one is off by more than `limit` (relative
    L2); else what was worst on the last of them. None when all are equal.

    Raises Unverifiable, InvalidSample, and a kind of InvalidModel when a file cannot be read.
    """
    trial = Trial.of(request, progress)
    located = None
    for feed in range(len(trial.feeds)):
        located = trial.locate(emulate, feed, (), limit)
        if located is not None and located.worst.exceeds(limit):
            return located
    return located
