"""Runs on MicroPython's Unix port: deploys a model again and again to a file system in memory, and cuts the power at
each of many writes. Arguments: a folder with `deployment.json` and the files of both models."""

# mypy: ignore-errors

import json
import os
import sys

import vfs

BLOCK = 4096
ERASED = b"\xff" * BLOCK


class Flash:
    """A block device that loses power at a write or an erasure, in the middle of its bytes: what comes later is lost,
    while the program goes on or fails as it likes."""

    def __init__(self, data, left=1 << 30, eighths=0):
        """left: changes until the cut; eighths: how much of that change is still made."""
        self.data, self.left, self.eighths, self.done = data, left, eighths, 0

    def change(self, at, data):
        self.done += 1
        self.left -= 1
        if self.left >= 0:
            for i in range(len(data) if self.left else len(data) * self.eighths // 8):
                self.data[at + i] = data[i]  # allocates nothing: it also runs while memory is collected

    def readblocks(self, block, buf, offset=0):
        at = block * BLOCK + offset
        if self.left > 0:
            buf[:] = self.data[at : at + len(buf)]

    def writeblocks(self, block, buf, offset=None):
        if offset is None:
            self.ioctl(6, block)
            offset = 0
        self.change(block * BLOCK + offset, buf)

    def ioctl(self, request, argument):
        if request == 4:
            return len(self.data) // BLOCK
        if request == 5:
            return BLOCK
        if request == 6:
            self.change(argument * BLOCK, ERASED)
            return 0


def mounted(flash):
    vfs.umount("/")
    vfs.mount(vfs.VfsLfs2(flash), "/")


def copied(files, folder):
    for name, data in files:
        with open(folder + "/" + name, "wb") as f:
            for k in range(0, len(data), 256):
                f.write(data[k : k + 256])


def deployed(new, job):
    exec(job["prepare"], {})
    copied(new, job["draft"])
    exec(job["publish"], {})


def begun(old, job):
    """Put the first model on the file system: deployed too if `old` holds the scripts, else only copied."""
    if "old" in job:
        exec(job["old"]["prepare"], {})
        copied(old, job["draft"])
        exec(job["old"]["publish"], {})
    else:
        copied(old, "/")


def answer(job):
    """What the model on the file system answers."""
    for name in list(sys.modules):
        if name.startswith("net"):
            del sys.modules[name]
    sys.path[:] = [""]
    os.chdir("/")
    import net

    return list(net.predict(job["numbers"]))


def main():
    folder = sys.argv[1]
    with open(folder + "/deployment.json", encoding="utf-8") as f:
        job = json.load(f)
    models = []
    for which in ("old", "new"):
        files = []
        for name in job["files"]:
            with open(folder + "/" + which + "/" + name, "rb") as f:
                files.append((name, f.read()))
        models.append(files)
    old, new = models
    flash = Flash(bytearray(b"\xff" * 48 * BLOCK))
    vfs.VfsLfs2.mkfs(flash)
    mounted(flash)
    begun(old, job)
    first, before = answer(job), bytes(flash.data)
    flash = Flash(bytearray(before))
    mounted(flash)
    exec(job["prepare"], {})
    copied(new, job["draft"])
    copying = flash.done
    exec(job["publish"], {})
    last, total = answer(job), flash.done
    assert first != last
    places = [(place, eighths) for place in range(copying - 1, total + 1) for eighths in (0, 3, 8)]
    rest = job["cuts"] - len(places)
    places += [(1 + k * copying // rest, k % 9) for k in range(rest)]
    seen = {"old": 0, "new": 0, "cuts": 0, "other": []}
    for place in places:
        flash = Flash(bytearray(before), *place)
        mounted(flash)
        try:
            deployed(new, job)
            answer(job)  # the first start may write, too
        except Exception:  # of a file system that loses its power
            pass
        seen["cuts"] += flash.left <= 0
        found = []
        for _ in range(2):  # the first start may finish what was interrupted
            mounted(Flash(flash.data))
            try:
                found.append(answer(job))
            except Exception as error:
                found.append(repr(error))
        if found == [first, first]:
            seen["old"] += 1
        elif found == [last, last]:
            seen["new"] += 1
        else:
            seen["other"].append((place, found))
        mounted(Flash(flash.data))
        deployed(new, job)  # and the next deployment is as any other
        if answer(job) != last:
            seen["other"].append((place, "the next deployment fails"))
    print()
    print(json.dumps(seen))


main()
