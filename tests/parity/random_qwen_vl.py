"""What the reference gives for Qwen-VL models of random shapes, for `make test`: their weights are made again from seeds.

    python tests/parity/random_qwen_vl.py WORDS     # writes tests/parity/data/qwen-vl/random.json

WORDS is a folder with the small models of make_words.py, whose tokenizer is used. The models are those of
unseen_qwen_vl.py.
"""

import json
import pathlib
import random
import sys
import tempfile

import torch
import transformers
from safetensors.numpy import load_file

import qwen_vl
from embedded import TEXTS
from two_towers import picture
from unseen_qwen_vl import FAMILIES, QUESTION, size, write, writer, written

MODELS = 12


def described(at, words, folder):
    draw = random.Random(at + 1)
    family, kind = FAMILIES[at % len(FAMILIES)]
    patch = draw.choice([4, 6, 8, 14, 16])
    seed = write(draw, family, kind, patch, words, folder)
    tensors = {name: list(tensor.shape) for name, tensor in load_file(folder / "model.safetensors").items()}
    config = json.loads((folder / "config.json").read_text())
    preprocessor = json.loads((folder / "preprocessor_config.json").read_text())
    reference = qwen_vl.Reference(folder, kind)
    width, height = size(draw, kind, patch)
    numbers = list(range(draw.randint(1, 4)))
    frames = [picture(width, height, number) for number in numbers]
    texts = [qwen_vl.listed(reference.text(it)) for it in TEXTS[1::2]]
    clip = qwen_vl.listed(reference.clip(frames, [float(number) for number in numbers]))
    taken = numbers[len(numbers) // 2 :][:1] if kind == "gme" else numbers
    composed = reference.composed([frames[it] for it in taken], [float(it) for it in taken], qwen_vl.CHANGE)
    # One that writes has the positions of its training, whatever GME counts.
    reference.kind = "care"
    writer(folder)
    prompt = qwen_vl.CHAT.format(system=qwen_vl.HELPFUL, user=reference.picture_block(frames[0]) + QUESTION)
    ids, is_whole = written(reference, prompt, frames[0])
    # A letter may be cut in its bytes where the comparison ends.
    caption = dict(text=reference.tokenizer.decode(ids).rstrip("\ufffd"), tokens=len(ids), is_whole=is_whole)
    frame = dict(width=width, height=height, count=len(frames))
    return dict(
        seed=seed, config=config, preprocessor=preprocessor, tensors=tensors, frame=frame, texts=texts, clip=clip,
        composed=qwen_vl.listed(composed), caption=caption,
    )  # fmt: skip


def main():
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    words = pathlib.Path(sys.argv[1]) / "fixtures" / "qwen2-vl"
    with tempfile.TemporaryDirectory() as place, torch.no_grad():
        models = [described(at, words, pathlib.Path(place) / str(at)) for at in range(MODELS)]
    out = pathlib.Path(__file__).parent / "data/qwen-vl/random.json"
    reference = f"transformers {transformers.__version__}, torch {torch.__version__}"
    given = dict(reference=reference, texts=TEXTS[1::2], change=qwen_vl.CHANGE, system=qwen_vl.HELPFUL, question=QUESTION, models=models)
    out.write_text(json.dumps(given, ensure_ascii=False))


if __name__ == "__main__":
    main()
