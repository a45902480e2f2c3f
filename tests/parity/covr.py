"""Small seeded models of TF-CoVR: AIM, the text towers and the Combiner, written in PyTorch from the papers' formulas
(arXiv 2302.03024, 2506.05274); text towers are transformers' own.

Called by make.py; writes one folder a model in the layout of encoders/src/families/aim/mod.rs. released/aim.py then
puts the released modules' vectors in place of these.
"""

import json
import re

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F
from transformers import BertConfig, BertModel, CLIPTextConfig, CLIPTextModelWithProjection
from transformers import Blip2QFormerConfig, Blip2QFormerModel

MEAN = torch.tensor([0.48145466, 0.4578275, 0.40821073]).view(3, 1, 1)
STD = torch.tensor([0.26862954, 0.26130258, 0.27577711]).view(3, 1, 1)

COUNTS = {"0.5": "half", "1": "one"}
for number, word in enumerate("one two three four five six seven".split(), 1):
    COUNTS[str(number)] = word
    COUNTS[f"{number}.5"] = f"{word} and a half"
del COUNTS["7.5"]

TEXTS = [
    "Show with 2.5 turns",
    "(The same!) but with 1.5 twists:  in the PIKE position; seen from behind",
    "",
    "more somersaults",
    " ".join(["again the man runs past"] * 8),
]


def normalised(text):
    text = re.sub(r"\b\d+(\.\d+)?\b", lambda found: COUNTS.get(found.group(), found.group()), text)
    text = re.sub(r"([!\"()*#:;~])", " ", text.lower())
    text = re.sub(r"\s{2,}", " ", text).strip()
    return " ".join(text.split(" ")[:30])


