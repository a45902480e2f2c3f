"""A small seeded model of VideoCLIP-XL (arXiv 2410.00741) by the names of the released checkpoint: ViCLIP's vision tower
(arXiv 2307.06942) written from the facts of the released code, and Long-CLIP's text tower as transformers' CLIP with 248
positions.

Called by make.py; writes one folder. released/video_clip_xl.py then puts the released modules' vectors in place of
these.
"""

import json

import torch
import transformers
from torch import nn
from transformers import CLIPConfig, CLIPModel

import two_towers
from open_clip_layout import openai_names
from vocabularies import END, byte_level

FRAMES = 4
SIDE = 32
PATCH = 8
WIDTH = 64
MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
STD = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)


class Block(nn.Module):
    """CLIP's block; a head has 64 values."""

    def __init__(self, inner):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attn = nn.MultiheadAttention(WIDTH, WIDTH // 64, batch_first=True)
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(WIDTH, inner), "c_proj": nn.Linear(inner, WIDTH)})

    def forward(self, x):
        y = self.ln_1(x)
        x = x + self.attn(y, y, y, need_weights=False)[0]
        y = self.mlp["c_fc"](self.ln_2(x))
        return x + self.mlp["c_proj"](y * torch.sigmoid(1.702 * y))


class Vision(nn.Module):
    """All patches of all frames are one sequence behind one class token."""

    def __init__(self, layers, inner, dim):
        super().__init__()
        self.conv1 = nn.Conv3d(3, WIDTH, (1, PATCH, PATCH), (1, PATCH, PATCH), bias=False)
        self.class_embedding = nn.Parameter(torch.zeros(WIDTH))
        self.positional_embedding = nn.Parameter(torch.zeros((SIDE // PATCH) ** 2 + 1, WIDTH))
        self.temporal_positional_embedding = nn.Parameter(torch.zeros(1, FRAMES, WIDTH))
        self.ln_pre, self.ln_post = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.transformer = nn.ModuleDict({"resblocks": nn.ModuleList(Block(inner) for _ in range(layers))})
        self.proj = nn.Parameter(torch.zeros(WIDTH, dim))

    def forward(self, pixels):
        """[B, T, 3, side, side] -> [B, dim]."""
        x = self.conv1(pixels.transpose(1, 2))
        # (clips, width, frames, patches) -> (clips, patches, frames, width).
        x = x.flatten(3).permute(0, 3, 2, 1)
        x = x + self.positional_embedding[1:, None] + self.temporal_positional_embedding[:, None]
        first = (self.class_embedding + self.positional_embedding[0]).expand(len(x), 1, -1)
        x = self.ln_pre(torch.cat([first, x.flatten(1, 2)], dim=1))
        for block in self.transformer["resblocks"]:
            x = block(x)
        return self.ln_post(x[:, 0]) @ self.proj


def write_all(data):
    folder = data / "videoclip-xl"
    folder.mkdir(parents=True)
    tokenizer = byte_level(400, specials_last=True)
    end = tokenizer.token_to_id(END)
    text = dict(hidden_size=WIDTH, intermediate_size=96, num_hidden_layers=2, num_attention_heads=1)
    text |= dict(vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=248, hidden_act="quick_gelu")
    text |= dict(bos_token_id=end - 1, eos_token_id=end)
    # transformers' tower of pictures is no part of it.
    unused = dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1, image_size=8, patch_size=8)
    words = two_towers.seeded(CLIPModel(CLIPConfig(text_config=text, vision_config=unused, projection_dim=16)), 410, half=True)
    vision = two_towers.seeded(Vision(2, 96, 16), 411, half=True)
    for model in (words, vision):
        with torch.no_grad():
            for weight in model.parameters():
                weight.mul_(0.5 if weight.dim() > 1 else 1.0)
    names = {name: it for name, it in openai_names(two_towers.halves(words)).items() if not name.startswith("visual")}
    weights = {f"text_model.{name}": it for name, it in names.items()}
    weights |= {f"vision_model.vision_encoder.{name}": it for name, it in two_towers.halves(vision).items()}
    weights["vision_model.temp"] = torch.tensor(0.01)
    torch.save(weights, folder / "pytorch_model.bin")
    (folder / "config.json").write_text(json.dumps({"model_type": "videoclip-xl"}))
    (folder / "tokenizer.json").write_text(tokenizer.to_str())
    plain = two_towers.plain(tokenizer)
    said = two_towers.TEXTS + [" ".join(["the same man in a red coat walks past the river again and again"] * 8)]
    rows = [two_towers.cut(plain.encode(it).ids, 248) for it in said]
    # The kinds of each clip's pictures, none of which needs resizing; of the last clips each picture comes several times.
    kinds = [[0, 1, 2, 3], [3, 2, 1, 0], [5, 4, 7, 6], [1, 6], [7]]
    seen = [[kind for kind in it for _ in range(FRAMES // len(it))] for it in kinds]

    def pixels(kind):
        picture = torch.tensor(two_towers.picture(SIDE, SIDE, kind)).permute(2, 0, 1) / 255
        return (picture - MEAN) / STD

    with torch.no_grad():
        pooled = [words.text_model(input_ids=torch.tensor([row])).pooler_output for row in rows]
        texts = words.text_projection(torch.cat(pooled))
        videos = vision(torch.stack([torch.stack([pixels(kind) for kind in it]) for it in seen]))
    expected = {
        "reference": f"a PyTorch module from the released code's facts, transformers {transformers.__version__}",
        "texts": [{"text": text, "ids": row} for text, row in zip(said, rows)],
        "text_vectors": two_towers.rounded(texts.numpy()),
        "clips": kinds,
        "clip_vectors": two_towers.rounded(videos.numpy()),
    }
    (folder / "expected.json").write_text(json.dumps(expected))
