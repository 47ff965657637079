"""An audio diffusion transformer with random weights, in the structure and at the scale of Stable Audio's exports.

It has what breaks naive half precision: RMSNorm over a residual stream with hot channels of several hundred (their
squares pass 65504), rotary angles computed from positions, Fourier features of thousands of radians, -inf masks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from onnx import TensorProto, ValueInfoProto, helper

from worker.examples.graph_builder import GraphBuilder, save
from worker.examples.spellings import SPELLINGS, Spelling

Exporter = Literal["torchscript", "dynamo", "opset23"]

_EXTERNAL_FROM_BYTES = 1_500_000_000
_HOT_ACTIVATION = 600.0
_HOT_EVERY = 64
_RESIDUAL_RMS = _HOT_ACTIVATION / _HOT_EVERY**0.5
_FOURIER_FREQUENCIES = 64
_LONGEST_SECONDS = 512.0


@dataclass(frozen=True, slots=True)
class AudioDiTConfig:
    """Sizes of the transformer. `differential`: two softmaxes and one subtraction in every attention."""

    layers: int = 4
    dim: int = 256
    heads: int = 4
    head_dim: int = 64
    latent_channels: int = 64
    cond_tokens: int = 64
    cond_dim: int = 128
    differential: bool = False
    seed: int = 0
    exporter: Exporter = "torchscript"

    def __post_init__(self) -> None:
        if self.dim != self.heads * self.head_dim:
            raise ValueError(f"dim {self.dim} is not heads x head_dim: {self.heads} x {self.head_dim}")
        if self.head_dim % 4:
            raise ValueError(f"head_dim {self.head_dim} is not a multiple of 4: half of it is rotated in two halves")

    @property
    def hot_channels(self) -> tuple[int, ...]:
        """Channels of the residual stream that carry several hundred."""
        return tuple(range(_HOT_EVERY // 2, self.dim, _HOT_EVERY))


def write_audio_dit(path: Path, config: AudioDiTConfig | None = None) -> None:
    """Write the FP32 model to `path`; same config, same bytes. Beyond 1.5 GB the weights go to `<path>.data`."""
    config = config or AudioDiTConfig()
    spelling = SPELLINGS[config.exporter](config.head_dim)
    builder = spelling.builder
    _AudioDiT(spelling, builder, config).write()
    model = builder.model("audio_dit", _inputs(config), _outputs(config))
    size = sum(4 * int(np.prod(weight.tensor.dims, dtype=np.int64)) for weight in builder.weights)
    save(model, builder.weights, config.seed, path, external=size > _EXTERNAL_FROM_BYTES)


def _inputs(config: AudioDiTConfig) -> list[ValueInfoProto]:
    shapes: dict[str, list[int | str]] = {
        "x": [1, config.latent_channels, "length"],
        "t": [1],
        "t5_hidden": [1, config.cond_tokens, config.cond_dim],
        "t5_mask": [1, config.cond_tokens],
        "seconds_total": [1],
        "local_add_cond": [1, config.latent_channels + 1, "length"],
    }
    return [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]


def _outputs(config: AudioDiTConfig) -> list[ValueInfoProto]:
    return [helper.make_tensor_value_info("velocity", TensorProto.FLOAT, [1, config.latent_channels, "length"])]


@dataclass(frozen=True, slots=True)
class _AudioDiT:
    """The architecture; how each part is written is the spelling's business."""

    spelling: Spelling
    g: GraphBuilder
    config: AudioDiTConfig

    def write(self) -> None:
        hidden = self._embed_latents()
        condition, keep = self._embed_conditions(hidden)
        table = self.spelling.rotary_table(hidden)
        for layer in range(self.config.layers):
            with self.g.scope(f"blocks.{layer}"):
                hidden = self._block(hidden, condition, keep, table)
        self._project_out(hidden)

    # --- into the residual stream ------------------------------------------------------------------------------------

    def _embed_latents(self) -> str:
        g, c = self.g, self.config
        with g.scope("preprocess_conv"):
            kernel = g.weight("weight", c.latent_channels, c.latent_channels, 1, std=0.1 * c.latent_channels**-0.5)
            x = g.op("Add", g.op("Conv", "x", kernel, kernel_shape=[1]), "x")
        with g.scope("project_in"):
            x = g.linear("proj", g.op("Transpose", x, perm=[0, 2, 1]), c.latent_channels, c.dim)
            bias = g.weight("bias", c.dim, std=0.1, hot=_HOT_ACTIVATION, hot_channels=c.hot_channels)
            x = g.op("Add", x, bias)
        with g.scope("local_add_cond"):
            local = g.linear("0", g.op("Transpose", "local_add_cond", perm=[0, 2, 1]), c.latent_channels + 1, c.dim)
            return g.op("Add", x, g.linear("2", self._silu(local), c.dim, c.dim))

    def _embed_conditions(self, hidden: str) -> tuple["_Condition", str]:
        g, c = self.g, self.config
        with g.scope("timestep_embed"):
            timestep = self._mlp(self._fourier("t", 0.5, 1000.0), 2 * _FOURIER_FREQUENCIES)
        with g.scope("seconds_embed"):
            clipped = g.op("Clip", "seconds_total", g.constant(0.0), g.constant(_LONGEST_SECONDS))
            share = g.op("Div", clipped, g.constant(_LONGEST_SECONDS))
            seconds = self._mlp(self._fourier(share, 0.5, 500.0), 2 * _FOURIER_FREQUENCIES)
        with g.scope("cond_embed"):
            tokens = g.op("Concat", self._mlp("t5_hidden", c.cond_dim), g.op("Unsqueeze", seconds, g.ints(1)), axis=1)
            keep = g.op("Concat", g.op("Cast", "t5_mask", to=TensorProto.BOOL), g.constant([[True]], np.bool_), axis=1)
            shape = g.op("Concat", g.ints(1, 1), self.spelling.length(hidden), g.ints(c.cond_tokens + 1), axis=0)
            mask = self.spelling.mask(g.op("Expand", g.op("Unsqueeze", keep, g.ints(1, 2)), shape))
        return _Condition(tokens, self._silu(g.op("Add", timestep, seconds))), mask

    def _fourier(self, x: str, low: float, high: float) -> str:
        g = self.g
        column = g.op("Unsqueeze", x, g.ints(1))
        angle = g.op("Mul", column, self.spelling.frequencies(low, high, _FOURIER_FREQUENCIES))
        angle = g.op("Mul", angle, g.constant(2 * np.pi))
        return g.op("Concat", g.op("Cos", angle), g.op("Sin", angle), axis=-1)

    def _mlp(self, x: str, fan_in: int) -> str:
        dim = self.config.dim
        return self.g.linear("2", self._silu(self.g.linear("0", x, fan_in, dim)), dim, dim)

    def _silu(self, x: str) -> str:
        return self.g.op("Mul", x, self.g.op("Sigmoid", x))

    # --- one block ---------------------------------------------------------------------------------------------------

    def _block(self, x: str, condition: "_Condition", mask: str, table: Callable[[], tuple[str, str]]) -> str:
        g, dim = self.g, self.config.dim
        with g.scope("to_scale_shift_gate"):
            modulation = g.op("Unsqueeze", g.linear("1", condition.vector, dim, 6 * dim, gain=0.5), g.ints(1))
            parts = g.ops("Split", modulation, g.ints(*[dim] * 6), outputs=6, axis=-1)
        with g.scope("self_attn"):
            normed = self._modulate(self._residual_norm("pre_norm", x), parts[0], parts[1])
            x = g.op("Add", x, self._gate(self._self_attention(normed, table), parts[2]))
        with g.scope("cross_attn"):
            x = g.op(
                "Add", x, self._cross_attention(self._residual_norm("cross_attend_norm", x), condition.tokens, mask)
            )
        with g.scope("ff"):
            normed = self._modulate(self._residual_norm("ff_norm", x), parts[3], parts[4])
            return g.op("Add", x, self._gate(self._feed_forward(normed), parts[5]))

    def _residual_norm(self, name: str, x: str) -> str:
        """Gamma undoes what the hot channels do to the norm, as trained gammas do."""
        c = self.config
        with self.g.scope(name):
            gamma = self.g.weight(
                "gamma", c.dim, mean=_RESIDUAL_RMS, std=0.1 * _RESIDUAL_RMS, hot=0.05, hot_channels=c.hot_channels
            )
            return self.spelling.rms_norm(x, gamma)

    def _modulate(self, x: str, scale: str, shift: str) -> str:
        g = self.g
        return g.op("Add", g.op("Mul", x, g.op("Add", scale, g.constant(1.0))), shift)

    def _gate(self, x: str, gate: str) -> str:
        g = self.g
        return g.op("Mul", x, g.op("Sigmoid", g.op("Sub", g.constant(1.0), gate)))

    def _self_attention(self, x: str, table: Callable[[], tuple[str, str]]) -> str:
        cores = 2 if self.config.differential else 1
        *queries_keys, value = self._project("to_qkv", x, 2 * cores + 1)
        turned = [self.spelling.rotate(part, table()) for part in self._normed(queries_keys)]
        return self._attend(turned[:cores], turned[cores:], value, None)

    def _cross_attention(self, x: str, tokens: str, mask: str) -> str:
        cores = 2 if self.config.differential else 1
        queries = self._project("to_q", x, cores)
        *keys, value = self._project("to_kv", tokens, cores + 1)
        normed = self._normed([*queries, *keys])
        return self._attend(normed[:cores], normed[cores:], value, mask)

    def _project(self, name: str, x: str, parts: int) -> list[str]:
        g, c = self.g, self.config
        projected = g.linear(name, x, c.dim, parts * c.dim)
        if parts == 1:
            return [self.spelling.split_heads(projected, c.heads)]
        split = g.ops("Split", projected, g.ints(*[c.dim] * parts), outputs=parts, axis=-1)
        return [self.spelling.split_heads(part, c.heads) for part in split]

    def _normed(self, parts: list[str]) -> list[str]:
        g, head_dim = self.g, self.config.head_dim
        gammas = [g.weight(f"qk_norm.{i}.gamma", head_dim, mean=1.0, std=0.1) for i in range(len(parts))]
        return [self.spelling.rms_norm(part, gamma) for part, gamma in zip(parts, gammas, strict=True)]

    def _attend(self, queries: list[str], keys: list[str], value: str, mask: str | None) -> str:
        g, c = self.g, self.config
        cores = [self.spelling.attention(q, k, value, mask) for q, k in zip(queries, keys, strict=True)]
        result = cores[0] if len(cores) == 1 else g.op("Sub", *cores)
        merged = g.op("Reshape", g.op("Transpose", result, perm=[0, 2, 1, 3]), g.ints(1, -1, c.dim))
        return g.linear("to_out", merged, c.dim, c.dim)

    def _feed_forward(self, x: str) -> str:
        g, dim = self.g, self.config.dim
        inner = 4 * dim
        value, gate = g.ops("Split", g.linear("proj_in", x, dim, 2 * inner), g.ints(inner, inner), outputs=2, axis=-1)
        return g.linear("proj_out", g.op("Mul", value, self._silu(gate)), inner, dim)

    # --- out of the residual stream ----------------------------------------------------------------------------------

    def _project_out(self, x: str) -> None:
        g, c = self.g, self.config
        with g.scope("project_out"):
            x = g.linear("proj", self._residual_norm("norm", x), c.dim, c.latent_channels)
            x = g.op("Transpose", x, perm=[0, 2, 1])
        with g.scope("postprocess_conv"):
            kernel = g.weight("weight", c.latent_channels, c.latent_channels, 1, std=0.1 * c.latent_channels**-0.5)
            x = g.op("Add", g.op("Conv", x, kernel, kernel_shape=[1]), x)
        g.rename(x, "velocity")


@dataclass(frozen=True, slots=True)
class _Condition:
    """What steers the blocks: tokens [1, tokens + 1, dim] to attend to, and a vector [1, dim] that modulates."""

    tokens: str
    vector: str
