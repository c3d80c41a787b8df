"""The two commands of the README: make the environment and start Vantage, or (`test`) run every check.

Standard library only: it runs before anything is installed.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "vantage-installed"
CONSTRAINTS = ROOT / "platform" / "constraints.txt"
VERSIONS = ((3, 11), (3, 12))
SPACE_NEEDED = 8 * 2**30  # bytes, for the environment and the installer's cache
TORCH = "torch==2.13.0"
TORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"  # a quarter of the size of PyPI's build, which has CUDA in it
PROBE_SECONDS = 3.0


class Refusal(Exception):
    """A sentence that says what is missing on this machine and how to get it."""


def main() -> None:
    arguments = sys.argv[1:]
    try:
        require_python()
        if arguments[:1] == ["test"]:
            install("test")
            run_checks(arguments[1:])
        else:
            install()
            start(arguments)
    except Refusal as refusal:
        sys.exit(str(refusal))
    except subprocess.CalledProcessError as error:
        sys.exit(f"This step failed: {' '.join(map(str, error.cmd))}\nIts output above says why; then start again.")
    except KeyboardInterrupt:
        sys.exit("\nStopped; the same command goes on from here.")


def say(text: str) -> None:
    print(text, flush=True)


def require_python() -> None:
    """Go on with a Python that the engines have wheels for, if this one is not."""
    if sys.version_info[:2] in VERSIONS:
        return
    for major, minor in VERSIONS:
        if found := shutil.which(f"python{major}.{minor}"):
            os.execv(found, [found, *sys.argv])
    here = ".".join(map(str, sys.version_info[:2]))
    raise Refusal(f"Vantage needs Python 3.11 or 3.12, and this is {here}: install one of them and start again.")


def engine() -> str:
    """Which extra of pyproject.toml holds this machine's engines."""
    if not (program := shutil.which("nvidia-smi")):
        return "cpu"
    listed = subprocess.run([program, "-L"], capture_output=True, text=True)
    return "gpu" if listed.returncode == 0 and "GPU" in listed.stdout else "cpu"


def install(*more: str) -> None:
    """Bring .venv to what pyproject.toml asks for; nothing happens when it is."""
    extras = ",".join([engine(), *more])
    wanted = [fingerprint(extras), fingerprint(f"{engine()},test")]  # who has the tests' packages too lacks nothing
    if works() and STAMP.exists() and STAMP.read_text() in wanted:
        return
    require_machine()
    begun = time.monotonic()
    make_environment()
    STAMP.unlink(missing_ok=True)
    environment = os.environ | installer_settings()
    if engine() == "cpu":
        install_torch(environment)
    say(f"Installing Vantage with its engines ({extras}); the first time this downloads about 1 GB.")
    constraints = ["-c", str(CONSTRAINTS)] if engine() == "cpu" else []
    subprocess.run([*uv(), "-e", f".[{extras}]", *constraints], cwd=ROOT, env=environment, check=True)
    try_engines()
    STAMP.write_text(fingerprint(extras))
    say(f"Installed in {time.monotonic() - begun:.0f} s.")


def try_engines() -> None:
    """Prove that vLLM and DeepSpeed work here before anything depends on it; this also compiles their modules."""
    say("Trying the engines: one step of training (about half a minute).")
    if subprocess.run([PYTHON, "-P", "-m", "vantage_trainer.first_start"], cwd=ROOT).returncode != 0:
        raise Refusal("The installation is complete, but its engines do not run; the lines above say why.")


def fingerprint(extras: str) -> str:
    """What an installation depends on: the wishes, the pins, the extras, the Python, and where the checkout lies."""
    parts = [(ROOT / "pyproject.toml").read_bytes(), CONSTRAINTS.read_bytes()]
    parts += [extras.encode(), sys.version.encode(), os.fsencode(ROOT)]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def works() -> bool:
    """Say whether .venv holds a Python that starts; not so after the system's was replaced."""
    try:
        return subprocess.run([PYTHON, "-c", "import venv"], capture_output=True).returncode == 0
    except OSError:
        return False


