"""The facts of builds in the object store: immutable, each put if absent, enough to rebuild everything else.

**How a build ends exactly once.** `finished` is one object, so the first put wins. A success is put by whichever
attempt has one: a slow attempt that was thought dead may still win, and its engine is as good. Anything else (a
failure, a cancel) may only come from the newest attempt, or a zombie would fail a build that a live worker is about to
finish. "Newest" cannot be read and then relied on, so the ending attempt `n` first puts a *seal* at `attempts/<n+1>`,
the very fence that a successor would have to claim. If the seal is in, no successor can exist, and `finished` is put;
if somebody claimed `n+1` before, the late failure is dropped. The seal holds the whole ending: whoever finds a seal
without `finished` (its writer died in between) puts it.
"""

from collections import Counter
from collections.abc import Iterator
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from service.builds.types import Accepted, Attempt, Cause, Finished, Group, Joined
from service.canonical import canonical_json, digest_of
from service.errors import CorruptArtifact
from service.store.types import ObjectStore

MAX_CRASHED = 3
MAX_LOST = 10

_T = TypeVar("_T", bound=BaseModel)


class BuildFacts:
    """Typed reads and writes of `builds/<id>/…`, `pending/<id>`, `keys/<key>` and `groups/<id>`."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    # --- accepted ---

    def accept(self, accepted: Accepted) -> None:
        """Make a build durable. The marker comes first: a build without one would be found by no reconciler."""
        self._store.put(f"pending/{accepted.id}", b"")
        self._put(f"builds/{accepted.id}/accepted", accepted)

    def accepted(self, build: str) -> Accepted | None:
        return self._get(f"builds/{build}/accepted", Accepted)

    def builds(self) -> Iterator[str]:
        """The ids of all builds that were ever accepted, in no particular order."""
        for path in self._store.list("builds/"):
            _, build, fact = path.split("/", 2)
            if fact == "accepted":
                yield build

    def pending(self) -> Iterator[str]:
        return (path.removeprefix("pending/") for path in self._store.list("pending/"))

    def clear_pending(self, build: str) -> None:
        self._store.delete(f"pending/{build}")

    # --- attempts ---

    def attempts(self, build: str) -> tuple[Attempt, ...]:
        """In their order; the last may be a seal."""
        found = (self._get(path, Attempt) for path in self._store.list(f"builds/{build}/attempts/"))
        return tuple(sorted((attempt for attempt in found if attempt is not None), key=lambda attempt: attempt.n))

    def claim(self, build: str, attempt: Attempt) -> bool:
        """Whether `attempt` got its fence; False when another holds that number or the build was sealed."""
        return self._put(f"builds/{build}/attempts/{attempt.n}", attempt)

    # --- the end ---

    def finished(self, build: str) -> Finished | None:
        return self._get(f"builds/{build}/finished", Finished)

    def succeed(self, build: str, finished: Finished) -> Finished:
        """The end that counts: `finished`, or what another attempt put before."""
        return self._finish(build, finished)

    def end(self, build: str, finished: Finished) -> Finished | None:
        """End a build without an engine. None: a later attempt runs, and nothing was done."""
        number = finished.attempt + 1
        seal = Attempt(n=number, worker=finished.worker or "", started_at=finished.finished_at, ending=finished)
        if self.claim(build, seal):
            return self._finish(build, finished)
        return self.finished(build) or self.settle(build)

    def settle(self, build: str) -> Finished | None:
        """Complete an end whose writer died between seal and `finished`. None where there is no seal."""
        attempts = self.attempts(build)
        if not attempts or attempts[-1].ending is None:
            return None
        return self._finish(build, attempts[-1].ending)

    def request_cancel(self, build: str) -> None:
        self._store.put(f"builds/{build}/cancel-requested", b"")

    def cancel_requested(self, build: str) -> bool:
        return self._store.exists(f"builds/{build}/cancel-requested")

    # --- other requests for the same build; groups ---

    def join(self, build: str, joined: Joined) -> None:
        """Remember a request that was given this build; an equal one is remembered once."""
        name = digest_of(canonical_json(joined.model_dump(mode="json")))
        self._put(f"builds/{build}/joined/{name}", joined)

    def joined(self, build: str) -> tuple[Joined, ...]:
        found = (self._get(path, Joined) for path in sorted(self._store.list(f"builds/{build}/joined/")))
        return tuple(joined for joined in found if joined is not None)

    def put_group(self, group: Group) -> None:
        self._put(f"groups/{group.id}", group)

    def group(self, group: str) -> Group | None:
        return self._get(f"groups/{group}", Group)

    def groups(self) -> Iterator[Group]:
        found = (self._get(path, Group) for path in self._store.list("groups/"))
        return (group for group in found if group is not None)

    # --- keys ---

    def answer(self, key: str) -> str | None:
        """The digest that answers a build key."""
        found = self._store.get(f"keys/{key}")
        return None if found is None else found.decode()

    def put_answer(self, key: str, digest: str) -> str:
        """The digest that answers from now on: `digest`, or the one that was first."""
        self._store.put(f"keys/{key}", digest.encode())
        return self.answer(key) or digest

    def forget_answer(self, key: str) -> None:
        """For an answer whose engine is no longer there."""
        self._store.delete(f"keys/{key}")

    def _finish(self, build: str, finished: Finished) -> Finished:
        self._put(f"builds/{build}/finished", finished)
        return self.finished(build) or finished

    def _put(self, path: str, fact: BaseModel) -> bool:
        return self._store.put(path, fact.model_dump_json().encode())

    def _get(self, path: str, kind: type[_T]) -> _T | None:
        found = self._store.get(path)
        if found is None:
            return None
        try:
            return kind.model_validate_json(found)
        except ValidationError as error:
            raise CorruptArtifact(f"The stored fact {path} cannot be read as {kind.__name__}: {error}") from error


def runs(attempts: tuple[Attempt, ...]) -> tuple[Attempt, ...]:
    """The attempts without the seal."""
    return tuple(attempt for attempt in attempts if attempt.ending is None)


def may_follow(attempts: tuple[Attempt, ...], cause: Cause) -> bool:
    """Whether another attempt is allowed after the newest one ended by `cause`."""
    causes = Counter(attempt.cause for attempt in attempts)
    match cause:
        case "child-crashed":
            return causes[cause] + 1 < MAX_CRASHED
        case "worker-lost":
            return causes[cause] + 1 < MAX_LOST
        case _:
            return True
