"""Writes the reference that the encoders are tested against: small seeded models of every family in the layouts that
they are published in, the vectors that the reference implementation gives for them, the pixels that its image
processor makes, and the ids of small tokenizers trained here on sentences of our own.

    python -m venv venv && venv/bin/pip install -r requirements.txt && venv/bin/python make.py [PART ...]

Without a part, all. Everything is seeded: running it again writes the same weights. Only the trainers of WordPiece and
unigram vocabularies are not reproducible, so these tokenizers, their ids and vectors may come out as others.

The parts languagebind, videoclip-xl and covr get their vectors from released modules: afterwards run language_bind.py,
video_clip_xl.py and aim.py of released/ with --write (docs/encoders.md).
"""

import pathlib
import shutil
import sys

import blip
import blip2
import clip
import covr
import language_bind
import open_clip_layout
import open_clip_siglip
import openai_archive
import sentence
import siglip
import silero
import video_clip_xl
import whisper
from two_towers import picture
from vocabularies import byte_level, word_piece

HERE = pathlib.Path(__file__).parent
DATA = HERE / "data"
TINY = HERE.parent.parent / "encoders" / "src" / "models" / "tiny_tokenizer.json"

# Part -> its folders, what writes them.
PARTS = {
    "clip": (["legacy", "wordpiece", "unigram"], lambda: clip.write_all(DATA)),
    "siglip": (["siglip"], lambda: siglip.write_all(DATA)),
    "open-clip": (["open-clip", "long-clip"], lambda: open_clip_layout.write_all(DATA)),
    "open-clip-siglip": (["open-clip-siglip"], lambda: open_clip_siglip.write_all(DATA)),
    "openai": (["openai"], lambda: openai_archive.write_all(DATA)),
    "blip": (["blip"], lambda: blip.contrastive(DATA / "blip")),
    "blip-covr": (["blip-covr"], lambda: blip.covr(DATA / "blip-covr")),
    "blip-2": (["blip-2"], lambda: blip2.write_all(DATA)),
    "languagebind": (["languagebind"], lambda: language_bind.write_all(DATA)),
    "videoclip-xl": (["videoclip-xl"], lambda: video_clip_xl.write_all(DATA)),
    "covr": (["covr"], lambda: covr.write_all(DATA, picture, word_piece, byte_level)),
    "sentence": (["sentence"], lambda: sentence.write_all(DATA, word_piece)),
    "whisper": (["whisper", "whisper-en"], lambda: whisper.write_all(DATA)),
    "silero": (["silero"], lambda: silero.write(DATA / "silero")),
    "tiny": ([], lambda: TINY.write_text(byte_level(1000, specials_last=False).to_str())),
}


def main():
    for part in sys.argv[1:] or PARTS:
        folders, write = PARTS[part]
        for folder in folders:
            shutil.rmtree(DATA / folder, ignore_errors=True)
        write()
    size = sum(path.stat().st_size for path in DATA.rglob("*") if path.is_file())
    print(f"{size} bytes")


if __name__ == "__main__":
    main()
