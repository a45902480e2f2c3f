"""What the reference decides about a text that Whisper wrote: whether to write it again at a higher temperature, whether
to drop it as silence, and which tokens make a word.

Called by whisper.py with its reference; writes fallbacks.json, and words.json where a model knows heads that follow words.
Texts at higher temperatures are drawn with the random numbers of reprise's generator, so that they can be compared too.
The compression ratio is that of the text, as in OpenAI's code; transformers takes that of the tokens' numbers.
"""

import itertools
import json
import zlib

import numpy as np
import torch
from transformers import GenerationMixin, WhisperForConditionalGeneration
from transformers.models.whisper.tokenization_whisper import _combine_tokens_into_words

from sentences import sentences

TEMPERATURES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
# Thresholds that nothing exceeds and nothing meets.
NEVER, ALWAYS = 99.0, -99.0
# Two ports of zlib differ by less.
APART = 1.15
MASK = (1 << 64) - 1
LANGUAGES = {"en": "english", "de": "german", "zh": "chinese", "ja": "japanese"}
TEXTS = [
    ("en", ' "Well," she said, \'tis (nearly) half-way - two 1/2 turns... $5, 10% & [more]!'),
    ("en", "No space before; don't stop?"),
    ("de", " Größe „über“ fünfzig: „Ähm – naja“, 5,5 Punkte."),
    ("zh", "你好，世界。我们跳水！“两周半”（屈体）"),
    ("ja", "飛び込み、それは「難しい」。 はい - はい?"),
]


class SplitMix:
    """As encoders/src/random.rs."""

    def __init__(self, seed):
        self.state = seed

    def unit(self):
        self.state = self.state + 0x9E3779B97F4A7C15 & MASK
        mixed = (self.state ^ self.state >> 30) * 0xBF58476D1CE4E5B9 & MASK
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & MASK
        return ((mixed ^ mixed >> 31) >> 11) / 2.0**53


class Drawn:
    """While it is entered, torch draws tokens with the numbers of a generator that each temperature seeds."""

    def __enter__(self):
        self.generate, self.multinomial = GenerationMixin.generate, torch.multinomial

        def generate(model, *given, generation_config, **more):
            seed = int(np.float32(generation_config.temperature).view(np.uint32))
            self.random = SplitMix(seed)
            return self.generate(model, *given, generation_config=generation_config, **more)

        def multinomial(shares, num_samples):
            assert shares.shape[0] == num_samples == 1
            sums = shares[0].double().cumsum(0)
            return (self.random.unit() * sums[-1] < sums).int().argmax().view(1, 1)

        GenerationMixin.generate, torch.multinomial = generate, multinomial

    def __exit__(self, *_):
        GenerationMixin.generate, torch.multinomial = self.generate, self.multinomial


def ratio(text):
    return len(text.encode()) / len(zlib.compress(text.encode()))


def attempts(reference, samples, compression, logprob, silent):
    """All attempts at a window, in order."""
    model, made = reference.model, []
    features = reference.features(samples)
    language = reference.language(features)

    def need_fallback(tokens, outputs, at, processors, config, size, temperature):
        decision = WhisperForConditionalGeneration._need_fallback(model, tokens, outputs, at, processors, config, size, temperature)
        ids = [it for it in tokens.tolist() if it != config.eos_token_id]
        average = float(model._retrieve_avg_logprobs(outputs[at]["scores"], tokens, temperature))
        is_again, is_silent = map(bool, decision)
        made.append(dict(
            temperature=temperature, tokens=ids, text=reference.text(ids), ratio=ratio(reference.text(ids).strip()),
            avg_logprob=average, no_speech=float(processors[0].no_speech_prob[0]), again=is_again, silent=is_silent,
        ))  # fmt: skip
        return decision

    model._need_fallback = need_fallback
    model._retrieve_compression_ratio = lambda tokens, _: ratio(reference.text(tokens.tolist()).strip())
    named = dict(language=language, task="transcribe") if language else {}
    try:
        with Drawn():
            model.generate(
                features, return_timestamps=True, return_dict_in_generate=True, force_unique_generate_call=True, num_beams=1,
                top_k=0, temperature=TEMPERATURES, compression_ratio_threshold=compression, logprob_threshold=logprob,
                no_speech_threshold=silent, **named,
            )  # fmt: skip
    finally:
        del model._need_fallback, model._retrieve_compression_ratio
    return made


