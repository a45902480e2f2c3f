"""The reference of BLIP-2's vectors: transformers' `Blip2ForImageTextRetrieval` with small seeded weights. A picture's
vector is the mean of its queries' unit vectors, where BLIP-2's own score takes the nearest.

Called by make.py; writes one folder.
"""

import json

import torch
import transformers
from safetensors.torch import save_file
from torch.nn.functional import normalize
from transformers import Blip2Config, Blip2ForImageTextRetrieval
from transformers.models.blip.image_processing_pil_blip import BlipImageProcessorPil

import two_towers
from vocabularies import word_piece

SIDE = 32


def write_all(data):
    folder = data / "blip-2"
    folder.mkdir(parents=True)
    tokenizer = word_piece(320)
    qformer = dict(hidden_size=24, intermediate_size=40, num_hidden_layers=3, num_attention_heads=3)
    qformer |= dict(vocab_size=tokenizer.get_vocab_size() + 1, max_position_embeddings=40, use_qformer_text_input=True)
    vision = dict(hidden_size=32, intermediate_size=56, num_hidden_layers=2, num_attention_heads=4)
    vision |= dict(image_size=SIDE, patch_size=8)
    # The language model that such a configuration names is no part of this model.
    opt = dict(model_type="opt", vocab_size=8, hidden_size=4, ffn_dim=4, num_hidden_layers=1, num_attention_heads=1)
    config = Blip2Config(vision_config=vision, qformer_config=qformer, text_config=opt)
    config.num_query_tokens, config.image_text_hidden_size = 6, 20
    model = two_towers.seeded(Blip2ForImageTextRetrieval(config), 320, half=True)
    described = json.loads(config.to_json_string(use_diff=False))
    # As published files do, some of what is so by default is left out.
    del described["vision_config"]["layer_norm_eps"], described["qformer_config"]["layer_norm_eps"]
    (folder / "config.json").write_text(json.dumps(described, indent=1))
    (folder / "tokenizer.json").write_text(tokenizer.to_str())
    processor = BlipImageProcessorPil(size={"height": SIDE, "width": SIDE})
    processor.save_pretrained(folder)
    weights = {name: it for name, it in two_towers.halves(model).items() if "itm_head" not in name}
    save_file(weights, folder / "model.safetensors")
    plain = two_towers.plain(tokenizer)
    nothing = torch.zeros(1, 3, SIDE, SIDE)

    def text(ids, mask):
        read = model.qformer(query_embeds=model.embeddings(input_ids=ids), query_length=0, attention_mask=mask)
        vectors = model.text_projection(read.last_hidden_state[:, 0])
        # The model's own answer is of norm 1.
        own = model(pixel_values=nothing.expand(len(ids), -1, -1, -1), input_ids=ids, attention_mask=mask).text_embeds
        assert (normalize(vectors, dim=-1) - own).abs().max() < 1e-5
        return vectors

    def image(pixels):
        ids = torch.full((len(pixels), 3), 2)
        out = model(pixel_values=pixels, input_ids=ids, attention_mask=torch.ones_like(ids))
        return out.image_embeds.mean(dim=1)

    two_towers.write(
        folder,
        two_towers.Model(
            reference=f"transformers {transformers.__version__}",
            ids=lambda it: two_towers.cut(plain.encode(it).ids, 40),
            limit=40,
            pads=[0],
            always_padded=False,
            text=text,
            image=image,
            pixels=lambda it: torch.tensor(processor(images=it, return_tensors="np")["pixel_values"][0]),
            mean=processor.image_mean,
            std=processor.image_std,
            exact=SIDE,
            masked=True,
        ),
    )
