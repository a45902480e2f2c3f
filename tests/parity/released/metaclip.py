"""MetaCLIP's released model (facebookresearch/MetaCLIP, commit f47f7841f6a91cc5676729a3d125519393d87d1e, CC BY-NC
4.0) on the small model of data/open-clip/clip.

    python metaclip.py CHECKOUT
"""

import checkout


def main():
    folder, _ = checkout.folders(1)
    checkout.packages(src=folder / "src", src__mini_clip=folder / "src/mini_clip")
    config = checkout.expected("open-clip/clip", "open_clip_config.json")["model_cfg"]
    model = checkout.take("src.mini_clip.model").CLIP(**config)
    checkout.fill(model, checkout.tensors(checkout.DATA / "open-clip/clip/open_clip_pytorch_model.bin"))
    texts = lambda rows: model.encode_text(checkout.padded(rows, config["text_cfg"]["context_length"])[0])
    checkout.two_tower_fixture("open-clip/clip", texts, model.encode_image)


if __name__ == "__main__":
    main()
