#!/usr/bin/env python3
"""`fullstop gateway` towards clients that speak https: answers are the same, a cut one never looks whole, and flags that cannot work are
refused before anything listens. FULLSTOP names the program."""

import os
import pathlib
import socket
import ssl
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
from gateway_test import DONE, FINISH, HEAD, PIECE, Upstream, gateway, parse, request, reset

WHOLE = HEAD + PIECE * 20 + FINISH + DONE + b"0\r\n\r\n"


def make_certificate(folder, passphrase=False):
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    protect = ["-passout", "pass:secret"] if passphrase else ["-nodes"]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", *protect, "-keyout", key, "-out", certificate, "-days", "2", "-subj",
                    "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"], check=True, capture_output=True)
    return certificate, key


class Tls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.certificate, cls.key = make_certificate(pathlib.Path(cls.folder.name))
        cls.context = ssl.create_default_context(cafile=cls.certificate)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def gateway(self, url):
        return gateway(url, "--tls-cert", self.certificate, "--tls-key", self.key)

    def exchange(self, client, words):
        client.sendall(words)
        got = b""
        while True:
            try:
                more = client.recv(65536)
            except ssl.SSLEOFError:
                return got, "no close_notify"
            if not more:
                return got, "closed"
            got += more

    def connect(self, front):
        return self.context.wrap_socket(socket.create_connection(front.address, timeout=20), server_hostname="localhost")

    def test_answers_come_whole_over_one_connection_or_several(self):
        with Upstream(lambda c: c.sendall(WHOLE)) as upstream, self.gateway(upstream.url) as front:
            self.assertTrue(front.url.startswith("https://"), front.url)
            for _ in range(3):
                with self.connect(front) as client:
                    got, end = self.exchange(client, request())
                self.assertEqual((parse(got)[2:], end), (parse(WHOLE)[2:], "closed"))
            with self.connect(front) as client:
                for _ in range(3):
                    client.sendall(request(close=False))
                    got = b""
                    while not got.endswith(b"0\r\n\r\n"):
                        got += client.recv(65536)
                    self.assertEqual(parse(got)[2], parse(WHOLE)[2])

    def test_a_cut_answer_is_open_ended(self):
        def serve(connection):
            connection.sendall(HEAD + PIECE)
            reset(connection)

        with Upstream(serve) as upstream, self.gateway(upstream.url) as front, self.connect(front) as client:
            status, _, body, complete = parse(self.exchange(client, request())[0])
        self.assertEqual((status, complete), (200, False))
        self.assertIn(b'"cause":"connection_broken"', body)

    def test_plain_http_is_not_answered(self):
        with Upstream(lambda c: c.sendall(WHOLE)) as upstream, self.gateway(upstream.url) as front, socket.create_connection(front.address, timeout=20) as client:
            client.sendall(request())
            got = b""
            try:
                while more := client.recv(65536):
                    got += more
            except ConnectionResetError:
                pass
            self.assertNotIn(b"HTTP/1.1 200", got)
            self.assertEqual(upstream.requests, [])

    def refused(self, *words):
        result = subprocess.run([os.environ["FULLSTOP"], "gateway", "--upstream", "http://127.0.0.1:9", "--listen", "127.0.0.1:0", *map(str, words)],
                                capture_output=True, text=True, timeout=20, check=False, stdin=subprocess.DEVNULL)
        self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
        return result.stderr

    def test_what_cannot_work_is_refused_with_its_name(self):
        with tempfile.TemporaryDirectory() as other:
            locked_certificate, locked_key = make_certificate(pathlib.Path(other), passphrase=True)
            self.assertIn("--tls-key", self.refused("--tls-cert", self.certificate))
            self.assertIn("--tls-cert", self.refused("--tls-key", self.key))
            self.assertIn("/no/such", self.refused("--tls-cert", "/no/such", "--tls-key", self.key))
            self.assertIn(str(self.certificate), self.refused("--tls-cert", self.certificate, "--tls-key", self.certificate))
            self.assertIn("mismatch", self.refused("--tls-cert", locked_certificate, "--tls-key", self.key))
            self.assertIn("passphrase", self.refused("--tls-cert", locked_certificate, "--tls-key", locked_key))


if __name__ == "__main__":
    unittest.main(verbosity=2)
