"""LanguageBind's released video model (PKU-YuanGroup/LanguageBind, commit 7070c53375661cdb235801176b564b45f96f0648,
MIT) on the small model of data/languagebind.

    python language_bind.py CHECKOUT [--write]

`languagebind/video/modeling_video.py` is imported alone, and peft, which serves LoRA only, is left out. With
`--write` the vectors of expected.json become those of the released module.
"""

import torch

import checkout

REFERENCE = "LanguageBind's released module, 7070c53"


def main():
    folder, write = checkout.folders(1)
    checkout.packages(languagebind=folder / "languagebind", languagebind__video=folder / "languagebind/video")
    checkout.stubs("peft")
    configuration = checkout.take("languagebind.video.configuration_video")
    modeling = checkout.take("languagebind.video.modeling_video")

    described = checkout.expected("languagebind", "config.json")
    config = configuration.LanguageBindVideoConfig(
        text_config=described["text_config"],
        vision_config=described["vision_config"],
        projection_dim=described["projection_dim"],
    )
    model = modeling.LanguageBindVideo(config)
    state = checkout.tensors(checkout.DATA / "languagebind/model.safetensors")
    checkout.fill(model, state, may_lack=["position_ids"])

    stored = checkout.expected("languagebind", "expected.json")
    rows = [it["ids"] for it in stored["texts"]]
    frames, side = described["vision_config"]["num_frames"], described["vision_config"]["image_size"]
    seen = [[kind for kind in kinds for _ in range(frames // len(kinds))] for kinds in stored["clips"]]
    clips = [torch.stack([checkout.pixels(kind, side) for kind in kinds], dim=1) for kinds in seen]
    with torch.no_grad():
        texts = torch.cat([model.get_text_features(input_ids=torch.tensor([row])) for row in rows])
        ids, mask = checkout.padded(rows, described["text_config"]["max_position_embeddings"])
        checkout.tell("texts, padded", checkout.off(model.get_text_features(input_ids=ids, attention_mask=mask), texts))
        videos = model.get_image_features(torch.stack(clips))
    checkout.tell("texts", checkout.off(texts, stored["text_vectors"]))
    checkout.tell("clips", checkout.off(videos, stored["clip_vectors"]))
    if write:
        stored["reference"] = REFERENCE
        stored["text_vectors"] = checkout.two_towers.rounded(texts.numpy())
        stored["clip_vectors"] = checkout.two_towers.rounded(videos.numpy())
        checkout.store(stored, "languagebind", "expected.json")


if __name__ == "__main__":
    main()
