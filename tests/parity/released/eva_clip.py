"""EVA-CLIP's released model (baaivision/EVA, commit 5623d08bb08a8268c7bc18e1d9b8b4bd651fe4d9, MIT) on the small
models of data/open-clip/eva and eva-post, whose names are changed from timm's to the released ones.

    python eva_clip.py CHECKOUT

`EVA-CLIP/rei/eva_clip/eva_vit_model.py` and `transformer.py` are imported alone, without xformers and apex: attention
and norms are PyTorch's. Sizes are the fixture's, and what else a tower is told is from the released configurations of
EVA02-CLIP-B-16 and EVA02-CLIP-bigE-14.
"""

import functools

from torch import nn

import checkout

NAMES = {"mlp.fc1_g": "mlp.w1", "mlp.fc1_x": "mlp.w2", "mlp.norm": "mlp.ffn_ln", "attn.norm": "attn.inner_attn_ln"}
NAMES |= {"q_proj.bias": "q_bias", "v_proj.bias": "v_bias"}
# Folder -> what the released configuration says beside sizes.
TOWERS = {
    "eva": dict(rope=True, pt_hw_seq_len=16, intp_freq=True, naiveswiglu=True, subln=True),
    "eva-post": dict(postnorm=True),
}


def released_names(state, gated):
    out = {}
    for name, tensor in state.items():
        for theirs, own in NAMES.items():
            name = name.replace(theirs, own)
        out[name.replace("mlp.fc2", "mlp.w3") if gated else name] = tensor
    return out


def main():
    folder, _ = checkout.folders(1)
    checkout.packages(eva_clip=folder / "EVA-CLIP/rei/eva_clip")
    vit, words = checkout.take("eva_clip.eva_vit_model"), checkout.take("eva_clip.transformer")
    for name, more in TOWERS.items():
        name = f"open-clip/{name}"
        config = checkout.expected(name, "open_clip_config.json")["model_cfg"]
        state = checkout.tensors(checkout.DATA / name / "open_clip_model.safetensors")
        vision = released_names(checkout.under(state, "visual.trunk."), gated="naiveswiglu" in more)
        width, _, patch, _ = vision["patch_embed.proj.weight"].shape
        inner = len(vision["blocks.0.mlp.w1.bias" if "naiveswiglu" in more else "blocks.0.mlp.fc1.bias"])
        tower = vit.EVAVisionTransformer(
            img_size=config["vision_cfg"]["image_size"],
            patch_size=patch,
            num_classes=config["embed_dim"],
            embed_dim=width,
            depth=2,
            num_heads=config["vision_cfg"]["timm_model_args"]["num_heads"],
            # A little more, for the code rounds down.
            mlp_ratio=(inner + 0.1) / width,
            qkv_bias=True,
            norm_layer=functools.partial(nn.LayerNorm, eps=1e-6),
            use_mean_pooling=False,
            **more,
        )
        checkout.fill(tower, vision, may_lack=["rope.freqs"])
        given = config["text_cfg"]
        text = words.TextTransformer(**given, output_dim=config["embed_dim"], act_layer=nn.GELU)
        checkout.fill(text, checkout.under(state, "text."))
        encode = lambda rows: text(checkout.padded(rows, given["context_length"])[0])
        checkout.two_tower_fixture(name, encode, tower)


if __name__ == "__main__":
    main()
