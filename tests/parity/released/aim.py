"""AIM's released backbone and TF-CoVR's released model for composed queries on the small models of data/covr.

    python aim.py AIM TF_COVR CLIP [--write]

| checkout | commit | licence |
|---|---|---|
| taoyang1122/adapt-image-models | b3580d2d3a78ff5cffa6c7a82ce993165166f00f | Apache 2.0 |
| UCF-CRCV/TF-CoVR | ae0b4aa74ae5ed38eb21bad41351603a8fe6875a | MIT |
| openai/CLIP | d05afc436d78f1c48dc0dbf8e5980a9d471f35f6 | MIT |

mmaction, lavis, hydra, lightning, decord and pandas are left out: vectors don't need them. Models get the fixture's
sizes. Texts are cleaned by the released functions, and tokenizers give the fixture's ids. Of `bert`, whose text tower
TF-CoVR has not, transformers' BERT reads texts; of `clip`, whose video tower has no adapters, CLIP's reads frames.
With `--write` outputs in data/covr become those of the released modules.
"""

import json
import types

import torch
from safetensors.torch import save_file
from torch import nn
from transformers import BertConfig, BertModel

import checkout
import covr as ours

DATA = checkout.DATA / "covr"


def blocks(vit_clip, write):
    """One block alone, with one adapter of time and with two."""
    for file, adapters in (("aim_block", 1), ("aim_block_two", 2)):
        path = DATA / f"{file}.safetensors"
        stored = checkout.tensors(path)
        state = checkout.under(stored, "transformer.resblocks.0.")
        block = vit_clip.ResidualAttentionBlock(32, 4, scale=0.5, num_tadapter=adapters, num_frames=3)
        checkout.middles([block], state["mlp.c_fc.weight"].shape[0])
        checkout.fill(block, state)
        with torch.no_grad():
            y = block(stored["x"].transpose(0, 1)).transpose(0, 1).contiguous()
        checkout.tell(file, checkout.off(y, stored["y"]))
        if write:
            save_file(stored | {"y": y}, path)


def adapted(vit_clip, state, config):
    """The released backbone of these weights."""
    width, _, patch, _ = state["conv1.weight"].shape
    grid = round((len(state["positional_embedding"]) - 1) ** 0.5)
    frames = state["temporal_embedding"].shape[1]
    layers = sum(name.endswith("mlp.c_fc.weight") for name in state)
    heads, scale = config["num_attention_heads"], config.get("adapter_scale", 0.5)
    aim = vit_clip.ViT_CLIP(patch * grid, frames, patch, width, layers, heads, 0.0, adapter_scale=scale)
    checkout.middles(aim.transformer.resblocks, state["transformer.resblocks.0.mlp.c_fc.weight"].shape[0])
    checkout.fill(aim, state)
    seen = types.SimpleNamespace(frames=frames, side=patch * grid)
    # (clips, frames, 3, side, side) in; the head of mmaction takes (clips, width, 1, 1, 1).
    return lambda clips: aim(torch.stack([ours.pixels(seen, it) for it in clips]).transpose(1, 2)).mean(2).flatten(1)


def plain(clip, state, config):
    """CLIP's tower of pictures without its projection; the mean over frames."""
    names = {f"embeddings.{theirs}": own for theirs, own in [("patch_embedding", "conv1"), ("class_embedding",) * 2]}
    names |= {"embeddings.position_embedding.weight": "positional_embedding", "encoder.layers": "transformer.resblocks"}
    names |= {"pre_layrnorm": "ln_pre", "post_layernorm": "ln_post", "self_attn.out_proj": "attn.out_proj"}
    names |= {"layer_norm": "ln_", "mlp.fc1": "mlp.c_fc", "mlp.fc2": "mlp.c_proj"}
    own = {}
    for name, tensor in checkout.under(state, "vision_model.").items():
        for theirs, new in names.items():
            name = name.replace(theirs, new)
        if "_proj." not in name or "out_proj" in name or "mlp" in name:
            own[name] = tensor
    for kind in ("weight", "bias"):
        parts = [state[f"vision_model.encoder.layers.0.self_attn.{part}_proj.{kind}"] for part in "qkv"]
        own[f"transformer.resblocks.0.attn.in_proj_{kind}"] = torch.cat(parts)
    width, _, patch, _ = own["conv1.weight"].shape
    side = patch * round((len(own["positional_embedding"]) - 1) ** 0.5)
    tower = clip.VisionTransformer(side, patch, width, 1, config["num_attention_heads"], 1)
    tower.proj = None
    checkout.middles(tower.transformer.resblocks, len(own["transformer.resblocks.0.mlp.c_fc.bias"]))
    checkout.fill(tower, own)
    seen = types.SimpleNamespace(frames=config["num_frames"], side=side)
    return lambda clips: torch.stack([tower(ours.pixels(seen, it)).mean(0) for it in clips])


