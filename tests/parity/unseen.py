"""Models that nobody has seen: of random width, depth, heads, patches, activation, text limit and vocabulary, saved by the
reference implementation's own `save_pretrained`, embedded by `reprise embed`, and compared with the reference.

    python tests/parity/unseen.py target/release/reprise [--models 20] [--seed 1]

Prints a line a model and ends with an error if a value differs by more than 1e-4.
"""

import argparse
import json
import pathlib
import random
import subprocess
import tempfile

import open_clip
import torch
import transformers
from PIL import Image
from safetensors.torch import save_file
from transformers import (
    BertConfig,
    BertModel,
    Blip2Config,
    Blip2ForImageTextRetrieval,
    BlipConfig,
    BlipForImageTextRetrieval,
    CLIPConfig,
    CLIPModel,
    PreTrainedTokenizerFast,
    SiglipConfig,
    SiglipModel,
)
from transformers.models.blip.image_processing_pil_blip import BlipImageProcessorPil
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

import siglip
import two_towers
from embedded import LIMIT, TEXTS, difference, embedded
from vocabularies import END, START, byte_level, word_piece


def sizes(draw):
    """Width, heads, layers and middle of a tower."""
    heads = draw.randint(1, 6)
    width = heads * draw.choice([4, 8, 12, 20, 32])
    return dict(
        hidden_size=width,
        num_attention_heads=heads,
        num_hidden_layers=draw.randint(1, 5),
        intermediate_size=draw.randint(width, 5 * width),
        hidden_act=draw.choice(["quick_gelu", "gelu", "gelu_pytorch_tanh"]),
    )


def pictures_of(draw):
    patch = draw.choice([4, 7, 8, 14, 16, 32])
    return dict(patch_size=patch, image_size=patch * draw.randint(1, 6))


def square(side, **more):
    return dict(size={"height": side, "width": side}, **more)


def clip(draw, folder):
    tokenizer = byte_level(draw.randint(300, 700), specials_last=draw.random() < 0.5)
    limit, end = draw.choice([70, 77, 248]), tokenizer.token_to_id(END)
    text = sizes(draw) | dict(vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=limit)
    text |= dict(bos_token_id=tokenizer.token_to_id(START), eos_token_id=end)
    vision = sizes(draw) | pictures_of(draw)
    config = CLIPConfig(text_config=text, vision_config=vision, projection_dim=draw.randint(3, 90))
    model = two_towers.seeded(CLIPModel(config), draw.randint(0, 999))
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=START, eos_token=END, pad_token=END, model_max_length=limit
    )
    side = vision["image_size"]
    processor = CLIPImageProcessorPil(size={"shortest_edge": side}, crop_size={"height": side, "width": side})
    save(folder, model, fast, processor)
    return (
        side,
        lambda it: model.get_text_features(**fast(it, truncation=True, return_tensors="pt")).pooler_output,
        lambda it: model.get_image_features(**processor(it, return_tensors="pt")).pooler_output,
    )


def sig_lip(draw, folder):
    vocabulary, _ = siglip.sentence_piece(draw.randint(250, 400))
    limit = draw.choice([64, 71])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=vocabulary, pad_token="</s>", eos_token="</s>", unk_token="<unk>", model_max_length=limit
    )
    vision, text = sizes(draw) | pictures_of(draw), sizes(draw)
    text |= dict(max_position_embeddings=limit, vocab_size=len(fast), projection_size=vision["hidden_size"])
    config = SiglipConfig(text_config=text, vision_config=vision)
    model = two_towers.seeded(SiglipModel(config), draw.randint(0, 999))
    side = vision["image_size"]
    processor = SiglipImageProcessorPil(**square(side))
    save(folder, model, fast, processor)
    always = dict(truncation=True, padding="max_length", max_length=limit, return_tensors="pt")
    return (
        side,
        lambda it: model.get_text_features(input_ids=fast(it, **always)["input_ids"]).pooler_output,
        lambda it: model.get_image_features(**processor(it, return_tensors="pt")).pooler_output,
    )


