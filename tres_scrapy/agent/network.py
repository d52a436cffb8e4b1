"""The Q-network: an MLP with two hidden layers (P 2.4.2, sizes of the authors' code)."""

from __future__ import annotations

import itertools

import torch
from torch import nn

from tres_scrapy.frontier.feature import FEATURES, LINK

LEAK = 0.1


class QNetwork(nn.Sequential):
    """Maps x(s, a) [n, 9] to Q [n, 1]; its initial weights come from `generator`.

    With `prior`, Q is feature 9, the P(relevant) of the link model, plus the output of the MLP,
    which is 0 at first: before anything is learned, Q is what the link model believes. The paper
    has no prior.
    """

    def __init__(
        self, hidden: tuple[int, int], generator: torch.Generator, *, prior: bool = False
    ) -> None:
        sizes = (len(FEATURES), *hidden, 1)
        layers: list[nn.Module] = []
        for fan_in, fan_out in itertools.pairwise(sizes):
            layers += [_linear(fan_in, fan_out, generator), nn.LeakyReLU(LEAK)]
        super().__init__(*layers[:-1])  # the output is linear
        self._prior = prior
        if prior:
            nn.init.zeros_(layers[-2].weight)  # type: ignore[arg-type]  # of a linear layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return Q [n, 1] of x(s, a) [n, 9]."""
        q: torch.Tensor = super().forward(x)  # type: ignore[no-untyped-call]
        return q + x[:, LINK : LINK + 1] if self._prior else q


def _linear(fan_in: int, fan_out: int, generator: torch.Generator) -> nn.Linear:
    layer = nn.Linear(fan_in, fan_out)
    nn.init.kaiming_uniform_(layer.weight, a=LEAK, generator=generator)
    nn.init.zeros_(layer.bias)
    return layer
