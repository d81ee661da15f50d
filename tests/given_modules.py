"""Modules as people write them, some of which no net can be."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


class Convolutional(nn.Module):
    """Batch norm, and dropout as a module and as a function."""

    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.conv2 = nn.Conv2d(4, 8, 3, padding=1)
        self.drop = nn.Dropout2d(0.2)
        self.fc1 = nn.Linear(32, 16)
        self.fc = nn.Linear(16, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv1(x))), 2)
        x = self.drop(F.max_pool2d(F.relu(self.conv2(x)), 2))
        x = F.dropout(F.relu(self.fc1(x.flatten(1))), 0.5, self.training)
        return self.fc(x)


class Plain(Convolutional):
    """The same without dropout."""

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(F.relu(self.fc1(x.flatten(1))))


class Attentive(nn.Module):
    """Attention over rows, a learned token, dropout, and a constant that is no part of the state."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.embed = nn.Linear(8, width)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        waves = torch.arange(9.0).unsqueeze(1) * torch.arange(float(width)) / 10
        self.register_buffer("places", torch.sin(waves), persistent=False)
        layer = nn.TransformerEncoderLayer(width, 2, 32, 0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.fc = nn.Linear(width, 10)

    def forward(self, x):
        x = self.embed(x.squeeze(1))
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.places
        return self.fc(self.encoder(x)[:, 0])


class Tied(nn.Module):
    """Two layers with one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(64, 64), nn.Linear(64, 64)
        self.second.weight = self.first.weight
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        return self.fc(F.relu(self.second(F.relu(self.first(x.flatten(1))))))


class Noisy(nn.Module):
    """Noise in training, whole-number and moving buffers, and a head whose width ``forward`` asks for."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("order", torch.arange(63, -1, -1))
        self.register_buffer("mean", torch.zeros(64))
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        x = x.reshape(-1, self.fc.in_features)[:, self.order]
        if self.training:
            self.mean.mul_(0.9).add_(0.1 * x.detach().mean(0))
            x = x + 0.1 * torch.randn_like(x)
        return self.fc(x - self.mean)


def sequential(width: int = 16) -> nn.Module:
    """Made by a function."""
    return nn.Sequential(nn.Flatten(), nn.Linear(64, width), nn.GELU(), nn.Dropout(), nn.Linear(width, 10))


class _OneLayer(nn.Module):
    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.fc = nn.Linear(64, classes)

    def forward(self, x):
        return self.fc(x.flatten(1))


class Masked(_OneLayer):
    """Dropout of what is never zero."""

    def forward(self, x):
        return self.fc(F.dropout(x.flatten(1).exp(), 0.5, self.training))


class Several(_OneLayer):
    """Two outputs."""

    def forward(self, x):
        return self.fc(x.flatten(1)), x


class Softmax(_OneLayer):
    """Log-probabilities."""

    def forward(self, x):
        return F.log_softmax(self.fc(x.flatten(1)), dim=1)


class Hundred(_OneLayer):
    """A hundred classes."""

    def __init__(self) -> None:
        super().__init__(100)


class Loose(_OneLayer):
    """A tensor that nobody registered."""

    def __init__(self) -> None:
        super().__init__()
        self.places = torch.zeros(64)

    def forward(self, x):
        return self.fc(x.flatten(1) + self.places)


class Always(_OneLayer):
    """Dropout in evaluation, too."""

    def forward(self, x):
        return self.fc(F.dropout(x.flatten(1)))


class Counting(_OneLayer):
    """Counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        if self.training:
            self.calls += 1
        return self.fc(x.flatten(1))


class Convolved(nn.Module):
    """No linear layer at the end, as in SqueezeNet."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Conv2d(1, 10, 3)
        self.pool = nn.AdaptiveAvgPool2d(1)

    def forward(self, x):
        return self.pool(self.features(x)).flatten(1)


class Branching(_OneLayer):
    """Depends on values."""

    def forward(self, x):
        return self.fc(x.flatten(1) if x.mean() > 0 else -x.flatten(1))


class Switching(_OneLayer):
    """Probabilities in training alone."""

    def forward(self, x):
        logits = self.fc(x.flatten(1))
        return logits.softmax(1) if self.training else logits


class Shaking(_OneLayer):
    """Draws by NumPy."""

    def forward(self, x):
        return self.fc(x.flatten(1) * (1 + np.random.rand() if self.training else 1))  # noqa: NPY002 - a mistake


class Frozen(_OneLayer):
    """A weight that is not to be trained."""

    def __init__(self) -> None:
        super().__init__()
        self.fc.bias.requires_grad_(False)