class Tokens(dict):
    """What a tokenizer of transformers gives."""

    __getattr__ = dict.get

    def to(self, _device):
        return self


def query_model(module, texts, longest, loss):
    """TF-CoVR's model without what its constructor fetches. Its tokenizer knows the fixture's texts."""
    model = module.AIMCir.__new__(module.AIMCir)
    nn.Module.__init__(model)
    rows = {it["normalised"]: it["ids"] for it in texts}

    def tokenize(captions, **_):
        ids, mask = checkout.padded([rows[it] for it in captions], longest)
        return Tokens(input_ids=ids, attention_mask=mask)

    model.tokenizer, model.max_txt_len, model.temp, model.loss = tokenize, longest, 1, loss
    model.si_ti_weight, model.si_tc_weight = 1, 0
    return model


def bert(state, heads, cls, **more):
    """A BERT of these weights."""
    vocabulary, width = state["embeddings.word_embeddings.weight"].shape
    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        num_hidden_layers=sum(name.endswith("attention.self.query.weight") for name in state),
        num_attention_heads=heads,
        intermediate_size=state["encoder.layer.0.intermediate.dense.weight"].shape[0],
        max_position_embeddings=len(state["embeddings.position_embeddings.weight"]),
        **more,
    )
    return cls(config)


def text_tower(kind, model, qformer, clip):
    """Gives the model its text tower."""
    folder = DATA / kind / "text"
    config = json.loads((folder / "config.json").read_text())
    state = checkout.tensors(next(folder.glob("model.*")))
    if kind == "qformer":
        state = checkout.under(state, "Qformer.")
        more = dict(encoder_width=8, add_cross_attention=True, cross_attention_freq=2, query_length=32)
        tower = checkout.under(state, "bert.")
        model.Qformer = bert(tower, config["num_attention_heads"], qformer.BertLMHeadModel, **more)
        checkout.fill(model.Qformer, state, may_lack=["position_ids", "crossattention", "_query", "cls."])
    elif kind == "bert":
        state = checkout.under(state, "bert.")
        tower = bert(state, config["num_attention_heads"], lambda it: BertModel(it, add_pooling_layer=False))
        model.Qformer = nn.Module()
        model.Qformer.bert = checkout.fill(tower, state, may_lack=["position_ids"])
    else:
        sizes = config["text_config"]
        dim = state["text_projection"].shape[1]
        limit, width, heads = (sizes[it] for it in ("max_position_embeddings", "hidden_size", "num_attention_heads"))
        tower = clip.CLIP(dim, 8, 1, 64, 4, limit, sizes["vocab_size"], width, heads, sizes["num_hidden_layers"])
        checkout.middles(tower.transformer.resblocks, sizes["intermediate_size"])
        model.clip_model = checkout.fill(tower, state, may_lack=["visual.", "logit_scale"])


