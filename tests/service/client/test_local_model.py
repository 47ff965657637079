import hashlib
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from service.client import LocalModel
from service.errors import CommandError, ExternalDataMissing, NotOnnx
from service.models.types import model_id


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def save(folder: Path, location: str | None = None) -> Path:
    weight = numpy_helper.from_array(np.ones((64, 64), np.float32), "w")
    values = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", 64]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", values[:1], values[1:], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    path = folder / "m.onnx"
    onnx.save(model, path, save_as_external_data=location is not None, location=location, size_threshold=0)
    return path


def test_a_single_file_is_named_by_its_digest(tmp_path: Path) -> None:
    path = save(tmp_path)
    model = LocalModel.read(path)
    assert (model.id, model.external, model.size) == (sha256(path), {}, path.stat().st_size)


def test_external_data_is_part_of_the_model(tmp_path: Path) -> None:
    path = save(tmp_path, "m.data")
    (tmp_path / "unrelated.txt").write_text("not sent")
    model = LocalModel.read(path)
    assert list(model.external) == ["m.data"]
    assert model.id == model_id(sha256(path), {"m.data": sha256(tmp_path / "m.data")})
    assert model.size == path.stat().st_size + (tmp_path / "m.data").stat().st_size


def test_external_data_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = save(tmp_path, "m.data")
    (tmp_path / "m.data").unlink()
    with pytest.raises(ExternalDataMissing, match=r"m\.data"):
        LocalModel.read(path)


def test_external_data_that_leads_out_of_the_folder_is_not_sent(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    path = save(tmp_path / "in", "m.data")
    (tmp_path / "in" / "m.data").rename(tmp_path / "outside")
    (tmp_path / "in" / "m.data").symlink_to(tmp_path / "outside")
    with pytest.raises(ExternalDataMissing, match=r"m\.data"):
        LocalModel.read(path)


def test_what_is_no_model_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_text("dummy\n")
    with pytest.raises(NotOnnx):
        LocalModel.read(tmp_path / "m.onnx")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"m\.onnx: there is no such file"):
        LocalModel.read(tmp_path / "m.onnx")
