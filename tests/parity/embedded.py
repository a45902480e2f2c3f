"""What `reprise embed` gives for models that nobody has seen, beside the reference's vectors."""

import json
import subprocess

import numpy as np

LIMIT = 1e-4
# All under the least limit: longer ones are cut there by the references, and into windows here.
TEXTS = ["frog", "Two and a HALF turns!", "a brown dog runs past the red car", "it's (only) 12.5 metres: Ünïcödé 水"]


def embedded(reprise, folder, *of):
    command = [reprise, "embed", "--device", "cpu", "--model", str(folder), "--json", *of]
    said = subprocess.run(command, capture_output=True, text=True)
    if said.returncode:
        raise SystemExit(f"{folder}: {said.stderr}")
    return np.array(json.loads(said.stdout)["vector"])


def difference(ours, reference):
    reference = reference.detach().numpy()[0]
    return float(np.abs(ours - reference / np.linalg.norm(reference)).max())
