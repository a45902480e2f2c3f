"""The reference of models in OpenCLIP's layout: open_clip's own CLIP, with timm's EVA and PE-Core vision towers; and of
Long-CLIP, in Hugging Face's layout and with the names and the two tables of positions of its own code. All have small
seeded weights.

Called by make.py; writes one folder a model.
"""

import json

import open_clip
import timm
import torch
import transformers
from open_clip.model import CLIP, CustomTextCLIP, _build_text_tower
from open_clip.transform import PreprocessCfg, image_transform_v2
from safetensors.torch import save_file
from torch import nn
from transformers import CLIPConfig, CLIPModel
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

import two_towers
from vocabularies import END, byte_level

OPEN_CLIP = f"open_clip_torch {open_clip.__version__}"


class Trunk(nn.Module):
    """open_clip's TimmModel, of another size than its name says."""

    def __init__(self, name, sizes):
        super().__init__()
        self.trunk = timm.create_model(name, **sizes)

    def forward(self, pixels):
        return self.trunk(pixels)


class Custom(nn.Module):
    def __init__(self, dim, visual, text):
        super().__init__()
        self.visual, self.text = visual, _build_text_tower(dim, text)
        self.logit_scale = nn.Parameter(torch.ones([]))

    def encode_image(self, pixels):
        return self.visual(pixels)

    def encode_text(self, ids):
        return self.text(ids)


def text_config(tokenizer, width=24, heads=3, layers=2, context=20):
    return dict(context_length=context, vocab_size=tokenizer.get_vocab_size(), width=width, heads=heads, layers=layers)


def write(folder, tokenizer, model, config, preprocess, seed, pickled=False, reference=OPEN_CLIP):
    folder.mkdir(parents=True)
    two_towers.seeded(model, seed, half=True)
    weights = two_towers.halves(model)
    if pickled:
        torch.save(weights, folder / "open_clip_pytorch_model.bin")
    else:
        save_file(weights, folder / "open_clip_model.safetensors")
    described = {"model_cfg": config, "preprocess_cfg": preprocess}
    (folder / "open_clip_config.json").write_text(json.dumps(described, indent=1))
    (folder / "tokenizer.json").write_text(tokenizer.to_str())
    limit = config["text_cfg"]["context_length"]
    given = PreprocessCfg(**({"size": config["vision_cfg"]["image_size"]} | preprocess))
    plain, transform = two_towers.plain(tokenizer), image_transform_v2(given, is_train=False)

    def text(ids, mask):
        # open_clip's own CLIP takes texts of full length alone.
        padded = torch.nn.functional.pad(ids, (0, limit - ids.shape[1]))
        return model.encode_text(padded)

    two_towers.write(
        folder,
        two_towers.Model(
            reference=reference,
            ids=lambda it: two_towers.cut(plain.encode(it).ids, limit),
            limit=limit,
            pads=[0, tokenizer.token_to_id(END)],
            always_padded=False,
            text=text,
            image=model.encode_image,
            pixels=transform,
            mean=given.mean,
            std=given.std,
            exact=given.size,
        ),
    )


def clips(data, tokenizer):
    """open_clip's own towers: both ways of naming the text tower, both activations."""
    vision = dict(image_size=30, patch_size=7, width=32, layers=2, head_width=16, mlp_ratio=3.0)
    config = dict(embed_dim=20, quick_gelu=True, vision_cfg=vision, text_cfg=text_config(tokenizer))
    write(data / "clip", tokenizer, CLIP(**config), config, {}, 200, pickled=True)
    vision = dict(image_size=32, patch_size=8, width=24, layers=2, head_width=8, norm_kwargs={"eps": 1e-6})
    vision["act_kwargs"] = {"approximate": "tanh"}
    config = dict(embed_dim=16, vision_cfg=vision, text_cfg=text_config(tokenizer, 32, 2, 1, 28), custom_text=True)
    preprocess = dict(size=32, mean=[0.5] * 3, std=[0.4, 0.5, 0.6], interpolation="bilinear", resize_mode="squash")
    model = CustomTextCLIP(**{key: it for key, it in config.items() if key != "custom_text"})
    write(data / "custom", tokenizer, model, config, preprocess, 201)


# Folder -> name in timm, sizes there, what else OpenCLIP's configuration says.
TIMM = {
    "eva": ("eva02_base_patch16_clip_224", dict(img_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=2), 16),
    "eva-post": ("eva02_enormous_patch14_clip_224", dict(img_size=32, patch_size=8, embed_dim=24, depth=2, num_heads=3, mlp_ratio=2.5), 20),
    "pe": ("vit_pe_core_base_patch16_224", dict(img_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=2), 24),
    "pe-large": ("vit_pe_core_gigantic_patch14_448", dict(img_size=30, patch_size=6, embed_dim=48, depth=2, num_heads=3, mlp_ratio=3.0), 24),
}


