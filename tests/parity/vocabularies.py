"""Small tokenizers of every type that models come with, trained on sentences of our own."""

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from sentences import sentences

START, END = "<|startoftext|>", "<|endoftext|>"


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
