"""CLIP models of the published shapes with seeded weights, and the inputs of `reprise bench encode`, for PyTorch."""

import json
import pathlib
import shutil
import sys

import numpy
import torch
from tokenizers import Tokenizer
from transformers import CLIPConfig, CLIPModel

# Preprocessing and a small tokenizer. A small vocabulary changes only the size of the embedding table.
FILES = pathlib.Path(__file__).resolve().parent.parent / "parity" / "data" / "legacy"
VOCABULARY, POSITIONS, SIDE, SQUARE = 402, 248, 224, 16
# Vision width, layers, heads, patch; text width; values per vector; measured cases, by default all batches.
SHAPES = {
    "b32": ("ViT-B/32", 768, 12, 12, 32, 512, 512, [1, 8, 32]),
    "b16": ("ViT-B/16", 768, 12, 12, 16, 512, 512, [1, 8, 32]),
    "l14": ("ViT-L/14", 1024, 24, 16, 14, 768, 768, [1, 8]),
}


class Vision(torch.nn.Module):
    """Pixels to projected vectors."""

    def __init__(self, clip):
        super().__init__()
        self.tower, self.projection = clip.vision_model, clip.visual_projection

    def forward(self, pixels):
        return self.projection(self.tower(pixels).pooler_output)


class Text(torch.nn.Module):
    """Ids to projected vectors."""

    def __init__(self, clip):
        super().__init__()
        self.tower, self.projection = clip.text_model, clip.text_projection

    def forward(self, ids):
        return self.projection(self.tower(input_ids=ids).pooler_output)


def write_model(folder, shape):
    """Seeded weights in Hugging Face's layout, for all engines; the text tower has Long-CLIP's 248 positions."""
    _, width, layers, heads, patch, text, dim, _ = shape
    torch.manual_seed(0)
    vision = dict(hidden_size=width, intermediate_size=4 * width, num_hidden_layers=layers, num_attention_heads=heads,
                  image_size=SIDE, patch_size=patch)
    words = dict(vocab_size=VOCABULARY, hidden_size=text, intermediate_size=4 * text, num_hidden_layers=12,
                 num_attention_heads=text // 64, max_position_embeddings=POSITIONS, bos_token_id=0, eos_token_id=2)
    clip = CLIPModel(CLIPConfig(text_config=words, vision_config=vision, projection_dim=dim)).eval()
    clip.save_pretrained(folder)
    shutil.copy(FILES / "tokenizer.json", folder)
    preprocessor = json.loads((FILES / "preprocessor_config.json").read_text())
    preprocessor |= {"size": {"shortest_edge": SIDE}, "crop_size": {"height": SIDE, "width": SIDE}}
    (folder / "preprocessor_config.json").write_text(json.dumps(preprocessor))
    return clip


def pictures(count):
    """The first frames of `reprise bench encode`, normalised: squares of colours that SplitMix64 mixes."""
    squares = SIDE // SQUARE
    state = numpy.arange(1, count * squares * squares * 3 + 1, dtype=numpy.uint64) * numpy.uint64(0x9E3779B97F4A7C15)
    for shift, factor in [(30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)]:
        state = (state ^ (state >> numpy.uint64(shift))) * numpy.uint64(factor)
    state ^= state >> numpy.uint64(31)
    colours = (state >> numpy.uint64(56)).astype(numpy.float32).reshape(count, squares, squares, 3) / 255
    normal = json.loads((FILES / "preprocessor_config.json").read_text())
    colours = (colours - numpy.float32(normal["image_mean"])) / numpy.float32(normal["image_std"])
    pixels = colours.repeat(SQUARE, axis=1).repeat(SQUARE, axis=2)
    return numpy.ascontiguousarray(pixels.transpose(0, 3, 1, 2), dtype=numpy.float32)


def ids_of(tokens):
    """The text of `reprise bench encode` with this number of tokens: one word, repeated."""
    tokenizer = Tokenizer.from_file(str(FILES / "tokenizer.json"))
    for words in range(1, tokens + 1):
        ids = tokenizer.encode(" ".join(["a"] * words)).ids
        if len(ids) == tokens:
            return numpy.array([ids], dtype=numpy.int64)
    sys.exit(f"encoder_peers: no text of {tokens} tokens")


def lowest_cosine(a, b):
    return float(((a * b).sum(1) / numpy.linalg.norm(a, axis=1) / numpy.linalg.norm(b, axis=1)).min())