def timm_towers(data, tokenizer):
    for seed, (folder, (name, sizes, dim)) in enumerate(TIMM.items(), 210):
        pool = "map" if "pe_core" in name else "token"
        visual = Trunk(name, sizes | dict(num_classes=dim, global_pool=pool))
        text = text_config(tokenizer, context=32 if pool == "map" else 20)
        model = Custom(dim, visual, text)
        side = sizes["img_size"]
        vision = dict(image_size=side, timm_model_name=name, timm_model_pretrained=False, timm_pool=pool, timm_proj=None)
        vision["timm_model_args"] = {"num_heads": sizes["num_heads"]}
        config = dict(embed_dim=dim, vision_cfg=vision, text_cfg=text, custom_text=True)
        preprocess = dict(mean=[0.5] * 3, std=[0.5] * 3, resize_mode="squash", size=side) if pool == "map" else dict(size=side)
        reference = f"{OPEN_CLIP}, timm {timm.__version__}"
        write(data / folder, tokenizer, model, config, preprocess, seed, reference=reference)


def long_clip(data, tokenizer):
    """Both layouts of one model: transformers', and the released code's with a second table of positions."""
    end = tokenizer.token_to_id(END)
    text = dict(hidden_size=24, intermediate_size=96, num_hidden_layers=2, num_attention_heads=3)
    text |= dict(vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=248, hidden_act="quick_gelu")
    text |= dict(bos_token_id=end - 1, eos_token_id=end)
    vision = dict(hidden_size=32, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2)
    vision |= dict(image_size=32, patch_size=8, hidden_act="quick_gelu")
    config = CLIPConfig(text_config=text, vision_config=vision, projection_dim=16)
    model = two_towers.seeded(CLIPModel(config), 220, half=True)
    long = " ".join(["the same man in a red coat walks past the river again and again"] * 8)
    for name in ("hugging-face", "original"):
        folder = data / name
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps(json.loads(config.to_json_string(use_diff=False)), indent=1))
        (folder / "tokenizer.json").write_text(tokenizer.to_str())
        processor = CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})
        processor.save_pretrained(folder)
        state = two_towers.halves(model)
        if name == "original":
            torch.save(openai_names(state), folder / "model.pt")
        else:
            save_file(state, folder / "model.safetensors")
        plain = two_towers.plain(tokenizer)
        two_towers.write(
            folder,
            two_towers.Model(
                reference=f"transformers {transformers.__version__}",
                ids=lambda it: two_towers.cut(plain.encode(it).ids, 248),
                limit=248,
                pads=[0, end],
                always_padded=False,
                text=lambda ids, mask: model.text_projection(model.text_model(input_ids=ids, attention_mask=mask).pooler_output),
                image=lambda it: model.visual_projection(model.vision_model(pixel_values=it).pooler_output),
                pixels=lambda it: torch.tensor(processor(images=it, return_tensors="np")["pixel_values"][0]),
                mean=processor.image_mean,
                std=processor.image_std,
                exact=32,
            ),
            more_texts=[long],
        )


def openai_names(state):
    """A CLIP of transformers by the names of OpenAI's code, with the second table of positions of Long-CLIP's: the
    first 20 rows of one and the rest of the other are never read."""
    out = {}
    for name, weight in state.items():
        if "position_ids" in name or ".k_proj." in name or ".v_proj." in name:
            continue
        text = name.startswith("text_")
        name = name.replace("vision_model.", "visual.").replace("text_model.", "")
        for theirs, ours in (
            ("embeddings.patch_embedding", "conv1"),
            ("embeddings.class_embedding", "class_embedding"),
            ("embeddings.token_embedding", "token_embedding"),
            ("embeddings.position_embedding.weight", "positional_embedding"),
            ("pre_layrnorm", "ln_pre"),
            ("post_layernorm", "ln_post"),
            ("final_layer_norm", "ln_final"),
            ("encoder.layers", "transformer.resblocks"),
            ("layer_norm", "ln_"),
            ("mlp.fc1", "mlp.c_fc"),
            ("mlp.fc2", "mlp.c_proj"),
            ("self_attn.out_proj", "attn.out_proj"),
        ):
            name = name.replace(theirs, ours)
        if name == "visual_projection.weight":
            out["visual.proj"] = weight.t().contiguous()
        elif name == "text_projection.weight":
            out["text_projection"] = weight.t().contiguous()
        elif ".q_proj." in name:
            block, kind = name.split(".self_attn.q_proj.")
            prefix = name_in(state, block, text, kind)
            out[f"{block}.attn.in_proj_{kind}"] = torch.cat([state[prefix.format(part)] for part in "qkv"])
        else:
            out[name] = weight
    positions = out.pop("positional_embedding")
    rows = torch.arange(len(positions))[:, None]
    noise = torch.randn(positions.shape, generator=torch.Generator().manual_seed(221)).half()
    out["positional_embedding"] = torch.where(rows < 20, positions, noise)
    out["positional_embedding_res"] = torch.where(rows < 20, noise, positions)
    return out


def name_in(state, block, text, kind):
    layer = block.split(".")[-1]
    tower = "text_model" if text else "vision_model"
    return f"{tower}.encoder.layers.{layer}.self_attn.{{}}_proj.{kind}"


def write_all(data):
    tokenizer = byte_level(400, specials_last=True)
    clips(data / "open-clip", tokenizer)
    timm_towers(data / "open-clip", tokenizer)
    long_clip(data / "long-clip", tokenizer)
