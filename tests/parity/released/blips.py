"""What blip.py and covr.py share: building the released models, whose code is nearly the same, with the sizes of the
small model of data/blip-covr. Its weights have the released names.
"""

import json
import pathlib
import tempfile

import checkout

FIXTURE = "blip-covr"


class Tokens:
    """What a tokenizer of transformers gives."""

    def __init__(self, rows):
        self.input_ids, self.attention_mask = checkout.padded(rows)

    def to(self, _device):
        return self


class Tokenizer:
    """Knows the ids of some texts."""

    def __init__(self, rows, enc_token_id):
        self.rows, self.enc_token_id = rows, enc_token_id

    def __call__(self, texts, **_):
        return Tokens([self.rows[it] for it in texts])


def weights():
    return checkout.under(checkout.tensors(checkout.DATA / FIXTURE / "model.ckpt"), "module.")


def build(module, vit, rows, make):
    """What `make` makes of the path of BERT's configuration, with towers of the fixture's sizes."""
    described = checkout.expected(FIXTURE, "config.json")
    text, vision = described["text_config"], described["vision_config"]
    module.create_vit = lambda *_: (
        vit.VisionTransformer(
            img_size=vision["image_size"],
            patch_size=vision["patch_size"],
            embed_dim=vision["hidden_size"],
            depth=vision["num_hidden_layers"],
            num_heads=vision["num_attention_heads"],
            mlp_ratio=vision["intermediate_size"] / vision["hidden_size"],
        ),
        vision["hidden_size"],
    )
    module.init_tokenizer = lambda: Tokenizer(rows, described["composed_queries"]["enc_token_id"])
    taken = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    config = {key: text[key] for key in (*taken, "max_position_embeddings", "hidden_act", "layer_norm_eps")}
    config |= {"add_cross_attention": True, "type_vocab_size": 2, "pad_token_id": 0}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "med_config.json"
        path.write_text(json.dumps(config))
        return make(str(path), described["image_text_hidden_size"])


def compare(model):
    """Vectors of the contrastive loss."""

    def text(rows):
        ids, mask = checkout.padded(rows)
        read = model.text_encoder(ids, attention_mask=mask, return_dict=True, mode="text")
        return model.text_proj(read.last_hidden_state[:, 0])

    checkout.two_tower_fixture(FIXTURE, text, lambda it: model.vision_proj(model.visual_encoder(it)[:, 0]))
