"""The reference of SigLIP and of SigLIP 2 with a fixed resolution: transformers' own with small seeded weights.

Called by make.py; writes one folder a model.
"""

import json

import torch
import transformers
from safetensors.torch import save_file
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import SiglipConfig, SiglipModel
from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

import two_towers
from sentences import sentences


def sentence_piece(vocabulary):
    """As SigLIP's: a unigram model on canonical text; the end of text is the padding too."""
    tokenizer = Tokenizer(models.Unigram())
    punctuation = Regex(r"""[!-/:-@\[-`{-~]""")
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Lowercase(),
            normalizers.Replace(punctuation, ""),
            normalizers.Replace(Regex(r"\s+"), " "),
            normalizers.Strip(),
            normalizers.NFKC(),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=vocabulary, special_tokens=["<unk>", "</s>"], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(sentences(), trainer)
    end = tokenizer.token_to_id("</s>")
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", end)])
    return tokenizer, "</s>"


def gemma(vocabulary):
    """As SigLIP 2's: pairs of letters, unknown letters as bytes; it does not make lower case itself."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    specials = ["<pad>", "<eos>", "<bos>", "<unk>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, special_tokens=specials, show_progress=False)
    tokenizer.train_from_iterator((it.lower() for it in sentences()), trainer)
    # Bytes are tokens that a text's own letters never spell.
    tokenizer = Tokenizer.from_str(without_added_bytes(tokenizer.to_str()))
    end = tokenizer.token_to_id("<eos>")
    tokenizer.post_processor = processors.TemplateProcessing(single="$A <eos>", special_tokens=[("<eos>", end)])
    return tokenizer, "<pad>"


def without_added_bytes(text):
    file = json.loads(text)
    file["added_tokens"] = [it for it in file["added_tokens"] if not it["content"].startswith("<0x")]
    return json.dumps(file)


def variants():
    """Name -> tokenizer, its padding, lower case, configuration, image processor."""
    tokenizer, pad = sentence_piece(300)
    yield "one", dict(
        tokenizer=tokenizer,
        pad=pad,
        lower_case=True,
        text=dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4)
        | dict(max_position_embeddings=20, projection_size=24),
        vision=dict(hidden_size=24, intermediate_size=56, num_hidden_layers=2, num_attention_heads=3)
        | dict(image_size=32, patch_size=8),
        processor=dict(size={"height": 32, "width": 32}),
    )
    tokenizer, pad = gemma(420)
    yield "two", dict(
        tokenizer=tokenizer,
        pad=pad,
        lower_case=True,
        text=dict(hidden_size=24, intermediate_size=40, num_hidden_layers=1, num_attention_heads=2)
        | dict(max_position_embeddings=64, hidden_act="gelu", layer_norm_eps=1e-5),
        vision=dict(hidden_size=24, intermediate_size=40, num_hidden_layers=3, num_attention_heads=2)
        # 30 is no multiple of 7: the last pixels belong to no patch.
        | dict(image_size=30, patch_size=7, hidden_act="gelu", layer_norm_eps=1e-5),
        processor=dict(size={"height": 30, "width": 30}, resample=2),
    )


def write(folder, variant, seed):
    folder.mkdir(parents=True)
    tokenizer = variant["tokenizer"]
    pad = tokenizer.token_to_id(variant["pad"])
    ids_of = {"bos_token_id": None, "eos_token_id": tokenizer.get_vocab_size() - 1, "pad_token_id": pad}
    text = variant["text"] | ids_of | {"vocab_size": tokenizer.get_vocab_size()}
    config = SiglipConfig(text_config=text, vision_config=variant["vision"])
    model = two_towers.seeded(SiglipModel(config), seed, half=True)
    described = json.loads(config.to_json_string(use_diff=False))
    # As in the published files, where the tokenizer alone says what texts are padded with.
    del described["text_config"]["pad_token_id"]
    (folder / "config.json").write_text(json.dumps(described, indent=1))
    (folder / "tokenizer.json").write_text(tokenizer.to_str())
    beside = {"pad_token": variant["pad"], "do_lower_case": variant["lower_case"], "padding_side": "right"}
    (folder / "tokenizer_config.json").write_text(json.dumps(beside, indent=1))
    processor = SiglipImageProcessorPil(**variant["processor"])
    processor.save_pretrained(folder)
    save_file(two_towers.halves(model), folder / "model.safetensors")
    plain, limit = two_towers.plain(tokenizer), config.text_config.max_position_embeddings

    def ids(text):
        return two_towers.cut(plain.encode(text.lower() if variant["lower_case"] else text).ids, limit)

    two_towers.write(
        folder,
        two_towers.Model(
            reference=f"transformers {transformers.__version__}",
            ids=ids,
            limit=limit,
            pads=[pad],
            always_padded=True,
            # Without a mask, as in training.
            text=lambda ids, mask: model.text_model(input_ids=ids).pooler_output,
            image=lambda pixels: model.vision_model(pixel_values=pixels).pooler_output,
            pixels=lambda it: torch.tensor(processor(images=it, return_tensors="np")["pixel_values"][0]),
            mean=processor.image_mean,
            std=processor.image_std,
            exact=config.vision_config.image_size,
        ),
    )


def write_all(data):
    for seed, (name, variant) in enumerate(variants(), 100):
        write(data / "siglip" / name, variant, seed)
