"""Writes the reference that the encoders are tested against: small seeded CLIP models in Hugging
Face's layout, the vectors that transformers gives for them, the pixels that its image processor
makes, small seeded sentence encoders, and the ids of small tokenizers trained here on sentences of our own.

    python -m venv venv && venv/bin/pip install -r requirements.txt && venv/bin/python make.py

Everything is seeded; running it again writes the same files.
"""

import json
import pathlib
import shutil

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import CLIPConfig, CLIPModel
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

import covr
import sentence
from sentences import sentences

HERE = pathlib.Path(__file__).parent
DATA = HERE / "data"
TINY = HERE.parent.parent / "encoders" / "src" / "models" / "tiny_tokenizer.json"
START, END = "<|startoftext|>", "<|endoftext|>"

TEXTS = [
    "a brown dog runs past the red car",
    "Two and a HALF turns!",
    "",
    "don't worry,   it's (only) 12.5 metres: Ünïcödé 水",
    "the same but with two and a half turns, seen from behind in heavy rain while music plays on the stage",
    "frog",
]


def byte_level(vocabulary, specials_last):
    """Lower-case byte-level BPE. Specials last: the end of text has the largest id, as in CLIP's."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[] if specials_last else [START, END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(sentences(), trainer)
    if specials_last:
        tokenizer.add_special_tokens([START, END])
    ids = [(token, tokenizer.token_to_id(token)) for token in (START, END)]
    tokenizer.post_processor = processors.TemplateProcessing(single=f"{START} $A {END}", special_tokens=ids)
    return tokenizer


def word_piece(vocabulary):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocabulary, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]"], show_progress=False
    )
    tokenizer.train_from_iterator(sentences(), trainer)
    ids = [(token, tokenizer.token_to_id(token)) for token in ("[SEP]", "[CLS]")]
    tokenizer.post_processor = processors.BertProcessing(*ids)
    # Hugging Face's own files ask for both; windows and batches must not be bothered by it.
    tokenizer.enable_truncation(max_length=8)
    tokenizer.enable_padding(length=8)
    return tokenizer


def unigram(vocabulary):
    """Adds no special tokens itself: they come from config.json."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=vocabulary, special_tokens=["<s>", "</s>", "<unk>"], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(sentences(), trainer)
    return tokenizer


def clip_config(tokenizer, text, vision, projection):
    base = {"vocab_size": tokenizer.get_vocab_size()}
    return CLIPConfig(text_config=base | text, vision_config=vision, projection_dim=projection)


def variants():
    """Name -> tokenizer, configuration, image processor, specials to add, shards."""
    tokenizer = byte_level(400, specials_last=True)
    end = tokenizer.token_to_id(END)
    text = dict(hidden_size=24, intermediate_size=48, num_hidden_layers=2, num_attention_heads=3)
    vision = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2)
    yield "legacy", dict(
        tokenizer=tokenizer,
        config=clip_config(
            tokenizer,
            # The ids that the first CLIP files state by mistake.
            text | dict(max_position_embeddings=20, hidden_act="quick_gelu", bos_token_id=0, eos_token_id=2),
            vision | dict(image_size=32, patch_size=8, hidden_act="quick_gelu"),
            16,
        ),
        processor=dict(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}),
        pads=[0, end],
    )
    tokenizer = word_piece(350)
    end = tokenizer.token_to_id("[SEP]")
    yield "wordpiece", dict(
        tokenizer=tokenizer,
        config=clip_config(
            tokenizer,
            text
            | dict(
                max_position_embeddings=40,
                hidden_act="gelu",
                layer_norm_eps=1e-6,
                bos_token_id=tokenizer.token_to_id("[CLS]"),
                eos_token_id=end,
            ),
            # 30 is no multiple of 7: the last pixels belong to no patch.
            vision | dict(image_size=30, patch_size=7, hidden_act="gelu", layer_norm_eps=1e-6),
            12,
        ),
        processor=dict(size={"height": 30, "width": 30}, do_center_crop=False, resample=2),
        pads=[0, end],
        shards=True,
    )
    tokenizer = unigram(300)
    end = tokenizer.token_to_id("</s>")
    yield "unigram", dict(
        tokenizer=tokenizer,
        config=clip_config(
            tokenizer,
            dict(hidden_size=32, intermediate_size=40, num_hidden_layers=1, num_attention_heads=4)
            | dict(max_position_embeddings=12, hidden_act="gelu_new", bos_token_id=0, eos_token_id=end),
            dict(hidden_size=24, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4)
            | dict(image_size=24, patch_size=12, hidden_act="gelu_pytorch_tanh"),
            24,
        ),
        processor=dict(size={"shortest_edge": 28}, crop_size={"height": 24, "width": 24}, image_mean=[0.5] * 3),
        pads=[0, end],
        specials=(0, end),
    )


