"""Engine from ONNX. Runs in a child process that loads TensorRT, and neither onnx nor numpy."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from service.errors import AtollError, BuilderFailed, ParserRefused, UnsupportedOp
from worker.child import Emit, peak_rss
from worker.engine import trt as door
from worker.engine.advice import advice_on
from worker.engine.files import write_engine
from worker.engine.inspect import count_mark, facts_of
from worker.engine.messages import MessageLog, without_noise
from worker.engine.options import check_options
from worker.engine.profiles import Profile, check_profiles
from worker.engine.progress import ProgressReporter
from worker.engine.tensors import TensorFacts, readable, tensor_facts
from worker.engine.toolchains import Toolchain, this_platform, toolchain_named
from worker.engine.trt import Builder, BuilderConfig, HostMemory, Network, OnnxParser, TensorRT
from worker.types import EngineRequest, EngineResult, NetworkFacts

MAX_ERRORS_SHOWN = 5

_NO_PLUGIN = "Plugin not found"
_SHOWN_OPS = 20


@dataclass(frozen=True, slots=True)
class ParsedNetwork:
    """A network and what has to live as long as it does: TensorRT's objects point into one another."""

    trt: TensorRT
    log: MessageLog
    builder: Builder
    network: Network
    parser: OnnxParser
    logger: Any

    @property
    def inputs(self) -> list[TensorFacts]:
        return [tensor_facts(self.network.get_input(index)) for index in range(self.network.num_inputs)]

    def facts(self) -> NetworkFacts:
        return facts_of(self.trt, self.network, self.log.messages)


def engine_from_onnx(request: EngineRequest, emit: Emit) -> EngineResult:
    """Build `request.target`, which appears whole or not at all.

    Raises ParserRefused, UnsupportedOp, MissingProfile, InvalidOptions, NoWorker or BuilderFailed.
    """
    started = time.monotonic()
    toolchain = toolchain_named(request.toolchain)
    check_options(toolchain.name, toolchain.options, request.options)
    capabilities = toolchain.capabilities(request.arch)
    parsed = network_from_onnx(request.onnx, toolchain, emit)
    check_profiles(parsed.inputs, request.profiles)
    facts = parsed.facts()
    config = _config(parsed, toolchain, request, capabilities)
    size = write_engine(_plan(parsed, config, emit), request.target)
    gpu = toolchain.gpu()
    return EngineResult(
        engine=request.target,
        size=size,
        toolchain=toolchain.name,
        toolchain_version=parsed.trt.__version__,
        platform=this_platform(),
        arch=request.arch,
        seconds=time.monotonic() - started,
        peak_rss=peak_rss(),
        profiles=len(request.profiles),
        fused_attentions=_fused_attentions(toolchain, request),
        messages=parsed.log.messages,
        inputs=facts.inputs,
        outputs=facts.outputs,
        gpu=gpu.name if gpu else None,
        driver=gpu.driver if gpu else None,
        tensor_dtypes=facts.tensor_dtypes,
        workspace_bytes=config.get_memory_pool_limit(parsed.trt.MemoryPoolType.WORKSPACE),
    )


def network_from_onnx(onnx: Path, toolchain: Toolchain, emit: Emit) -> ParsedNetwork:
    """Parse into a strongly typed network. External data is read by the parser, from the file's own folder.

    Raises UnsupportedOp for operators that the parser does not know, else ParserRefused with every error that it has.
    """
    trt = door.load(toolchain.name)
    log = MessageLog(emit)
    logger = door.logger(trt, log.take)
    builder = trt.Builder(logger)
    network = builder.create_network(_strongly_typed(trt))
    parser = trt.OnnxParser(network, logger)
    if not parser.parse_from_file(os.fspath(onnx)):
        raise _refusal(parser)
    if network.num_outputs == 0:
        # TensorRT for RTX parses a file of any text into an empty network without a word.
        raise ParserRefused("TensorRT's parser found no graph with outputs in the file. Is it an ONNX model?")
    return ParsedNetwork(trt, log, builder, network, parser, logger)


def _strongly_typed(trt: TensorRT) -> int:
    """TensorRT 10 has to be told; later versions and RTX know nothing else. The flag's number differs between them."""
    flag = getattr(trt.NetworkDefinitionCreationFlag, "STRONGLY_TYPED", None)
    return 0 if flag is None else 1 << int(flag)


