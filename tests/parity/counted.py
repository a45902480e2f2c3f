"""Weights that a test makes again from a seed and the tensors' names: the same bits here and in Rust, so that no file has
to hold them."""

import numpy as np

STEP = np.uint64(0x9E3779B97F4A7C15)


def mixed(x):
    """splitmix64's mixing (Steele, Lea, Flood 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def named(name):
    """64-bit FNV-1a."""
    state = 0xCBF29CE484222325
    for byte in name.encode():
        state = (state ^ byte) * 0x100000001B3 % (1 << 64)
    return state


def noise(seed, name, count):
    """`count` values between -1 and 1, f32."""
    start = np.uint64((seed * 0x9E3779B97F4A7C15 + named(name)) % (1 << 64))
    with np.errstate(over="ignore"):
        drawn = mixed(start + np.arange(1, count + 1, dtype=np.uint64) * STEP)
    # 24 bits: every value is exact in f32.
    return (drawn >> np.uint64(40)).astype(np.float32) / np.float32(1 << 23) - np.float32(1)
