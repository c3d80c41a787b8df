"""`platform/start.py`: what is missing is told in a sentence, and nothing waits for an index that isn't there."""

import importlib.util
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

FILE = Path(__file__).parents[2] / "platform" / "start.py"


@pytest.fixture
def start() -> ModuleType:
    spec = importlib.util.spec_from_file_location("start_command", FILE)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_imports_nothing_that_must_be_installed_first() -> None:
    program = f"import runpy; runpy.run_path({str(FILE)!r})"
    subprocess.run([sys.executable, "-I", "-S", "-c", program], check=True)


def test_another_python_is_told_which_one_is_needed(start: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 2))
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(start.Refusal, match=r"needs Python 3\.11 or 3\.12, and this is 3\.10"):
        start.require_python()


@pytest.mark.parametrize("missing", ["ensurepip", "venv"])
def test_a_python_without_venv_is_told_which_package_brings_it(
    start: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, missing: str
) -> None:
    monkeypatch.setattr(start, "VENV", tmp_path / "venv")
    monkeypatch.setattr(start, "PYTHON", tmp_path / "venv" / "bin" / "python")
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(start.Refusal, match=rf"lacks {missing}: .*apt-get install python3\.\d+-venv"):
        start.make_environment()


def test_a_full_disk_is_told_before_anything_is_downloaded(
    start: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(start, "SPACE_NEEDED", 1 << 60)
    monkeypatch.setattr(start, "STAMP", tmp_path / "none")
    with pytest.raises(start.Refusal, match=r"^No disk left"):
        start.require_machine()


def test_an_index_that_never_answers_is_given_up_after_three_seconds(start: ModuleType) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begun = time.monotonic()
        assert not start.answers(f"http://127.0.0.1:{silent.getsockname()[1]}")
        assert time.monotonic() - begun < start.PROBE_SECONDS + 1


def test_a_local_wheel_is_found_through_pips_settings_and_no_index_is_asked(
    start: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl").touch()
    monkeypatch.setattr(start, "PYTHON", sys.executable)
    monkeypatch.delenv("UV_FIND_LINKS", raising=False)
    monkeypatch.setenv("PIP_FIND_LINKS", f"/nowhere {tmp_path}")
    settings = start.installer_settings()
    assert settings["UV_FIND_LINKS"] == f"/nowhere,{tmp_path}"
    monkeypatch.setattr(start, "answers", lambda index: pytest.fail("an index was asked"))
    start.install_torch(settings)


def test_the_pins_name_the_torch_that_the_project_asks_for_and_no_build_of_it(start: ModuleType) -> None:
    pins = start.CONSTRAINTS.read_text().split()
    assert start.TORCH in pins
    assert f'"{start.TORCH}"' in (start.ROOT / "pyproject.toml").read_text()
    assert [pin for pin in pins if "+" in pin] == []