def blip(draw, folder):
    tokenizer = two_towers.plain(word_piece(draw.randint(250, 500)))
    limit = draw.randint(64, 99)
    fast = bert_tokenizer(tokenizer, limit)
    vision, text = sizes(draw) | pictures_of(draw), sizes(draw)
    text |= dict(encoder_hidden_size=vision["hidden_size"], vocab_size=len(fast), max_position_embeddings=limit)
    config = BlipConfig(text_config=text, vision_config=vision, image_text_hidden_size=draw.randint(3, 70))
    model = two_towers.seeded(BlipForImageTextRetrieval(config), draw.randint(0, 999))
    side = vision["image_size"]
    processor = BlipImageProcessorPil(**square(side))
    save(folder, model, fast, processor)
    first = lambda inputs: model.text_encoder(inputs["input_ids"]).last_hidden_state[:, 0]
    seen = lambda inputs: model.vision_model(**inputs).last_hidden_state[:, 0]
    return (
        side,
        lambda it: model.text_proj(first(fast(it, truncation=True, return_tensors="pt"))),
        lambda it: model.vision_proj(seen(processor(it, return_tensors="pt"))),
    )


def blip_2(draw, folder):
    tokenizer = two_towers.plain(word_piece(draw.randint(250, 500)))
    limit = draw.randint(64, 99)
    fast = bert_tokenizer(tokenizer, limit)
    vision, reads = sizes(draw) | pictures_of(draw), sizes(draw)
    reads |= dict(vocab_size=len(fast), max_position_embeddings=limit, use_qformer_text_input=True)
    reads |= dict(cross_attention_frequency=draw.randint(1, 3))
    # The language model that such a configuration names is no part of this model.
    opt = dict(model_type="opt", vocab_size=8, hidden_size=4, ffn_dim=4, num_hidden_layers=1, num_attention_heads=1)
    config = Blip2Config(vision_config=vision, qformer_config=reads, text_config=opt)
    config.num_query_tokens, config.image_text_hidden_size = draw.randint(1, 40), draw.randint(3, 70)
    model = two_towers.seeded(Blip2ForImageTextRetrieval(config), draw.randint(0, 999))
    side = vision["image_size"]
    processor = BlipImageProcessorPil(**square(side))
    save(folder, model, fast, processor)
    words = dict(fast("a", return_tensors="pt"))
    nothing = processor(Image.new("RGB", (side, side)), return_tensors="pt")["pixel_values"]
    keys = ("input_ids", "attention_mask")
    both = lambda pixels, inputs: model(pixel_values=pixels, **{key: inputs[key] for key in keys})
    return (
        side,
        lambda it: both(nothing, fast(it, truncation=True, return_tensors="pt")).text_embeds,
        # One vector a picture: the mean of the queries' unit vectors.
        lambda it: both(processor(it, return_tensors="pt")["pixel_values"], words).image_embeds.mean(dim=1),
    )


