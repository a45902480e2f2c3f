"""The reference of BLIP's vectors: transformers' `BlipForImageTextRetrieval` with small seeded weights.

Called by make.py; writes one folder.
"""

import json

import torch
import transformers
from safetensors.torch import save_file
from transformers import BlipConfig, BlipForImageTextRetrieval
from transformers.models.blip.image_processing_pil_blip import BlipImageProcessorPil

import two_towers
from vocabularies import word_piece


def write_all(data):
    folder = data / "blip"
    folder.mkdir(parents=True)
    tokenizer = word_piece(320)
    text = dict(hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=3)
    text |= dict(encoder_hidden_size=32, vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=40)
    text |= dict(bos_token_id=tokenizer.token_to_id("[CLS]"), sep_token_id=tokenizer.token_to_id("[SEP]"))
    vision = dict(hidden_size=32, intermediate_size=56, num_hidden_layers=2, num_attention_heads=4)
    vision |= dict(image_size=32, patch_size=8, layer_norm_eps=1e-6)
    config = BlipConfig(text_config=text, vision_config=vision, image_text_hidden_size=20)
    model = two_towers.seeded(BlipForImageTextRetrieval(config), 300, half=True)
    (folder / "config.json").write_text(json.dumps(json.loads(config.to_json_string(use_diff=False)), indent=1))
    (folder / "tokenizer.json").write_text(tokenizer.to_str())
    processor = BlipImageProcessorPil(size={"height": 32, "width": 32})
    processor.save_pretrained(folder)
    # What plain texts never pass through is left out, to keep the file small.
    unused = ("crossattention", "itm_head")
    weights = {name: it for name, it in two_towers.halves(model).items() if not any(part in name for part in unused)}
    save_file(weights, folder / "model.safetensors")
    plain = two_towers.plain(tokenizer)

    def text(ids, mask):
        return model.text_proj(model.text_encoder(input_ids=ids, attention_mask=mask).last_hidden_state[:, 0])

    two_towers.write(
        folder,
        two_towers.Model(
            reference=f"transformers {transformers.__version__}",
            ids=lambda it: two_towers.cut(plain.encode(it).ids, 40),
            limit=40,
            pads=[0],
            always_padded=False,
            text=text,
            image=lambda pixels: model.vision_proj(model.vision_model(pixel_values=pixels).last_hidden_state[:, 0]),
            pixels=lambda it: torch.tensor(processor(images=it, return_tensors="np")["pixel_values"][0]),
            mean=processor.image_mean,
            std=processor.image_std,
            exact=32,
            masked=True,
        ),
    )
