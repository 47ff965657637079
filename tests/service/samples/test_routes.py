"""Samples over HTTP: what is accepted, what is said of the rest, and how they are held against a model."""

import io
import zipfile
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pytest
from onnx import numpy_helper

from service.builds.types import now
from service.canonical import digest_of
from service.store.local import LocalStore
from service.workers.repository import WorkerRepository
from service.workers.types import ToolchainOffer, WorkerInfo

X = np.ones((3, 4), np.float32)


def npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def pb(name: str, values: np.ndarray) -> bytes:
    return numpy_helper.from_array(values, name).SerializeToString()


def zipped(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def npy(header: str, values: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + values


@pytest.fixture
def submit(api: httpx.Client, client: Any, model_bytes: bytes) -> Callable[..., httpx.Response]:
    """Uploads samples and asks for a build of the model with the input `x [N, 4]` on them."""
    offer = ToolchainOffer(toolchain="tensorrt-rtx", version="1", archs=("portable",), platform="linux-x86_64")
    worker = WorkerInfo(
        name="w", host="h", pid=1, offers=(offer,), converter_version="1", memory_bytes=1, started_at=now()
    )
    WorkerRepository(client).announce(worker, 600)
    model = api.post("/models", content=model_bytes).json()["id"]

    def submitted(*samples: bytes) -> httpx.Response:
        digests = [api.post("/samples", content=sample).json()["digest"] for sample in samples]
        return api.post("/builds", json={"model": model, "output": "onnx", "accuracy": {"samples": digests}})

    return submitted


@pytest.mark.parametrize(("data", "kind"), [(npz(x=X), "npz"), (pb("x", X), "pb")], ids=["npz", "pb"])
def test_a_sample_is_a_blob_that_says_what_it_holds(api: httpx.Client, data: bytes, kind: str) -> None:
    first, again = (api.post("/samples", content=data) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 200)
    assert (
        first.json()
        == again.json()
        == {
            "digest": digest_of(data),
            "size": len(data),
            "format": kind,
            "tensors": [{"name": "x", "dtype": "float", "shape": [3, 4]}],
        }
    )
    assert api.head(first.headers["location"]).status_code == 200


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "neither"),
        (b"neither", "neither an .npz archive nor an ONNX tensor"),
        (b"PK\x03\x04", "cut off"),
        (npz(), "has no arrays"),
        (npz(x=np.array([None])), "has dtype '|O'; use one of bool"),
        (npz(x=np.ones(2, np.complex64)), "has dtype '<c8'"),
        (npz(x=X.astype(">f4")), "has dtype '>f4'"),
        (zipped(**{"x.txt": b"1"}), "'x.txt', which is no .npy array"),
        (zipped(**{"x.npy": b"1"}), "does not begin as a .npy file does"),
        (zipped(**{"x.npy": npy("(((")}), "has a header that cannot be read"),
        (zipped(**{"x.npy": npy("{'a': 1}")}), "has a header that is not numpy's"),
        (
            zipped(**{"x.npy": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (9,)}", b"1")}),
            "bytes; its header asks for",
        ),
        (
            zipped(**{"x.npy": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", b"1")}),
            "has a shape that is not one",
        ),
        (zipped(**{f"{at}.npy": b"" for at in range(1025)}), "1025 members"),
        (npz(x=X)[:40], "cut off"),
        (pb("", X), "has no name"),
        (pb("x", X)[:-4], "neither"),
    ],
)
def test_what_is_no_sample_is_refused_and_gone(api: httpx.Client, store: LocalStore, data: bytes, message: str) -> None:
    response = api.post("/samples", content=data)
    assert response.status_code == 422, response.text
    assert response.json()["type"] == "urn:atoll:problem:invalid-sample"
    assert message in response.json()["detail"]
    assert list(store.list("blobs/")) == []


def test_other_media_are_refused(api: httpx.Client) -> None:
    assert api.post("/samples", json={}).status_code == 415


def test_samples_that_fit_are_part_of_the_build(submit: Callable[..., httpx.Response]) -> None:
    answer = submit(npz(x=X), npz(x=X[:1]), pb("x", X), pb("x", X + 1))
    assert answer.status_code == 202, answer.text
    assert len(answer.json()["spec"]["accuracy"]["samples"]) == 4


@pytest.mark.parametrize(
    ("sample", "where", "message"),
    [
        (npz(x=X, mask=X), "accuracy.samples.0.mask", "the model has no such input; it has 'x'"),
        (npz(y=X), "accuracy.samples.0.y", "the model has no such input"),
        (npz(x=X.astype(np.float64)), "accuracy.samples.0.x", "the values are double; the input is float"),
        (npz(x=X[:, :3]), "accuracy.samples.0.x", "the shape is [3, 3]; the input's is ['N', 4]"),
        (pb("y", X), "accuracy.samples.pb.y", "the model has no such input"),
    ],
)
def test_samples_that_do_not_fit_are_refused_by_name(
    submit: Callable[..., httpx.Response], sample: bytes, where: str, message: str
) -> None:
    answer = submit(sample)
    assert (answer.status_code, answer.json()["type"]) == (422, "urn:atoll:problem:invalid-sample")
    assert answer.json()["errors"][0]["where"] == where
    assert message in answer.json()["errors"][0]["message"]


def test_an_input_without_values_is_told(submit: Callable[..., httpx.Response]) -> None:
    errors = submit(npz(y=X)).json()["errors"]
    assert {"where": "accuracy.samples.0.x", "message": "there are no values for this input"} in errors
