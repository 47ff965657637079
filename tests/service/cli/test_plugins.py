from importlib.metadata import EntryPoint

import pytest

from service.cli import plugins


def test_the_worker_adds_its_commands() -> None:
    modules = {register.__module__ for register in plugins.command_plugins()}
    assert {"worker.commands.convert", "worker.commands.build", "worker.commands.worker"} <= modules


def test_a_plugin_that_cannot_be_loaded_is_named_and_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = EntryPoint("broken", "no_such_module:register", "atoll.commands")
    monkeypatch.setattr(plugins, "entry_points", lambda group: [broken])
    assert list(plugins.command_plugins()) == []
    assert "atoll.commands 'broken' (no_such_module:register) cannot be loaded" in capsys.readouterr().err
