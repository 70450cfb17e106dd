"""Read ten handwritten digits, shown as characters.

Copy the files that `emberlet micro build` wrote for the board, and digits_to_read.py, beside this file.
"""

import time

import digits
from digits_to_read import IMAGES

INK = " .:-=+*#%"


def read(image):
    """(the digit in an image of 64 bytes from 0 to 16, microseconds it took)."""
    digits.put([v / 16 for v in image])
    start = time.ticks_us()
    digits.run()
    return digits.best(), time.ticks_diff(time.ticks_us(), start)


def main():
    for image in IMAGES:
        for row in range(8):
            print("".join(INK[v // 2] * 2 for v in image[8 * row : 8 * row + 8]))
        digit, spent = read(image)
        print(f"a {digit}, in {spent} us\n")


if __name__ == "__main__":
    main()
