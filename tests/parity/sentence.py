"""The reference of sentence encoders: transformers' own BERT and XLM-RoBERTa with small seeded weights, then pooling,
dense layers and norm as sentence-transformers has them, in its layout of files.

Called by make.py.
"""

import itertools
import json

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from torch.nn import functional as F
from transformers import BertConfig, BertModel, XLMRobertaConfig, XLMRobertaModel

from sentences import sentences

TEXTS = [
    "a brown dog runs past the red car",
    "frog",
    "Two and a HALF turns! (seen from behind)",
    "don't worry,   it's only 12.5 metres: Ünïcödé 水",
    " ".join(itertools.islice(sentences(), 12)),
    "the speaker talks about music while a small group of people plays outside in heavy rain",
]


def seeded(model, number):
    """Weights large enough that every part shows in the result."""
    generator = torch.Generator().manual_seed(number)
    with torch.no_grad():
        for name, weight in sorted(model.named_parameters()):
            noise = torch.randn(weight.shape, generator=generator)
            if "norm" in name.lower():
                weight.copy_(noise * 0.2 + (1.0 if name.endswith("weight") else 0.0))
            else:
                weight.copy_(noise * (0.2 if weight.dim() > 1 else 0.1))
    return model.eval()


def bert(tokenizer, number):
    config = dict(hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40)
    config |= dict(vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=40)
    return seeded(BertModel(BertConfig(**config), add_pooling_layer=False), number)


