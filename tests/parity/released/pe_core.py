"""PE-Core's released model (facebookresearch/perception_models, commit 3e352cca660658d4b5c90f42a7808b11469e4c66,
Apache 2.0) on the small models of data/open-clip/pe and pe-large, whose names are changed from timm's to the released
ones.

    python pe_core.py CHECKOUT

timm stretches the places of patches to the grid that its named model has: 14 and 32 patches a side here. The released
code counts places as they are, which is the same at that grid. The fixtures' grids are smaller, so places are
stretched before the released rotary embedding sees them. timm's last layer has a bias, and the released projection
none: the fixture's is added behind.
"""

import torch
from torch import nn

import checkout

# Folder -> patches along a side of timm's named model.
GRIDS = {"open-clip/pe": 14, "open-clip/pe-large": 32}
NAMES = {
    "patch_embed.proj": "conv1",
    "cls_token": "class_embedding",
    "pos_embed": "positional_embedding",
    "norm_pre.": "ln_pre.",
    "attn_pool.latent": "attn_pool.probe",
    "attn_pool.norm": "attn_pool.layernorm",
    "attn.proj": "attn.out_proj",
    "attn_pool.proj": "attn_pool.attn.out_proj",
    "attn.qkv.": "attn.in_proj_",
    "mlp.fc1": "mlp.c_fc",
    "mlp.fc2": "mlp.c_proj",
    "blocks.": "transformer.resblocks.",
    "norm1": "ln_1",
    "norm2": "ln_2",
}


class Stretched(nn.Module):
    def __init__(self, rotary, factor):
        super().__init__()
        self.rotary, self.factor = rotary, factor

    def forward(self, places):
        return self.rotary(places * self.factor)


def released_names(state):
    out = {}
    for name, tensor in state.items():
        if name == "head.weight":
            out["proj"] = tensor.t()
        elif name.startswith("norm."):
            out[name.replace("norm.", "ln_post.")] = tensor
        elif "attn_pool.q." in name:
            kind = name.split(".")[-1]
            out[f"attn_pool.attn.in_proj_{kind}"] = torch.cat([tensor, state[f"attn_pool.kv.{kind}"]])
        elif "attn_pool.kv." not in name and name != "head.bias":
            for theirs, own in NAMES.items():
                name = name.replace(theirs, own)
            # Without axes of length 1 in front.
            flat = name in ("class_embedding", "positional_embedding")
            out[name] = tensor.reshape(*tensor.shape[1:] if name != "class_embedding" else [-1]) if flat else tensor
    return out


def main():
    folder, _ = checkout.folders(1)
    encoders = folder / "core/vision_encoder"
    checkout.packages(core=folder / "core", core__vision_encoder=encoders)
    module = checkout.take("core.vision_encoder.pe")
    settings = checkout.take("core.vision_encoder.config")
    for name, grid in GRIDS.items():
        config = checkout.expected(name, "open_clip_config.json")["model_cfg"]
        state = checkout.tensors(checkout.DATA / name / "open_clip_model.safetensors")
        timm = checkout.under(state, "visual.trunk.")
        bias = timm["head.bias"]
        vision = released_names(timm)
        width, _, patch, _ = vision["conv1.weight"].shape
        heads = config["vision_cfg"]["timm_model_args"]["num_heads"]
        pictures = settings.PEConfig(
            patch_size=patch,
            width=width,
            layers=2,
            heads=heads,
            mlp_ratio=len(vision["transformer.resblocks.0.mlp.c_fc.bias"]) / width,
            output_dim=config["embed_dim"],
            image_size=config["vision_cfg"]["image_size"],
            use_cls_token="class_embedding" in vision,
        )
        words = settings.PETextConfig(**config["text_cfg"], output_dim=config["embed_dim"])
        model = module.CLIP(pictures, words)
        vision = {f"visual.{key}": it for key, it in vision.items()}
        own = {"logit_scale": state["logit_scale"]} | checkout.under(state, "text.") | vision
        checkout.fill(model, own, may_lack=["rope"])
        rotary = model.visual.rope
        rotary.rope = Stretched(rotary.rope, grid / (pictures.image_size // patch))
        text = lambda rows: model.encode_text(checkout.padded(rows, config["text_cfg"]["context_length"])[0])
        image = lambda pixels: model.encode_image(pixels) + bias
        checkout.two_tower_fixture(name, text, image, mean=[0.5] * 3, std=[0.5] * 3)


if __name__ == "__main__":
    main()
