from tests.worker.precision.planned import plan_in_trunk
from worker.verify.search.cost import node_cost, plan_cost

NORM = "s = Pow(x, two) m = ReduceMean<axes = [-1]>(s) e = Add(m, eps) r = Sqrt(e) n = Div(x, r) y = Mul(n, gamma)"
SHAPES = dict.fromkeys(("input", "x", "s", "n", "y", "output"), (1, 8, 64)) | dict.fromkeys(("m", "e", "r"), (1, 8, 1))


def test_moved_bytes_and_operations_are_counted() -> None:
    planned = plan_in_trunk(NORM)
    costs = {node.output: node_cost(planned.graph, node, SHAPES) for node in planned.graph.nodes}
    assert costs["s"] == 4 * (512 + 1 + 512)
    assert costs["x"] == 4 * (512 + 64 * 64 + 512) + 2 * 512 * 64 / 64


def test_only_what_is_fp32_costs() -> None:
    some, none, full = (
        plan_in_trunk(NORM, **options) for options in ({}, {"keep_trunk": ("*",)}, {"keep_fp32": ("*",)})
    )
    costs = [plan_cost(planned.graph, planned.plan, SHAPES) for planned in (none, some, full)]
    assert costs[0] == 0.0
    assert costs == sorted(costs)
    assert costs[1] != costs[2]


def test_longer_samples_cost_more() -> None:
    planned = plan_in_trunk(NORM)
    longer = {name: (1, 2 * shape[1], shape[2]) for name, shape in SHAPES.items()}
    costs = [plan_cost(planned.graph, planned.plan, shapes) for shapes in (SHAPES, longer)]
    assert costs[0] < costs[1] < 2 * costs[0]