class Adapter(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.D_fc1 = nn.Linear(width, width // 4)
        self.D_fc2 = nn.Linear(width // 4, width)

    def forward(self, x):
        return self.D_fc2(F.gelu(self.D_fc1(x)))


class QuickGelu(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(1.702 * x)


class Block(nn.Module):
    def __init__(self, width, heads, inner, scale, adapters):
        super().__init__()
        self.attn = nn.MultiheadAttention(width, heads)
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential()
        self.mlp.add_module("c_fc", nn.Linear(width, inner))
        self.mlp.add_module("gelu", QuickGelu())
        self.mlp.add_module("c_proj", nn.Linear(inner, width))
        self.scale, self.adapters = scale, adapters
        if adapters:
            self.T_Adapter, self.S_Adapter, self.MLP_Adapter = (Adapter(width) for _ in range(3))

    def attention(self, x):
        return self.attn(x, x, x, need_weights=False)[0]

    def forward(self, x, frames):
        """x: [N, B*T, D]."""
        n, bt, d = x.shape
        if not self.adapters:
            x = x + self.attention(self.ln_1(x))
            return x + self.mlp(self.ln_2(x))
        xt = x.view(n, bt // frames, frames, d).permute(2, 1, 0, 3).reshape(frames, -1, d)
        xt = self.T_Adapter(self.attention(self.ln_1(xt)))
        x = x + xt.view(frames, bt // frames, n, d).permute(2, 1, 0, 3).reshape(n, bt, d)
        xs = self.attention(self.ln_1(x))
        x = x + xs + self.S_Adapter(xs)
        xn = self.ln_2(x)
        return x + self.mlp(xn) + self.scale * self.MLP_Adapter(xn)


class Aim(nn.Module):
    def __init__(self, width, heads, layers, inner, frames, patch, grid, scale=0.5, adapters=True):
        super().__init__()
        self.frames, self.side = frames, patch * grid
        self.conv1 = nn.Conv2d(3, width, patch, patch, bias=False)
        self.class_embedding = nn.Parameter(torch.zeros(width))
        self.positional_embedding = nn.Parameter(torch.zeros(grid * grid + 1, width))
        if adapters:
            self.temporal_embedding = nn.Parameter(torch.zeros(1, frames, width))
        self.ln_pre, self.ln_post = nn.LayerNorm(width), nn.LayerNorm(width)
        self.transformer = nn.Module()
        blocks = [Block(width, heads, inner, scale, adapters) for _ in range(layers)]
        self.transformer.resblocks = nn.ModuleList(blocks)

    def forward(self, clips):
        """[B, T, 3, side, side] -> [B, D]."""
        b, t = clips.shape[:2]
        x = self.conv1(clips.flatten(0, 1)).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_embedding.expand(b * t, 1, -1), x], dim=1) + self.positional_embedding
        n, d = x.shape[1:]
        if hasattr(self, "temporal_embedding"):
            x = x.view(b, t, n, d).transpose(1, 2).reshape(b * n, t, d) + self.temporal_embedding
            x = x.view(b, n, t, d).transpose(1, 2).reshape(b * t, n, d)
        x = self.ln_pre(x).transpose(0, 1)
        for block in self.transformer.resblocks:
            x = block(x, t)
        return self.ln_post(x.transpose(0, 1))[:, 0].view(b, t, d).mean(dim=1)


class Combiner(nn.Module):
    def __init__(self, dim, projection, hidden):
        super().__init__()
        self.text_projection_layer = nn.Linear(dim, projection)
        self.image_projection_layer = nn.Linear(dim, projection)
        self.combiner_layer = nn.Linear(2 * projection, hidden)
        self.output_layer = nn.Linear(hidden, dim)
        self.dynamic_scalar = nn.Sequential(
            nn.Linear(2 * projection, hidden), nn.ReLU(), nn.Dropout(0.5), nn.Linear(hidden, 1), nn.Sigmoid()
        )

    def forward(self, video, text):
        joined = torch.cat(
            [F.relu(self.text_projection_layer(text)), F.relu(self.image_projection_layer(video))], dim=-1
        )
        gate = self.dynamic_scalar(joined)
        out = self.output_layer(F.relu(self.combiner_layer(joined)))
        return F.normalize(out + gate * text + (1 - gate) * video, dim=-1)


def seed(model, number):
    """Weights large enough that every part shows in the result."""
    generator = torch.Generator().manual_seed(number)
    with torch.no_grad():
        for name, weight in sorted(model.named_parameters()):
            noise = torch.randn(weight.shape, generator=generator)
            is_norm = "ln_" in name or "norm" in name.lower()
            if is_norm:
                weight.copy_(noise * 0.2 + (1.0 if name.endswith("weight") else 0.0))
            else:
                weight.copy_(noise * (0.2 if weight.dim() > 1 else 0.1))
    return model.eval()


def pixels(aim, frames):
    """The paper's sampling and preprocessing: squashed, bicubic."""
    count = min(aim.frames, len(frames))
    edges = [int(np.floor(i * (len(frames) / count))) for i in range(count + 1)]
    picked = [(edges[i] + edges[i + 1] - 1) // 2 for i in range(count)]
    picked = [picked[i % count] for i in range(aim.frames)]
    rows = []
    for at in picked:
        squashed = Image.fromarray(frames[at]).resize((aim.side, aim.side), Image.Resampling.BICUBIC)
        values = torch.from_numpy(np.array(squashed)).permute(2, 0, 1).float() / 255
        rows.append((values - MEAN) / STD)
    return torch.stack(rows)


# Sizes of the pictures of each clip; the pictures are those of make.py, of kinds 0, 1, 2, ...
CLIPS = [[(8, 8)] * 3, [(16, 16)] * 5, [(33, 20)] * 7, [(40, 64)]]


def ids(tokenizer, text, limit):
    tokenizer.no_truncation()
    tokenizer.no_padding()
    row = tokenizer.encode(text).ids
    return row if len(row) <= limit else row[: limit - 1] + row[-1:]


def save(weights, path):
    weights = {name: weight.detach().contiguous() for name, weight in weights.items()}
    if path.suffix == ".safetensors":
        save_file(weights, path)
    else:
        # As training code saves: the weights beside other things.
        torch.save({"meta": {"epoch": 7}, "state_dict": weights}, path)


def openai_text(model):
    """CLIP's text tower by OpenAI's names."""
    state, out = model.state_dict(), {}
    layers = {name.split(".")[3] for name in state if name.startswith("text_model.encoder.layers.")}
    for layer in sorted(layers):
        old, new = f"text_model.encoder.layers.{layer}", f"transformer.resblocks.{layer}"
        for kind in ("weight", "bias"):
            parts = [state[f"{old}.self_attn.{part}_proj.{kind}"] for part in "qkv"]
            out[f"{new}.attn.in_proj_{kind}"] = torch.cat(parts)
            names = {"self_attn.out_proj": "attn.out_proj", "layer_norm1": "ln_1", "layer_norm2": "ln_2"}
            names |= {"mlp.fc1": "mlp.c_fc", "mlp.fc2": "mlp.c_proj"}
            for theirs, ours in names.items():
                out[f"{new}.{ours}.{kind}"] = state[f"{old}.{theirs}.{kind}"]
    out["token_embedding.weight"] = state["text_model.embeddings.token_embedding.weight"]
    out["positional_embedding"] = state["text_model.embeddings.position_embedding.weight"]
    for kind in ("weight", "bias"):
        out[f"ln_final.{kind}"] = state[f"text_model.final_layer_norm.{kind}"]
    out["text_projection"] = state["text_projection.weight"].T
    return out


def hugging_face_vision(aim):
    """An AIM without adapters by the names of transformers' CLIP."""
    names = {"conv1.weight": "embeddings.patch_embedding.weight", "class_embedding": "embeddings.class_embedding"}
    names["positional_embedding"] = "embeddings.position_embedding.weight"
    parts = {"ln_pre": "pre_layrnorm", "ln_post": "post_layernorm", "transformer.resblocks": "encoder.layers"}
    parts |= {"attn.out_proj": "self_attn.out_proj", "ln_1": "layer_norm1", "ln_2": "layer_norm2"}
    parts |= {"mlp.c_fc": "mlp.fc1", "mlp.c_proj": "mlp.fc2"}
    out = {}
    for name, weight in aim.state_dict().items():
        new = names.get(name, name)
        for theirs, ours in parts.items():
            new = new.replace(theirs, ours)
        if "in_proj_" in new:
            for part, third in zip("qkv", weight.chunk(3)):
                out["vision_model." + new.replace("attn.in_proj_", f"self_attn.{part}_proj.")] = third
        else:
            out[f"vision_model.{new}"] = weight
    return out


def lavis_names(state):
    """The text path of transformers' Q-Former by the names of BLIP-2's own code."""
    out = {}
    for name, weight in state.items():
        name = name.replace("attention.attention.", "attention.self.")
        name = name.replace("layernorm", "embeddings.LayerNorm") if name.startswith("layernorm") else name
        out[f"Qformer.bert.{name}"] = weight
    return out


class Qformer:
    """BLIP-2's Q-Former on text: embeddings of its own code, blocks of transformers'."""

    def __init__(self, tokenizer, width, layers, positions, number):
        config = dict(hidden_size=width, num_hidden_layers=layers, num_attention_heads=2, intermediate_size=40)
        config |= dict(vocab_size=tokenizer.get_vocab_size(), encoder_hidden_size=8, cross_attention_frequency=2)
        self.model = seed(Blip2QFormerModel(Blip2QFormerConfig(use_qformer_text_input=True, **config)), number)
        self.words = seed(nn.Embedding(tokenizer.get_vocab_size(), width), number + 1)
        self.positions = seed(nn.Embedding(positions, width), number + 2)
        self.config = {"model_type": "blip_2_qformer", "num_attention_heads": 2}

    def state(self):
        state = self.model.state_dict() | {
            "embeddings.word_embeddings.weight": self.words.weight,
            "embeddings.position_embeddings.weight": self.positions.weight,
        }
        # What texts never pass through is left out, to keep the files small.
        unused = ("position_ids", "crossattention", "_query")
        return lavis_names({name: it for name, it in state.items() if not any(word in name for word in unused)})

    def first(self, rows, mask):
        embedded = self.words(rows) + self.positions(torch.arange(rows.shape[1]))
        out = self.model(query_embeds=embedded, query_length=0, attention_mask=mask)
        return out.last_hidden_state[:, 0]


class Bert:
    def __init__(self, tokenizer, width, layers, positions, number):
        config = dict(hidden_size=width, num_hidden_layers=layers, num_attention_heads=2, intermediate_size=40)
        config |= dict(vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=positions)
        self.model = seed(BertModel(BertConfig(**config), add_pooling_layer=False), number)
        self.config = {"model_type": "bert", "num_attention_heads": 2}

    def state(self):
        return {f"bert.{name}": weight for name, weight in self.model.state_dict().items()}

    def first(self, rows, mask):
        return self.model(input_ids=rows, attention_mask=mask).last_hidden_state[:, 0]


class ClipText:
    def __init__(self, tokenizer, width, layers, positions, number):
        end = tokenizer.token_to_id("<|endoftext|>")
        config = dict(hidden_size=width, num_hidden_layers=layers, num_attention_heads=2, intermediate_size=40)
        config |= dict(vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=positions)
        config |= dict(projection_dim=20, eos_token_id=end, bos_token_id=end - 1)
        self.model = seed(CLIPTextModelWithProjection(CLIPTextConfig(**config)), number)
        del config["projection_dim"]
        self.config = {"model_type": "clip", "text_config": config}

    def state(self):
        return openai_text(self.model)

    def first(self, rows, mask):
        return self.model(input_ids=rows, attention_mask=mask).text_embeds


def rounded(rows):
    return [[float(f"{value:.8g}") for value in row] for row in rows.tolist()]


def write_block(data):
    """One block alone: D = 32, T = 3, N = 5, two clips."""
    block = seed(Block(32, 4, 40, 0.5, True), 40)
    x = torch.randn(5, 6, 32, generator=torch.Generator().manual_seed(41))
    with torch.no_grad():
        y = block(x, 3)
    weights = {f"transformer.resblocks.0.{name}": weight for name, weight in block.state_dict().items()}
    # By picture, as the towers keep their tokens: (B*T, N, D).
    save(weights | {"x": x.transpose(0, 1), "y": y.transpose(0, 1)}, data / "aim_block.safetensors")


def write(folder, picture, aim, vision, text, tokenizer, limits, number):
    """`vision`: names and file of the video's weights; `limits`: tokens of a text, widths of the Combiner."""
    (folder / "text").mkdir(parents=True)
    longest, (projection, hidden) = limits
    dim = aim.ln_post.weight.shape[0]
    combiner = seed(Combiner(dim, projection, hidden), number)
    width = text.first(torch.tensor([[0]]), torch.tensor([[1]])).shape[1]
    text_proj = seed(nn.Linear(width, dim), number + 1)
    state, name, config = vision
    save(state, folder / name)
    ending = name.split(".")[1]
    head = {f"combiner.{name}": weight for name, weight in combiner.state_dict().items()}
    save(head | {f"text_proj.{name}": weight for name, weight in text_proj.state_dict().items()}, folder / f"combiner.{ending}")
    save(text.state(), folder / f"text/model.{ending}")
    config = {"model_type": "aim", "video": config, "text": {"max_tokens": longest}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "text/config.json").write_text(json.dumps(text.config))
    (folder / "text/tokenizer.json").write_text(tokenizer.to_str())

    clips = [[picture(*size, kind) for kind, size in enumerate(sizes)] for sizes in CLIPS]
    rows = [ids(tokenizer, normalised(it), longest) for it in TEXTS]
    most = max(map(len, rows))
    padded = torch.tensor([row + [0] * (most - len(row)) for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (most - len(row)) for row in rows])
    with torch.no_grad():
        videos = aim(torch.stack([pixels(aim, frames) for frames in clips]))
        texts = F.normalize(text_proj(text.first(padded, mask)), dim=-1)
        queries = [combiner(videos, vector.expand(len(videos), -1)) for vector in texts]
    expected = {
        "texts": [{"text": it, "normalised": normalised(it), "ids": row} for it, row in zip(TEXTS, rows)],
        "clips": CLIPS,
        "videos": rounded(videos),
        # By text, then by clip.
        "queries": [rounded(it) for it in queries],
    }
    (folder / "expected.json").write_text(json.dumps(expected))


def write_all(data, picture, word_piece, byte_level):
    """One model of each kind of text tower; the first is TF-CoVR's own, in PyTorch's format."""
    data = data / "covr"
    data.mkdir(parents=True)
    write_block(data)
    words, pairs = word_piece(200), byte_level(300, specials_last=True)

    aim = seed(Aim(width=24, heads=3, layers=2, inner=32, frames=3, patch=4, grid=2), 50)
    state = {f"backbone.{name}": weight for name, weight in aim.state_dict().items()}
    config = {"num_attention_heads": 3}
    text = Qformer(words, 16, 2, 40, 51)
    write(data / "qformer", picture, aim, (state, "model.pth", config), text, words, (32, (16, 24)), 54)

    aim = seed(Aim(width=16, heads=2, layers=1, inner=24, frames=4, patch=4, grid=3, scale=0.25), 60)
    config = {"num_attention_heads": 2, "adapter_scale": 0.25}
    text = Bert(words, 12, 1, 16, 61)
    vision = (aim.state_dict(), "model.safetensors", config)
    write(data / "bert", picture, aim, vision, text, words, (12, (8, 12)), 62)

    aim = seed(Aim(width=16, heads=2, layers=1, inner=24, frames=5, patch=4, grid=2, adapters=False), 70)
    config = {"num_attention_heads": 2, "num_frames": 5, "adapters": False}
    text = ClipText(pairs, 12, 1, 20, 71)
    vision = (hugging_face_vision(aim), "model.safetensors", config)
    write(data / "clip", picture, aim, vision, text, pairs, (20, (8, 12)), 72)
