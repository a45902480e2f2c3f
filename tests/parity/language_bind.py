"""A small seeded model of LanguageBind's video model: transformers' CLIP with attention along time before each block of
the vision tower, written from the facts of the released code (arXiv 2310.01852).

Called by make.py; writes one folder. released/language_bind.py then puts the released module's vectors in place of this
one's.
"""

import json

import torch
import transformers
from safetensors.torch import save_file
from torch import nn
from transformers import CLIPConfig, CLIPModel
from transformers.models.clip.modeling_clip import CLIPAttention

import two_towers
from vocabularies import END, byte_level

FRAMES = 4
SIDE = 32
MEAN = torch.tensor([0.48145466, 0.4578275, 0.40821073]).view(3, 1, 1)
STD = torch.tensor([0.26862954, 0.26130258, 0.27577711]).view(3, 1, 1)


def timed(model):
    config = model.config.vision_config
    for layer in model.vision_model.encoder.layers:
        layer.temporal_embedding = nn.Parameter(torch.zeros(1, FRAMES, config.hidden_size))
        layer.temporal_attn = CLIPAttention(config)
        layer.temporal_layer_norm1 = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
    return model


def video(model, pixels):
    """[B, T, 3, side, side] -> [B, dim]."""
    b, t = pixels.shape[:2]
    tower = model.vision_model
    x = tower.pre_layrnorm(tower.embeddings(pixels.flatten(0, 1)))
    n, d = x.shape[1:]
    for layer in tower.encoder.layers:
        # A row for each place of each clip, along time.
        x = x.view(b, t, n, d).transpose(1, 2).reshape(b * n, t, d) + layer.temporal_embedding
        x = x + layer.temporal_attn(layer.temporal_layer_norm1(x))[0]
        x = x.view(b, n, t, d).transpose(1, 2).reshape(b * t, n, d)
        x = x + layer.self_attn(layer.layer_norm1(x))[0]
        x = x + layer.mlp(layer.layer_norm2(x))
    pooled = tower.post_layernorm(x[:, 0]).view(b, t, -1).mean(dim=1)
    return model.visual_projection(pooled)


def write_all(data):
    folder = data / "languagebind"
    folder.mkdir(parents=True)
    tokenizer = byte_level(400, specials_last=True)
    end = tokenizer.token_to_id(END)
    text = dict(hidden_size=24, intermediate_size=48, num_hidden_layers=1, num_attention_heads=3, hidden_act="gelu")
    text |= dict(vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=20)
    text |= dict(bos_token_id=end - 1, eos_token_id=end)
    vision = dict(hidden_size=24, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2, hidden_act="gelu")
    vision |= dict(image_size=SIDE, patch_size=8)
    config = CLIPConfig(text_config=text, vision_config=vision, projection_dim=16)
    model = two_towers.seeded(timed(CLIPModel(config)), 400, half=True)
    described = json.loads(config.to_json_string(use_diff=False)) | {"model_type": "LanguageBindVideo"}
    described["vision_config"] |= {"add_time_attn": True, "num_frames": FRAMES, "lora_r": 0, "force_patch_dropout": 0.5}
    (folder / "config.json").write_text(json.dumps(described, indent=1))
    (folder / "tokenizer.json").write_text(tokenizer.to_str())
    save_file(two_towers.halves(model), folder / "model.safetensors")
    plain = two_towers.plain(tokenizer)
    rows = [two_towers.cut(plain.encode(it).ids, 20) for it in two_towers.TEXTS]
    # The kinds of each clip's pictures, none of which needs resizing; of the last clip each picture comes twice.
    kinds = [[0, 1, 2, 3], [3, 2, 1, 0], [5, 4, 7, 6], [1, 6]]
    seen = [it if len(it) == FRAMES else [kind for kind in it for _ in range(2)] for it in kinds]

    def pixels(kind):
        picture = torch.tensor(two_towers.picture(SIDE, SIDE, kind)).permute(2, 0, 1) / 255
        return (picture - MEAN) / STD

    with torch.no_grad():
        pooled = [model.text_model(input_ids=torch.tensor([row])).pooler_output for row in rows]
        texts = model.text_projection(torch.cat(pooled))
        videos = video(model, torch.stack([torch.stack([pixels(kind) for kind in it]) for it in seen]))
    expected = {
        "reference": f"a PyTorch module from the released code's facts, transformers {transformers.__version__}",
        "texts": [{"text": text, "ids": row} for text, row in zip(two_towers.TEXTS, rows)],
        "text_vectors": two_towers.rounded(texts.numpy()),
        "clips": kinds,
        "clip_vectors": two_towers.rounded(videos.numpy()),
    }
    (folder / "expected.json").write_text(json.dumps(expected))
