"""The reference of BLIP's vectors: transformers' `BlipForImageTextRetrieval` with small seeded weights; and of
BLIP-CoVR's composed queries, which the same model's text encoder makes with its cross-attention, in a folder whose
weights have the names of the released code.

Called by make.py; writes one folder a model.
"""

import json
import re

import torch
import transformers
from PIL import Image
from safetensors.torch import save_file
from transformers import BlipConfig, BlipForImageTextRetrieval
from transformers.models.blip.image_processing_pil_blip import BlipImageProcessorPil

import two_towers
from vocabularies import word_piece

REFERENCE = f"transformers {transformers.__version__}"
SIDE = 32

MODIFICATIONS = [
    "the same but with two and a half turns",
    "Replace the (brown) dog... with a CAT!",
    "12.5",
    "",
    " ".join(["now with one somersault more,"] * 9),
]
# Kinds of pictures; with one frame, odd and even numbers of them.
CLIPS = [[0], [1, 2], [3, 4, 5], [7, 6, 5, 4]]


def built(tokens, tokenizer, epsilon, seed):
    text = dict(hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=3)
    text |= dict(encoder_hidden_size=32, vocab_size=tokens, max_position_embeddings=40)
    text |= dict(bos_token_id=tokenizer.token_to_id("[CLS]"), sep_token_id=tokenizer.token_to_id("[SEP]"))
    vision = dict(hidden_size=32, intermediate_size=56, num_hidden_layers=2, num_attention_heads=4)
    vision |= dict(image_size=SIDE, patch_size=8, layer_norm_eps=epsilon)
    config = BlipConfig(text_config=text, vision_config=vision, image_text_hidden_size=20)
    return two_towers.seeded(BlipForImageTextRetrieval(config), seed, half=True)


def write(folder, model, tokenizer, more={}):
    """All but the weights; gives the image processor."""
    described = json.loads(model.config.to_json_string(use_diff=False)) | more
    (folder / "config.json").write_text(json.dumps(described, indent=1))
    (folder / "tokenizer.json").write_text(tokenizer.to_str())
    processor = BlipImageProcessorPil(size={"height": SIDE, "width": SIDE})
    processor.save_pretrained(folder)
    plain = two_towers.plain(tokenizer)

    def text(ids, mask):
        return model.text_proj(model.text_encoder(input_ids=ids, attention_mask=mask).last_hidden_state[:, 0])

    two_towers.write(
        folder,
        two_towers.Model(
            reference=REFERENCE,
            ids=lambda it: two_towers.cut(plain.encode(it).ids, 40),
            limit=40,
            pads=[0],
            always_padded=False,
            text=text,
            image=lambda pixels: model.vision_proj(model.vision_model(pixel_values=pixels).last_hidden_state[:, 0]),
            pixels=lambda it: torch.tensor(processor(images=it, return_tensors="np")["pixel_values"][0]),
            mean=processor.image_mean,
            std=processor.image_std,
            exact=SIDE,
            masked=True,
        ),
    )
    return processor


def contrastive(folder):
    folder.mkdir(parents=True)
    tokenizer = word_piece(320)
    model = built(tokenizer.get_vocab_size(), tokenizer, 1e-6, 300)
    # What plain texts never pass through is left out, to keep the file small.
    unused = ("crossattention", "itm_head")
    weights = {name: it for name, it in two_towers.halves(model).items() if not any(part in name for part in unused)}
    save_file(weights, folder / "model.safetensors")
    write(folder, model, tokenizer)


def cleaned(text):
    """As CoVR's code does to modification texts."""
    text = re.sub(r"\s{2,}", " ", re.sub(r'[.!"()*#:;~]', " ", text.lower()))
    return " ".join(text.strip().split(" ")[:30])


def released_names(state):
    """The names of BLIP's own code, as CoVR's checkpoints have them."""
    out = {}
    for name, weight in state.items():
        if "position_ids" in name:
            continue
        for theirs, ours in (
            ("vision_model.embeddings.class_embedding", "visual_encoder.cls_token"),
            ("vision_model.embeddings.position_embedding", "visual_encoder.pos_embed"),
            ("vision_model.embeddings.patch_embedding", "visual_encoder.patch_embed.proj"),
            ("vision_model.post_layernorm", "visual_encoder.norm"),
            ("vision_model.encoder.layers", "visual_encoder.blocks"),
            (".layer_norm", ".norm"),
            (".self_attn.qkv", ".attn.qkv"),
            (".self_attn.projection", ".attn.proj"),
        ):
            name = name.replace(theirs, ours)
        out[f"module.{name}"] = weight
    return out


def covr(folder):
    folder.mkdir(parents=True)
    tokenizer = word_piece(320)
    # Two tokens of its own stand behind BERT's: [DEC], and [ENC] for texts that are read together with a picture.
    tokens = tokenizer.get_vocab_size() + 2
    model = built(tokens, tokenizer, 1e-6, 310)
    processor = write(folder, model, tokenizer, {"composed_queries": {"enc_token_id": tokens - 1}})
    torch.save({"model": released_names(two_towers.halves(model)), "epoch": 4}, folder / "model.ckpt")
    plain = two_towers.plain(tokenizer)
    rows = [two_towers.cut(plain.encode(cleaned(it)).ids, 40) for it in MODIFICATIONS]

    def pixels(kinds):
        picture = Image.fromarray(two_towers.picture(SIDE, SIDE, kinds[len(kinds) // 2]))
        return torch.tensor(processor(images=picture, return_tensors="np")["pixel_values"])

    def query(ids, kinds):
        seen = model.vision_model(pixel_values=pixels(kinds)).last_hidden_state
        ids = torch.tensor([[tokens - 1] + ids[1:]])
        mask = torch.ones_like(ids)
        attended = torch.ones(seen.shape[:2], dtype=torch.long)
        read = model.text_encoder(
            input_ids=ids, attention_mask=mask, encoder_hidden_states=seen, encoder_attention_mask=attended
        )
        return model.text_proj(read.last_hidden_state[:, 0])[0]

    with torch.no_grad():
        queries = [two_towers.rounded([query(ids, kinds).numpy() for kinds in CLIPS]) for ids in rows]
    expected = {
        "reference": REFERENCE,
        "modifications": [{"text": text, "ids": ids} for text, ids in zip(MODIFICATIONS, rows)],
        "clips": CLIPS,
        "queries": queries,
    }
    (folder / "composed.json").write_text(json.dumps(expected))