def require_machine() -> None:
    """Refuse before a gigabyte is downloaded."""
    from vantage.machine import require_vector_unit  # stands beside this file and imports nothing that is installed

    try:
        require_vector_unit()
    except ValueError as error:
        raise Refusal(str(error)) from error
    free = shutil.disk_usage(ROOT).free
    if free < SPACE_NEEDED and not STAMP.exists():
        raise Refusal(
            f"No disk left: {free / 2**30:.1f} GiB are free under {ROOT}, and the engines need "
            f"{SPACE_NEEDED / 2**30:.0f} GiB. Free some, or move the checkout to another disk."
        )


def make_environment() -> None:
    """Make .venv with uv in it, which installs in seconds what takes pip minutes."""
    if not works():
        say(f"Making the environment {VENV}.")
        shutil.rmtree(VENV, ignore_errors=True)
        try:
            import ensurepip  # noqa: F401 - Debian leaves it out; `python -m venv` tells so only half-way through
            import venv
        except ImportError as error:
            raise Refusal(
                f"This Python lacks {error.name}: on Debian or Ubuntu, "
                f"`apt-get install python3.{sys.version_info.minor}-venv` brings it; then start again."
            ) from error
        venv.create(VENV, with_pip=True)
    if not (VENV / "bin" / "uv").exists():
        pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-c", str(CONSTRAINTS), "uv"], check=True)


def uv() -> list[str]:
    return [str(VENV / "bin" / "uv"), "pip", "install", "--python", str(PYTHON)]


def installer_settings() -> dict[str, str]:
    """Say to uv what pip's own settings say: a folder of wheels, a mirror, a certificate."""
    listed = subprocess.run([PYTHON, "-m", "pip", "config", "list"], capture_output=True, text=True).stdout
    pairs = re.findall(r"^\S+\.(find-links|index-url|cert)='(.*)'$", listed, re.M)
    found = dict(reversed(pairs))  # pip lists the environment first, and that counts before its files
    names = {"find-links": "UV_FIND_LINKS", "index-url": "UV_DEFAULT_INDEX", "cert": "SSL_CERT_FILE"}
    settings = {names[key]: value for key, value in found.items() if names[key] not in os.environ}
    if "UV_FIND_LINKS" in settings:  # pip separates by blanks, uv by commas
        settings["UV_FIND_LINKS"] = ",".join(settings["UV_FIND_LINKS"].replace("\\n", " ").split())
    return settings


def install_torch(environment: dict[str, str]) -> None:
    """Take PyTorch's CPU build from its own index where that answers; where not, a local wheel or PyPI's build."""
    places = environment.get("UV_FIND_LINKS", "").split(",")
    pattern = TORCH.replace("==", "-") + "*.whl"
    if any(place and list(Path(place).glob(pattern)) for place in places) or not answers(TORCH_CPU_INDEX):
        return
    say(f"Installing {TORCH} from {TORCH_CPU_INDEX}.")
    subprocess.run([*uv(), "--no-deps", TORCH, "--default-index", TORCH_CPU_INDEX], env=environment, check=True)


def answers(index: str) -> bool:
    """Ask an index; looking up its name may hang too, so the wait is limited from outside."""
    heard: list[bool] = []

    def ask() -> None:
        try:
            urllib.request.urlopen(f"{index}/torch/", timeout=PROBE_SECONDS).close()
        except (OSError, ValueError):
            return
        heard.append(True)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(PROBE_SECONDS)
    return bool(heard)


def start(arguments: list[str]) -> None:
    """Become `vantage up --demo`."""
    os.environ.setdefault("VANTAGE_HOME", str(ROOT / ".vantage"))
    os.execv(PYTHON, [str(PYTHON), "-P", "-m", "vantage.cli", "up", "--demo", *arguments])


def run_checks(arguments: list[str]) -> None:
    """Become the checks, with a browser at hand."""
    os.chdir(ROOT)
    os.execv(PYTHON, [str(PYTHON), "-P", str(ROOT / "platform" / "checks.py"), *arguments])


if __name__ == "__main__":
    main()
