"""A converted model says how it was converted.

In mode `full` that is needed: the Casts to FP32 that a conversion leaves look like those of an author, so a second
conversion would take them for wishes. A model that says it was converted alike is left as it is.
"""

from onnx import ModelProto

from worker.precision.planner import Options

KEY = "atoll.conversion"


def stamp(model: ModelProto, options: Options) -> None:
    """Puts the stamp into the model's metadata, in place of an older one."""
    kept = [entry for entry in model.metadata_props if entry.key != KEY]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)
    model.metadata_props.add(key=KEY, value=_text(options))


def is_converted_alike(model: ModelProto, options: Options) -> bool:
    """Whether converting in mode `full` would only repeat what was done."""
    stamps = {entry.value for entry in model.metadata_props if entry.key == KEY}
    return options.mode == "full" and _text(options) in stamps


def _text(options: Options) -> str:
    attention = "bounded" if options.bounded_attention else "unbounded"
    return f"mode {options.mode}, trunk {options.trunk}, {attention} attention"
