"""A causal language model that answers with the log-probabilities of response tokens alone.

Shapes: _BT padded rows, _T response tokens one after another, _TV their logits, _TH their hidden states.
"""

from typing import Any

import torch
from torch import Tensor, nn


class ResponseModel(nn.Module):
    """Run the LM head, and the softmax over the vocabulary, only where a response token is predicted."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model: Any = model

    def forward(
        self, ids_BT: Tensor, place_T: Tensor, target_T: Tensor, temperature: float, with_entropy: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Return logp_T and entropy_T of the distribution at this temperature, in float32."""
        hidden_BTH = self.model.get_decoder()(input_ids=ids_BT, use_cache=False).last_hidden_state
        hidden_TH = hidden_BTH.flatten(0, 1)[place_T]
        logits_TV = self.model.get_output_embeddings()(hidden_TH).float() / temperature
        log_TV = torch.log_softmax(logits_TV, dim=-1)
        logp_T = log_TV.gather(1, target_T[:, None]).squeeze(1)
        return logp_T, _entropy(log_TV) if with_entropy else None


def _entropy(log_TV: Tensor) -> Tensor:
    """Entropy over the full vocabulary; carries a gradient for the entropy bonus."""
    return -(log_TV.exp() * log_TV).sum(-1)
