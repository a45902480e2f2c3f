"""BLIP's released retrieval model (salesforce/BLIP, commit 056a169437371659074aa2732649d5de3bffb4a8, BSD 3-Clause) on
the small model of data/blip-covr, whose weights have the released names: texts and pictures.

    python blip.py CHECKOUT

fairscale, which serves training only, is left out.
"""

import checkout
import blips


def main():
    folder, _ = checkout.folders(1)
    checkout.packages(models=folder / "models")
    checkout.stubs("fairscale", "fairscale.nn", "fairscale.nn.checkpoint")
    checkout.stubs("fairscale.nn.checkpoint.checkpoint_activations")
    module, vit = checkout.take("models.blip_retrieval"), checkout.take("models.vit")
    build = lambda path, dim: module.BLIP_Retrieval(med_config=path, embed_dim=dim, queue_size=8)
    model = blips.build(module, vit, {}, build)
    # The copies and queues of training are not in the fixture.
    checkout.fill(model, blips.weights(), may_lack=["_m.", "queue", "temp", "position_ids"])
    blips.compare(model)


if __name__ == "__main__":
    main()
