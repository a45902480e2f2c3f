"""The reference of SigLIP and SigLIP 2 in OpenCLIP's layout: open_clip's text tower and timm's vision towers with small
seeded weights, and texts cleaned and padded by open_clip's own tokenizer for such models.

Called by make.py; writes one folder a model.
"""

import json

import timm
from open_clip.tokenizer import HFTokenizer, basic_clean, canonicalize_text
from open_clip.transform import PreprocessCfg, image_transform_v2
from safetensors.torch import save_file
from tokenizers import normalizers

import two_towers
from open_clip_layout import OPEN_CLIP, Custom, Trunk
from siglip import gemma, sentence_piece

CLEAN = {"clean": "canonicalize"}
TEXTS = ["An_under_score, (brackets) & 'quotes'...  “curly” ones STAY\tand tabs go"]


def variants():
    tokenizer, pad = sentence_piece(300)
    # Texts come in lower case and without punctuation: the vocabulary's own rules know nothing of that.
    tokenizer.normalizer = normalizers.NFKC()
    yield "one", dict(
        tokenizer=tokenizer,
        pad=pad,
        name="vit_base_patch16_siglip_224",
        vision=dict(img_size=32, patch_size=8, embed_dim=24, depth=2, num_heads=3, mlp_ratio=2.5),
        text=dict(context_length=20, width=32, heads=4, layers=2),
        dim=24,
    )
    tokenizer, pad = gemma(420)
    yield "two", dict(
        tokenizer=tokenizer,
        pad=pad,
        name="vit_base_patch32_siglip_256",
        # 30 is no multiple of 7: the last pixels belong to no patch.
        vision=dict(img_size=30, patch_size=7, embed_dim=32, depth=2, num_heads=2, mlp_ratio=1.5),
        text=dict(context_length=64, width=24, heads=2, layers=1, act_kwargs={"approximate": "tanh"}),
        dim=32,
    )


def write(folder, variant, seed):
    folder.mkdir(parents=True)
    tokenizer, pad, dim = (variant[key] for key in ("tokenizer", "pad", "dim"))
    text = variant["text"] | dict(vocab_size=tokenizer.get_vocab_size(), no_causal_mask=True, proj_bias=True)
    text |= dict(pool_type="last", norm_kwargs={"eps": 1e-6}, tokenizer_kwargs=CLEAN, hf_tokenizer_name="org/name")
    visual = Trunk(variant["name"], variant["vision"] | dict(num_classes=0, global_pool="map"))
    built = {key: it for key, it in text.items() if key not in ("tokenizer_kwargs", "hf_tokenizer_name")}
    model = two_towers.seeded(Custom(dim, visual, built), seed, half=True)
    save_file(two_towers.halves(model), folder / "open_clip_model.safetensors")
    side = variant["vision"]["img_size"]
    vision = dict(image_size=side, timm_model_name=variant["name"], timm_model_pretrained=False, timm_pool="map")
    vision |= dict(timm_proj="none", timm_model_args={"num_heads": variant["vision"]["num_heads"]})
    config = dict(embed_dim=dim, init_logit_bias=-10, custom_text=True, vision_cfg=vision, text_cfg=text)
    preprocess = dict(size=side, mean=[0.5] * 3, std=[0.5] * 3, interpolation="bicubic", resize_mode="squash")
    described = {"model_cfg": config, "preprocess_cfg": preprocess}
    (folder / "open_clip_config.json").write_text(json.dumps(described, indent=1))
    (folder / "tokenizer.json").write_text(tokenizer.to_str())
    beside = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": pad, "padding_side": "right"}
    (folder / "tokenizer_config.json").write_text(json.dumps(beside, indent=1))
    limit, pad_id = text["context_length"], tokenizer.token_to_id(pad)
    own = HFTokenizer(str(folder), context_length=limit, **CLEAN)
    plain = two_towers.plain(tokenizer)

    def ids(it):
        row = two_towers.cut(plain.encode(canonicalize_text(basic_clean(it))).ids, limit)
        assert own(it)[0].tolist() == row + [pad_id] * (limit - len(row)), it
        return row

    given = PreprocessCfg(**preprocess)
    two_towers.write(
        folder,
        two_towers.Model(
            reference=f"{OPEN_CLIP}, timm {timm.__version__}",
            ids=ids,
            limit=limit,
            pads=[pad_id],
            always_padded=True,
            text=lambda ids, mask: model.encode_text(ids),
            image=model.encode_image,
            pixels=image_transform_v2(given, is_train=False),
            mean=given.mean,
            std=given.std,
            exact=side,
        ),
        more_texts=TEXTS,
    )


def write_all(data):
    for seed, (name, variant) in enumerate(variants(), 230):
        write(data / "open-clip-siglip" / name, variant, seed)
