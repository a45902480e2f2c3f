"""What every model with a tower of pictures and one of texts is compared in: vectors of texts by padding and batch,
of pictures, of clips, and the pixels that the reference's preprocessing makes.

A family's file makes a `Model` and calls `write`.
"""

import dataclasses
import json
import typing

import numpy as np
import torch
from PIL import Image
from tokenizers import Tokenizer

TEXTS = [
    "a brown dog runs past the red car",
    "Two and a HALF turns!",
    "",
    "don't worry,   it's (only) 12.5 metres: Ünïcödé 水",
    "the same but with two and a half turns, seen from behind in heavy rain while music plays on the stage",
    "frog",
]

# Pictures of a clip.
FRAMES = 8


def picture(width, height, kind):
    """The same integers as in the test: smooth shapes, edges and fine texture."""
    y, x, c = np.meshgrid(np.arange(height), np.arange(width), np.arange(3), indexing="ij")
    waves = (x * x * 3 + y * y * (5 + kind) + x * y * 7) // (width + height) + c * 60
    edges = ((x // 5 + y // 3 + c) % 2) * 120
    return ((waves + edges * (kind % 2)) % 256).astype(np.uint8)


# Odd, tall, wide, tiny (enlarged), and just right.
SIZES = [(97, 61), (33, 120), (200, 45), (9, 7), (32, 32), (40, 32)]


@dataclasses.dataclass
class Model:
    # Package and version, e.g. "transformers 5.23.0".
    reference: str
    # A text's ids, cut at the limit.
    ids: typing.Callable[[str], list[int]]
    # Longest text.
    limit: int
    # What texts may be padded with; the vectors must not depend on it.
    pads: list[int]
    # Whether the reference pads every text to the limit.
    always_padded: bool
    # (texts, tokens) ids and mask to (texts, dim).
    text: typing.Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    # (pictures, 3, side, side) to (pictures, dim).
    image: typing.Callable[[torch.Tensor], torch.Tensor]
    # A picture to (3, side, side).
    pixels: typing.Callable[[Image.Image], torch.Tensor]
    mean: list[float]
    std: list[float]
    # The side of a square picture that needs no resizing.
    exact: int
    # Whether padding among the ids, without a mask, changes a vector.
    masked: bool = False


def seeded(model, seed, half=False):
    """Weights large enough that every part shows in the result; `half`: such as f16 can hold, to keep files small."""
    generator = torch.Generator().manual_seed(seed)
    is_norm = lambda name: any(part in name.lower() for part in ("norm", "ln_"))
    with torch.no_grad():
        for name, weight in sorted(model.named_parameters()):
            noise = torch.randn(weight.shape, generator=generator)
            if is_norm(name):
                weight.copy_(noise * 0.2 + (1.0 if name.endswith("weight") else 0.0))
            else:
                weight.copy_(noise * (0.2 if weight.dim() > 1 else 0.1))
            if half:
                weight.copy_(weight.half().float())
    return model.eval()


def halves(model):
    """The weights of a model that was seeded with `half`, exactly."""
    return {name: weight.half().contiguous() for name, weight in model.state_dict().items()}


def cut(ids, limit):
    """As a truncating tokenizer would: the end of text stays."""
    return ids if len(ids) <= limit else ids[: limit - 1] + ids[-1:]


def plain(tokenizer):
    """A copy without truncation and padding."""
    tokenizer = Tokenizer.from_str(tokenizer.to_str())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def text_vectors(model, texts, pad, length):
    """(texts, dim), padded with `pad` to `length` tokens or to the longest."""
    rows = [model.ids(text) for text in texts]
    length = length or max(map(len, rows))
    ids = torch.tensor([row + [pad] * (length - len(row)) for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (length - len(row)) for row in rows])
    with torch.no_grad():
        return model.text(ids, mask).numpy()


def all_text_vectors(model, texts):
    """By padding and batch size. All of them must agree with each other, and ours with each."""
    vectors = {}
    for number, pad in enumerate(model.pads):
        for length in (model.limit,) if model.always_padded else (None, model.limit):
            for batch in (1, 4):
                parts = [
                    text_vectors(model, texts[at : at + batch], pad, length) for at in range(0, len(texts), batch)
                ]
                kind = f"pad {'zero' if number == 0 else 'end'}, to {'limit' if length else 'longest'}, batch {batch}"
                vectors[kind] = np.concatenate(parts)
    first = next(iter(vectors.values()))
    for kind, other in vectors.items():
        assert np.abs(first - other).max() < 2e-5, kind
    return {kind: rounded(vectors) for kind, vectors in vectors.items()}


def image_vectors(model, pictures):
    """(pictures, dim), in batches of 1 and of 4, which must agree."""
    pixels = torch.stack([model.pixels(Image.fromarray(it)) for it in pictures])
    with torch.no_grad():
        single = torch.cat([model.image(it) for it in pixels.split(1)])
        batched = torch.cat([model.image(it) for it in pixels.split(4)])
    assert (single - batched).abs().max() < 2e-5
    return batched.numpy()


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def rounded(vectors):
    return [[float(f"{value:.8g}") for value in row] for row in vectors]


def pixels(model, picture):
    """The reference's pixels as bytes, before scaling and normalising."""
    values = model.pixels(Image.fromarray(picture)).numpy()
    mean, std = (np.array(it)[:, None, None] for it in (model.mean, model.std))
    bytes_ = (values * std + mean) * 255
    assert np.abs(bytes_ - bytes_.round()).max() < 0.01
    return bytes_.round().astype(np.uint8)


def write(folder, model, more_texts=()):
    texts = TEXTS + list(more_texts)
    # The size that needs no resizing: there the vectors must agree to the last digits.
    exact = [picture(model.exact, model.exact, kind) for kind in range(FRAMES)]
    resized = [picture(width, height, 1) for width, height in SIZES]
    vectors = image_vectors(model, exact)
    expected = {
        "reference": model.reference,
        "texts": [{"text": text, "ids": model.ids(text)} for text in texts],
        "text_vectors": all_text_vectors(model, texts),
        "pads": [] if model.masked else model.pads,
        "exact_side": model.exact,
        "image_vectors": rounded(vectors),
        "clip_vector": rounded([unit(vectors).mean(axis=0)])[0],
        "sizes": SIZES,
        "resized_vectors": rounded(image_vectors(model, resized)),
    }
    (folder / "expected.json").write_text(json.dumps(expected))
    (folder / "pixels.bin").write_bytes(b"".join(pixels(model, it).tobytes() for it in resized))
