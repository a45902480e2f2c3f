"""The reference of Whisper: transformers' own with small seeded weights, windows of 8 s, and sound that is computed.

Called by make.py; writes one folder a model. One knows three languages, hears 128 bands and names heads that follow the
words; the other knows English alone and hears 80.
"""

import json
import zlib

import numpy as np
import torch
import transformers
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GenerationConfig, WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration

import whisper_choices
from sentences import sentences

SAMPLE_RATE, SECONDS, STEP = 16_000, 8, 320
WINDOW = SECONDS * SAMPLE_RATE
TIMES = SECONDS * 50 + 1
# Ten minutes.
ALL = 600 * SAMPLE_RATE
BEFORE, END = "<|startofprev|>", "<|endoftext|>"


def sound(first, count):
    """Noise and square waves whose loudness and pitch change eight times a second; the tests compute the same."""
    at = np.arange(first, first + count, dtype=np.uint64)
    x = at * np.uint64(2654435761) & np.uint64(0xFFFFFFFF)
    x ^= x >> np.uint64(16)
    x = x * np.uint64(2246822519) & np.uint64(0xFFFFFFFF)
    x ^= x >> np.uint64(13)
    noise = (x >> np.uint64(8)).astype(np.float64) / 2.0**23 - 1.0
    part = at // np.uint64(2000)
    level = (part * np.uint64(7919) % np.uint64(11)).astype(np.float64) / 32.0
    tone = (part * np.uint64(31) % np.uint64(7)).astype(np.float64) / 32.0
    half = np.uint64(10) + part * np.uint64(104729) % np.uint64(90)
    square = 1.0 - 2.0 * (at // half % np.uint64(2)).astype(np.float64)
    return (level * noise + tone * square).astype(np.float32)


def tokenizer():
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made.train_from_iterator(sentences(), trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False))
    specials = [END, "<|startoftranscript|>", "<|en|>", "<|de|>", "<|haw|>", "<|translate|>", "<|transcribe|>", "<|startoflm|>"]
    specials += [BEFORE, "<|nospeech|>", "<|notimestamps|>"]
    made.add_special_tokens([AddedToken(it, special=True, normalized=False) for it in specials])
    return made


