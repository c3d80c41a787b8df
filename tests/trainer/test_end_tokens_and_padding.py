"""The end token is trained once, whatever the padding token is, and what stands in padding is never seen."""

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from vantage_trainer.data import Problem
from vantage_trainer.head import ResponseModel
from vantage_trainer.sequences import Rows, Sequence, rows, tokens
from vantage_trainer.spec import WarmStart
from vantage_trainer.tiny import make_tiny
from vantage_trainer.warm_start import solutions

CPU = torch.device("cpu")
END = 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture(scope="module")
def model(folder: Path) -> ResponseModel:
    return ResponseModel(AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32))


@torch.no_grad()
def logps(model: ResponseModel, laid: Rows) -> torch.Tensor:
    return model(laid.ids_BT, laid.place_T, laid.target_T, 1.0, False)[0]


@pytest.mark.parametrize("solution", ["11 16 25", "11 16 25<eos>"])
def test_a_written_solution_ends_once(solution: str, folder: Path) -> None:
    problem = Problem("1", "3+8+5+9=", [1, 9], "25", solution)
    [sequence] = solutions([problem], AutoTokenizer.from_pretrained(folder), WarmStart())
    assert sequence.response_ids[-1] == END and sequence.response_ids.count(END) == 1


@pytest.mark.parametrize("end", [END, 0], ids=["an end of its own", "the padding's id as end"])
def test_the_end_token_is_trained_exactly_once_beside_longer_rows(end: int, model: ResponseModel) -> None:
    batch = [Sequence([1, 7], [8, 9, end], [0.0] * 3, coef=1.0), Sequence([1, 7], [8] * 9 + [end], [0.0] * 10)]
    laid = rows(batch, CPU)
    assert laid.target_T.tolist() == batch[0].response_ids + batch[1].response_ids
    found = tokens(batch, logps(model, laid), None)
    assert found.coef_T.tolist() == [1.0] * 3 + [0.0] * 10 and found.mask_T.tolist() == [1.0] * 13
    alone = logps(model, rows(batch[:1], CPU))
    torch.testing.assert_close(found.logp_T[:3], alone, rtol=0, atol=1e-6)


def test_a_padding_id_within_a_response_is_a_token_like_any_other(model: ResponseModel) -> None:
    batch = [Sequence([1, 7], [0, 8, 0, 0], [0.0] * 4, coef=1.0), Sequence([1, 7], [8] * 9, [0.0] * 9)]
    laid = rows(batch, CPU)
    found = tokens(batch, logps(model, laid), None)
    assert found.mask_T[:4].tolist() == [1.0] * 4 and laid.target_T[:4].tolist() == [0, 8, 0, 0]
    assert len(set(found.logp_T[:4].tolist())) == 4


@pytest.mark.parametrize("content", [0, END, 50])
def test_what_stands_in_padding_changes_nothing_to_the_last_bit(content: int, model: ResponseModel) -> None:
    batch = [Sequence([1, 7], [8, 9, END], [0.0] * 3), Sequence([1, 7], [8] * 9, [0.0] * 9)]
    laid = rows(batch, CPU)
    filled = laid.ids_BT.clone()
    filled[0, batch[0].length :] = content
    assert torch.equal(logps(model, Rows(filled, laid.place_T, laid.target_T, laid.lengths)), logps(model, laid))
