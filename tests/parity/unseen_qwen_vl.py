"""Qwen-VL models that nobody has seen: of random width, depth, heads, patches, windows and DeepStack layers, saved by
transformers' own `save_pretrained`. `reprise embed` and `reprise generate` run them, and the reference judges: vectors of
texts and videos, and the greedy text that follows a picture.

    python tests/parity/unseen_qwen_vl.py target/release/reprise WORDS [--models 20] [--seed 1]

WORDS is a folder with the small models of make_words.py, whose tokenizer is used. Prints a line a model and ends with an
error if a vector differs by more than 1e-4 in a value, or a text differs before its first close choice of a token.
"""

import argparse
import json
import math
import pathlib
import random
import shutil
import subprocess
import tempfile

import numpy as np
import torch
import transformers
from PIL import Image
from safetensors.numpy import load_file, save_file
from transformers import (
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2VLConfig,
    Qwen2VLForConditionalGeneration,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
)

import counted
import qwen_vl
from embedded import LIMIT, TEXTS, difference, embedded
from two_towers import picture

MERGE = 2
# Frames a second of the films; of each second the middle frame is sampled.
PER_SECOND = 5
NEW = 12
# Scores closer than this may swap by rounding; what follows is another text.
CLOSE = 1e-3
QUESTION = "Describe the video in detail."
# Merged tokens of a frame: within the bounds that each embedder was trained with, so that no frame is resized.
TOKENS = dict(gme=(256, 330), qwen3=(128, 180), care=(128, 180))


