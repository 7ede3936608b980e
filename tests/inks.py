"""A colour profile for tests."""

import numpy as np


def cmyk_profile() -> bytes:
    """A small printer profile: white paper, and inks that reduce the lightness by a table."""
    lightness = [
        100 * (1 - 0.8 * black) * (1 - 0.3 * (cyan + magenta + yellow) / 3)
        for cyan, magenta, yellow, black in np.ndindex(2, 2, 2, 2)
    ]
    corners = b"".join(bytes([round(2.55 * each), 128, 128]) for each in lightness)
    line = bytes(range(256))
    matrix = b"".join(round(65536 * value).to_bytes(4, "big") for value in np.eye(3).ravel())
    table = b"mft1\0\0\0\0" + bytes([4, 3, 2, 0]) + matrix + 4 * line + corners + 3 * line
    head = bytearray(128)
    head[0:4] = (128 + 16 + len(table)).to_bytes(4, "big")
    head[8:24] = b"\x02\x10\0\0prtrCMYKLab "
    head[36:40] = b"acsp"
    head[68:80] = bytes.fromhex("0000f6d6000100000000d32d")  # The white point D50.
    return (
        bytes(head)
        + (1).to_bytes(4, "big")
        + b"A2B0"
        + (144).to_bytes(4, "big")
        + len(table).to_bytes(4, "big")
        + table
    )
