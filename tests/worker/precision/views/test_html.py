"""The page is read back by a parser: what a browser would see."""

from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from service.builds.types import Proof
from tests.worker.precision.views.reports import AUTO, island, report
from worker.precision.report import Finding
from worker.precision.views.html import render_html

VOID = {"meta", "br", "link", "img", "input", "hr"}
EVIL = "<script>alert(1)</script>\"'&\0\u202e"


class Page(HTMLParser):
    """Elements with their attributes, and the text outside of style. Fails when tags do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.text += data

    def tags(self) -> set[str]:
        return {tag for tag, _ in self.elements}


@pytest.mark.parametrize(
    "words",
    [
        "net.onnx",
        "mode rope · trunk fp16",
        "75.0 %",
        "6 of 8 float tensors",
        "mean of squares of 'x'",
        "squares overflow",
        "clamped where it is cast",
        "it is in a core",
        "scalar",
        "6 nodes: fp16",
    ],
)
def test_the_page_tells_what_the_report_does(words: str) -> None:
    assert words in Page(render_html("net.onnx", report())).text


def test_nothing_runs_and_nothing_is_loaded() -> None:
    page = Page(render_html("net.onnx", report(), Proof()))
    assert not {"script", "link", "img", "iframe", "object", "form", "a"} & page.tags()
    names = {name for _, attributes in page.elements for name in attributes}
    assert not {name for name in names if name.startswith("on") or name in {"href", "src", "srcset", "style"}}
    assert "url(" not in render_html("net.onnx", report())


@pytest.mark.parametrize(
    "page",
    [
        render_html(EVIL, None),
        render_html("net", report(findings=(Finding(kind=EVIL, where=EVIL, detail=EVIL),))),
        render_html("net", report(islands=(island(family=EVIL, reason=EVIL),))),
        render_html("net", report(dtypes_before={EVIL: 1}, opset_before={"": 17, EVIL: 1})),
        render_html("net", report(), Proof(reason=EVIL, builder_warnings=(EVIL,))),
    ],
    ids=["title", "finding", "island", "dtype", "proof"],
)
def test_names_are_only_ever_text(page: str) -> None:
    assert "<script" not in page
    assert not {"\0", "\u202e"} & set(page)
    assert "<script>alert(1)</script>\"'&\\x00\\u202e" in Page(page).text


def test_the_strip_can_be_heard() -> None:
    text = render_html("net.onnx", report())
    svg = ElementTree.fromstring(text[text.index("<svg") : text.index("</svg>") + len("</svg>")])
    labels = str(svg.get("aria-labelledby")).split()
    assert svg.get("role") == "img"
    assert [child.get("id") for child in svg if child.tag in {"title", "desc"}] == labels
    assert "6 fp16, 2 FP32, 2 Cast, 0 no floats." in "".join(svg.itertext())
    assert {child.get("class") for child in svg if child.tag == "path"} == {"half", "fp32", "cast"}


@pytest.mark.parametrize(
    ("proof", "words"),
    [
        (Proof(verdict="passed", cosine=0.99995), "cosine 0.999950"),
        (Proof(verdict="failed", reason="cosine 0.9 of output y"), "cosine 0.9 of output y"),
        (Proof(verdict="not verified", reason="nothing to compare"), "nothing to compare"),
        (Proof(fused_attentions=4), "Fused attentions4"),
        (Proof(builder_warnings=("norm may overflow",)), "norm may overflow"),
    ],
)
def test_the_proof_of_a_build_is_shown(proof: Proof, words: str) -> None:
    assert words in Page(render_html("net.onnx", report(), proof)).text


def test_a_graph_taken_as_uploaded_has_a_page_too() -> None:
    page = Page(render_html("net.onnx", None, Proof(verdict="not verified", reason="mode none")))
    assert "nothing was converted" in page.text
    assert "mode none" in page.text


def test_long_lists_are_folded() -> None:
    page = Page(render_html("net.onnx", report(islands=tuple(island(reason=f"norm {n}") for n in range(50)))))
    details = [attributes for tag, attributes in page.elements if tag == "details"]
    assert len(details) > 50
    assert all("open" not in attributes for attributes in details)


@pytest.mark.parametrize(
    "words", ["Target 0.999: met", "7 runs", "25.0 %", "0.999500", "softmax: softmax outside a core", "it overflows"]
)
def test_a_search_has_a_section(words: str) -> None:
    assert words in Page(render_html("net.onnx", report(mode="auto", auto=AUTO))).text


def test_without_a_search_there_is_no_such_section() -> None:
    assert "Mode auto" not in Page(render_html("net.onnx", report())).text