def open_clip_layout(draw, folder):
    tokenizer = byte_level(draw.randint(300, 700), specials_last=True)
    limit, head = draw.choice([70, 77]), draw.choice([4, 8, 12, 16])
    picture = pictures_of(draw)
    side = picture["image_size"]
    vision = dict(image_size=side, patch_size=picture["patch_size"], width=head * draw.randint(1, 6))
    vision |= dict(layers=draw.randint(1, 4), head_width=head, mlp_ratio=draw.choice([2.0, 4.0]))
    heads = draw.randint(1, 5)
    text = dict(context_length=limit, vocab_size=tokenizer.get_vocab_size(), width=heads * draw.choice([8, 12, 20]))
    text |= dict(heads=heads, layers=draw.randint(1, 4))
    config = dict(embed_dim=draw.randint(3, 90), vision_cfg=vision, text_cfg=text, quick_gelu=draw.random() < 0.5)
    model = two_towers.seeded(open_clip.CLIP(**config), draw.randint(0, 999))
    save_file({name: value.contiguous() for name, value in model.state_dict().items()},
              folder / "open_clip_model.safetensors")
    pixels = dict(mean=[0.5, 0.4, 0.3], std=[0.2, 0.3, 0.4], interpolation="bicubic", resize_mode="shortest")
    described = {"model_cfg": config, "preprocess_cfg": pixels | {"size": side}}
    (folder / "open_clip_config.json").write_text(json.dumps(described))
    (folder / "tokenizer.json").write_text(tokenizer.to_str())
    transform = open_clip.transform.image_transform_v2(
        open_clip.transform.PreprocessCfg(size=side, **{name: pixels[name] for name in ("mean", "std")}), is_train=False
    )
    plain = two_towers.plain(tokenizer)

    def ids(text):
        row = two_towers.cut(plain.encode(text).ids, limit)
        return torch.tensor([row + [0] * (limit - len(row))])

    return side, lambda it: model.encode_text(ids(it)), lambda it: model.encode_image(transform(it)[None])


def sentence(draw, folder):
    tokenizer = two_towers.plain(word_piece(draw.randint(250, 500)))
    limit = draw.randint(64, 99)
    fast = bert_tokenizer(tokenizer, limit)
    text = sizes(draw) | dict(vocab_size=len(fast), max_position_embeddings=limit, hidden_act="gelu")
    model = two_towers.seeded(BertModel(BertConfig(**text), add_pooling_layer=False), draw.randint(0, 999))
    model.save_pretrained(folder)
    fast.save_pretrained(folder)
    hidden = lambda it: model(**fast(it, truncation=True, return_tensors="pt")).last_hidden_state
    return None, lambda it: hidden(it).mean(1), None


def bert_tokenizer(tokenizer, limit):
    names = dict(pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]")
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=limit, **names)


def save(folder, model, tokenizer, processor):
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    processor.save_pretrained(folder)


def film(picture, path):
    """One frame, lossless, as large as the model takes it: no scaling is part of this."""
    height, width, _ = picture.shape
    command = ["ffmpeg", "-v", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", "2"]
    command += ["-i", "-", "-c:v", "ffv1", "-pix_fmt", "gbrp", str(path)]
    subprocess.run(command, input=picture.tobytes(), check=True)


FAMILIES = dict(
    clip=clip, siglip=sig_lip, blip=blip, open_clip=open_clip_layout, sentence=sentence, blip_2=blip_2
)


def check(reprise, family, seed, folder):
    folder.mkdir()
    side, text, image = FAMILIES[family](random.Random(seed), folder)
    texts, pictures = [], []
    with torch.no_grad():
        for words in TEXTS:
            texts.append(difference(embedded(reprise, folder, "--text", words), text(words)))
        for kind in range(2) if image else ():
            picture = two_towers.picture(side, side, kind)
            path = folder / f"{kind}.mkv"
            film(picture, path)
            ours = embedded(reprise, folder, "--video", str(path))
            pictures.append(difference(ours, image(Image.fromarray(picture))))
    of = " ".join(f"{what} {max(all):.1e}" for what, all in (("texts", texts), ("pictures", pictures)) if all)
    print(f"{family} {seed}: {of}", flush=True)
    return max(texts + pictures)


def main():
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reprise")
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        names = [list(FAMILIES)[at % len(FAMILIES)] for at in range(given.models)]
        folders = (pathlib.Path(place) / str(at) for at in range(given.models))
        seeds = range(given.seed, given.seed + given.models)
        worst = max(map(check, [given.reprise] * given.models, names, seeds, folders))
    if worst > LIMIT:
        raise SystemExit(f"a value differs by {worst:.1e}, more than {LIMIT}")


if __name__ == "__main__":
    main()
