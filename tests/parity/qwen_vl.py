"""What transformers gives for prompts of Qwen-VL embedders: GME, Qwen3-VL-Embedding and CARE. Positions are those of the
models' training, and frames come as they are, so that no resizing is part of this.

    python tests/parity/qwen_vl.py WORDS     # writes tests/parity/data/qwen-vl/served.json

WORDS is a folder with the small models of make_words.py: WORDS/fixtures/qwen2-vl and WORDS/fixtures/qwen3-vl.
"""

import json
import pathlib
import sys

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer
from transformers import Qwen2_5_VLForConditionalGeneration, Qwen2VLForConditionalGeneration, Qwen3VLForConditionalGeneration

from two_towers import picture

MODELS = dict(
    qwen2_vl=Qwen2VLForConditionalGeneration,
    qwen2_5_vl=Qwen2_5_VLForConditionalGeneration,
    qwen3_vl=Qwen3VLForConditionalGeneration,
)
CHAT = "<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{user}<|im_end|>\n<|im_start|>assistant\n"
HELPFUL = "You are a helpful assistant."
FIND = "Find an image that matches the given text."
REPRESENT = "Represent the user's input."
START, END, IMAGE, VIDEO = "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"
# E5-V's prompt (arXiv 2407.12580, released code) for a video; CARE names none.
BOTH = '{}\nModify this video with "{}", describe modified video in one word:'
TEMPORAL = 2