def _refusal(parser: OnnxParser) -> AtollError:
    # Errors point into the parser: they become text while it lives.
    errors = [_error_facts(parser, index) for index in range(parser.num_errors)]
    unknown = sorted({str(error["op_type"]) for error in errors if _NO_PLUGIN in error["message"]})
    if unknown and all(_NO_PLUGIN in error["message"] for error in errors):
        more = f" and {len(unknown) - _SHOWN_OPS} more" if len(unknown) > _SHOWN_OPS else ""
        return UnsupportedOp(
            f"TensorRT has no operator {', '.join(unknown[:_SHOWN_OPS])}{more}. Export the model with operators of "
            "ONNX alone; plugins are never loaded from uploads.",
            ops=unknown[:_SHOWN_OPS],
        )
    shown = "; ".join(_error_text(error) for error in errors) or "it gave no reason. Is the file an ONNX model?"
    first = errors[0] if errors else {}
    return ParserRefused(
        f"TensorRT's parser refused the graph: {shown}",
        node=first.get("node"),
        op_type=first.get("op_type"),
        errors=errors,
    )


def _error_facts(parser: OnnxParser, index: int) -> dict[str, Any]:
    error = parser.get_error(index)
    return {
        "index": error.node(),
        "node": readable(error.node_name),
        "op_type": readable(error.node_operator),
        "message": without_noise(readable(error.desc) or ""),
    }


def _error_text(error: dict[str, Any]) -> str:
    message = " | ".join(error["message"].splitlines())
    if error["index"] < 0:
        return message
    return f"node {error['index']} {error['node']!r} ({error['op_type']}): {message}"


def _config(
    parsed: ParsedNetwork, toolchain: Toolchain, request: EngineRequest, capabilities: Sequence[str]
) -> BuilderConfig:
    trt, config = parsed.trt, parsed.builder.create_builder_config()
    config.builder_optimization_level = request.optimization_level
    _set_workspace(parsed, config, toolchain, request.workspace_bytes)
    if capabilities:
        config.num_compute_capabilities = len(capabilities)
    for index, capability in enumerate(capabilities):
        config.set_compute_capability(getattr(trt.ComputeCapability, capability), index)
    for name, value in request.options.items():
        toolchain.options[name].apply(trt, config, value)
    for index, profile in enumerate(request.profiles):
        _add_profile(parsed, config, index, profile)
    parsed.log.tell("info", _summary(parsed, request))
    return config


def _summary(parsed: ParsedNetwork, request: EngineRequest) -> str:
    profiles = "; ".join(f"{name} {shapes}" for profile in request.profiles for name, shapes in profile.items())
    return (
        f"{request.toolchain} {parsed.trt.__version__} builds {parsed.network.num_layers} layers for {request.arch}: "
        f"optimization level {request.optimization_level}, workspace at most {request.workspace_bytes >> 20} MiB, "
        f"options {dict(request.options)}, profiles {profiles or 'none'}"
    )


def _set_workspace(parsed: ParsedNetwork, config: BuilderConfig, toolchain: Toolchain, wanted: int) -> None:
    """The builder's own limit is all that its device has; on a GPU only what is free now can be used."""
    pool = parsed.trt.MemoryPoolType.WORKSPACE
    gpu = toolchain.gpu()
    most = config.get_memory_pool_limit(pool)
    allowed = min(most, gpu.free_bytes) if gpu else most
    if wanted > allowed:
        parsed.log.add("info", f"Workspace limited to {allowed >> 20} MiB; {wanted >> 20} MiB were asked for.")
    config.set_memory_pool_limit(pool, min(wanted, allowed))


def _add_profile(parsed: ParsedNetwork, config: BuilderConfig, index: int, shapes: Profile) -> None:
    profile = parsed.builder.create_optimization_profile()
    for tensor in parsed.inputs:
        if not tensor.needs_range:
            continue
        set_range = profile.set_shape_input if tensor.is_shape_tensor else profile.set_shape
        set_range(tensor.name, *shapes[tensor.name])
    if config.add_optimization_profile(profile) < 0:
        raise _failure(parsed, f"TensorRT refused profile {index}")


def _plan(parsed: ParsedNetwork, config: BuilderConfig, emit: Emit) -> HostMemory:
    with ProgressReporter(emit) as progress:
        monitor = door.progress_monitor(parsed.trt, progress)
        config.progress_monitor = monitor
        plan = parsed.builder.build_serialized_network(parsed.network, config)
    if plan is None:
        raise _failure(parsed, "TensorRT's builder gave no engine")
    return plan


def _failure(parsed: ParsedNetwork, what: str) -> BuilderFailed:
    errors = parsed.log.errors
    said = " | ".join(errors[-MAX_ERRORS_SHOWN:]) or "it gave no reason"
    return BuilderFailed(f"{what}: {said}. {advice_on(errors)}", errors=errors)


def _fused_attentions(toolchain: Toolchain, request: EngineRequest) -> int | None:
    """Of one profile, rounded down where profiles differ: the mark is there once an attention and profile."""
    if toolchain.fused_attention_mark is None:
        return None
    return count_mark(request.target, toolchain.fused_attention_mark) // max(1, len(request.profiles))
