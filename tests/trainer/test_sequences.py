from pathlib import Path

import pytest
import torch
from vantage_trainer.head import ResponseModel
from vantage_trainer.sequences import Sequence, microbatches, rows
from vantage_trainer.tiny import make_tiny

LENGTHS = [3, 17, 5, 9, 30, 1, 12]


def sequences() -> list[Sequence]:
    chance = torch.Generator().manual_seed(0)
    drawn = [torch.randint(4, 90, (4 + length,), generator=chance).tolist() for length in LENGTHS]
    return [
        Sequence(ids[:4], ids[4:], [0.0] * length, index=i)
        for i, (ids, length) in enumerate(zip(drawn, LENGTHS, strict=True))
    ]


@pytest.mark.parametrize("world", [1, 2, 3])
@pytest.mark.parametrize("budget", [1, 40, 10_000])
def test_every_response_is_dealt_once_and_all_ranks_run_the_same_number(world: int, budget: int) -> None:
    dealt = [microbatches(sequences(), rank, world, budget) for rank in range(world)]
    assert len({len(batches) for batches in dealt}) == 1
    trained = [s.index for batches in dealt for batch in batches for s in batch if s.trained]
    assert sorted(trained) == list(range(len(LENGTHS)))
    for batch in (batch for batches in dealt for batch in batches):
        assert len(batch) == 1 or len(batch) * max(s.length for s in batch) <= budget


def test_a_rank_without_work_runs_a_filler_that_trains_nothing() -> None:
    [_, [[filler]]] = [microbatches(sequences()[:1], rank, 2, 100) for rank in range(2)]
    assert not filler.trained and len(filler.response_ids) == 1


def test_padded_rows_give_the_log_probabilities_of_each_response_alone(tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(make_tiny(tmp_path / "tiny"), dtype=torch.float32)
    together = rows(sequences(), torch.device("cpu"))
    with torch.no_grad():
        logp_T, entropy_T = ResponseModel(model)(together.ids_BT, together.place_T, together.target_T, 0.7, True)
        for sequence, found in zip(sequences(), logp_T.split(together.lengths), strict=True):
            logits = model(torch.tensor([sequence.prompt_ids + sequence.response_ids])).logits[0] / 0.7
            alone = torch.log_softmax(logits, -1)[len(sequence.prompt_ids) - 1 : -1]
            expected = alone.gather(1, torch.tensor(sequence.response_ids)[:, None])[:, 0]
            assert torch.allclose(found, expected, atol=1e-5)
    assert entropy_T is not None and len(entropy_T) == sum(LENGTHS)
