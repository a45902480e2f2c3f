"""The reference of Silero's voice activity detector: its layers in PyTorch, as tinygrad_model.py of silero-vad 6.2.3 has them,
narrower and with seeded weights. The spectrum is the released one: a windowed Fourier transform, here in f16.

Called by make.py; writes the weights and what the layers say of 20 s of whisper.py's sound.
"""

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional

from whisper import sound

FRAME, CONTEXT, ROW, HOP, SECONDS = 512, 64, 256, 128, 20


def spectrum():
    at, band = np.arange(ROW), np.arange(ROW // 2 + 1)[:, None]
    window = 0.5 - 0.5 * np.cos(2 * np.pi * at / ROW)
    turn = 2 * np.pi * band * at / ROW
    return torch.from_numpy(np.concatenate([np.cos(turn) * window, -np.sin(turn) * window]))[:, None]


class Silero(nn.Module):
    def __init__(self):
        super().__init__()
        self.stft_conv = nn.Conv1d(1, 258, ROW, stride=HOP, bias=False)
        self.conv1 = nn.Conv1d(129, 12, 3, padding=1)
        self.conv2 = nn.Conv1d(12, 8, 3, stride=2, padding=1)
        self.conv3 = nn.Conv1d(8, 8, 3, stride=2, padding=1)
        self.conv4 = nn.Conv1d(8, 16, 3, padding=1)
        self.lstm_cell = nn.LSTMCell(16, 16)
        self.final_conv = nn.Conv1d(16, 1, 1)

    def forward(self, heard, state):
        x = functional.pad(heard[None, None], (0, CONTEXT), mode="reflect")
        real, imaginary = self.stft_conv(x).chunk(2, dim=1)
        x = (real**2 + imaginary**2).sqrt()
        for convolution in (self.conv1, self.conv2, self.conv3, self.conv4):
            x = convolution(x).relu()
        hidden, cell = self.lstm_cell(x.squeeze(-1), state)
        return self.final_conv(hidden.relu()[..., None]).sigmoid().item(), (hidden, cell)


@torch.no_grad()
def write(folder):
    torch.manual_seed(13)
    model = Silero().eval()
    for name, values in model.named_parameters():
        # Wide enough that the marks differ from frame to frame.
        scale = 0 if name == "final_conv.bias" else 8 if name == "final_conv.weight" else 3
        values.copy_(spectrum() if name == "stft_conv.weight" else values * scale)
    stored = {name: values.half() for name, values in model.state_dict().items()}
    model.load_state_dict({name: values.float() for name, values in stored.items()})
    heard = torch.from_numpy(sound(0, SECONDS * 16_000))
    heard = functional.pad(heard, (CONTEXT, 0))
    marks, state = [], None
    for first in range(0, len(heard) - CONTEXT, FRAME):
        mark, state = model(heard[first : first + CONTEXT + FRAME], state)
        marks.append(mark)
    folder.mkdir(parents=True)
    save_file(stored, folder / "model.safetensors")
    save_file({"marks": torch.tensor(marks)}, folder / "expected.safetensors")
    print(f"{len(marks)} marks from {min(marks):.3f} to {max(marks):.3f}, deviation {np.std(marks):.3f}")
