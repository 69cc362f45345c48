"""An issuer of JSON Web Tokens."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

ISSUER, AUDIENCE = "https://issuer.example", "metastore"


class KeyServer:
    """Serves a JSON Web Key Set, and signs tokens with its keys."""

    def __init__(self) -> None:
        self.keys: dict[str, Any] = {}
        self.asked = 0
        self.silent = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(handler) -> None:  # noqa: N805
                self.asked += 1
                if self.silent.is_set():
                    time.sleep(10)
                body = self.key_set()
                handler.send_response(200)
                handler.send_header("Content-Length", str(len(body)))
                handler.end_headers()
                handler.wfile.write(body)

            def log_message(handler, *args: object) -> None:  # noqa: N805
                """Tests count for themselves."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/keys"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def add(self, kid: str, kind: str = "RSA") -> None:
        if kind == "RSA":
            self.keys[kid] = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        else:
            self.keys[kid] = ec.generate_private_key(ec.SECP256R1())

    def key_set(self) -> bytes:
        found = []
        for kid, key in self.keys.items():
            algorithm = (
                jwt.algorithms.RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else jwt.algorithms.ECAlgorithm
            )
            found.append({**json.loads(algorithm.to_jwk(key.public_key())), "kid": kid, "use": "sig"})
        return json.dumps({"keys": found}).encode()

    def token(self, kid: str = "a", algorithm: str = "RS256", **changed: Any) -> str:
        now = int(time.time())
        claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "groups": ["dev"], "iat": now, "exp": now + 600}
        claims = {name: value for name, value in (claims | changed).items() if value is not None}
        return jwt.encode(claims, self.keys[kid], algorithm, headers={"kid": kid})

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
