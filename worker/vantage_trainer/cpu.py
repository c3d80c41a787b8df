"""What the processor must be able to do."""

import platform
from pathlib import Path

from vantage_trainer.failure import Failure

CPU_INFO = Path("/proc/cpuinfo")


def check_cpu(info: Path = CPU_INFO, machine: str | None = None) -> None:
    """Raise Failure on an x86 processor without AVX2, where vLLM would die of an illegal instruction."""
    if (machine or platform.machine()) not in ("x86_64", "AMD64") or not info.exists():
        return
    flags = next((line for line in info.read_text().splitlines() if line.startswith("flags")), "avx2")
    if "avx2" not in flags.split():
        raise Failure("no_avx2", "This machine's processor has no AVX2, which vLLM needs: run on another node.")
