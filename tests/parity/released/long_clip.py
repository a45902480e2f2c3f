"""Long-CLIP's released model (beichenzbc/Long-CLIP, commit 3966af9ae9331666309a22128468b734db4672a7, Apache 2.0) on
the small model of data/long-clip/original, which has the released names and both tables of positions.

    python long_clip.py CHECKOUT

The released code gives a head 64 values; the tower of pictures gets the fixture's heads here.
"""

import checkout


def main():
    folder, _ = checkout.folders(1)
    checkout.packages(model=folder / "model")
    module = checkout.take("model.model_longclip")
    described = checkout.expected("long-clip/original", "config.json")
    text, vision = described["text_config"], described["vision_config"]
    tower = module.VisionTransformer
    module.VisionTransformer = lambda **given: tower(**given | {"heads": vision["num_attention_heads"]})
    model = module.CLIP(
        embed_dim=described["projection_dim"],
        image_resolution=vision["image_size"],
        vision_layers=vision["num_hidden_layers"],
        vision_width=vision["hidden_size"],
        vision_patch_size=vision["patch_size"],
        context_length=text["max_position_embeddings"],
        vocab_size=text["vocab_size"],
        transformer_width=text["hidden_size"],
        transformer_heads=text["num_attention_heads"],
        transformer_layers=text["num_hidden_layers"],
        load_from_clip=False,
    )
    checkout.fill(model, checkout.tensors(checkout.DATA / "long-clip/original/model.pt"))
    long = lambda rows: model.encode_text(checkout.padded(rows, 248)[0])
    checkout.two_tower_fixture("long-clip/original", long, model.encode_image)


if __name__ == "__main__":
    main()
