"""Build: the engine, in a child that owns TensorRT."""

from service.builds.types import BuildSpec, Profile
from worker.engine.run import build_engine
from worker.steps.context import Job, Work
from worker.types import EngineRequest

_Shapes = dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]


def build(context: Job, work: Work) -> Work:
    """Raises what the builder said is wrong, and the errors of `run_child`."""
    request = engine_request(context.spec, context, work)
    built = build_engine(
        request,
        on_event=context.journal.take,
        timeout=context.seconds,
        should_stop=context.should_stop,
        memory_bytes=context.memory_bytes,
    )
    context.journal.note(f"engine: {built.size} bytes in {built.seconds:.1f} s, peak memory {built.peak_rss} bytes")
    return work.with_(built=built)


def engine_request(spec: BuildSpec, context: Job, work: Work) -> EngineRequest:
    if spec.arch is None:
        raise ValueError("an accepted spec is resolved")
    return EngineRequest(
        onnx=work.graph,
        target=context.engine,
        toolchain=context.toolchain,
        arch=spec.arch,
        profiles=tuple(_shapes(profile) for profile in spec.profiles),
        workspace_bytes=int(spec.workspace_gb * (1 << 30)),
        optimization_level=spec.optimization_level,
        options=spec.toolchain_options,
    )


def _shapes(profile: Profile) -> _Shapes:
    return {name: (shape.min, shape.opt, shape.max) for name, shape in profile.items()}
