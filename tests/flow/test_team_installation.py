"""compose.yaml, the images and the systemd units, as far as they can be checked without an engine."""

import configparser
import fnmatch
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from vantage.runs.agent import DRAIN_SECONDS, lock_of

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "compose.yaml").read_text()
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(TEXT)["services"]
NODES = ["node", "gpu-node"]
SECRETS = ["VANTAGE_POSTGRES_PASSWORD", "VANTAGE_VALKEY_PASSWORD", "VANTAGE_SECRET_KEY"]
BUILT = {name: service["build"] for name, service in SERVICES.items() if "build" in service}


def seconds(duration: str) -> int:
    assert duration.endswith("s")
    return int(duration[:-1])


def compose(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("VANTAGE_")}
    command = ["docker", "compose", "--env-file", "/dev/null", *arguments]
    return subprocess.run(command, cwd=ROOT, env=own | environment, capture_output=True, text=True)


needs_compose = pytest.mark.skipif(
    not shutil.which("docker") or compose("version").returncode != 0, reason="no docker compose here"
)


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_says_when_it_is_healthy_and_comes_back(name: str) -> None:
    service = SERVICES[name]
    assert service["healthcheck"]["test"] and service["restart"] == "unless-stopped"
    assert all(need["condition"] == "service_healthy" for need in service.get("depends_on", {}).values())


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_keeps_its_data_in_a_volume_of_its_own(name: str) -> None:
    assert [volume.partition(":")[0] for volume in SERVICES[name]["volumes"]] == [name]
    assert name in yaml.safe_load(TEXT)["volumes"]


@pytest.mark.parametrize("name", SERVICES)
def test_only_the_site_is_published_and_only_to_this_machine(name: str) -> None:
    wanted = ["${VANTAGE_ADDRESS:-127.0.0.1}:${VANTAGE_PORT:-8000}:8000"] if name == "web" else []
    assert SERVICES[name].get("ports", []) == wanted
    assert not {"network_mode", "privileged", "pid"} & SERVICES[name].keys()


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_comes_from_the_environment_or_is_asked_for(secret: str) -> None:
    uses = re.findall(rf"\$\{{{secret}([^}}]*)\}}", TEXT)
    assert f":?Set {secret} in .env; .env.example says how." in uses
    assert set(uses) <= {"", f":?Set {secret} in .env; .env.example says how."}
    assert re.search(rf"^{secret}=$", (ROOT / ".env.example").read_text(), re.M)


def test_no_secret_is_written_down() -> None:
    for service in SERVICES.values():
        for name, value in service["environment"].items():
            assert not re.search("PASSWORD|KEY", name) or value.startswith("${VANTAGE_")
            assert not re.search(r"://\w*:(?!\$\{VANTAGE_)[^@]*@", value)
    assert "requirepass" in SERVICES["valkey"]["command"][1]


def test_every_setting_is_documented() -> None:
    used = set(re.findall(r"\$\{(VANTAGE_\w+)", TEXT))
    documented = set(re.findall(r"^#?(VANTAGE_\w+)=", (ROOT / ".env.example").read_text(), re.M))
    assert used == documented


@pytest.mark.parametrize("name", NODES)
def test_a_node_has_shared_memory_and_time_to_drain(name: str) -> None:
    node = SERVICES[name]
    assert node["shm_size"] == "${VANTAGE_SHM_SIZE:-8gb}"
    assert seconds(node["stop_grace_period"]) > DRAIN_SECONDS + 10
    assert node["init"] is False and "entrypoint" not in node  # the node itself hears SIGTERM
    assert "VANTAGE_SECRET_KEY" not in node["environment"]


def test_a_nodes_health_is_the_age_of_its_lock(tmp_path: Path, settings: Any) -> None:
    settings.HOME = tmp_path
    kind, check = SERVICES["node"]["healthcheck"]["test"]
    command = ["sh", "-c", check.replace("$$", "$").replace("/var/lib/vantage", str(tmp_path))]
    lock = lock_of("n1")
    lock.parent.mkdir()
    assert kind == "CMD-SHELL" and subprocess.run(command).returncode != 0
    lock.touch()
    assert subprocess.run(command).returncode == 0
    os.utime(lock, (0, 0))
    assert subprocess.run(command).returncode != 0


def test_only_the_gpu_profile_asks_for_devices() -> None:
    assert [name for name, service in SERVICES.items() if "profiles" in service] == ["gpu-node"]
    devices = SERVICES["gpu-node"]["deploy"]["resources"]["reservations"]["devices"]
    assert devices == [{"driver": "nvidia", "count": "all", "capabilities": ["gpu"]}]
    assert BUILT["gpu-node"]["args"] == {"ENGINE": "gpu"} and "args" not in BUILT["node"]


@pytest.mark.parametrize("name", BUILT)
def test_an_image_runs_as_an_ordinary_user_and_gets_what_it_copies(name: str) -> None:
    lines = (ROOT / BUILT[name]["dockerfile"]).read_text().splitlines()
    final = lines[max(place for place, line in enumerate(lines) if line.startswith("FROM ")) :]
    assert "USER vantage" in final and final.index("USER vantage") < final.index("VOLUME /var/lib/vantage")
    kept = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    for needed in ("pyproject.toml", "README.md", "platform/constraints.txt", "frontend", "worker", "migrations"):
        assert any(fnmatch.fnmatch(needed, pattern) or needed.startswith(f"{pattern}/") for pattern in kept)


def test_the_sites_image_holds_no_engine() -> None:
    text = (ROOT / BUILT["web"]["dockerfile"]).read_text()
    assert "torch" not in text and "vantage[" not in text


@needs_compose
def test_compose_accepts_the_file() -> None:
    told = compose("--profile", "gpu", "config", "--quiet", **dict.fromkeys(SECRETS, "x"))
    assert told.returncode == 0, told.stderr


@needs_compose
def test_compose_asks_for_a_missing_secret() -> None:
    told = compose("config", "--quiet")
    assert told.returncode != 0 and ".env.example says how." in told.stderr


def unit(name: str) -> configparser.SectionProxy:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(ROOT / "platform" / "systemd" / f"vantage-{name}.service")
    return parser["Service"]


def test_the_nodes_unit_ends_only_the_agent_and_lets_it_drain() -> None:
    node = unit("node")
    assert (node["KillMode"], node["Restart"], node["OOMPolicy"]) == ("process", "always", "continue")
    assert int(node["TimeoutStopSec"]) > DRAIN_SECONDS + 10


@pytest.mark.parametrize("name", ["web", "node"])
def test_systemd_accepts_the_units(name: str, tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd here")
    text = (ROOT / "platform" / "systemd" / f"vantage-{name}.service").read_text()
    unit_file = tmp_path / f"vantage-{name}.service"
    unit_file.write_text(text.replace("/opt/vantage/bin/vantage", "/bin/true").replace("User=vantage", "User=root"))
    told = subprocess.run(["systemd-analyze", "verify", "--man=no", unit_file], capture_output=True, text=True)
    assert told.returncode == 0 and unit_file.name not in told.stderr, told.stderr
