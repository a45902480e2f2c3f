"""Measures what an hour of speech costs on one thread of the CPU: reprise beside transformers' Whisper (PyTorch, eager,
f32) and faster-whisper (CTranslate2, f32 and int8), on models of the published shapes.

    speech_peers.py REPRISE [tiny base small]

Their weights are seeded, but for the decoder's positions: each stands for the token that comes after it, so that all
engines write the same text of a given length, and none tries again. Loading is no part of the cost: it is that of a long
file less that of a short one. The table goes to stdout and to BENCHMARKS.md.
"""

import datetime
import json
import os
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import wave

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"

import ctranslate2  # noqa: E402
import faster_whisper  # noqa: E402
import numpy  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers  # noqa: E402
from transformers import GenerationConfig, WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration  # noqa: E402

REPORT = pathlib.Path(__file__).resolve().parent.parent.parent / "BENCHMARKS.md"
MARKS = ("<!-- speech: made by `scripts/bench.sh speech` -->", "<!-- speech: end -->")
# Width, layers of each half, heads.
SHAPES = {"tiny": (384, 4, 6), "base": (512, 6, 8), "small": (768, 12, 12)}
TEXTS, TIMES, RATE, SECONDS = 50_257, 1501, 16_000, 30
# Tokens of text a window: about 150 words a minute.
WRITTEN = 100
SHORT, LONG, ROUNDS = 1, 4, 3
# Windows that are written side by side.
TOGETHER = 8
# How much a position outweighs what the layers add.
LOUD = 60.0


def tokenizer():
    """Byte-level, with as many texts as Whisper's: random letters, which compress as words do."""
    made = random.Random(0)
    vocabulary = {letter: at for at, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    while len(vocabulary) < TEXTS:
        vocabulary.setdefault("Ġ" + "".join(made.choices("abcdefghijklmnopqrstuvwxyz", k=5)), len(vocabulary))
    it = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    it.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    it.decoder = decoders.ByteLevel()
    specials = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|translate|>", "<|transcribe|>", "<|startoflm|>"]
    specials += ["<|startofprev|>", "<|nospeech|>", "<|notimestamps|>"]
    it.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in specials])
    return it


def write_model(folder, shape):
    """A model of English that writes WRITTEN tokens a window; the window's end is the last timestamp."""
    width, layers, heads = shape
    tokens = tokenizer()
    end, start, first_time = tokens.token_to_id("<|endoftext|>"), tokens.token_to_id("<|startoftranscript|>"), tokens.get_vocab_size()
    text = random.Random(1).sample(range(256, TEXTS), WRITTEN)
    written = [first_time, *text, first_time + TIMES - 1, end]
    torch.manual_seed(0)
    model = WhisperForConditionalGeneration(WhisperConfig(
        vocab_size=first_time + TIMES, num_mel_bins=80, d_model=width, encoder_layers=layers, decoder_layers=layers,
        encoder_attention_heads=heads, decoder_attention_heads=heads, encoder_ffn_dim=4 * width, decoder_ffn_dim=4 * width,
        max_source_positions=1500, max_target_positions=448, decoder_start_token_id=start, eos_token_id=end, bos_token_id=end,
        pad_token_id=end, suppress_tokens=None, begin_suppress_tokens=None,
    )).eval()  # fmt: skip
    with torch.no_grad():
        words = model.model.decoder.embed_tokens.weight.normal_(std=width**-0.5)
        positions = model.model.decoder.embed_positions.weight
        for at, token in enumerate(written):
            positions[at] = LOUD * words[token]
    model.generation_config = GenerationConfig(
        is_multilingual=False, no_timestamps_token_id=first_time - 1, decoder_start_token_id=start, eos_token_id=end,
        pad_token_id=end, bos_token_id=end, max_length=448, return_timestamps=True, suppress_tokens=[], begin_suppress_tokens=[],
    )  # fmt: skip
    extractor = WhisperFeatureExtractor(feature_size=80)
    model.save_pretrained(folder)
    extractor.save_pretrained(folder)
    tokens.save(str(folder / "tokenizer.json"))
    return model, extractor, written


def sound(windows):
    """Noise whose loudness changes eight times a second: nothing in it is skipped."""
    made = numpy.random.default_rng(0)
    levels = made.uniform(0.1, 0.6, windows * SECONDS * 8).repeat(RATE // 8)
    return (levels * made.uniform(-1, 1, len(levels))).astype(numpy.float32)


def write_sound(path, samples):
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, RATE, len(samples), "NONE", ""))
        file.writeframes((samples * 32767).astype("<i2").tobytes())


