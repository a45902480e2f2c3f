"""BLIP-CoVR's released model (lucas-ventura/CoVR, commit f335ebc3ddf1cb26106a3aaf374cf15901c59986, MIT) on the small
model of data/blip-covr: texts, pictures and composed queries.

    python covr.py CHECKOUT

hydra, lightning and fairscale are left out: vectors don't need them. Modification texts are cleaned by the released
`pre_caption`, and cut into tokens by the fixture's vocabulary.
"""

import types

import torch
from tokenizers import Tokenizer

import blips
import checkout


def main():
    folder, _ = checkout.folders(1)
    source = folder / "src"
    checkout.packages(src=source, src__model=source / "model", src__model__blip=source / "model/blip")
    checkout.packages(src__tools=source / "tools", src__data=source / "data")
    checkout.stubs("fairscale", "fairscale.nn", "fairscale.nn.checkpoint", "hydra", "hydra.utils")
    checkout.stubs("fairscale.nn.checkpoint.checkpoint_activations", "lightning_utilities")
    checkout.stubs("lightning_utilities.core", "lightning_utilities.core.rank_zero")
    module, vit = checkout.take("src.model.blip.blip_cir"), checkout.take("src.model.blip.vit")
    cleaned = checkout.take("src.data.utils").pre_caption

    stored = checkout.expected(blips.FIXTURE, "composed.json")
    rows = {it["text"]: it["ids"] for it in stored["modifications"]}
    tokenizer = Tokenizer.from_file(str(checkout.DATA / blips.FIXTURE / "tokenizer.json"))
    tokenizer = checkout.two_towers.plain(tokenizer)
    for text, ids in rows.items():
        assert checkout.two_towers.cut(tokenizer.encode(cleaned(text, 30)).ids, 40) == ids, text

    build = lambda path, dim: module.BLIPCir(loss=lambda *_: 0, med_config=path, embed_dim=dim)
    model = blips.build(module, vit, rows, build)
    state = {name: it for name, it in blips.weights().items() if not name.startswith("itm_head.")}
    checkout.fill(model, state, may_lack=["position_ids"])
    blips.compare(model)

    # The released loss sees unit vectors; the fixture has what the projection gives.
    found = []
    model.text_proj.register_forward_hook(lambda _module, _given, vectors: found.append(vectors))
    side = checkout.expected(blips.FIXTURE, "config.json")["vision_config"]["image_size"]
    seen = torch.stack([checkout.pixels(kinds[len(kinds) // 2], side) for kinds in stored["clips"]])
    with torch.no_grad():
        for text in rows:
            batch = dict(ref_img=seen, edit=[text] * len(seen), tar_img_feat=torch.ones(1, 1))
            model(batch, types.SimpleNamespace(world_size=1))
    checkout.tell("composed queries", checkout.off(torch.stack(found), stored["queries"]))


if __name__ == "__main__":
    main()