class Reference:
    def __init__(self, seed, bands, is_multilingual, heads):
        self.tokenizer = tokenizer()
        self.id = self.tokenizer.token_to_id
        self.first_time = self.id("<|notimestamps|>") + 1
        config = WhisperConfig(
            vocab_size=self.first_time + TIMES, num_mel_bins=bands, d_model=32, encoder_layers=2, decoder_layers=2,
            encoder_attention_heads=2, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=96,
            max_source_positions=SECONDS * 50, max_target_positions=64, decoder_start_token_id=self.id("<|startoftranscript|>"),
            eos_token_id=self.id(END), bos_token_id=self.id(END), pad_token_id=self.id(END), suppress_tokens=None,
            begin_suppress_tokens=None, median_filter_width=7, dropout=0.0,
        )  # fmt: skip
        torch.manual_seed(seed)
        self.model = WhisperForConditionalGeneration(config).eval()
        with torch.no_grad():
            for name, value in self.model.named_parameters():
                if "embed_positions" in name and "encoder" in name:
                    value.mul_(0.3)
                elif "embed_tokens" in name:
                    value.normal_(std=0.35)
                    # So that pairs of timestamps, texts and ends all come up: the final norm makes the first value 1.
                    value[:, 0] = 0.0
                    value[self.first_time :, 0] = -2.6
                    value[self.id(END), 0] = 2.2
                elif name == "model.decoder.embed_positions.weight":
                    value.normal_(std=1.5)
                elif name == "model.decoder.layer_norm.weight":
                    value[0] = 0.0
                elif name == "model.decoder.layer_norm.bias":
                    value[0] = 1.0
                elif value.dim() > 1:
                    value.normal_(std=2.2 / value[0].numel() ** 0.5)
                else:
                    value.add_(torch.randn_like(value) * 0.1)
            # Weights are kept in halves of floats, and read as floats.
            self.model = self.model.half().float()
        self.is_multilingual = is_multilingual
        generation = dict(
            is_multilingual=is_multilingual, no_timestamps_token_id=self.id("<|notimestamps|>"), max_initial_timestamp_index=50,
            decoder_start_token_id=config.decoder_start_token_id, eos_token_id=config.eos_token_id, pad_token_id=config.pad_token_id,
            bos_token_id=config.bos_token_id, max_length=64, suppress_tokens=[1, 2, 7, 8, 9, 10, 14, self.id("<|translate|>"),
            self.id("<|transcribe|>"), self.id("<|startoflm|>"), self.id(BEFORE), self.id("<|nospeech|>")],
            begin_suppress_tokens=[self.id("Ġ"), self.id(END)], return_timestamps=False,
        )  # fmt: skip
        if is_multilingual:
            generation["lang_to_id"] = {it: self.id(it) for it in ("<|en|>", "<|de|>", "<|haw|>")}
            generation["task_to_id"] = {"transcribe": self.id("<|transcribe|>"), "translate": self.id("<|translate|>")}
        if heads:
            generation["alignment_heads"] = heads
        self.model.generation_config = GenerationConfig(**generation)
        self.extractor = WhisperFeatureExtractor(feature_size=bands, chunk_length=SECONDS)

    def features(self, samples):
        return self.extractor(samples, sampling_rate=SAMPLE_RATE, return_tensors="pt").input_features

    def language(self, features):
        return self.tokenizer.id_to_token(int(self.model.detect_language(features)[0])) if self.is_multilingual else None

    def beginning(self, language):
        return [self.id("<|startoftranscript|>")] + ([self.id(language), self.id("<|transcribe|>")] if language else [])

    def window(self, first, before=(), with_times=False):
        """What is written of the window from sample `first` on, and where the next one begins."""
        count = min(WINDOW, ALL - first)
        features = self.features(sound(first, count))
        language = self.language(features)
        prompt = ([self.id(BEFORE), *before] if before else []) + self.beginning(language)
        given = dict(return_token_timestamps=True, num_frames=torch.tensor([count // 160])) if with_times else {}
        out = self.model.generate(
            features, decoder_input_ids=torch.tensor([prompt]), return_timestamps=True, return_dict_in_generate=True,
            output_scores=True, do_sample=False, num_beams=1, force_unique_generate_call=True, **given,
        )  # fmt: skip
        whole = out["sequences"][0].tolist()
        written = whole[len(prompt) :] if whole[: len(prompt)] == prompt else whole
        ended = self.id(END) in written
        written = written[: written.index(self.id(END))] if ended else written
        chosen = torch.tensor(written + [self.id(END)] * ended)
        times = given and out["token_timestamps"][0]
        if given:
            # In seconds; those of the prompt are 0.
            return dict(first=first, tokens=written, times=[round(float(it), 2) for it in times[len(whole) - len(written) - ended :][: len(written)]])
        average = self.model._retrieve_avg_logprobs([it[0] for it in out["scores"]], chosen, 0.0)
        with torch.no_grad():
            logits = self.model(features, decoder_input_ids=torch.tensor([prompt])).logits[0]
        at = prompt.index(self.id("<|startoftranscript|>"))
        silent = logits[at].softmax(-1)[self.id("<|nospeech|>")]
        segments, used = self.cuts(written, count)
        return dict(
            first=first, prompt=prompt, language=language and language[2:-2], tokens=written,
            avg_logprob=float(average), no_speech=float(silent), segments=segments, used=used,
        )  # fmt: skip

    def cuts(self, written, count):
        frames = torch.tensor([count // 160])
        segments, used = self.model._retrieve_segment(
            seek_sequence=torch.tensor(written), seek_outputs=[{}], time_offset=torch.zeros(1, dtype=torch.float64),
            timestamp_begin=self.first_time, seek_num_frames=frames, time_precision=0.02, time_precision_features=0.01,
            input_stride=2, prev_idx=0, idx=0, return_token_timestamps=False, decoder_input_ids=torch.zeros(1, 0),
        )  # fmt: skip
        cuts = [[round(float(it["start"]) / 0.02), round(float(it["end"]) / 0.02), len(it["tokens"])] for it in segments]
        return cuts, int(used) * 160

    def text(self, tokens):
        return self.tokenizer.decode([it for it in tokens if it < self.id(END)], skip_special_tokens=False)

    def kept(self, before, window):
        """What the next window reads."""
        count = sum(it[2] for it in window["segments"])
        tokens = window["tokens"][:count]
        if len(tokens) > 1 and min(tokens[-2:]) >= self.first_time:
            tokens = tokens[:-1]
        return (list(before) + tokens)[-31:]

    def write(self, folder):
        folder.mkdir(parents=True)
        windows, first = [], 0
        while first < ALL:
            windows.append(self.window(first))
            first += max(windows[-1]["used"], STEP)
        chain, before, first = [], [], 0
        for _ in range(6):
            chain.append(self.window(first, before))
            before = self.kept(before, chain[-1])
            first += max(chain[-1]["used"], STEP)
        timed = []
        if getattr(self.model.generation_config, "alignment_heads", None):
            timed = [self.window(it["first"], with_times=True) for it in windows[:8]]
        features = self.features(sound(0, WINDOW))
        short = self.features(sound(4_000, 30_000))
        ids = torch.tensor([windows[0]["prompt"] + windows[0]["tokens"]])
        with torch.no_grad():
            encoded = self.model.model.encoder(features).last_hidden_state[0]
            decoded = self.model.model.decoder(ids, encoder_hidden_states=encoded[None]).last_hidden_state[0]
        states = dict(mel=features[0].T[::37], short=short[0].T[::37], encoded=encoded[::20], decoded=decoded)
        save_file({name: value.contiguous() for name, value in states.items()}, folder / "expected.safetensors")
        weights = {name: value.half().contiguous() for name, value in self.model.state_dict().items() if name != "proj_out.weight"}
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        self.tokenizer.save(str(folder / "tokenizer.json"))
        self.model.config.save_pretrained(folder)
        self.model.generation_config.save_pretrained(folder)
        self.extractor.save_pretrained(folder)
        texts = [self.text(it["tokens"]).strip() for it in windows[:12]]
        texts += [ "thank you for watching. " * 12, "so so so so", "", "two and a half turns in the pike position"]
        expected = dict(
            reference=f"transformers {transformers.__version__}, torch {torch.__version__}",
            windows=windows, chain=chain, timed=timed,
            ratios=[dict(text=it, ratio=len(it.encode()) / len(zlib.compress(it.encode()))) for it in texts],
        )  # fmt: skip
        (folder / "expected.json").write_text(json.dumps(expected))
        whisper_choices.write(self, folder, sound, WINDOW, windows)
        return windows


def write_all(data):
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    Reference(11, 128, True, [[0, 1], [1, 0], [1, 3]]).write(data / "whisper")
    Reference(12, 80, False, None).write(data / "whisper-en")
