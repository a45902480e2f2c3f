"""The modules that VideoCLIP-XL's are made from, on the small model of data/videoclip-xl: ViCLIP's released tower of
videos (OpenGVLab/InternVideo, commit 3965eef16e2dadd0ea6c8d0cc29c8a3039df52e3, Apache 2.0) and Long-CLIP's released
tower of texts (beichenzbc/Long-CLIP, commit 3966af9ae9331666309a22128468b734db4672a7, Apache 2.0).

    python vi_clip.py INTERNVIDEO LONG_CLIP

Towers get the fixture's sizes, and MLPs its middle.
"""

import torch

import checkout

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
FRAMES, SIDE, PATCH = 4, 32, 8


def main():
    internvideo, long_clip, _ = checkout.folders(2)
    checkout.packages(viclip=internvideo / "Data/InternVid/viclip", model=long_clip / "model")
    towers, words = checkout.take("viclip.viclip_vision"), checkout.take("model.model_longclip")
    state = checkout.tensors(checkout.DATA / "videoclip-xl/pytorch_model.bin")
    vision, text = checkout.under(state, "vision_model.vision_encoder."), checkout.under(state, "text_model.")

    inner, width = vision["transformer.resblocks.0.mlp.c_fc.weight"].shape
    dim = vision["proj"].shape[1]
    tower = towers.VisionTransformer(SIDE, PATCH, width, 2, width // 64, dim, num_frames=FRAMES)
    checkout.middles(tower.transformer.resblocks, inner)
    checkout.fill(tower, vision)
    inner, width = text["transformer.resblocks.0.mlp.c_fc.weight"].shape
    vocabulary = text["token_embedding.weight"].shape[0]
    model = words.CLIP(dim, SIDE, 1, 64, PATCH, 248, vocabulary, width, width // 64, 2, load_from_clip=False)
    checkout.middles(model.transformer.resblocks, inner)
    checkout.fill(model, text, may_lack=["visual."])

    stored = checkout.expected("videoclip-xl", "expected.json")
    seen = [[kind for kind in kinds for _ in range(FRAMES // len(kinds))] for kinds in stored["clips"]]
    # (clips, 3, frames, side, side).
    clips = [torch.stack([checkout.pixels(kind, SIDE, MEAN, STD) for kind in kinds], dim=1) for kinds in seen]
    with torch.no_grad():
        texts = model.encode_text(checkout.padded([it["ids"] for it in stored["texts"]], 248)[0])
        checkout.tell("texts", checkout.off(texts, stored["text_vectors"]))
        checkout.tell("clips", checkout.off(tower(torch.stack(clips)), stored["clip_vectors"]))


if __name__ == "__main__":
    main()
