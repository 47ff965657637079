import pytest

from tests.worker.precision.views.reports import AUTO, island, report
from worker.precision.report import AttentionReport, Finding, KeptWeight
from worker.precision.views.text import render_text


@pytest.mark.parametrize(
    "line",
    [
        "mode rope, trunk fp16, attention bounded, opset 17",
        "75.0%: 6 of 8 float tensors",
        "casts       1 -> 3: 2 added, 0 removed",
        "4.0 MB -> 2.0 MB: 3 in fp16, 1 in fp32",
        "float16     0 -> 6 tensors",
        "ISLANDS  1 island, 2 nodes kept in FP32",
        "normalization: 1 island, 2 nodes; squares overflow",
        "mean of squares of 'x' [Mulx2]",
        "1 core in fp16: fuses",
        "normalization: 1 weight, 4 B",
        "eps (scalar, 4 B): norm",
        "guarded: 1",
        "mask: clamped where it is cast",
        "sm: it is in a core",
    ],
)
def test_everything_of_the_report_is_told(line: str) -> None:
    assert line in render_text(report())


def test_a_search_is_told() -> None:
    text = render_text(report(mode="auto", auto=AUTO))
    assert "AUTO  target 0.999 met: 2 of 9 islands of mode rope are kept" in text
    assert "cosine 0.999500 at 25.0% of the FP32 cost of mode rope; 7 runs of the model" in text
    assert "0 islands: cost 5, cosine 0.500000, 3 not finite, fails" in text
    assert "2 islands: cost 25, cosine 0.999500, passes" in text


def test_dtypes_that_do_not_change_are_left_out() -> None:
    assert "int64" not in render_text(report())


def test_a_raised_opset_is_told() -> None:
    assert "opset 12 -> 15" in render_text(report(opset_before={"": 12}, opset_after={"": 15}))


def test_parts_that_are_empty_have_no_heading() -> None:
    text = render_text(report(attentions=(), findings=(), kept_weights=()))
    assert not {"ATTENTION", "FINDINGS", "DECLINED", "WEIGHTS IN FP32"} & {
        line.split("  ")[0] for line in text.split("\n")
    }


MANY = range(1000)
CORE = AttentionReport(softmax="s", dtype="fp16", bounded=True, reason="r", nodes=())
WEIGHT = KeptWeight(name="w", shape=(2,), size=8, cause="c", reason="r", readers=())


@pytest.mark.parametrize(
    "changes",
    [
        {"islands": tuple(island(reason=f"norm {n}") for n in MANY)},
        {"attentions": (CORE,) * len(MANY)},
        {"findings": tuple(Finding(kind="saturated", where=f"c{n}", detail="clamped") for n in MANY)},
        {"findings": tuple(Finding(kind="declined: angle", where=f"c{n}", detail="short") for n in MANY)},
        {"kept_weights": (WEIGHT,) * len(MANY)},
    ],
    ids=["islands", "cores", "hazards", "declined", "weights"],
)
def test_a_thousand_of_a_kind_are_no_wall(changes: dict[str, tuple[object, ...]]) -> None:
    lines = render_text(report(**changes)).splitlines()
    assert len(lines) < 40
    assert sum(line.strip() == "… and 997 more" for line in lines) == 1


def test_the_family_with_most_nodes_comes_first() -> None:
    text = render_text(
        report(islands=(island("softmax", nodes=1), island("angle", nodes=9), island("softmax", nodes=1)))
    )
    assert text.index("angle: 1 island, 9 nodes") < text.index("softmax: 2 islands, 2 nodes")


def test_names_cannot_steer_the_terminal() -> None:
    text = render_text(report(findings=(Finding(kind="guarded", where="\x1b[2J\u202eevil\r", detail="a\nb"),)))
    assert "\\x1b[2J\\u202eevil\\r: a\\nb" in text
    assert not {"\x1b", "\u202e", "\r"} & set(text)