def thresholds(made):
    """Thresholds by which a window's attempts are judged differently: compression, log probability, silence."""
    first, silent = made[0], made[0]["no_speech"]
    yield 2.4, -1.0, 0.6
    # Right at once, also where it is silent; never right; silent, also where the text repeats itself; not silent enough.
    yield NEVER, ALWAYS, silent / 2
    yield NEVER, NEVER, NEVER
    yield NEVER, NEVER, silent / 2
    yield 0.0, NEVER, silent / 2
    yield NEVER, NEVER, silent * 2
    # It repeats itself, and the next attempt is a guess in silence.
    if made[1]["avg_logprob"] < first["avg_logprob"] - 0.02:
        yield 0.0, (made[1]["avg_logprob"] + first["avg_logprob"]) / 2, silent / 2
    # It repeats itself until a temperature helps.
    for it in made[1:]:
        if it["ratio"] * APART**2 < first["ratio"]:
            yield it["ratio"] * APART, ALWAYS, NEVER
            break


def better_guess(made):
    """Thresholds by which a window's text is a guess until a temperature helps; none if no temperature does."""
    first = made[0]["avg_logprob"]
    return [(NEVER, (it["avg_logprob"] + first) / 2, NEVER) for it in made[1:] if it["avg_logprob"] > first + 0.02][:1]


def fallbacks(reference, sound, window, firsts):
    cases, better = [], 0
    for place, first in enumerate(firsts):
        samples = sound(first, window)
        made = attempts(reference, samples, NEVER, NEVER, NEVER)
        chosen = better_guess(made) if better < 2 else []
        better += len(chosen)
        for compression, logprob, silent in chosen + list(thresholds(made) if place < 4 else []):
            tried = attempts(reference, samples, compression, logprob, silent)
            # What lies near a threshold says nothing: numbers differ in their last digits.
            assert all(abs(it["ratio"] / compression - 1) > 0.07 for it in tried if 0 < compression < NEVER) or compression == 2.4
            assert all(abs(it["avg_logprob"] - logprob) > 1e-3 for it in tried)
            last = tried[-1]
            cases.append(dict(
                first=first, compression=compression, logprob=logprob, silent=silent, attempts=len(tried),
                **{name: last[name] for name in ("temperature", "tokens", "text", "avg_logprob", "no_speech")},
                verdict="silent" if last["silent"] else "again" if last["again"] else "right",
            ))  # fmt: skip
    verdicts = {(it["verdict"], it["temperature"]) for it in cases}
    assert {("silent", 0.0), ("right", 0.0), ("again", 1.0)} < verdicts and len(verdicts) > 3, verdicts
    return cases


class Decoder:
    """What the reference's functions ask a tokenizer."""

    def __init__(self, reference):
        self.reference, self.eos_token_id = reference, reference.id("<|endoftext|>")

    def decode(self, ids, **_):
        return self.reference.tokenizer.decode(ids, skip_special_tokens=False)


def words(reference, windows):
    """Words by language. What the reference parts inside of a word, as at a hyphen, is joined."""
    texts = [(language, reference.tokenizer.encode(text).ids) for language, text in TEXTS]
    texts += [("en", reference.tokenizer.encode(" " + text).ids) for text in itertools.islice(sentences(), 5)]
    # Text of seeded weights has bytes that are no letter.
    end = reference.id("<|endoftext|>")
    for language in ("en", "zh"):
        texts += [(language, [it for it in window["tokens"] if it < end]) for window in windows[:4]]
    cases = []
    for language, ids in texts:
        made, _, places = _combine_tokens_into_words(Decoder(reference), ids, LANGUAGES[language])
        if [at for word in places for at in word] != list(range(len(ids))):
            # The reference loses the end of some texts that are not letters to their end.
            assert "\ufffd" in reference.text(ids)
            continue
        joined = []
        for word, at in zip(made, places):
            if joined and language not in ("zh", "ja") and not word.startswith(" "):
                joined[-1] = (joined[-1][0] + word, joined[-1][1], at[-1] + 1)
            else:
                joined.append((word, at[0], at[-1] + 1))
        cases.append(dict(language=language, ids=ids, words=joined))
    return cases


def write(reference, folder, sound, window, windows):
    cases = fallbacks(reference, sound, window, [it["first"] for it in windows[:60]])
    (folder / "fallbacks.json").write_text(json.dumps(cases))
    if getattr(reference.model.generation_config, "alignment_heads", None):
        (folder / "words.json").write_text(json.dumps(words(reference, windows)))
