"""The reference of CLIP in Hugging Face's layout: transformers' own with small seeded weights, with a tokenizer of
each type.

Called by make.py; writes one folder a variant.
"""

import json

import torch
import transformers
from safetensors.torch import save_file
from transformers import CLIPConfig, CLIPModel
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

import two_towers
from vocabularies import END, byte_level, unigram, word_piece


def clip_config(tokenizer, text, vision, projection):
    base = {"vocab_size": tokenizer.get_vocab_size()}
    return CLIPConfig(text_config=base | text, vision_config=vision, projection_dim=projection)


def variants():
    """Name -> tokenizer, configuration, image processor, specials to add, shards."""
    tokenizer = byte_level(400, specials_last=True)
    end = tokenizer.token_to_id(END)
    text = dict(hidden_size=24, intermediate_size=48, num_hidden_layers=2, num_attention_heads=3)
    vision = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2)
    yield "legacy", dict(
        tokenizer=tokenizer,
        config=clip_config(
            tokenizer,
            # The ids that the first CLIP files state by mistake.
            text | dict(max_position_embeddings=20, hidden_act="quick_gelu", bos_token_id=0, eos_token_id=2),
            vision | dict(image_size=32, patch_size=8, hidden_act="quick_gelu"),
            16,
        ),
        processor=dict(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}),
        pads=[0, end],
    )
    tokenizer = word_piece(350)
    end = tokenizer.token_to_id("[SEP]")
    yield "wordpiece", dict(
        tokenizer=tokenizer,
        config=clip_config(
            tokenizer,
            text
            | dict(
                max_position_embeddings=40,
                hidden_act="gelu",
                layer_norm_eps=1e-6,
                bos_token_id=tokenizer.token_to_id("[CLS]"),
                eos_token_id=end,
            ),
            # 30 is no multiple of 7: the last pixels belong to no patch.
            vision | dict(image_size=30, patch_size=7, hidden_act="gelu", layer_norm_eps=1e-6),
            12,
        ),
        processor=dict(size={"height": 30, "width": 30}, do_center_crop=False, resample=2),
        pads=[0, end],
        shards=True,
    )
    tokenizer = unigram(300)
    end = tokenizer.token_to_id("</s>")
    yield "unigram", dict(
        tokenizer=tokenizer,
        config=clip_config(
            tokenizer,
            dict(hidden_size=32, intermediate_size=40, num_hidden_layers=1, num_attention_heads=4)
            | dict(max_position_embeddings=12, hidden_act="gelu_new", bos_token_id=0, eos_token_id=end),
            dict(hidden_size=24, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4)
            | dict(image_size=24, patch_size=12, hidden_act="gelu_pytorch_tanh"),
            24,
        ),
        processor=dict(size={"shortest_edge": 28}, crop_size={"height": 24, "width": 24}, image_mean=[0.5] * 3),
        pads=[0, end],
        specials=(0, end),
    )


def save_weights(model, folder, shards):
    weights = {name: weight.contiguous() for name, weight in model.state_dict().items()}
    if not shards:
        save_file(weights, folder / "model.safetensors")
        return
    names = sorted(weights)
    parts = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
    for file, part in parts.items():
        save_file({name: weights[name] for name in part}, folder / file)
    index = {"metadata": {}, "weight_map": {name: file for file, part in parts.items() for name in part}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=0))


def write(folder, variant, seed):
    folder.mkdir(parents=True)
    config = variant["config"]
    model = two_towers.seeded(CLIPModel(config), seed)
    described = json.loads(config.to_json_string(use_diff=False))
    (folder / "config.json").write_text(json.dumps(described, indent=1))
    (folder / "tokenizer.json").write_text(variant["tokenizer"].to_str())
    processor = CLIPImageProcessorPil(**variant["processor"])
    processor.save_pretrained(folder)
    save_weights(model, folder, variant.get("shards", False))
    tokenizer, limit = two_towers.plain(variant["tokenizer"]), config.text_config.max_position_embeddings
    start, end = variant.get("specials", (None, None))

    def ids(text):
        ids = tokenizer.encode(text).ids
        return two_towers.cut(ids if start is None else [start] + ids + [end], limit)

    def text(ids, mask):
        return model.text_projection(model.text_model(input_ids=ids, attention_mask=mask).pooler_output)

    def image(pixels):
        return model.visual_projection(model.vision_model(pixel_values=pixels).pooler_output)

    side = config.vision_config.image_size
    two_towers.write(
        folder,
        two_towers.Model(
            reference=f"transformers {transformers.__version__}",
            ids=ids,
            limit=limit,
            pads=variant["pads"],
            always_padded=False,
            text=text,
            image=image,
            pixels=lambda it: torch.tensor(processor(images=it, return_tensors="np")["pixel_values"][0]),
            mean=processor.image_mean,
            std=processor.image_std,
            exact=(processor.size.get("shortest_edge") or side) if processor.do_center_crop else side,
        ),
    )


def write_all(data):
    for seed, (name, variant) in enumerate(variants()):
        write(data / name, variant, seed)