def picture(width, height, kind):
    """The same integers as in the test: smooth shapes, edges and fine texture."""
    y, x, c = np.meshgrid(np.arange(height), np.arange(width), np.arange(3), indexing="ij")
    waves = (x * x * 3 + y * y * (5 + kind) + x * y * 7) // (width + height) + c * 60
    edges = ((x // 5 + y // 3 + c) % 2) * 120
    return ((waves + edges * (kind % 2)) % 256).astype(np.uint8)


# Odd, tall, wide, tiny (enlarged), and just right.
SIZES = [(97, 61), (33, 120), (200, 45), (9, 7), (32, 32), (40, 32)]


def seeded(config, seed):
    model = CLIPModel(config).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in sorted(model.named_parameters()):
            noise = torch.randn(weight.shape, generator=generator)
            if "norm" in name or "layrnorm" in name:
                weight.copy_(noise * 0.2 + (1.0 if name.endswith("weight") else 0.0))
            else:
                weight.copy_(noise * (0.2 if weight.dim() > 1 else 0.1))
    return model


def token_ids(variant, text):
    limit = variant["config"].text_config.max_position_embeddings
    tokenizer = Tokenizer.from_str(variant["tokenizer"].to_str())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    ids = tokenizer.encode(text).ids
    if "specials" in variant:
        start, end = variant["specials"]
        ids = [start] + ids + [end]
    # As a truncating tokenizer would: the end of text stays.
    return ids if len(ids) <= limit else ids[: limit - 1] + ids[-1:]


def text_vectors(model, variant, texts, pad, length):
    """(texts, dim), padded with `pad` to `length` tokens or to the longest."""
    rows = [token_ids(variant, text) for text in texts]
    length = length or max(map(len, rows))
    ids = torch.tensor([row + [pad] * (length - len(row)) for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (length - len(row)) for row in rows])
    with torch.no_grad():
        pooled = model.text_model(input_ids=ids, attention_mask=mask).pooler_output
        return model.text_projection(pooled).numpy()


def all_text_vectors(model, variant):
    """By padding and batch size. All of them must agree with each other, and ours with each."""
    longest = variant["config"].text_config.max_position_embeddings
    vectors = {}
    for number, pad in enumerate(variant["pads"]):
        for length in (None, longest):
            for batch in (1, 4):
                parts = [
                    text_vectors(model, variant, TEXTS[at : at + batch], pad, length)
                    for at in range(0, len(TEXTS), batch)
                ]
                kind = f"pad {'zero' if number == 0 else 'end'}, to {'limit' if length else 'longest'}, batch {batch}"
                vectors[kind] = np.concatenate(parts)
    first = next(iter(vectors.values()))
    for kind, other in vectors.items():
        assert np.abs(first - other).max() < 2e-5, kind
    return {kind: rounded(vectors) for kind, vectors in vectors.items()}


def image_vectors(model, processor, pictures):
    pixels = processor(images=[Image.fromarray(it) for it in pictures], return_tensors="pt")["pixel_values"]
    with torch.no_grad():
        return model.visual_projection(model.vision_model(pixel_values=pixels).pooler_output).numpy()


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def rounded(vectors):
    return [[float(f"{value:.8g}") for value in row] for row in vectors]


def pixels(processor, picture):
    """The processor's pixels as bytes, before scaling and normalising."""
    values = processor(images=Image.fromarray(picture), return_tensors="np")["pixel_values"][0]
    mean, std = (np.array(it)[:, None, None] for it in (processor.image_mean, processor.image_std))
    bytes_ = (values * std + mean) * 255
    assert np.abs(bytes_ - bytes_.round()).max() < 0.01
    return bytes_.round().astype(np.uint8)


def save_weights(model, folder, shards):
    weights = {name: weight.contiguous() for name, weight in model.state_dict().items()}
    if not shards:
        save_file(weights, folder / "model.safetensors")
        return
    names = sorted(weights)
    parts = {"model-00001-of-00002.safetensors": names[::2], "model-00002-of-00002.safetensors": names[1::2]}
    for file, part in parts.items():
        save_file({name: weights[name] for name in part}, folder / file)
    index = {"metadata": {}, "weight_map": {name: file for file, part in parts.items() for name in part}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=0))


def write(name, variant, seed):
    folder = DATA / name
    folder.mkdir(parents=True)
    model = seeded(variant["config"], seed)
    config = json.loads(variant["config"].to_json_string(use_diff=False))
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    (folder / "tokenizer.json").write_text(variant["tokenizer"].to_str())
    processor = CLIPImageProcessorPil(**variant["processor"])
    processor.save_pretrained(folder)
    save_weights(model, folder, variant.get("shards", False))

    side = variant["config"].vision_config.image_size
    # The size that needs no resizing: there the vectors must agree to the last digits.
    short = processor.size.get("shortest_edge") or side
    exact = [picture(short, short, kind) for kind in range(3)] if processor.do_center_crop else [
        picture(side, side, kind) for kind in range(3)
    ]
    resized = [picture(width, height, 1) for width, height in SIZES]
    expected = {
        "texts": [{"text": text, "ids": token_ids(variant, text)} for text in TEXTS],
        "text_vectors": all_text_vectors(model, variant),
        "exact_side": short,
        "image_vectors": rounded(image_vectors(model, processor, exact)),
        "clip_vector": rounded([unit(image_vectors(model, processor, exact)).mean(axis=0)])[0],
        "sizes": SIZES,
        "resized_vectors": rounded(image_vectors(model, processor, resized)),
    }
    (folder / "expected.json").write_text(json.dumps(expected))
    (folder / "pixels.bin").write_bytes(b"".join(pixels(processor, it).tobytes() for it in resized))


def main():
    shutil.rmtree(DATA, ignore_errors=True)
    for seed, (name, variant) in enumerate(variants()):
        write(name, variant, seed)
    covr.write_all(DATA, picture, word_piece, byte_level)
    sentence.write_all(DATA, word_piece)
    TINY.write_text(byte_level(1000, specials_last=False).to_str())
    size = sum(path.stat().st_size for path in DATA.rglob("*") if path.is_file())
    print(f"{size} bytes")


if __name__ == "__main__":
    main()
