"""The Q-network: an MLP with two hidden layers (P 2.4.2, sizes of the authors' code)."""

from __future__ import annotations

import itertools

import torch
from torch import nn

from tres_scrapy.frontier.feature import FEATURES, KNOWN_DOMAIN, LINK

LEAK = 0.1
MOST = 0.7  # logarithm of the factor by which the MLP changes P(relevant)


class QNetwork(nn.Sequential):
    """Maps x(s, a) [n, 9] to Q [n, 1]; its initial weights come from `generator`.

    With `prior`, Q is v + P exp(m): P is feature 9, the P(relevant) of the link model, m the output
    of the MLP, and v one number that is learned for all links, like the state value of a dueling
    network (Wang et al., 2016). Both are 0 at first: before anything is learned, Q is what the
    link model believes. A product keeps apart links of P = 0.01 and 0.02, which a sum would not.
    The paper has no prior.
    """

    def __init__(
        self,
        hidden: tuple[int, int],
        generator: torch.Generator,
        *,
        prior: bool = False,
        breadth: float = 0.0,
    ) -> None:
        sizes = (len(FEATURES), *hidden, 1)
        layers: list[nn.Module] = []
        for fan_in, fan_out in itertools.pairwise(sizes):
            layers += [_linear(fan_in, fan_out, generator), nn.LeakyReLU(LEAK)]
        super().__init__(*layers[:-1])  # the output is linear
        self._prior = prior
        self._breadth = breadth
        if prior:
            self.value = nn.Parameter(torch.zeros(1))
            nn.init.zeros_(layers[-2].weight)  # type: ignore[arg-type]  # of a linear layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return Q [n, 1] of x(s, a) [n, 9]."""
        output: torch.Tensor = super().forward(x)  # type: ignore[no-untyped-call]
        if not self._prior:
            return output
        worth = 1 + self._breadth * (x[:, KNOWN_DOMAIN : KNOWN_DOMAIN + 1] < 1)
        factor = torch.exp(output.clamp(-MOST, MOST))
        return self.value + x[:, LINK : LINK + 1] * worth * factor


def _linear(fan_in: int, fan_out: int, generator: torch.Generator) -> nn.Linear:
    layer = nn.Linear(fan_in, fan_out)
    nn.init.kaiming_uniform_(layer.weight, a=LEAK, generator=generator)
    nn.init.zeros_(layer.bias)
    return layer