def decoder(draw, interleaved):
    kv = draw.randint(1, 3)
    head = 4 * draw.randint(2, 8)
    heads = kv * draw.randint(1, 4)
    rows = draw.randint(1, head // 6)
    section = [head // 2 - 2 * rows, rows, rows]
    rope = {"rope_type": "default", "rope_theta": draw.choice([1e4, 1e6, 5e6]), "mrope_section": section}
    text = dict(num_key_value_heads=kv, num_attention_heads=heads, num_hidden_layers=draw.randint(1, 4))
    text |= dict(intermediate_size=draw.randint(20, 200), max_position_embeddings=8192, rms_norm_eps=1e-6)
    if interleaved:
        # Qwen3's heads need not be a part of the width.
        return text | dict(
            hidden_size=4 * draw.randint(4, 24), head_dim=head, rope_parameters=rope | {"mrope_interleaved": True}
        )
    return text | dict(hidden_size=heads * head, rope_parameters=rope)


def tower(draw, patch):
    heads = draw.randint(1, 4)
    shape = dict(depth=draw.randint(1, 4), num_heads=heads, patch_size=patch)
    return shape | dict(spatial_merge_size=MERGE, temporal_patch_size=qwen_vl.TEMPORAL), heads * 4 * draw.randint(2, 8)


def layers_of(draw, depth):
    return sorted(draw.sample(range(depth), draw.randint(1, depth)))


def qwen2(draw, patch):
    text, (vision, width) = decoder(draw, False), tower(draw, patch)
    vision |= dict(embed_dim=width, hidden_size=text["hidden_size"], mlp_ratio=draw.randint(1, 4))
    return Qwen2VLForConditionalGeneration, Qwen2VLConfig, text, vision


def qwen2_5(draw, patch):
    text, (vision, width) = decoder(draw, False), tower(draw, patch)
    vision |= dict(hidden_size=width, out_hidden_size=text["hidden_size"], intermediate_size=draw.randint(10, 100))
    vision |= dict(tokens_per_second=draw.choice([2, 4]), window_size=patch * MERGE * draw.randint(1, 5))
    vision |= dict(fullatt_block_indexes=layers_of(draw, vision["depth"]))
    return Qwen2_5_VLForConditionalGeneration, Qwen2_5_VLConfig, text, vision


def qwen3(draw, patch):
    text, (vision, width) = decoder(draw, True), tower(draw, patch)
    vision |= dict(hidden_size=width, out_hidden_size=text["hidden_size"], intermediate_size=draw.randint(10, 100))
    vision |= dict(num_position_embeddings=draw.randint(3, 9) ** 2)
    # A level is added after the decoder layer of its number.
    levels = min(vision["depth"], text["num_hidden_layers"])
    vision |= dict(deepstack_visual_indexes=sorted(draw.sample(range(vision["depth"]), draw.randint(1, levels))))
    return Qwen3VLForConditionalGeneration, Qwen3VLConfig, text, vision


# (the model, the embedder that it is taken for)
FAMILIES = [(qwen2, "gme"), (qwen3, "qwen3"), (qwen2_5, "care"), (qwen2, "care")]


def write(draw, family, kind, patch, words, folder):
    """A model's folder: an embedder of this kind, with the tokenizer of the small models. The seed of its weights."""
    made, config, text, vision = family(draw, patch)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(words / "tokenizer.json"))
    of = lambda token: tokenizer.convert_tokens_to_ids(token)
    ids = dict(image_token_id=of(qwen_vl.IMAGE), video_token_id=of(qwen_vl.VIDEO))
    ids |= dict(vision_start_token_id=of(qwen_vl.START), vision_end_token_id=of(qwen_vl.END))
    text |= dict(vocab_size=len(tokenizer), bos_token_id=of("<|endoftext|>"), eos_token_id=of("<|im_end|>"))
    config = config(text_config=text, vision_config=vision, tie_word_embeddings=draw.random() < 0.5, **ids)
    model, seed = made(config), draw.randint(0, 999)
    model.generation_config.eos_token_id = of("<|im_end|>")
    model.save_pretrained(folder)
    fill(folder / "model.safetensors", seed)
    shutil.copy(words / "tokenizer.json", folder)
    moments = [round(draw.uniform(0.2, 0.8), 3) for _ in range(6)]
    pixels = dict(patch_size=patch, merge_size=MERGE, temporal_patch_size=qwen_vl.TEMPORAL)
    pixels |= dict(image_mean=moments[:3], image_std=moments[3:], min_pixels=4, max_pixels=1 << 24)
    (folder / "preprocessor_config.json").write_text(json.dumps(pixels))
    name = folder / "config.json"
    name.write_text(json.dumps(json.loads(name.read_text()) | {"embedding": {"kind": kind}}))
    return seed


def fill(file, seed):
    """Gives every tensor of a file weights that keep its part alive."""
    tensors = {name: weight(name, tensor.shape, seed) for name, tensor in load_file(file).items()}
    save_file(tensors, file, metadata={"format": "pt"})


def weight(name, shape, seed):
    """The same bits as in encoders/src/families/qwen_vl/tests/random.rs."""
    noise = counted.noise(seed, name, math.prod(shape)).reshape(shape)
    if len(shape) == 1:
        is_norm = "norm" in name and name.endswith("weight") or "ln_q.weight" in name
        return np.float32(is_norm) + np.float32(0.25) * noise
    if "embed" in name and "patch" not in name:
        return noise
    return noise * (np.float32(2.25) / np.sqrt(np.float32(math.prod(shape[1:]))))


def size(draw, kind, patch):
    """Width and height of a frame, whose merged tokens the embedder takes as they are."""
    least, most = TOKENS[kind]
    rows = draw.randint(3, 20)
    columns = draw.randint(-(-least // rows), max(-(-least // rows), most // rows))
    return columns * patch * MERGE, rows * patch * MERGE


def film(frames, path):
    height, width, _ = frames[0].shape
    command = ["ffmpeg", "-v", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}"]
    command += ["-r", str(PER_SECOND), "-i", "-", "-c:v", "ffv1", "-pix_fmt", "gbrp", str(path)]
    subprocess.run(command, input=b"".join(it.tobytes() for it in frames), check=True)


def written(reference, prompt, frame):
    """The greedy text behind a prompt, up to its first close choice or placeholder, and whether that is all of it."""
    ids, said = reference.tokenizer.encode(prompt, add_special_tokens=False).ids, []
    head = reference.model.get_output_embeddings()
    ends = [reference.tokenizer.token_to_id(it) for it in ("<|im_end|>", "<|endoftext|>")]
    for _ in range(NEW):
        scores = head(reference.state(ids + said, frames=[frame]))
        best, second = scores.topk(2).values.tolist()
        token = int(scores.argmax())
        # The reference takes a written placeholder for a second picture.
        is_placeholder = token in (reference.config.image_token_id, reference.config.video_token_id)
        if best - second < CLOSE or is_placeholder:
            return said, False
        if token in ends:
            return said, True
        said.append(token)
    return said, True


def captioned(reprise, folder, frame):
    """What `reprise generate` writes about a picture."""
    path = folder / "picture.png"
    Image.fromarray(frame).save(path)
    command = [reprise, "generate", "--device", "cpu", "--model", str(folder), "--image", str(path), "--json"]
    command += ["--side", str(min(frame.shape[:2])), "--max-tokens", str(NEW)]
    command += ["--system", qwen_vl.HELPFUL, "--prompt", QUESTION]
    said = subprocess.run(command, capture_output=True, text=True)
    if said.returncode:
        raise SystemExit(f"{folder}: {said.stderr}")
    return json.loads(said.stdout)["text"]


def check_text(reprise, reference, folder, frame):
    """How many tokens of a caption were compared."""
    block = reference.picture_block(frame)
    ids, whole = written(reference, qwen_vl.CHAT.format(system=qwen_vl.HELPFUL, user=block + QUESTION), frame)
    # A letter may be cut in its bytes where the comparison ends.
    expected = reference.tokenizer.decode(ids).rstrip("\ufffd")
    ours = captioned(reprise, folder, frame)
    if not (ours.rstrip("\ufffd") == expected if whole else ours.startswith(expected)):
        raise SystemExit(f"{folder}: wrote {ours!r} instead of {expected!r}")
    return len(ids)


def check(reprise, words, at, seed, place):
    draw = random.Random(seed)
    family, kind = FAMILIES[at % len(FAMILIES)]
    patch = draw.choice([4, 6, 8, 14, 16])
    folder = place / str(at)
    write(draw, family, kind, patch, words, folder)
    reference = qwen_vl.Reference(folder, kind)
    width, height = size(draw, kind, patch)
    frames = [picture(width, height, number) for number in range(PER_SECOND * draw.randint(1, 4))]
    sampled = list(range(PER_SECOND // 2, len(frames), PER_SECOND))
    film(frames, folder / "film.mkv")
    texts = [difference(embedded(reprise, folder, "--text", it), reference.text(it)[None]) for it in TEXTS]
    clip = reference.clip([frames[number] for number in sampled], [number / PER_SECOND for number in sampled])
    # CARE spreads 32 frames over a clip; the others take one a second.
    spread = ["--frames-per-clip", str(len(sampled))] if kind == "care" else []
    video = difference(embedded(reprise, folder, "--video", str(folder / "film.mkv"), *spread), clip[None])
    # One that writes has the positions of its training, whatever GME counts.
    reference.kind = "care"
    tokens = check_text(reprise, reference, writer(folder), frames[0])
    print(f"{family.__name__} as {kind} {seed}: texts {max(texts):.1e}, video {video:.1e}, {tokens} tokens", flush=True)
    shutil.rmtree(folder)
    return max([*texts, video])


def writer(folder):
    """The same model without the mark of an embedder."""
    name = folder / "config.json"
    config = json.loads(name.read_text())
    config.pop("embedding")
    name.write_text(json.dumps(config))
    return folder


def main():
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reprise")
    parser.add_argument("words", type=pathlib.Path)
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    words = given.words / "fixtures" / "qwen2-vl"
    with tempfile.TemporaryDirectory() as place, torch.no_grad():
        seeds = range(given.models)
        worst = max(check(given.reprise, words, at, given.seed + at, pathlib.Path(place)) for at in seeds)
    if worst > LIMIT:
        raise SystemExit(f"a value differs by {worst:.1e}, more than {LIMIT}")


if __name__ == "__main__":
    main()
