"""Programs in Rust on the same segments, and the examples."""

import os
import pathlib
import subprocess
import sys
import unittest

from lockstead import shared
from support import LONG, ProcessTest

PACKAGE = pathlib.Path(__file__).parent.parent
PLACES = [PACKAGE / "target", PACKAGE.parent.parent / "target" / "python"]
SHOPS = [place / kind / "examples" / "shop" for place in PLACES for kind in ("release", "debug")]
SHOP = next((str(shop) for shop in SHOPS if shop.exists()), None)

FIELDS = {"orders": shared.Lock, "shelves": (shared.Lock, 3), "carts": shared.Semaphore, "total": 8}


@unittest.skipIf(SHOP is None, "`cargo build --example shop` in crates/python was not run")
class Rust(ProcessTest):
    def setUp(self):
        self.path = f"/dev/shm/lockstead-shop-{os.getpid()}"
        self.addCleanup(lambda: os.path.exists(self.path) and os.unlink(self.path))

    def shop(self, what, status=0):
        done = subprocess.run([SHOP, what, self.path], capture_output=True, text=True, timeout=LONG)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout

    def test_rust_opens_what_python_made(self):
        segment = shared.Segment.create(self.path, FIELDS, struct="Shop")
        segment.data("total")[:] = (41).to_bytes(8, "little")
        self.assertEqual(self.shop("add"), "total 41\n")
        self.shop("die", -6)
        with self.assertRaises(shared.OwnerDied):
            segment.lock("shelves[1]").acquire()
        self.assertEqual(self.shop("add"), "recovered\ntotal 41\n")
        with segment.lock("shelves[1]"):
            pass

    def test_python_opens_what_rust_made(self):
        self.shop("make")
        segment = shared.Segment(self.path)
        self.assertEqual([part[0] for part in segment.parts()][:2], ["orders", "shelves[0]"])
        lock = segment.lock("shelves[1]", shared.RLock)
        self.killed_inside(lock.acquire)
        self.assertEqual(self.shop("add"), "recovered\ntotal 0\n")
        with lock:
            pass

    def test_another_struct_is_refused(self):
        shared.Segment.create(self.path, {**FIELDS, "total": 16}, struct="Shop")
        self.shop("add", 1)


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
