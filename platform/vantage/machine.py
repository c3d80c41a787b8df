"""What this machine must have before a run can be trained on it."""

import platform
import shutil
from pathlib import Path


def require_vector_unit(cpuinfo: Path = Path("/proc/cpuinfo")) -> None:
    """Refuse a machine on which vLLM's CPU build would end with an illegal instruction."""
    if platform.machine() != "x86_64" or shutil.which("nvidia-smi"):
        return
    flags = next((line for line in cpuinfo.read_text().splitlines() if line.startswith("flags")), "")
    if "avx2" not in flags.split():
        raise ValueError(
            "This machine's processor has no AVX2, which vLLM needs on a CPU, and there is no GPU: "
            "start only the site with `vantage up --no-node`, and run `vantage node` on another machine."
        )
