import pytest

from service.client import transport as transport_module
from service.client.transport import Transport
from service.errors import AtollError, BuildNotFound, ProblemError, Unavailable
from tests.service.client.answers import Respond, answer, answer_json, answer_problem, hang_up
from tests.service.client.conftest import ScriptedServer


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport_module, "_FIRST_PAUSE", 0.001)
    monkeypatch.setattr(transport_module, "_LONGEST_PAUSE", 0.01)


def test_a_safe_request_is_tried_again(scripted_server: ScriptedServer) -> None:
    away = answer_problem(Unavailable("Redis is away"), Retry_After="1")
    scripted_server.steps = [away, hang_up, answer_json({"answered": True})]
    assert Transport(scripted_server.url).get("/version").json() == {"answered": True}
    assert len(scripted_server.requests) == 3


def test_it_gives_up_with_the_servers_own_words(scripted_server: ScriptedServer) -> None:
    scripted_server.steps = [answer_problem(Unavailable("Redis is away"))] * 5
    with pytest.raises(ProblemError) as caught:
        Transport(scripted_server.url).get("/builds")
    assert caught.value.problem().slug == "unavailable"
    assert len(scripted_server.requests) == 5


@pytest.mark.parametrize("failure", [hang_up, answer_problem(Unavailable("Redis is away"))])
def test_a_post_is_sent_once(scripted_server: ScriptedServer, failure: Respond) -> None:
    scripted_server.steps = [failure]
    with pytest.raises(AtollError):
        Transport(scripted_server.url).post("/builds", json={})
    assert len(scripted_server.requests) == 1


def test_a_problem_is_not_tried_again(scripted_server: ScriptedServer) -> None:
    scripted_server.steps = [answer_problem(BuildNotFound("there is no build x"))]
    with pytest.raises(ProblemError, match="there is no build x"):
        Transport(scripted_server.url).get("/builds/x")


@pytest.mark.parametrize(("status", "found"), [(200, True), (404, False)])
def test_head_answers_whether_it_is_there(scripted_server: ScriptedServer, status: int, found: bool) -> None:
    scripted_server.steps = [answer(status)]
    assert Transport(scripted_server.url).head("/models/x") is found


def test_what_is_no_atoll_server_is_said(scripted_server: ScriptedServer) -> None:
    scripted_server.steps = [answer(500, b"<html>")]
    with pytest.raises(AtollError, match=r"answered 500 without a problem.*atoll server\?"):
        Transport(scripted_server.url).get("/builds")


def test_nobody_there_says_how_to_start_one() -> None:
    with pytest.raises(Unavailable, match=r"no answer from http://127.0.0.1:1 .*atoll up"):
        Transport("http://127.0.0.1:1").get("/builds")
