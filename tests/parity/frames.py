"""Pixels that the references' preprocessing makes of frames of real videos, at some places: no picture is kept.

    python tests/parity/frames.py FOLDER_OF_TEST_DATA

Writes data/frames.json.
"""

import json
import pathlib
import subprocess
import sys

import numpy as np
import open_clip
import transformers
from open_clip.transform import PreprocessCfg, image_transform_v2
from PIL import Image
from transformers.models.blip.image_processing_pil_blip import BlipImageProcessorPil
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

VIDEOS = ["sam2_01_dog", "mdn_frog", "intel_car-detection", "skv_bigbuckbunny"]
PLACES = 90
TRANSFORMERS, OPEN_CLIP = f"transformers {transformers.__version__}", f"open_clip_torch {open_clip.__version__}"


def first_frame(path):
    """Whole, in RGB, by the filters that reprise decodes with."""
    scaled = "scale=flags=bicubic+accurate_rnd+full_chroma_int,format=rgb24"
    command = ["ffmpeg", "-v", "error", "-i", str(path), "-frames:v", "1", "-vf", scaled, "-f", "image2pipe"]
    command += ["-c:v", "ppm", "-"]
    ppm = subprocess.run(command, check=True, capture_output=True).stdout
    _, size, _, pixels = ppm.split(b"\n", 3)
    width, height = map(int, size.split())
    return Image.fromarray(np.frombuffer(pixels, np.uint8).reshape(height, width, 3))


def families():
    """Name, kind of configuration, configuration, reference, and what makes pixels of a picture."""
    for name, kind, processor in [
        ("CLIP", "clip", CLIPImageProcessorPil()),
        ("SigLIP", "siglip", SiglipImageProcessorPil()),
        ("SigLIP 2", "siglip", SiglipImageProcessorPil(resample=2, size={"height": 256, "width": 256})),
        ("BLIP", "blip", BlipImageProcessorPil()),
    ]:
        pixels = lambda it, processor=processor: processor(it, return_tensors="np")["pixel_values"][0]
        yield name, kind, json.loads(processor.to_json_string()), TRANSFORMERS, pixels
    half = dict(mean=[0.5] * 3, std=[0.5] * 3)
    for name, config in [
        ("OpenCLIP, cropped", dict(interpolation="bicubic", resize_mode="shortest")),
        ("OpenCLIP, squashed", dict(interpolation="bilinear", resize_mode="squash") | half),
    ]:
        transform = image_transform_v2(PreprocessCfg(size=224, **config), is_train=False)
        yield name, "open_clip", config | {"size": 224}, OPEN_CLIP, lambda it, transform=transform: transform(it).numpy()


def main():
    folder, draw = pathlib.Path(sys.argv[1]) / "video" / "clips", np.random.default_rng(1)
    cases = []
    for video in VIDEOS:
        frame = first_frame(folder / f"{video}.mp4")
        for name, kind, config, reference, pixels in families():
            values = np.ascontiguousarray(pixels(frame), dtype=np.float32).reshape(-1)
            places = np.sort(draw.choice(values.size, PLACES, replace=False))
            cases.append(
                {
                    "video": video,
                    "family": name,
                    "kind": kind,
                    "config": config,
                    "reference": reference,
                    "values": values.size,
                    "mean": float(values.mean(dtype=np.float64)),
                    "places": places.tolist(),
                    "pixels": [float(f"{value:.8g}") for value in values[places]],
                }
            )
    target = pathlib.Path(__file__).parent / "data" / "frames.json"
    target.write_text(json.dumps(cases) + "\n")


if __name__ == "__main__":
    main()
