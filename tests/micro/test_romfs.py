"""A ROMFS image holds each file at a multiple of 16 bytes, whatever their sizes and names."""

from __future__ import annotations

import numpy as np
import pytest
from emberlet.errors import FormatError
from emberlet.micro.builder.romfs import ALIGNMENT, check, romfs_image


def files_at_random(seed: int) -> dict[str, bytes]:
    rng = np.random.default_rng(seed)
    sizes = rng.choice([1, 15, 16, 17, 100, 127, 128, 300, 5000, 17000], int(rng.integers(1, 5)))
    return {f"{'n' * int(rng.integers(1, 30))}{k}.mpy": rng.bytes(int(n)) for k, n in enumerate(sizes)}


@pytest.mark.parametrize("start", range(0, 80, 20))
def test_files_are_aligned_and_whole(start: int) -> None:
    for seed in range(start, start + 20):
        files = files_at_random(seed)
        image = romfs_image(files)
        places = [image.find(name.encode() + b"\x02") for name in files]
        assert places == sorted(places) and places[0] > 0
        for at, data in zip(places, files.values(), strict=True):
            found = image.find(data, at)
            assert found % ALIGNMENT == 0, seed
        assert len(image) < sum(map(len, files.values())) + 80 * len(files) + 16
        assert image[:3] == bytes([0xD2, 0xCD, 0x31])


def test_an_empty_file_is_in_the_image() -> None:
    files = {"empty.py": b"", "full.py": bytes(range(40))}
    image = romfs_image(files)
    assert b"empty.py" in image and image.find(bytes(range(40))) % ALIGNMENT == 0


def test_a_file_elsewhere_is_noticed() -> None:
    data = bytes(range(100, 140))
    image = romfs_image({"a.py": data})
    check(image, {"a.py": data})
    with pytest.raises(FormatError, match=r"a\.py lies at byte \d+ of the ROMFS image, expected a multiple of 16"):
        check(b"\0" + image, {"a.py": data})
    with pytest.raises(FormatError, match=r"b\.py lies at byte"):
        check(image, {"b.py": data})
    with pytest.raises(FormatError, match=r"a\.py.*byte -1"):
        check(image, {"a.py": data[::-1]})
