"""VideoCLIP-XL's released modules on the small model of data/videoclip-xl.

    python video_clip_xl.py CHECKOUT [--write]

They are published beside the weights (alibaba-pai/VideoCLIP-XL on Hugging Face), in a folder `utils`. Compared was a
copy of that folder: github.com/Saifgharbii/VideoCLIP-XL, commit a04c7e010d7d21fbfe6d43b5c246230599e4ee48, which
states no licence. Its vision tower is that of ViCLIP (OpenGVLab/InternVideo, Apache 2.0), its text tower that of
Long-CLIP (beichenzbc/Long-CLIP, Apache 2.0).

The modules build towers of fixed sizes. Here they get the fixture's: another builder of the vision tower, and MLPs of
another middle. `utils/vision_encoder/__init__.py`, which wants OpenCV, is not run. With `--write` the vectors of
expected.json become those of the released modules.
"""

import torch

import checkout

REFERENCE = "VideoCLIP-XL's released modules, a copy at a04c7e0"
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
FRAMES, SIDE, PATCH = 4, 32, 8


def main():
    folder, write = checkout.folders(1)
    parts = {f"utils__{part}": folder / "utils" / part for part in ("vision_encoder", "text_encoder")}
    checkout.packages(utils=folder / "utils", **parts)
    towers = checkout.take("utils.vision_encoder.clip_vision")
    pictures = checkout.take("utils.vision_encoder.model_vision_encoder")
    words = checkout.take("utils.text_encoder.model_text_encoder")

    state = checkout.tensors(checkout.DATA / "videoclip-xl/pytorch_model.bin")
    vision, text = (checkout.under(state, f"{part}_model.") for part in ("vision", "text"))
    inner, width = vision["vision_encoder.transformer.resblocks.0.mlp.c_fc.weight"].shape
    dim = vision["vision_encoder.proj"].shape[1]

    def tiny(**_):
        tower = towers.VisionTransformer(SIDE, PATCH, width, 2, width // 64, dim, num_frames=FRAMES)
        checkout.middles(tower.transformer.resblocks, inner)
        return tower

    pictures.clip_joint_l14 = tiny
    vision_model = checkout.fill(pictures.VisionEncoder(), vision)
    inner, width = text["transformer.resblocks.0.mlp.c_fc.weight"].shape
    vocabulary = text["token_embedding.weight"].shape[0]
    text_model = words.CLIP(dim, SIDE, 1, 64, PATCH, 248, vocabulary, width, width // 64, 2, load_from_clip=False)
    checkout.middles(text_model.transformer.resblocks, inner)
    checkout.fill(text_model, text)

    stored = checkout.expected("videoclip-xl", "expected.json")
    seen = [[kind for kind in kinds for _ in range(FRAMES // len(kinds))] for kinds in stored["clips"]]
    clips = [torch.stack([checkout.pixels(kind, SIDE, MEAN, STD) for kind in kinds]) for kinds in seen]
    with torch.no_grad():
        texts = text_model.encode_text(checkout.padded([it["ids"] for it in stored["texts"]], 248)[0])
        videos = vision_model.get_vid_features(torch.stack(clips))
    checkout.tell("texts", checkout.off(texts, stored["text_vectors"]))
    checkout.tell("clips", checkout.off(videos, stored["clip_vectors"]))
    if write:
        stored["reference"] = REFERENCE
        stored["text_vectors"] = checkout.two_towers.rounded(texts.numpy())
        stored["clip_vectors"] = checkout.two_towers.rounded(videos.numpy())
        checkout.store(stored, "videoclip-xl", "expected.json")


if __name__ == "__main__":
    main()
