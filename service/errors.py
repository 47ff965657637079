"""One tree of errors; each knows its problem slug, its HTTP status, and what to do about it.

    AtollError
    ├── BadRequest                 400  what was sent cannot be understood
    │   ├── MalformedJson, BadDigest, InvalidName
    ├── NotFound                   404
    │   ├── ModelNotFound, BuildNotFound, EngineNotFound, BlobNotFound, GroupNotFound
    ├── NotAllowed, UnsupportedMedia, TooLarge, Conflict, RangeNotSatisfiable      405, 415, 413, 409, 416
    ├── Unprocessable              422  understood, and refused
    │   ├── InvalidRequest, InvalidOptions, MissingProfile, NoWorker, DigestMismatch, IdempotencyKeyReused
    │   ├── InvalidSample
    │   └── InvalidModel           the uploaded file itself is at fault
    │       ├── NotOnnx, AmbiguousProtobuf, TooDeep, TooComplex, NameTooLong, InvalidGraph
    │       ├── UnsupportedOpset, UnsupportedDtype, UnsupportedOp
    │       ├── ExternalDataPath, ExternalDataMissing, ExternalDataInvalid, ExternalDataRange
    │       └── TensorSizeMismatch, TensorTooLarge
    ├── BuildError                 422  a build ended without an engine (never an HTTP answer of its own)
    │   ├── ConversionFailed, CheckFailed, ParserRefused, BuilderFailed, PrecisionNotBuilt
    │   └── ChildCrashed, ChildTimeout, ChildStopped, ResourceLimit, WorkerLost
    ├── CorruptArtifact            500
    ├── Unavailable                503  Redis or the store is away: nothing was stored, try again
    ├── InsufficientStorage        507
    └── CommandError               CLI only: bad arguments, no server, a second `up` on one directory

Problems are RFC 9457 `application/problem+json`; the stable `type` is `urn:atoll:problem:<slug>`.
"""

# ruff: noqa: N818  # an error is named for what went wrong; its place in the tree says that it is one

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict


class Problem(BaseModel):
    """An RFC 9457 problem. Members beyond the standard five are extensions of the error that made it."""

    model_config = ConfigDict(extra="allow", frozen=True)

    type: str
    title: str
    status: int
    detail: str
    instance: str | None = None

    @property
    def slug(self) -> str:
        return self.type.rsplit(":", 1)[-1]


