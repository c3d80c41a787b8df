"""The generator: vLLM in a process of its own, which ends with the process that started it.

Only this file imports vllm. Started by generation.Generator as `python -m vantage_trainer.generator SOCKET PARENT`.
"""

import ctypes
import mmap
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vantage_trainer.model_limits import cache_bytes, end_tokens, threads_for
from vantage_trainer.wire import Wire

PR_SET_PDEATHSIG = 1
SIGN_OF_LIFE_SECONDS = 5.0
MAX_SEQUENCES = 512
MAX_STEP_TOKENS = 8192
CPU_BLOCK_TOKENS = 32
GPU_MEMORY_SHARE = 0.85

ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # the engine in this process, so that one process dies as one
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_HOST_IP": "127.0.0.1",
    "GLOO_SOCKET_IFNAME": "lo",
    "VLLM_PLUGINS": "",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


def die_with_parent(parent: int, wire: Wire) -> None:
    """End at once when the parent does, whatever it dies of; its close() ends this process the same way."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C and SIGTERM reach the whole group: the trainer decides
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=_exit_on_hangup, args=(wire.fileno(),), daemon=True).start()


def _exit_on_hangup(descriptor: int) -> None:
    poller = select.poll()
    poller.register(descriptor, 0)
    poller.poll()
    os._exit(0)


def prepare_environment(num_threads: int) -> bool:
    """Set what vLLM reads from the environment while it is imported; returns whether there is a GPU."""
    os.environ |= ENVIRONMENT
    os.environ["OMP_NUM_THREADS"] = str(num_threads)
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # spinning starves whoever shares the cores
    import torch

    if torch.cuda.is_available():
        return True
    os.environ["TORCHDYNAMO_DISABLE"] = "1"  # sampler helpers would be compiled, eager mode or not
    return False


def engine_arguments(settings: dict[str, Any], *, has_gpu: bool) -> dict[str, Any]:
    folder = Path(settings["model"])
    arguments = {
        "model": str(folder),
        "dtype": settings["dtype"],
        "seed": settings["seed"],
        "max_model_len": settings["length"],
        "tensor_parallel_size": settings["tensor_parallel"],
        "max_num_seqs": MAX_SEQUENCES,
        "max_num_batched_tokens": max(MAX_STEP_TOKENS, settings["length"]),
        "logprobs_mode": "processed_logprobs",  # of the distribution that was sampled from
        "skip_tokenizer_init": True,
        "generation_config": "vllm",
        "disable_log_stats": True,
    }
    if has_gpu:
        return arguments | {"gpu_memory_utilization": GPU_MEMORY_SHARE}
    return arguments | {
        "enforce_eager": True,
        "enable_chunked_prefill": False,  # a prompt in two parts breaks seeded sampling on a CPU
        "block_size": CPU_BLOCK_TOKENS,
        "kv_cache_memory_bytes": cache_bytes(folder, settings["dtype"], MAX_SEQUENCES, settings["length"]),
    }


@dataclass(slots=True)
class Sample:
    """A completion while it grows."""

    index: int
    stop: list[str]
    token_ids: list[int] = field(default_factory=list)
    logps: list[float] = field(default_factory=list)


class Engine:
    """vLLM's core without its front: token ids in, token ids and log-probabilities out."""

    def __init__(self, settings: dict[str, Any], *, has_gpu: bool) -> None:
        from vllm.engine.arg_utils import EngineArgs
        from vllm.v1.engine.core_client import InprocClient
        from vllm.v1.executor import Executor

        self.folder = Path(settings["model"])
        self.config = EngineArgs(**engine_arguments(settings, has_gpu=has_gpu)).create_engine_config()
        self.core = InprocClient(self.config, Executor.get_class(self.config), log_stats=False)
        self.context: int = self.config.model_config.max_model_len
        self.vocabulary: int = self.config.model_config.get_vocab_size()
        self.ends = end_tokens(self.folder)
        self.version = 0
        self._serial = 0
        self._tokenizer: Any = None

    def generate(self, requests: list[Any], sign_of_life: Callable[[int], None]) -> list[Any]:
        """Sample one completion per request; a request that cannot be served becomes a completion that says why."""
        from vantage_trainer.generation import Completion

        done: list[Any] = [None] * len(requests)
        growing: dict[str, Sample] = {}
        for index, request in enumerate(requests):
            if sentence := self._refusal(request):
                done[index] = Completion([], [], "error", self.version, sentence)
            else:
                growing[self._add(request)] = Sample(index, request.stop)
        while growing:
            for output in self.core.get_output().outputs:
                if finish := self._grow(growing[output.request_id], output):
                    sample = growing.pop(output.request_id)
                    done[sample.index] = Completion(sample.token_ids, sample.logps, finish, self.version)
                sign_of_life(len(requests) - len(growing))
        return done

    def _refusal(self, request: Any) -> str:
        length = len(request.prompt_ids)
        if length == 0:
            return "The prompt is empty: it needs at least one token."
        if length >= self.context:
            return (
                f"The prompt has {length} tokens, but the model reads {self.context} with its answer: "
                "shorten the prompt or raise the prompt limit."
            )
        if min(request.prompt_ids) < 0 or max(request.prompt_ids) >= self.vocabulary:
            return f"The prompt holds a token outside the model's vocabulary of {self.vocabulary}."
        return "" if request.max_tokens >= 1 else "The response limit must be at least one token."

    def _add(self, request: Any) -> str:
        from vllm.sampling_params import SamplingParams
        from vllm.v1.engine import EngineCoreRequest

        self._serial += 1
        name = str(self._serial)
        params = SamplingParams(
            temperature=request.temperature,
            top_p=request.top_p,
            top_k=request.top_k,
            seed=request.seed % 2**63,
            max_tokens=request.max_tokens,
            stop_token_ids=self.ends,
            logprobs=0,  # that of the sampled token
            detokenize=False,
        )
        self.core.add_request(
            EngineCoreRequest(
                request_id=name,
                prompt_token_ids=request.prompt_ids,
                mm_features=None,
                sampling_params=params,
                pooling_params=None,
                arrival_time=0.0,
                lora_request=None,
                cache_salt=None,
                data_parallel_rank=None,
                external_req_id=name,
            )
        )
        return name

    def _grow(self, sample: Sample, output: Any) -> str:
        """Take the new tokens of one sample; returns how it finished, or nothing while it grows."""
        sample.token_ids += output.new_token_ids
        if output.new_logprobs is not None:
            sample.logps += output.new_logprobs.logprobs[:, 0].tolist()
        if output.finish_reason is not None:
            finish = str(output.finish_reason)
            return finish if finish in ("stop", "length") else "error"
        if sample.stop and self._has_stopped(sample):
            self.core.abort_requests([output.request_id])
            return "stop"
        return ""

    def _has_stopped(self, sample: Sample) -> bool:
        """Look for a stop string in the last tokens; each token but a special one adds at least one byte."""
        if self._tokenizer is None:
            from transformers import AutoTokenizer

            self._tokenizer = AutoTokenizer.from_pretrained(self.folder)
        reach = max(len(stop.encode()) for stop in sample.stop) + 8
        text = self._tokenizer.decode(sample.token_ids[-reach:])
        return any(stop in text for stop in sample.stop)

    def push(self, layout: list[Any], version: int, buffer: mmap.mmap) -> dict[str, Any]:
        """Take over new weights from the shared buffer; returns what the kernels now make of them."""
        from vantage_trainer.sync import SyncError

        [answer] = self.core.engine_core.model_executor.collective_rpc(self.take_weights, args=(layout, buffer))
        if not self.core.reset_prefix_cache():
            raise SyncError("The generator still had requests in flight, so its prefix cache kept the old weights.")
        self.version = version
        return answer

    @staticmethod
    def take_weights(worker: Any, layout: list[Any], buffer: mmap.mmap) -> dict[str, Any]:
        """Run on the engine's worker: load, repack, and read back through its kernels."""
        from vantage_trainer.kernel_proof import check_names, read_back, repack_tied_head, tensors_in

        runner = worker.model_runner
        model, dtype = runner.get_model(), runner.model_config.dtype
        check_names(model, layout)
        runner.reload_weights(weights_iterator=tensors_in(buffer, layout, dtype))
        if runner.model_config.hf_config.tie_word_embeddings:
            repack_tied_head(model)
        return read_back(model, layout, dtype)


