"""The HTTP process by itself, without a supervisor."""

import json
import subprocess
import sys
import textwrap
import urllib.error
import urllib.request

from tests.support.waiting import wait_until

PROGRAM = textwrap.dedent(
    """
    import os, signal, socket, threading
    from metastore.server.web import http
    from metastore.settings import Settings

    listener = socket.create_server(("127.0.0.1", 0))
    parent_alive, parent = os.pipe()

    def on_ready():
        def terminate():
            os.read(0, 1)
            signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
            os.read(0, 1)

        threading.Thread(target=terminate, daemon=True).start()
        print(listener.getsockname()[1], flush=True)

    settings = Settings(database_url="postgresql://nobody@127.0.0.1:1/none", port=1)
    http.run(listener, settings, parent_alive=parent_alive, on_ready=on_ready)
    """
)


def reason(port: int) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=30) as reply:
            return str(reply.read())
    except urllib.error.HTTPError as error:
        return str(json.load(error)["reason"])


def test_a_signal_that_another_thread_receives_says_that_the_server_is_stopping() -> None:
    """The kernel may choose any thread, and Python acts on a signal in the main thread alone."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline())
            assert "no worker answers" in reason(port)
            process.stdin.write(b"x")
            wait_until(lambda: reason(port) == "the server is stopping")
        finally:
            process.kill()
