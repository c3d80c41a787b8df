"""A generator that breaks its weight sync in the way the version it is sent asks for; test_weight_sync.py starts it."""

import mmap
from typing import Any

from vantage_trainer import kernel_proof
from vantage_trainer.generator import Engine, main
from vantage_trainer.sync import HEAD, Entry

SKIPPED_PUSH = 1001
STALE_HEAD = 1002
WRONG_LAYER = 1003
MISSING_PROOF = 1004


class FaultyEngine(Engine):
    fault = 0

    def push(self, layout: list[Entry], version: int, buffer: mmap.mmap) -> dict[str, Any]:
        FaultyEngine.fault = version
        return super().push(layout, version, buffer)

    @staticmethod
    def take_weights(worker: Any, layout: list[Entry], buffer: mmap.mmap) -> dict[str, Any]:
        runner = worker.model_runner
        model, dtype = runner.get_model(), runner.model_config.dtype
        loaded = list(kernel_proof.tensors_in(buffer, layout, dtype))
        if FaultyEngine.fault == STALE_HEAD:
            loaded = [(name, tensor) for name, tensor in loaded if name != HEAD]
        if FaultyEngine.fault == WRONG_LAYER:
            loaded = [(name, tensor * (1 + 1e-6 * ("1.mlp.down" in name))) for name, tensor in loaded]
        if FaultyEngine.fault != SKIPPED_PUSH:
            runner.reload_weights(weights_iterator=iter(loaded))
        found = kernel_proof.read_back(model, layout, dtype)
        if FaultyEngine.fault == MISSING_PROOF:
            found.pop("model.norm.weight")
        return found


if __name__ == "__main__":
    main(FaultyEngine)