def of_reprise(program, folder, file, precision, windows, together=1):
    """CPU seconds of writing a file down, ffmpeg's with it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    how = ["--precision", precision, "--without-text-before", "--windows", together, "--with-silence", "--json"]
    arguments = ["transcribe", "--transcribe", folder, *how, file]
    out = subprocess.run([program, *map(str, arguments)], check=True, capture_output=True, text=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    segments = json.loads(out)["segments"]
    words = [len(it["text"].split()) for it in segments]
    assert words == [WRITTEN] * windows, (precision, words)
    assert all(it["temperature"] == 0 for it in segments), segments
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def of_transformers(model, extractor, samples, written):
    """CPU seconds of writing windows down, one after the other."""
    size, begun = SECONDS * RATE, time.process_time()
    for first in range(0, len(samples), size):
        features = extractor(samples[first : first + size], sampling_rate=RATE, return_tensors="pt").input_features
        ids = model.generate(features, return_timestamps=True, do_sample=False, num_beams=1)[0].tolist()
        texts = [it for it in ids if it < TEXTS]
        assert texts == [it for it in written if it < TEXTS], texts
    return time.process_time() - begun


def converted(folder, kind):
    """faster-whisper's model of a folder of transformers'."""
    to = folder.with_name(kind)
    converter = ctranslate2.converters.TransformersConverter(str(folder), copy_files=["tokenizer.json", "preprocessor_config.json"])
    converter.convert(str(to), quantization=kind)
    return faster_whisper.WhisperModel(str(to), device="cpu", compute_type=kind, cpu_threads=1, num_workers=1)


def of_faster_whisper(model, samples, windows):
    """CPU seconds of writing windows down, one after the other, greedily and once."""
    begun = time.process_time()
    segments, _ = model.transcribe(
        samples, language="en", beam_size=1, temperature=0.0, condition_on_previous_text=False, compression_ratio_threshold=None,
        log_prob_threshold=None, no_speech_threshold=None,
    )  # fmt: skip
    words = [len(it.text.split()) for it in segments]
    assert words == [WRITTEN] * windows, words
    return time.process_time() - begun


def of_faster_whisper_together(model, samples, windows):
    """CPU seconds of writing windows down, TOGETHER at once, greedily and once."""
    begun = time.process_time()
    clips = [{"start": at * SECONDS, "end": (at + 1) * SECONDS} for at in range(windows)]
    segments, _ = faster_whisper.BatchedInferencePipeline(model).transcribe(
        samples, language="en", beam_size=1, temperature=0.0, vad_filter=False, clip_timestamps=clips, without_timestamps=False,
        batch_size=TOGETHER,
    )  # fmt: skip
    words = [len(it.text.split()) for it in segments]
    assert words == [WRITTEN] * windows, words
    return time.process_time() - begun


def measured(program, name):
    """Medians of CPU seconds per hour: transformers f32, faster-whisper f32, reprise f32, faster-whisper int8, reprise int8;
    then the last four with windows side by side."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        model, extractor, written = write_model(folder / "model", SHAPES[name])
        files = {count: folder / f"{count}.wav" for count in (SHORT, LONG, TOGETHER)}
        for count, file in files.items():
            write_sound(file, sound(count))
        hour, costs = 3600 / ((LONG - SHORT) * SECONDS), []
        faster = [converted(folder / "model", kind) for kind in ("float32", "int8")]
        of_transformers(model, extractor, sound(1), written)
        for peer in faster:
            of_faster_whisper(peer, sound(1), 1)
        for _ in range(ROUNDS):
            round, together = [of_transformers(model, extractor, sound(LONG - SHORT), written) * hour], []
            for peer, precision in zip(faster, ("f32", "int8")):
                cost = lambda windows, at_once=1: of_reprise(program, folder / "model", files[windows], precision, windows, at_once)
                short = cost(SHORT)
                window = (cost(LONG) - short) / (LONG - SHORT)
                loading = short - SHORT * window
                round += [of_faster_whisper(peer, sound(LONG - SHORT), LONG - SHORT) * hour, window * 3600 / SECONDS]
                others = [of_faster_whisper_together(peer, sound(TOGETHER), TOGETHER), cost(TOGETHER, TOGETHER) - loading]
                together += [it * 3600 / (TOGETHER * SECONDS) for it in others]
            costs.append(round + together)
        return [statistics.median(column) for column in zip(*costs)]


def main():
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    program, names = sys.argv[1], sys.argv[2:] or list(SHAPES)
    rows, together = [], []
    with torch.inference_mode():
        for name in names:
            peer, fast, full, fast_int8, small, *others = measured(program, name)
            best = min(peer, fast)
            rows.append(
                f"| {name} | {peer:.0f} | {fast:.0f} | {full:.0f} | {best / full:.2f} | {fast_int8:.0f} | {small:.0f} | {fast_int8 / small:.2f} |"
            )
            fast, full, fast_int8, small = others
            together.append(f"| {name} | {fast:.0f} | {full:.0f} | {fast / full:.2f} | {fast_int8:.0f} | {small:.0f} | {fast_int8 / small:.2f} |")
            print(rows[-1], together[-1], sep="\n", flush=True)
    table = "\n".join([
        MARKS[0],
        "",
        f"Measured {datetime.date.today()}, one thread, {WRITTEN} tokens of text a half minute; medians of {ROUNDS} rounds. "
        f"transformers {transformers.__version__}, PyTorch {torch.__version__.split('+')[0]}, faster-whisper {faster_whisper.__version__} "
        f"with CTranslate2 {ctranslate2.__version__}. CPU seconds per hour of sound.",
        "",
        "| shape | transformers f32 | faster-whisper f32 | reprise f32 | of the faster peer's speed | faster-whisper int8 | reprise int8 | of its speed |",
        "|---|---|---|---|---|---|---|---|",
        *rows,
        "",
        f"{TOGETHER} windows side by side (`--windows {TOGETHER}`; faster-whisper's `BatchedInferencePipeline`):",
        "",
        "| shape | faster-whisper f32 | reprise f32 | of its speed | faster-whisper int8 | reprise int8 | of its speed |",
        "|---|---|---|---|---|---|---|",
        *together,
        "",
        MARKS[1],
    ])  # fmt: skip
    old = REPORT.read_text()
    if MARKS[0] in old and len(rows) == len(SHAPES):
        REPORT.write_text(old[: old.index(MARKS[0])] + table + old[old.index(MARKS[1]) + len(MARKS[1]) :])
    print(table)


main()