def serve(engine: Engine, wire: Wire) -> None:
    """Answer until the trainer hangs up; any fault but a refused push ends the process, its traceback in the log."""
    from vantage_trainer.sync import SyncError

    spoken = time.monotonic()

    def sign_of_life(num_done: int) -> None:
        nonlocal spoken
        if time.monotonic() - spoken > SIGN_OF_LIFE_SECONDS:
            spoken = time.monotonic()
            wire.tell(("alive", num_done))

    while True:
        try:
            kind, content = wire.hear()
        except (EOFError, ConnectionError):
            return
        if kind == "generate":
            wire.tell(("answer", engine.generate(content, sign_of_life)))
            continue
        layout, version = content
        handle = wire.receive_handle()
        buffer = mmap.mmap(handle, os.fstat(handle).st_size)
        os.close(handle)
        try:
            wire.tell(("answer", engine.push(layout, version, buffer)))
        except SyncError as fault:
            wire.tell(("refused", str(fault)))


def main(engine: type[Engine] = Engine) -> None:
    wire = Wire(socket.socket(fileno=int(sys.argv[1])))
    die_with_parent(int(sys.argv[2]), wire)
    settings = wire.hear()
    started = engine(settings, has_gpu=prepare_environment(threads_for(Path(settings["model"]))))
    wire.tell(("answer", None))
    serve(started, wire)
    os._exit(0)


if __name__ == "__main__":
    main()
