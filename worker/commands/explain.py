"""`atoll explain`: why is this node FP32, or not? Plans a conversion and writes nothing."""

from pathlib import Path
from typing import Annotated

import typer

from service.builds.types import Mode, Trunk
from worker.commands.convert import Conversion, conversion_request


def register(app: typer.Typer) -> None:
    app.command()(explain)


def explain(
    model: Annotated[Path, typer.Argument(metavar="MODEL.onnx", help="An FP32 model.")],
    node: Annotated[
        str | None, typer.Argument(metavar="[NODE]", help="Name or glob of nodes, an operator type, or a value.")
    ] = None,
    mode: Annotated[Mode, typer.Option(help="Which islands are kept in FP32.")] = Mode.ROPE,
    trunk: Annotated[Trunk, typer.Option(help="The dtype outside islands.")] = Trunk.FP16,
    no_bounded_attention: Annotated[bool, typer.Option("--no-bounded-attention")] = False,
    keep_fp32: Annotated[list[str] | None, typer.Option(help="Glob of nodes to keep in FP32.")] = None,
    keep_trunk: Annotated[list[str] | None, typer.Option(help="Glob of nodes to keep in the trunk dtype.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Say why a node is FP32 or not, and what would change it; without NODE, the whole plan. Writes nothing."""
    options = Conversion(mode, trunk, not no_bounded_attention, tuple(keep_fp32 or ()), tuple(keep_trunk or ()))
    if node is None:
        _show_plan(model, options, as_json=as_json)
    else:
        _show_nodes(model, node, options, as_json=as_json)


def _show_plan(model: Path, options: Conversion, *, as_json: bool) -> None:
    from worker.conversion import preview
    from worker.precision.views.text import render_text

    report = preview(conversion_request(model, model, options))
    typer.echo(report.model_dump_json() if as_json else render_text(report), nl=as_json)


def _show_nodes(model: Path, pattern: str, options: Conversion, *, as_json: bool) -> None:
    from worker.conversion import plan
    from worker.precision.explain import explain as explain_nodes
    from worker.precision.views.explanation import render_explanations

    explanations = explain_nodes(plan(conversion_request(model, model, options)), pattern, model)
    typer.echo(explanations.model_dump_json() if as_json else render_explanations(explanations), nl=as_json)
