"""The conversion report as one HTML file: no script, nothing from elsewhere, light and dark."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from service.builds.types import Proof
from worker.precision.report import ConversionReport
from worker.precision.views import groups
from worker.precision.views.names import visible
from worker.precision.views.range_strip import draw_ranges
from worker.precision.views.strip import draw_strip
from worker.precision.views.units import number, size


def render_html(
    title: str,
    report: ConversionReport | None,
    proof: Proof | None = None,
    verification: Mapping[str, Any] | None = None,
) -> str:
    """`title` is the model's name. `report` is None where the graph was taken as uploaded, `proof` where nobody
    verified or built. `verification` is that part of a build's report: outputs, culprit, findings, ranges."""
    template = _environment().get_template("report.html.j2")
    return template.render(
        title=title,
        report=report,
        proof=proof,
        verification=verification,
        groups=groups,
        draw_strip=draw_strip,
        draw_ranges=draw_ranges,
    )


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("worker.precision", "views"),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["size"] = size
    environment.globals["number"] = number
    return environment


def _shown(value: object) -> object:
    """What a name must not do in a page: hide, or turn the text around it. Escaping of markup comes after this."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
