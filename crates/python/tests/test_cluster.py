"""The mutex over etcd, against a member that the tests start. Skipped where etcd is not installed."""

import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

from lockstead import cluster
from support import LONG, eventually

ETCD = shutil.which("etcd")


def free_ports(number):
    sockets = [socket.socket() for _ in range(number)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def threads():
    """Returns the names of this process's threads, cut to what the kernel keeps."""
    names = []
    for thread in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{thread}/comm") as name:
                names.append(name.read())
        except OSError:
            pass
    return names


class Member:
    """A member of etcd, with its data in a folder of its own. `flags`: more of etcd's; `options`: of a session that
    it answers."""

    def __init__(self, scheme="http", flags=(), **options):
        client, peer = (f"127.0.0.1:{port}" for port in free_ports(2))
        client, peer = f"{scheme}://{client}", f"http://{peer}"
        self.endpoint = client
        self.folder = tempfile.TemporaryDirectory(prefix="lockstead-etcd-")
        words = ["--name", "one", "--data-dir", self.folder.name + "/data", "--log-level", "error"]
        words += flags
        words += ["--logger", "zap", "--initial-cluster", f"one={peer}"]
        for flag, url in [
            ("listen-client-urls", client),
            ("advertise-client-urls", client),
            ("listen-peer-urls", peer),
            ("initial-advertise-peer-urls", peer),
        ]:
            words += [f"--{flag}", url]
        self.words = [ETCD, *words]
        self.start()
        cluster.Session(self.endpoint, patience=LONG, **options).close()

    def start(self):
        self.process = subprocess.Popen(
            self.words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def end(self):
        self.process.kill()
        self.process.wait(LONG)
        self.folder.cleanup()


@unittest.skipUnless(ETCD, "etcd is not installed")
class Cluster(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.member = Member()
        cls.addClassCleanup(cls.member.end)

    def session(self, **options):
        session = cluster.Session(self.member.endpoint, margin=0.5, **options)
        self.addCleanup(session.close)
        return session

    def mutexes(self):
        name = self.id()
        return [cluster.Mutex(self.session(), name) for _ in range(2)]

    def test_owners_come_in_turn_with_tokens_that_grow(self):
        first, second = self.mutexes()
        with first as held:
            token = held.token
            held.check()
            held.confirm()
            held.put("data/python", "written")
            self.assertGreater(held.deadline, time.clock_gettime(time.CLOCK_BOOTTIME))
            self.assertTrue(0 < held.safe_for <= 10)
            self.assertFalse(held.lost or held.owner_died)
            self.assertIsNone(second.acquire(block=False))
            begun = time.monotonic()
            self.assertIsNone(second.acquire(timeout=0.05))
            self.assertGreaterEqual(time.monotonic() - begun, 0.05)
            with self.assertRaisesRegex(ValueError, "no owner died"):
                held.mark_consistent()
        self.assertTrue(held.lost)
        with self.assertRaises(ValueError):
            held.release()
        with second.acquire(timeout=LONG) as held:
            self.assertGreater(held.token, token)
        # One that is forgotten is released.
        forgotten = first.acquire()
        del forgotten
        second.acquire(timeout=LONG).release()

    def test_other_threads_run_while_one_waits(self):
        first, second = self.mutexes()
        held = first.acquire()
        got = []
        waiter = threading.Thread(target=lambda: got.append(second.acquire(timeout=LONG)))
        waiter.start()
        # This thread goes on, and releases what the other one waits for.
        held.release()
        waiter.join(LONG)
        self.assertFalse(waiter.is_alive())
        got[0].release()

    def test_an_owners_death_is_told_until_somebody_repairs(self):
        dead = self.session()
        name = self.id()
        left = cluster.Mutex(dead, name).acquire()
        dead.close()
        self.assertTrue(dead.wait_lost(LONG))
        self.assertTrue(dead.lost and left.lost)
        for refused in (left.check, left.confirm, left.release, dead.check):
            with self.assertRaises(cluster.Lost):
                refused()
        mutex = cluster.Mutex(self.session(), name)
        for _ in range(2):
            with self.assertRaises(cluster.OwnerDied):
                mutex.acquire(timeout=LONG)
        with self.assertRaises(ZeroDivisionError), mutex.recover() as held:
            self.assertTrue(held.owner_died)
            1 / 0
        with self.assertRaises(cluster.OwnerDied), mutex:
            self.fail("nobody has repaired it")
        with mutex.recover(LONG):
            pass
        with mutex as held:
            self.assertFalse(held.owner_died)
            with self.assertRaises(TimeoutError):
                cluster.Mutex(self.session(), name).recover(0.05).__enter__()

    def test_a_signals_handler_ends_a_wait_and_its_place(self):
        first, second = self.mutexes()
        script = (
            "import signal, sys\n"
            "from lockstead import cluster\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "session = cluster.Session(sys.argv[1])\n"
            "mutex = cluster.Mutex(session, sys.argv[2])\n"
            "try:\n"
            "    mutex.acquire()\n"
            "except KeyboardInterrupt:\n"
            "    print('interrupted', flush=True)\n"
            "    session.check()\n"
            "    sys.stdin.readline()\n"
        )
        with first as held:
            child = subprocess.Popen(
                [sys.executable, "-c", script, self.member.endpoint, second.name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
            # A child that never says anything ends what reads it.
            late = threading.Timer(LONG, child.kill)
            late.start()
            try:
                # Only then it waits.
                self.stand_in_the_queue(second.name, 2)
                child.send_signal(signal.SIGINT)
                self.assertEqual(child.stdout.readline(), "interrupted\n")
                # The child's session lives, and stands nowhere: who waits comes next.
                held.release()
                second.acquire(timeout=LONG).release()
                child.communicate("\n", LONG)
                self.assertEqual(child.returncode, 0)
            finally:
                late.cancel()
                child.kill()
                child.communicate()

    def stand_in_the_queue(self, name, number):
        """Waits until so many have a place in the queue of a lock."""
        encoded = [base64.b64encode(key).decode() for key in (b"lockstead/lock/", b"lockstead/lock0")]
        asked = json.dumps({"key": encoded[0], "range_end": encoded[1], "keys_only": True}).encode()
        end = time.monotonic() + LONG
        found = 0
        while found != number:
            self.assertLess(time.monotonic(), end, f"{found} in the queue")
            with urllib.request.urlopen(self.member.endpoint + "/v3/kv/range", asked, LONG) as answer:
                keys = [base64.b64decode(pair["key"]).decode() for pair in json.load(answer).get("kvs", [])]
            found = sum(name in key and "/q/" in key for key in keys)

    def test_a_child_has_nothing_of_its_parents(self):
        session = self.session()
        with cluster.Mutex(session, self.id()) as held:
            child = os.fork()
            if child == 0:
                refused = 0
                for call in (held.check, lambda: held.put("k", "v"), held.release, session.check):
                    try:
                        call()
                    except cluster.Lost:
                        refused += 1
                os._exit(0 if refused == 4 and session.wait_lost() else 1)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            held.put("data/fork", "the parent's")

    def test_what_means_nothing_is_refused(self):
        for options in ({"ttl": 1}, {"user": "root"}, {"cert": "/none"}, {"cacert": "/none"}, {"margin": -1.0}):
            with self.subTest(options), self.assertRaises(ValueError):
                cluster.Session(self.member.endpoint, **options)
        with self.assertRaises(ValueError):
            cluster.Session("ftp://nowhere")
        with self.assertRaises(ConnectionError):
            cluster.Session("http://127.0.0.1:1", patience=0.05)
        with self.assertRaises(TypeError):
            cluster.Mutex("session", "name")
        with self.assertRaises(ValueError):
            cluster.Mutex(self.session(), "")


class Certificates:
    """Those of an authority, a server and a client, in a folder of their own."""

    def __init__(self, folder):
        self.folder = folder
        authority = ["-addext", "basicConstraints=critical,CA:TRUE"]
        self.ca, ca_key = self.make("ca", "/CN=ca", authority)
        # An authority that is the server as well is refused as a server: it must not be one.
        signed = ["-CA", self.ca, "-CAkey", ca_key, "-addext", "basicConstraints=critical,CA:FALSE"]
        here = ["-addext", "subjectAltName=IP:127.0.0.1"]
        self.server, self.server_key = self.make("server", "/CN=server", signed + here)
        # With users, etcd's gateway takes no client's certificate with a common name.
        self.client, self.client_key = self.make("client", "/O=client", signed)

    def make(self, name, subject, more):
        made = [os.path.join(self.folder, file) for file in (name + ".pem", name + "-key.pem")]
        words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
        words += ["-nodes", "-days", "2", "-subj", subject, "-out", made[0], "-keyout", made[1]]
        subprocess.run([*words, *more], check=True, stdin=subprocess.DEVNULL, capture_output=True)
        return made


@unittest.skipUnless(ETCD, "etcd is not installed")
@unittest.skipUnless(shutil.which("openssl"), "openssl is not installed")
class Access(unittest.TestCase):
    """Members with certificates that ask clients for theirs, and with users."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="lockstead-certificates-")
        cls.addClassCleanup(folder.cleanup)
        made = cls.certificates = Certificates(folder.name)
        cls.access = {"cacert": made.ca, "cert": made.client, "key": made.client_key}
        flags = ["--cert-file", made.server, "--key-file", made.server_key]
        flags += ["--client-cert-auth", "--trusted-ca-file", made.ca]
        cls.member = Member("https", flags, **cls.access)
        cls.addClassCleanup(cls.member.end)

    def session(self, **changed):
        # Passwords are hashed at length, for which a loaded machine takes its time.
        options = {**self.access, "ttl": 60, "patience": LONG, **changed}
        session = cluster.Session(self.member.endpoint, **options)
        self.addCleanup(session.close)
        return session

    def test_a_member_with_certificates_is_reached_by_who_has_theirs(self):
        with cluster.Mutex(self.session(), self.id()) as held:
            held.confirm()
            held.put("data/certificates", "written")
        for changed, reason in [
            ({"cacert": None}, "cacert"),
            ({"cert": None, "key": None}, "(?i)certificate"),
            ({"cacert": self.certificates.client}, "(?i)certificate"),
        ]:
            with self.subTest(reason), self.assertRaisesRegex(ConnectionError, reason):
                self.session(patience=1.0, **changed)
        with self.assertRaisesRegex(ValueError, "ca.pem"):
            self.session(key=self.certificates.ca)

    @unittest.skipUnless(shutil.which("etcdctl"), "etcdctl is not installed")
    def test_users_may_what_etcd_lets_them(self):
        control = ["etcdctl", "--endpoints", self.member.endpoint, "--dial-timeout=30s"]
        control += ["--command-timeout=30s"]
        control += [f"--{name}={file}" for name, file in self.access.items()]
        root = []

        def told(*words):
            env = {**os.environ, "ETCDCTL_API": "3"}
            subprocess.run([*control, *root, *words], check=True, env=env, capture_output=True)

        told("role", "add", "root")
        told("user", "add", "root:secret")
        told("user", "grant-role", "root", "root")
        told("role", "add", "locks")
        told("role", "grant-permission", "locks", "--prefix=true", "readwrite", "lockstead/")
        told("user", "add", "worker:word")
        told("user", "grant-role", "worker", "locks")
        told("auth", "enable")
        root = ["--user=root:secret"]
        self.addCleanup(told, "auth", "disable")

        worker = {"user": "worker", "password": "word"}
        session = self.session(**worker)
        held = cluster.Mutex(session, "users").acquire()
        with self.assertRaises(PermissionError):
            held.put("elsewhere", "written")
        # Members forget the tokens of users when they are started anew; the session asks for another one.
        self.member.process.kill()
        self.member.process.wait(LONG)
        self.member.start()
        held.put("lockstead/data", "written")
        got = []
        next_one = cluster.Mutex(self.session(**worker), "users")
        waiter = threading.Thread(target=lambda: got.append(next_one.acquire(timeout=LONG)))
        waiter.start()
        held.release()
        waiter.join(LONG)
        got[0].release()
        with self.assertRaises(PermissionError):
            self.session(user="worker", password="guess")
        with self.assertRaises(PermissionError):
            cluster.Mutex(self.session(root="elsewhere", **worker), "users").acquire()
        with self.assertRaises(PermissionError):
            cluster.Mutex(self.session(), "users").acquire()


@unittest.skipUnless(ETCD, "etcd is not installed")
class WithoutEtcd(unittest.TestCase):
    def test_a_loss_is_told_at_the_deadline(self):
        member = Member()
        self.addCleanup(member.end)
        session = cluster.Session(member.endpoint, ttl=3, margin=0.5, patience=0.2)
        held = cluster.Mutex(session, "m").acquire()
        self.assertIsNone(session.unreachable_for)
        self.assertFalse(session.wait_lost(0.0))
        member.process.kill()
        eventually(lambda: session.unreachable_for is not None)
        self.assertTrue(session.wait_lost(LONG))
        self.assertEqual((held.safe_for, session.safe_for), (0.0, 0.0))
        with self.assertRaises(cluster.Lost):
            held.check()
        with self.assertRaises(cluster.Lost):
            held.release()
        with self.assertRaises(ConnectionError):
            session.close()
        # What went wrong inside is not replaced by what goes wrong at the end.
        with self.assertRaises(KeyboardInterrupt), session:
            raise KeyboardInterrupt

    def test_a_handler_is_heard_when_etcd_is_away(self):
        member = Member()
        self.addCleanup(member.end)
        first, second = (cluster.Session(member.endpoint, patience=0.2) for _ in range(2))
        held = cluster.Mutex(first, "m").acquire()
        self.assertIsNotNone(held)

        def away():
            eventually(lambda: any(t.startswith("lockstead-watch") for t in threads()))
            member.process.kill()
            member.process.wait(LONG)
            os.kill(os.getpid(), signal.SIGINT)

        helper = threading.Thread(target=away)
        helper.start()
        with self.assertRaises(KeyboardInterrupt):
            cluster.Mutex(second, "m").acquire()
        helper.join()


if __name__ == "__main__":
    unittest.main()