def main():
    aim, tf_covr, clip, write = checkout.folders(3)
    backbones = aim / "mmaction/models/backbones"
    checkout.packages(mmaction=aim / "mmaction", mmaction__models=aim / "mmaction/models")
    checkout.packages(mmaction__models__backbones=backbones, clip=clip / "clip")
    checkout.stubs("mmaction.utils", "mmaction.models.builder", "lavis", "lavis.common", "lavis.models")
    checkout.stubs("lavis.common.dist_utils", "lavis.common.logger", "lavis.common.utils", "lavis.models.clip_vit")
    checkout.stubs("lavis.models.base_model", "lavis.models.eva_vit", "hydra", "hydra.utils")
    checkout.stubs("lightning_utilities", "lightning_utilities.core", "lightning_utilities.core.rank_zero")
    # Decorators and base classes must be real.
    same = lambda it: it
    checkout.take("mmaction.models.builder").BACKBONES.register_module = lambda: same
    checkout.take("lavis.models.base_model").BaseModel = nn.Module
    checkout.take("lightning_utilities.core.rank_zero").rank_zero_only = same
    vit_clip = checkout.take("mmaction.models.backbones.vit_clip")
    clip = checkout.take("clip.model")
    checkout.packages(src=tf_covr / "src", src__model=tf_covr / "src/model", src__model__aim=tf_covr / "src/model/aim")
    with_qformer = checkout.take("src.model.aim.aim_cir")
    with_clip = checkout.take("src.model.aim.aim_cir_clip")
    qformer = checkout.take("src.model.blip2.Qformer")
    combiner = checkout.take("src.model.clip.combiner")
    checkout.packages(src__data=tf_covr / "src/data")
    checkout.stubs("decord", "pandas", "lightning", "src.data.transforms", "src.tools.files")
    texts, cleaning = checkout.take("src.data.finegd_covr"), checkout.take("src.data.utils")

    blocks(vit_clip, write)
    for kind in ("qformer", "bert", "clip"):
        stored = checkout.expected("covr", kind, "expected.json")
        config = checkout.expected("covr", kind, "config.json")
        state = checkout.tensors(next((DATA / kind).glob("model.*")))
        if kind == "clip":
            videos = plain(clip, state, config["video"])
        else:
            videos = adapted(vit_clip, checkout.under(state, "backbone.") or state, config["video"])
        for it in stored["texts"]:
            cleaned = cleaning.pre_caption(texts.replace_numbers_with_text(it["text"]), 30)
            assert cleaned == it["normalised"], it["text"]
        clips = [[checkout.two_towers.picture(*size, at) for at, size in enumerate(sizes)] for sizes in stored["clips"]]

        found = []
        keep = lambda queries, *_: (found.append(queries), (0, None))[1]
        longest = config["text"]["max_tokens"]
        model = query_model(with_clip if kind == "clip" else with_qformer, stored["texts"], longest, keep)
        with_clip.clip.tokenize = lambda captions, **_: model.tokenizer(captions).input_ids
        text_tower(kind, model, qformer, clip)
        heads = checkout.tensors(next((DATA / kind).glob("combiner.*")))
        projection, fused = checkout.under(heads, "text_proj."), checkout.under(heads, "combiner.")
        model.text_proj = checkout.fill(nn.Linear(*reversed(projection["weight"].shape)), projection)
        sizes = fused["text_projection_layer.weight"].shape, fused["combiner_layer.weight"].shape[0]
        model.combiner = checkout.fill(combiner.Combiner(sizes[0][1], sizes[0][0], sizes[1]), fused)
        model.eval()
        with torch.no_grad():
            vectors = videos(clips)
            for text in stored["texts"]:
                edits = [text["normalised"]] * len(vectors)
                batch = dict(ref_img=vectors, tar_img_feat=vectors, edit=edits, source_label=None, target_label=None)
                model(batch, types.SimpleNamespace(world_size=1))
        checkout.tell(f"{kind}, clips", checkout.off(vectors, stored["videos"]))
        checkout.tell(f"{kind}, composed queries", checkout.off(torch.stack(found), stored["queries"]))
        if write:
            stored["videos"], stored["queries"] = ours.rounded(vectors), [ours.rounded(it) for it in found]
            checkout.store(stored, "covr", kind, "expected.json")


if __name__ == "__main__":
    main()
