"""BLIP-2's released first-stage model (salesforce/LAVIS, commit 506965b9c4a18c1e565bd32acaccabe0198433f7, BSD
3-Clause) on the small model of data/blip-2, whose names are changed from transformers' to the released ones.

    python blip2.py CHECKOUT

LAVIS' registry, downloads and logs are left out, and the constructor, which fetches BERT; its methods for texts and
pictures are run. The released keys have no bias: the fixture's shifts all scores of a query alike, which softmax does
not see. The norm behind the tower of pictures has an epsilon of 1e-6 in transformers and 1e-5 in the released code;
it gets the fixture's, and the difference with its own is printed too.
"""

import functools
import types

import torch
from torch import nn
from transformers import BertConfig

import checkout

NAMES = {
    "embeddings.patch_embedding": "patch_embed.proj",
    "embeddings.class_embedding": "cls_token",
    "embeddings.position_embedding": "pos_embed",
    "encoder.layers": "blocks",
    "layer_norm": "norm",
    "self_attn.projection": "attn.proj",
    "self_attn.qkv": "attn.qkv",
}


def pictures(state):
    out = {}
    for name, tensor in checkout.under(state, "vision_model.").items():
        for theirs, own in NAMES.items():
            name = name.replace(theirs, own)
        if name.endswith("qkv.bias"):
            queries, _, values = tensor.chunk(3)
            stem = name.removesuffix("qkv.bias")
            out |= {f"{stem}q_bias": queries, f"{stem}v_bias": values}
        elif not name.startswith("post_layernorm."):
            out[name] = tensor
    return out


def qformer(state):
    out = {f"bert.embeddings.{name}": it for name, it in checkout.under(state, "embeddings.").items()}
    for name, tensor in checkout.under(state, "qformer.").items():
        name = name.replace("attention.attention.", "attention.self.")
        name = name.replace("layernorm", "embeddings.LayerNorm") if name.startswith("layernorm") else name
        out[f"bert.{name}"] = tensor
    return out


def main():
    folder, _ = checkout.folders(1)
    models = folder / "lavis/models"
    checkout.packages(lavis=folder / "lavis", lavis__models=models, lavis__models__blip2_models=models / "blip2_models")
    checkout.stubs("lavis.common", "lavis.common.registry", "lavis.common.dist_utils", "lavis.common.utils")
    checkout.stubs("lavis.common.logger", "lavis.models.base_model", "lavis.models.clip_vit")
    checkout.stubs("lavis.models.blip_models", "lavis.models.blip_models.blip_outputs")
    # Decorators and base classes must be real.
    checkout.take("lavis.models.base_model").BaseModel = nn.Module
    checkout.take("lavis.common.registry").registry.register_model = lambda _name: lambda it: it
    vit, bert = checkout.take("lavis.models.eva_vit"), checkout.take("lavis.models.blip2_models.Qformer")
    released = checkout.take("lavis.models.blip2_models.blip2_qformer").Blip2Qformer

    described = checkout.expected("blip-2", "config.json")
    state = checkout.tensors(checkout.DATA / "blip-2/model.safetensors")
    vision, texts = described["vision_config"], described["qformer_config"]
    model = released.__new__(released)
    nn.Module.__init__(model)
    tower = vit.VisionTransformer(
        img_size=vision["image_size"],
        patch_size=vision["patch_size"],
        embed_dim=vision["hidden_size"],
        depth=vision["num_hidden_layers"],
        num_heads=vision["num_attention_heads"],
        mlp_ratio=vision["intermediate_size"] / vision["hidden_size"],
        qkv_bias=True,
        norm_layer=functools.partial(nn.LayerNorm, eps=1e-6),
        use_mean_pooling=False,
    )
    model.visual_encoder = checkout.fill(tower, pictures(state))
    taken = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    config = BertConfig(**{key: texts[key] for key in (*taken, "max_position_embeddings")})
    config.encoder_width, config.add_cross_attention = vision["hidden_size"], True
    config.cross_attention_freq = texts["cross_attention_frequency"]
    config.query_length = state["query_tokens"].shape[1]
    model.Qformer = checkout.fill(bert.BertLMHeadModel(config), qformer(state), may_lack=["position_ids", "cls."])
    model.query_tokens = nn.Parameter(state["query_tokens"])
    for name, own in (("vision_projection", "vision_proj"), ("text_projection", "text_proj")):
        layer = nn.Linear(*reversed(state[f"{name}.weight"].shape))
        setattr(model, own, checkout.fill(layer, checkout.under(state, f"{name}.")))

    def text(rows):
        ids, mask = checkout.padded(rows)
        return model.text_proj(model.forward_text(types.SimpleNamespace(input_ids=ids, attention_mask=mask)))

    def image(pixels):
        # The mean of the queries' unit vectors, which is reprise's own.
        return nn.functional.normalize(model.vision_proj(model.forward_image(pixels)[0]), dim=-1).mean(dim=1)

    def norm(epsilon):
        layer = nn.LayerNorm(vision["hidden_size"], eps=epsilon)
        return checkout.fill(layer, checkout.under(state, "vision_model.post_layernorm."))

    seen = torch.stack([checkout.pixels(kind, vision["image_size"]) for kind in range(8)])
    with torch.no_grad():
        model.ln_vision = norm(1e-5)
        own = image(seen)
        model.ln_vision = norm(1e-6)
        checkout.tell("epsilon of 1e-5, pictures", checkout.off(own, image(seen)))
    checkout.two_tower_fixture("blip-2", text, image)


if __name__ == "__main__":
    main()