class Reference:
    """A model's folder, read by the reference. `kind`: gme, qwen3 or care."""

    def __init__(self, folder, kind):
        folder = pathlib.Path(folder)
        self.kind = kind
        kind_of_model = json.loads((folder / "config.json").read_text())["model_type"]
        self.model = MODELS[kind_of_model].from_pretrained(folder, dtype=torch.float32).eval()
        self.config = self.model.config
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        pixels = json.loads((folder / "preprocessor_config.json").read_text())
        self.mean, self.std = pixels["image_mean"], pixels["image_std"]
        self.patch, self.merge = self.config.vision_config.patch_size, self.config.vision_config.spatial_merge_size

    def text(self, words):
        """A query of words."""
        if self.kind == "gme":
            return self.vector(CHAT.format(system=FIND, user=words) + "<|endoftext|>")
        if self.kind == "care":
            return self.vector(CHAT.format(system=HELPFUL, user=words + "\nSummary above sentence in one word:"))
        return self.vector(CHAT.format(system=REPRESENT, user=words))

    def clip(self, frames, seconds):
        """A stored clip of frames (height, width, 3) at these times; the raw vector."""
        if self.kind == "gme":
            prompt = lambda block: CHAT.format(system=HELPFUL, user=block) + "<|endoftext|>"
            rows = [self.vector(prompt(self.picture_block(it)), frames=[it]) for it in frames]
            return torch.stack([it / it.norm() for it in rows]).mean(0)
        seconds = [it - seconds[0] for it in seconds]
        rate = (len(seconds) - 1) / seconds[-1] if seconds[-1] > 0 else 1.0
        if self.kind == "care":
            frames, seconds = [it for it in frames for _ in range(2)], [it for it in seconds for _ in range(2)]
            user, system = "{}\nSummary above video in one word:", HELPFUL
        else:
            user, system = "{}", REPRESENT
        prompt = CHAT.format(system=system, user=user.format(self.video_block(frames, seconds)))
        return self.vector(prompt, frames=frames, rate=rate)

    def composed(self, frames, seconds, words):
        """A query of frames and words; GME takes one frame, the middle one."""
        if self.kind == "gme":
            (frame,) = frames
            prompt = CHAT.format(system=FIND, user=self.picture_block(frame) + words) + "<|endoftext|>"
            return self.vector(prompt, frames=frames)
        seconds = [it - seconds[0] for it in seconds]
        rate = (len(seconds) - 1) / seconds[-1] if seconds[-1] > 0 else 1.0
        if self.kind == "care":
            frames, seconds = [it for it in frames for _ in range(2)], [it for it in seconds for _ in range(2)]
            user, system = BOTH, HELPFUL
        else:
            user, system = "{}{}", REPRESENT
        prompt = CHAT.format(system=system, user=user.format(self.video_block(frames, seconds), words))
        return self.vector(prompt, frames=frames, rate=rate)

    def tokens(self, frame):
        height, width, _ = frame.shape
        return (height // self.patch // self.merge) * (width // self.patch // self.merge)

    def picture_block(self, frame):
        return START + IMAGE * self.tokens(frame) + END

    def video_block(self, frames, seconds):
        count, pads = -(-len(frames) // TEMPORAL), VIDEO * self.tokens(frames[0])
        if self.config.model_type != "qwen3_vl":
            return START + pads * count + END
        seconds = seconds + seconds[-1:] * (count * TEMPORAL - len(seconds))
        times = [(seconds[at] + seconds[at + 1]) / 2 for at in range(0, len(seconds), TEMPORAL)]
        return "".join(f"<{time:.1f} seconds>{START}{pads}{END}" for time in times)

    def patches(self, frames):
        x = (torch.tensor(np.stack(frames)).float() / 255 - torch.tensor(self.mean)) / torch.tensor(self.std)
        x = x.permute(0, 3, 1, 2)
        x = torch.cat([x, x[-1:]]) if len(x) % TEMPORAL else x
        count, _, height, width = x.shape
        rows, columns = height // self.patch, width // self.patch
        x = x.reshape(
            count // TEMPORAL, TEMPORAL, 3, rows // self.merge, self.merge, self.patch, columns // self.merge, self.merge, self.patch
        )  # fmt: skip
        grid = [count // TEMPORAL, rows, columns]
        return x.permute(0, 3, 6, 4, 7, 2, 1, 5, 8).reshape(-1, 3 * TEMPORAL * self.patch**2), grid

    def vector(self, prompt, frames=(), rate=1.0):
        """The hidden state of the prompt's last token."""
        return self.state(self.tokenizer.encode(prompt, add_special_tokens=False).ids, frames, rate)

    def state(self, ids, frames=(), rate=1.0):
        """The hidden state of the last of a prompt's ids."""
        types = [{self.config.image_token_id: 1, self.config.video_token_id: 2}.get(it, 0) for it in ids]
        given, grid = {}, None
        if len(frames):
            rows, grid = self.patches(frames)
            names = ("pixel_values", "image_grid_thw") if 1 in types else ("pixel_values_videos", "video_grid_thw")
            given = {names[0]: rows, names[1]: torch.tensor([grid])}
        place = self.positions(types, grid, rate)
        ids, types = torch.tensor([ids]), torch.tensor([types], dtype=torch.int)
        with torch.no_grad():
            out = self.model.model(
                input_ids=ids, attention_mask=torch.ones_like(ids), mm_token_type_ids=types, position_ids=place,
                use_cache=False, **given,
            )  # fmt: skip
        return out.last_hidden_state[0, -1]

    def positions(self, types, grid, rate):
        """(3, 1, tokens): GME counts 0, 1, 2, ...; else what follows a span starts behind its largest position."""
        if self.kind == "gme":
            return torch.arange(len(types)).view(1, 1, -1).expand(3, 1, -1)
        place, start, at = [], 0, 0
        while at < len(types):
            if types[at] == 0:
                place.append([start] * 3)
                at, start = at + 1, start + 1
                continue
            frames, rows, columns = grid[0], grid[1] // self.merge, grid[2] // self.merge
            scale = 1.0
            if self.config.model_type == "qwen3_vl":
                frames = 1
            elif self.config.model_type == "qwen2_5_vl" and types[at] == 2:
                scale = self.config.vision_config.tokens_per_second * TEMPORAL / rate
            spot = [
                [start + int(np.float32(t) * np.float32(scale)), start + y, start + x]
                for t in range(frames) for y in range(rows) for x in range(columns)
            ]  # fmt: skip
            place += spot
            at, start = at + len(spot), max(max(it) for it in spot) + 1
        return torch.tensor(place).T[:, None]


def listed(vector):
    return [round(float(it), 6) for it in vector / vector.norm()]


# Three videos of 4 s at 5 frames per second; frame n of video v is picture(WIDTH, HEIGHT, 20 v + n). Clips of 2 s. The
# frames lie at the middles of seconds; a service that samples one frame per second takes the same.
WIDTH, HEIGHT, PER_SECOND = 160, 112, 5
CLIPS = {0: [2, 7], 2: [12, 17]}
# The query's range, 1 s to 3 s.
MIDDLE, SAMPLED = [10], [7, 12]
CHANGE, TEXT = "but the red car turns two and a half times", "a diver turns two and a half times"


def served(folder, kind):
    reference = Reference(folder, kind)
    frame = lambda video, at: picture(WIDTH, HEIGHT, 20 * video + at)
    clips = [
        dict(video=video, start=start, vector=listed(reference.clip([frame(video, at) for at in taken], [at / PER_SECOND for at in taken])))
        for video in range(3) for start, taken in CLIPS.items()
    ]  # fmt: skip
    taken = MIDDLE if kind == "gme" else SAMPLED
    composed = [
        reference.composed([frame(video, at) for at in taken], [at / PER_SECOND for at in taken], CHANGE) for video in range(3)
    ]  # fmt: skip
    return dict(clips=clips, composed=[listed(it) for it in composed], text=listed(reference.text(TEXT)))


def main():
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    words = pathlib.Path(sys.argv[1]) / "fixtures"
    expected = dict(
        reference=f"transformers {transformers.__version__}, torch {torch.__version__}",
        frame=dict(width=WIDTH, height=HEIGHT, per_second=PER_SECOND),
        frames=dict(gme=len(MIDDLE), qwen3=len(SAMPLED)), change=CHANGE, text=TEXT,
        gme=served(words / "qwen2-vl", "gme"), qwen3=served(words / "qwen3-vl", "qwen3"),
    )  # fmt: skip
    out = pathlib.Path(__file__).parent / "data/qwen-vl"
    out.mkdir(parents=True, exist_ok=True)
    (out / "served.json").write_text(json.dumps(expected))


if __name__ == "__main__":
    main()
