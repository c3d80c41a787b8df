"""NVIDIA's devices, as its own tool lists them: where a driver is installed, so is nvidia-smi."""

import shutil
import subprocess

TOOL = "nvidia-smi"
PATIENCE = 30.0  # seconds: without persistence mode the first answer takes long
MEBIBYTE = 2**20


def gpus() -> list[dict[str, str | int | list[int]]]:
    """Return the GPUs that are there now."""
    return [
        {"id": f"cuda{index}", "kind": "cuda", "name": name, "memory": int(float(mebibytes)) * MEBIBYTE}
        for index, name, mebibytes in query("index,name,memory.total")
    ]


def query(fields: str) -> list[list[str]]:
    """Return a row for each GPU; none where there is no driver or it does not answer."""
    if not shutil.which(TOOL):
        return []
    try:
        command = [TOOL, f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
        told = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    except (subprocess.TimeoutExpired, OSError):
        return []
    rows = [line.split(", ") for line in told.stdout.splitlines()] if told.returncode == 0 else []
    return [row for row in rows if len(row) == fields.count(",") + 1]
