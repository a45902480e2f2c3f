"""The reference of OpenAI's own files: a small CLIP in the types that OpenAI released it in (half floats but for norms,
embeddings and positions), saved as a TorchScript archive, and read by open_clip's loader for such files.

Called by make.py; writes one folder.
"""

import open_clip
import torch
from open_clip.model import CLIP, convert_weights_to_lp
from open_clip.openai import load_openai_model
from open_clip.transform import PreprocessCfg, image_transform_v2
from torch import nn

import two_towers
from vocabularies import END, byte_level

SIDE = 32


class Module(nn.Module):
    """A module that holds others and tensors, and computes nothing."""


def tree(state):
    """The tensors of a state_dict as modules inside each other."""
    root = Module()
    for name, tensor in state.items():
        *path, last = name.split(".")
        module = root
        for part in path:
            if part not in module._modules:
                module.add_module(part, Module())
            module = module._modules[part]
        module.register_parameter(last, nn.Parameter(tensor))
    return root


def write_all(data):
    folder = data / "openai"
    folder.mkdir(parents=True)
    tokenizer = byte_level(400, specials_last=True)
    # Heads have 64 values: one head, and two.
    vision = dict(image_size=SIDE, patch_size=8, width=64, layers=2)
    text = dict(context_length=20, vocab_size=tokenizer.get_vocab_size(), width=128, heads=2, layers=1)
    model = CLIP(embed_dim=16, vision_cfg=vision, text_cfg=text, quick_gelu=True)
    two_towers.seeded(model, 330, half=True)
    with torch.no_grad():
        # Widths of such models need smaller numbers than narrow ones.
        for name, weight in model.named_parameters():
            weight.mul_(0.5 if weight.dim() > 1 else 1.0)
    convert_weights_to_lp(model)
    saved = tree(dict(model.named_parameters()))
    for name, number in (("input_resolution", SIDE), ("context_length", 20), ("vocab_size", text["vocab_size"])):
        saved.register_buffer(name, torch.tensor(number))
    path = folder / "tiny-32.pt"
    torch.jit.save(torch.jit.script(saved), path)
    (folder / "tokenizer.json").write_text(tokenizer.to_str())
    reference = load_openai_model(str(path), precision="fp32", device="cpu")
    given = PreprocessCfg(size=SIDE)
    plain, transform = two_towers.plain(tokenizer), image_transform_v2(given, is_train=False)

    def texts(ids, mask):
        return reference.encode_text(torch.nn.functional.pad(ids, (0, 20 - ids.shape[1])))

    two_towers.write(
        folder,
        two_towers.Model(
            reference=f"open_clip_torch {open_clip.__version__}",
            ids=lambda it: two_towers.cut(plain.encode(it).ids, 20),
            limit=20,
            pads=[0, tokenizer.token_to_id(END)],
            always_padded=False,
            text=texts,
            image=reference.encode_image,
            pixels=transform,
            mean=given.mean,
            std=given.std,
            exact=SIDE,
        ),
    )
