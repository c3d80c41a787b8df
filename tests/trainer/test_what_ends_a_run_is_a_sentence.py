import errno
import os
import signal
import time
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError
from vantage_trainer.cpu import check_cpu
from vantage_trainer.failure import Failure, explained
from vantage_trainer.schedule import learning_rate, warm_start_rate
from vantage_trainer.spec import Optimization, WarmStart
from vantage_trainer.stopping import Stop, Stopped
from vantage_trainer.sync import SyncError

FULL = "Error while serializing: I/O error: No space left on device (os error 28)"


def caused(fault: Exception, cause: Exception) -> Exception:
    fault.__cause__ = cause
    return fault


FAULTS = [
    (Failure("bad_data", "Row 3 has no answer."), "bad_data"),
    (OSError(errno.ENOSPC, "No space left on device"), "out_of_disk"),
    (SafetensorError(FULL), "out_of_disk"),
    (caused(RuntimeError("It was not written."), SafetensorError("I/O error (os error 28)")), "out_of_disk"),
    (MemoryError(), "out_of_memory"),
    (torch.OutOfMemoryError("CUDA out of memory"), "out_of_memory"),
    (SyncError("The generator does not use the weights it was sent."), "sync_mismatch"),
    (ValueError("Choose another model."), "bad_input"),
    (KeyError("x"), "internal"),
]


@pytest.mark.parametrize(("fault", "code"), FAULTS, ids=[repr(fault)[:40] for fault, _ in FAULTS])
def test_every_fault_has_a_code_and_a_sentence(fault: Exception, code: str) -> None:
    found, sentence = explained(fault)
    assert found == code and sentence.endswith(".") and "Traceback" not in sentence


def test_a_processor_without_avx2_is_refused_before_anything_heavy(tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("processor: 0\nflags\t\t: fpu sse4_2 avx\n")
    with pytest.raises(Failure, match="no AVX2"):
        check_cpu(info, "x86_64")
    check_cpu(info, "aarch64")
    info.write_text("flags\t\t: fpu avx avx2\n")
    check_cpu(info, "x86_64")


def test_a_wish_to_stop_waits_for_work_that_may_be_abandoned(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    stop = Stop(tmp_path / "stop")
    try:
        stop.watch()
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.asked
        with pytest.raises(Stopped), stop.abandonable():
            pytest.fail("work began after the wish to stop")
    finally:
        stop.close()
        signal.signal(signal.SIGTERM, before[0])
        signal.signal(signal.SIGINT, before[1])


def test_the_stop_file_interrupts_work_that_may_be_abandoned(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    stop = Stop(tmp_path / "stop")
    try:
        stop.watch()
        (tmp_path / "stop").write_text("stop")
        with pytest.raises(Stopped), stop.abandonable():
            time.sleep(10)
    finally:
        stop.close()
        signal.signal(signal.SIGTERM, before[0])
        signal.signal(signal.SIGINT, before[1])


def test_learning_rates_rise_and_fall_as_the_schedule_says() -> None:
    settings = Optimization(learning_rate=1.0, schedule="linear", warmup_steps=3)
    rates = [learning_rate(settings, step, 13) for step in range(1, 14)]
    assert rates[:4] == [0.25, 0.5, 0.75, 1.0] and rates[4:] == sorted(rates[4:], reverse=True) and rates[-1] > 0
    assert learning_rate(Optimization(learning_rate=0.5), 7, 10) == 0.5
    warm = [warm_start_rate(WarmStart(steps=100, learning_rate=1.0), step) for step in range(1, 101)]
    assert warm[0] < warm[4] and warm[5:] == sorted(warm[5:], reverse=True) and 0.1 <= warm[-1] < 0.11
