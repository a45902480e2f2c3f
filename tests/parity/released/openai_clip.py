"""CLIP's released model (openai/CLIP, commit d05afc436d78f1c48dc0dbf8e5980a9d471f35f6, MIT) on the small TorchScript
archive of data/openai, whose sizes it finds as for its own files.

    python openai_clip.py CHECKOUT
"""

import torch

import checkout


def main():
    folder, _ = checkout.folders(1)
    checkout.packages(clip=folder / "clip")
    archive = torch.jit.load(checkout.DATA / "openai/tiny-32.pt", map_location="cpu")
    model = checkout.take("clip.model").build_model(dict(archive.state_dict())).float()
    texts = lambda rows: model.encode_text(checkout.padded(rows, model.context_length)[0])
    checkout.two_tower_fixture("openai", texts, model.encode_image)


if __name__ == "__main__":
    main()