def xlm_roberta(tokenizer, number):
    config = dict(hidden_size=20, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
    config |= dict(vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=34, type_vocab_size=1)
    config |= dict(pad_token_id=1, bos_token_id=0, eos_token_id=2, layer_norm_eps=1e-5)
    return seeded(XLMRobertaModel(XLMRobertaConfig(**config), add_pooling_layer=False), number)


def unigram(vocabulary):
    """With XLM-RoBERTa's special tokens: positions are counted by what is not padding."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    specials = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(
        vocab_size=vocabulary, special_tokens=specials, unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(sentences(), trainer)
    ids = [(token, tokenizer.token_to_id(token)) for token in ("<s>", "</s>")]
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=ids)
    return tokenizer


def ids(tokenizer, prompt, text, limit):
    """As sentence-transformers has it: the prompt is a part of the text."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    row = tokenizer.encode(prompt + text).ids
    return row if len(row) <= limit else row[: limit - 1] + row[-1:]


def vectors(variant, rows, pad):
    length = max(map(len, rows))
    padded = torch.tensor([row + [pad] * (length - len(row)) for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (length - len(row)) for row in rows])
    with torch.no_grad():
        hidden = variant["model"](input_ids=padded, attention_mask=mask).last_hidden_state
        if variant["pooling"] == "cls":
            pooled = hidden[:, 0]
        else:
            weights = mask.unsqueeze(-1).float()
            pooled = (hidden * weights).sum(dim=1) / weights.sum(dim=1)
        if "dense" in variant:
            pooled = torch.tanh(pooled @ variant["dense"]["linear.weight"].T + variant["dense"]["linear.bias"])
        return F.normalize(pooled, dim=-1) if variant.get("normalise") else pooled


def rounded(rows):
    return [[float(f"{value:.8g}") for value in row] for row in rows.tolist()]


def write_modules(folder, variant):
    """modules.json and the folders that it names."""
    kinds = ["Transformer", "Pooling"] + ["Dense"] * ("dense" in variant) + ["Normalize"] * variant["normalise"]
    modules = [
        {"idx": at, "name": str(at), "path": f"{at}_{kind}" if at else "", "type": f"sentence_transformers.models.{kind}"}
        for at, kind in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    width = variant["model"].config.hidden_size
    pooling = {"word_embedding_dimension": width, "pooling_mode_max_tokens": False}
    pooling |= {f"pooling_mode_{it}": it.startswith(variant["pooling"]) for it in ("cls_token", "mean_tokens")}
    (folder / "1_Pooling/config.json").write_text(json.dumps(pooling))
    (folder / "sentence_bert_config.json").write_text(
        json.dumps({"max_seq_length": variant["limit"], "do_lower_case": False})
    )
    if "dense" in variant:
        (folder / "2_Dense").mkdir()
        out, width = variant["dense"]["linear.weight"].shape
        config = {"in_features": width, "out_features": out, "bias": True}
        config["activation_function"] = "torch.nn.modules.activation.Tanh"
        (folder / "2_Dense/config.json").write_text(json.dumps(config))
        save_file(variant["dense"], folder / "2_Dense/model.safetensors")
    if "prompts" in variant:
        prompts = {"prompts": variant["prompts"], "default_prompt_name": None}
        (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts))


def write(folder, variant):
    folder.mkdir(parents=True)
    model, tokenizer = variant["model"], variant["tokenizer"]
    (folder / "tokenizer.json").write_text(tokenizer.to_str())
    (folder / "config.json").write_text(model.config.to_json_string(use_diff=False))
    prefix = variant.get("prefix", "")
    weights = {name: weight.contiguous() for name, weight in model.state_dict().items()}
    save_file({prefix + name: weight for name, weight in weights.items()}, folder / "model.safetensors")
    if "normalise" in variant:
        write_modules(folder, variant)
    prompts = {"query": variant.get("query", ""), "passage": variant.get("passage", "")}
    expected = {"texts": TEXTS, "limit": variant["limit"]}
    for kind, prompt in prompts.items():
        rows = [ids(tokenizer, prompt, text, variant["limit"]) for text in TEXTS]
        pad = model.config.pad_token_id
        single = torch.cat([vectors(variant, [row], pad) for row in rows])
        batched = torch.cat([vectors(variant, rows[at : at + 4], pad) for at in range(0, len(rows), 4)])
        assert (single - batched).abs().max() < 2e-5
        expected[kind] = {"ids": rows, "batch_1": rounded(single), "batch_4": rounded(batched)}
    (folder / "expected.json").write_text(json.dumps(expected))


def write_pickled(folder, model):
    """The same weights as PyTorch writes them, in two parts with an index."""
    names = sorted(model.state_dict())
    index = {}
    for at, part in enumerate([names[: len(names) // 2], names[len(names) // 2 :]]):
        file = f"pytorch_model-{at + 1:05}-of-00002.bin"
        torch.save({name: model.state_dict()[name].clone() for name in part}, folder / file)
        index |= dict.fromkeys(part, file)
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))


def write_all(data, word_piece):
    data = data / "sentence"
    words, pieces = word_piece(300), unigram(300)
    write(data / "mean", dict(model=bert(words, 80), tokenizer=words, limit=24, pooling="mean", normalise=True))
    write_pickled(data / "mean", bert(words, 80))

    generator = torch.Generator().manual_seed(82)
    dense = {"linear.weight": torch.randn(16, 24, generator=generator) * 0.3, "linear.bias": torch.randn(16, generator=generator)}
    prompts = {"query": "find what is about: ", "document": "people: "}
    variant = dict(model=bert(words, 81), tokenizer=words, limit=32, pooling="cls", normalise=False, dense=dense)
    variant |= dict(prefix="bert.", prompts=prompts, query=prompts["query"], passage=prompts["document"])
    write(data / "cls", variant)

    # No modules.json; the prompts come with the name.
    variant = dict(model=bert(words, 83), tokenizer=words, limit=40, pooling="mean")
    write(data / "e5-tiny", variant | dict(query="query: ", passage="passage: "))

    variant = dict(model=xlm_roberta(pieces, 84), tokenizer=pieces, limit=32, pooling="mean", normalise=True)
    prompts = {"query": "asked: ", "passage": ""}
    write(data / "xlm", variant | dict(prefix="roberta.", prompts=prompts, query=prompts["query"]))