class AtollError(Exception):
    """Base of every error that a user may see.

    `detail` says what is wrong, where, and what to do; `extensions` become members of the problem.
    """

    slug: ClassVar[str] = "internal"
    title: ClassVar[str] = "Something went wrong inside atoll"
    status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1

    def __init__(self, detail: str, **extensions: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.extensions = extensions

    def problem(self, instance: str | None = None) -> Problem:
        return Problem(
            type=f"urn:atoll:problem:{self.slug}",
            title=self.title,
            status=self.status,
            detail=self.detail,
            instance=instance,
            **self.extensions,
        )


class ProblemError(AtollError):
    """Carries a problem that another process wrote; it is passed on as it is."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail, **(problem.model_extra or {}))
        self._problem = problem

    def problem(self, instance: str | None = None) -> Problem:
        return self._problem if instance is None else self._problem.model_copy(update={"instance": instance})


# --- 4xx: the request ------------------------------------------------------------------------------------------------


class BadRequest(AtollError):
    slug, title, status = "bad-request", "The request cannot be understood", 400


class MalformedJson(BadRequest):
    slug, title = "malformed-json", "The body is not valid JSON"


class BadDigest(BadRequest):
    slug, title = "bad-digest", "A digest header is malformed"


class InvalidName(BadRequest):
    slug, title = "invalid-name", "A file name is not allowed"


class NotFound(AtollError):
    slug, title, status = "not-found", "There is no such thing here", 404


class ModelNotFound(NotFound):
    slug, title = "model-not-found", "There is no such model"


class BuildNotFound(NotFound):
    slug, title = "build-not-found", "There is no such build"


class GroupNotFound(NotFound):
    slug, title = "group-not-found", "There is no such group of builds"


class EngineNotFound(NotFound):
    slug, title = "engine-not-found", "There is no such engine"


class BlobNotFound(NotFound):
    slug, title = "blob-not-found", "There is no such blob"


class NotAllowed(AtollError):
    slug, title, status = "method-not-allowed", "The method is not allowed here", 405


class Conflict(AtollError):
    slug, title, status = "conflict", "The request conflicts with what is there", 409


class TooLarge(AtollError):
    slug, title, status = "too-large", "The body is too large", 413


class RangeNotSatisfiable(AtollError):
    slug, title, status = "range-not-satisfiable", "The range has no byte of the content", 416


class UnsupportedMedia(AtollError):
    slug, title, status = "unsupported-media-type", "The media type is not supported here", 415


class Unprocessable(AtollError):
    slug, title, status = "unprocessable", "The request was understood and refused", 422


class InvalidRequest(Unprocessable):
    slug, title = "invalid-request", "The request has invalid fields"


class InvalidOptions(Unprocessable):
    slug, title = "invalid-options", "Build options are invalid"


class MissingProfile(InvalidOptions):
    slug, title = "missing-profile", "A dynamic input has no shape range"


class NoWorker(Unprocessable):
    slug, title = "no-worker", "No live worker builds for this"


class DigestMismatch(Unprocessable):
    slug, title = "digest-mismatch", "The bytes do not match the declared digest"


class IdempotencyKeyReused(Unprocessable):
    slug, title = "idempotency-key-reused", "The Idempotency-Key belongs to another request"


class InvalidSample(Unprocessable):
    slug, title = "invalid-sample", "A verification sample cannot be used"


# --- 422: the model --------------------------------------------------------------------------------------------------


class InvalidModel(Unprocessable):
    slug, title = "invalid-model", "The model is not usable"


class NotOnnx(InvalidModel):
    slug, title = "not-onnx", "The file is not an ONNX model"


class AmbiguousProtobuf(InvalidModel):
    slug, title = "ambiguous-protobuf", "The file can be read in more than one way"


class TooDeep(InvalidModel):
    slug, title = "too-deep", "Graphs are nested too deeply"


class TooComplex(InvalidModel):
    slug, title = "too-complex", "The graph has too many parts"


class NameTooLong(InvalidModel):
    slug, title = "name-too-long", "A name is too long"


class InvalidGraph(InvalidModel):
    slug, title = "invalid-graph", "The graph is not valid"


class UnsupportedOpset(InvalidModel):
    slug, title = "unsupported-opset", "The opset or IR version is not supported"


class UnsupportedDtype(InvalidModel):
    slug, title = "unsupported-dtype", "A tensor has an unknown or unsupported type"


class UnsupportedOp(InvalidModel):
    slug, title = "unsupported-op", "The graph uses operators that are not supported"


class ExternalDataPath(InvalidModel):
    slug, title = "external-data-path", "An external-data path is not allowed"


class ExternalDataMissing(InvalidModel):
    slug, title = "external-data-missing", "External data is missing"


class ExternalDataInvalid(InvalidModel):
    slug, title = "external-data-invalid", "External-data entries are invalid"


class ExternalDataRange(InvalidModel):
    slug, title = "external-data-range", "External data lies outside its file"


class TensorSizeMismatch(InvalidModel):
    slug, title = "tensor-size-mismatch", "A tensor's bytes do not match its shape"


class TensorTooLarge(InvalidModel):
    slug, title = "tensor-too-large", "A tensor's shape is impossible"


# --- a build that ended without an engine ----------------------------------------------------------------------------


class BuildError(AtollError):
    slug, title, status = "build-failed", "The build failed", 422


class ConversionFailed(BuildError):
    slug, title = "conversion-failed", "The graph could not be converted"


class CheckFailed(BuildError):
    slug, title = "check-failed", "The converted graph did not pass its checks"


class ParserRefused(BuildError):
    slug, title = "parser-refused", "TensorRT's parser refused the graph"


class BuilderFailed(BuildError):
    slug, title = "builder-failed", "TensorRT's builder gave no engine"


class PrecisionNotBuilt(BuildError):
    slug, title = "precision-not-built", "The engine does not have the precision that was asked for"


class ChildCrashed(BuildError):
    slug, title = "child-crashed", "The process that did the work crashed"


class ChildTimeout(BuildError):
    slug, title = "timeout", "The work took longer than it may"


class ChildStopped(BuildError):
    slug, title = "stopped", "The work was stopped on request"


class ResourceLimit(BuildError):
    slug, title = "resource-limit", "The work needed more memory or time than it may use"


class WorkerLost(BuildError):
    slug, title = "worker-lost", "Workers died while they built this"


# --- 5xx -------------------------------------------------------------------------------------------------------------


class CorruptArtifact(AtollError):
    slug, title, status = "corrupt-artifact", "A stored artifact does not match its digest", 500


class Unavailable(AtollError):
    slug, title, status = "unavailable", "A part that is needed is away; try again", 503


class InsufficientStorage(AtollError):
    slug, title, status = "insufficient-storage", "The disk is full", 507


# --- command line ----------------------------------------------------------------------------------------------------


class CommandError(AtollError):
    slug, title, status = "command", "The command cannot do this", 400
    exit_code = 2
