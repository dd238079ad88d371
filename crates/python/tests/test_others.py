"""Programs in Rust and C on the same segments, and the examples."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from lockstead import shared
from support import LONG, ProcessTest

PACKAGE = pathlib.Path(__file__).parent.parent
ROOT = PACKAGE.parent.parent
PLACES = [PACKAGE / "target", ROOT / "target" / "python"]
SHOPS = [place / kind / "examples" / "shop" for place in PLACES for kind in ("release", "debug")]
SHOP = next((str(shop) for shop in SHOPS if shop.exists()), None)
ARCHIVES = [ROOT / "target" / kind / "liblockstead_capi.a" for kind in ("debug", "release")]
ARCHIVE = next((str(archive) for archive in ARCHIVES if archive.exists()), None)
CC = shutil.which("cc")

FIELDS = {"orders": shared.Lock, "shelves": (shared.Lock, 3), "carts": shared.Semaphore, "total": 8}


class Shop:
    """What a program in another language, `program`, and Python do on one segment."""

    program = None
    # What it adds to the total: in Rust, what is written under a lock lies inside that.
    adds = 0

    def setUp(self):
        self.path = f"/dev/shm/lockstead-shop-{os.getpid()}"
        self.addCleanup(lambda: os.path.exists(self.path) and os.unlink(self.path))

    def shop(self, what, status=0):
        done = subprocess.run(
            [self.program, what, self.path], capture_output=True, text=True, timeout=LONG
        )
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout

    def test_it_opens_what_python_made(self):
        segment = shared.Segment.create(self.path, FIELDS, struct="Shop", units=2)
        segment.data("total")[:] = (40).to_bytes(8, "little")
        total = 40 + self.adds
        self.assertEqual(self.shop("add"), f"total {total}\n")
        self.assertEqual(int.from_bytes(segment.data("total"), "little"), total)
        self.shop("die", -6)
        with self.assertRaises(shared.OwnerDied):
            segment.lock("shelves[1]").acquire()
        self.assertEqual(self.shop("add"), f"recovered\ntotal {total + self.adds}\n")
        with segment.lock("shelves[1]"):
            pass
        # The program's unit is free again when it has ended.
        self.assertEqual(self.shop("carts"), "carts 1\n")
        with segment.lock("carts"), segment.lock("carts"):
            self.assertFalse(segment.lock("carts").acquire(block=False))

    def test_python_opens_what_it_made(self):
        self.shop("make")
        segment = shared.Segment(self.path)
        self.assertEqual([part[0] for part in segment.parts()][:2], ["orders", "shelves[0]"])
        lock = segment.lock("shelves[1]", shared.RLock)
        self.killed_inside(lock.acquire)
        self.assertEqual(self.shop("add"), f"recovered\ntotal {self.adds}\n")
        with lock:
            pass
        carts = segment.lock("carts")
        with carts:
            self.assertEqual(self.shop("carts"), "carts 0\n")
        self.killed_inside(carts.acquire)
        self.assertEqual(self.shop("carts"), "carts 1\n")

    def test_another_struct_is_refused(self):
        shared.Segment.create(self.path, {**FIELDS, "total": 16}, struct="Shop")
        self.shop("add", 1)


@unittest.skipIf(SHOP is None, "`cargo build --example shop` in crates/python was not run")
class Rust(Shop, ProcessTest):
    program = SHOP


@unittest.skipIf(CC is None or ARCHIVE is None, "no C compiler, or `cargo build -p lockstead-capi` was not run")
class C(Shop, ProcessTest):
    adds = 1

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.program = os.path.join(folder.name, "shop")
        source = str(PACKAGE / "examples" / "shop.c")
        include = str(ROOT / "crates" / "capi" / "include")
        flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-pthread", f"-I{include}"]
        libraries = ["-lgcc_s", "-lpthread", "-ldl", "-lm"]
        subprocess.run([CC, *flags, "-o", cls.program, source, ARCHIVE, *libraries], check=True)


class Examples(unittest.TestCase):
    def test_each_runs(self):
        expected = {
            "orders.py": "in order: True",
            "pool.py": "[0, 2, 4, 6, 8]",
            "coroutines.py": "total: 15",
        }
        folder = PACKAGE / "examples"
        self.assertEqual({file.name for file in folder.glob("*.py")}, set(expected))
        for name, line in expected.items():
            with self.subTest(name):
                done = subprocess.run(
                    [sys.executable, folder / name], capture_output=True, text=True, timeout=LONG
                )
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(line, done.stdout)


if __name__ == "__main__":
    unittest.main()
