"""One AIM block with an adapter before attention over time too, as `num_tadapter=2` of AIM's released code has it
(taoyang1122/adapt-image-models, mmaction/models/backbones/vit_clip.py).

Computed with numpy from the tensors of data/covr/aim_block.safetensors, which covr.py makes with PyTorch. Without the
adapter the computation must give PyTorch's output; then it writes data/covr/aim_block_two.safetensors. released/aim.py
puts the released block's output in place of this one.

    pip install numpy safetensors
    python tests/parity/aim_two.py
"""

from math import erf
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

DATA = Path(__file__).parent / "data/covr"
BLOCK = "transformer.resblocks.0."
HEADS, FRAMES, SCALE = 4, 3, 0.5


def norm(w, name, x):
    x = x - x.mean(-1, keepdims=True)
    x = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5)
    return x * w[f"{name}.weight"] + w[f"{name}.bias"]


def linear(w, name, x):
    return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def adapter(w, name, x):
    inner = linear(w, f"{name}.D_fc1", x)
    gelu = inner * 0.5 * (1 + np.vectorize(erf)(inner / np.sqrt(2)))
    return linear(w, f"{name}.D_fc2", gelu)


def attention(w, x):
    """x: [batch, tokens, width]."""
    batch, tokens, width = x.shape
    qkv = x @ w["attn.in_proj_weight"].T + w["attn.in_proj_bias"]
    q, k, v = (
        part.reshape(batch, tokens, HEADS, -1).transpose(0, 2, 1, 3) for part in np.split(qkv, 3, axis=-1)
    )
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(width // HEADS)
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    scores /= scores.sum(-1, keepdims=True)
    return linear(w, "attn.out_proj", (scores @ v).transpose(0, 2, 1, 3).reshape(batch, tokens, width))


def block(w, x, before_time):
    """x: [clips * frames, tokens, width]."""
    pictures, tokens, width = x.shape
    time = x.reshape(-1, FRAMES, tokens, width).transpose(0, 2, 1, 3).reshape(-1, FRAMES, width)
    time = norm(w, "ln_1", time)
    if before_time:
        time = time + adapter(w, "T_Adapter_in", time)
    time = adapter(w, "T_Adapter", attention(w, time))
    x = x + time.reshape(-1, tokens, FRAMES, width).transpose(0, 2, 1, 3).reshape(pictures, tokens, width)
    space = attention(w, norm(w, "ln_1", x))
    x = x + space + adapter(w, "S_Adapter", space)
    normed = norm(w, "ln_2", x)
    inner = linear(w, "mlp.c_fc", normed)
    mlp = linear(w, "mlp.c_proj", inner / (1 + np.exp(-1.702 * inner)))
    return x + mlp + SCALE * adapter(w, "MLP_Adapter", normed)


def main():
    tensors = load_file(DATA / "aim_block.safetensors")
    w = {name.removeprefix(BLOCK): value.astype(np.float64) for name, value in tensors.items()}
    off = np.abs(block(w, w["x"], before_time=False) - w["y"]).max()
    assert off < 1e-5, f"{off} from PyTorch's output"
    rng = np.random.default_rng(42)
    for name in [name for name in tensors if ".T_Adapter." in name]:
        value = rng.standard_normal(tensors[name].shape).astype(np.float32) * 0.2
        new = name.replace("T_Adapter", "T_Adapter_in")
        tensors[new], w[new.removeprefix(BLOCK)] = value, value.astype(np.float64)
    y = block(w, w["x"], before_time=True)
    assert np.abs(y - w["y"]).max() > 0.01, "the adapter makes no difference"
    save_file(tensors | {"y": y.astype(np.float32)}, DATA / "aim_block_two.safetensors")


if __name__ == "__main__":
    main()
