"""The jar of the Spark extension: the one in the wheel, or one that is built for the Spark that is installed.

A released wheel brings a jar that serves Spark 3.5 and 4. A checkout or an sdist brings its source only, which takes
a second to compile; the result is kept in the user's cache directory.
"""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

from lake.protocol.errors import UserError

#: What `spark.sql.extensions` names.
EXTENSION_CLASS = "lake.metastore.spark.MetastoreExtensions"

#: What `spark.sql.catalog.spark_catalog` names.
CATALOG_CLASS = "lake.metastore.spark.LakeCatalog"

#: Where a wheel has the jar and the source.
PACKAGED_JAR = Path(__file__).with_name("extension") / "lake-metastore-spark.jar"
PACKAGED_SOURCE = Path(__file__).with_name("extension") / "src"
_CHECKOUT_SOURCE = Path(__file__).resolve().parents[2] / "spark_extension" / "src"

#: The oldest Java that runs a Spark of each Scala line (3.5: 2.12, 4: 2.13).
_JAVA_RELEASES = {"2.12": 8, "2.13": 17}


class ExtensionNotBuilt(UserError):
    """The jar is not there and can't be made; the message says what is missing."""


def extension_jar() -> Path:
    """The jar to give to Spark, built if need be. Raises ExtensionNotBuilt."""
    if PACKAGED_JAR.exists():
        return PACKAGED_JAR
    source = PACKAGED_SOURCE if PACKAGED_SOURCE.exists() else _CHECKOUT_SOURCE
    if not source.exists():
        raise ExtensionNotBuilt(f"this installation has neither the Spark extension's jar nor its source in {source}")
    spark = spark_home()
    cached = _cache_directory() / f"lake-metastore-spark-{_fingerprint(source, spark)}.jar"
    if not cached.exists():
        build(source, spark, cached)
    return cached


def spark_home() -> Path:
    """The Spark that PySpark starts: SPARK_HOME, or the one in the package. Raises ExtensionNotBuilt."""
    if home := os.environ.get("SPARK_HOME"):
        return Path(home)
    package = importlib.util.find_spec("pyspark")
    if package is None or package.origin is None:
        raise ExtensionNotBuilt("building the Spark extension needs Spark: install pyspark or set SPARK_HOME")
    return Path(package.origin).parent


def build(source: Path, spark: Path, target: Path) -> None:
    """Compile `source` against the Spark in `spark` into the jar `target`, which is there whole or not at all.

    Raises ExtensionNotBuilt.
    """
    release = _JAVA_RELEASES[_scala_line(spark)]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".build-", dir=target.parent) as directory:
            classes = Path(directory) / "classes"
            _compile(sorted(source.rglob("*.java")), spark / "jars", release, classes)
            jar = Path(directory) / target.name
            _pack(classes, jar)
            jar.replace(target)
    except OSError as error:
        raise ExtensionNotBuilt(f"can't build the Spark extension in {target.parent}: {error}") from None


def _scala_line(spark: Path) -> str:
    for jar in (spark / "jars").glob("scala-library-*.jar"):
        if (found := re.match(r"scala-library-(\d+\.\d+)\.", jar.name)) and found[1] in _JAVA_RELEASES:
            return found[1]
    raise ExtensionNotBuilt(f"{spark} is no Spark 3.5 or 4: it has no jars/scala-library-2.12 or 2.13")


def _compile(files: list[Path], jars: Path, release: int, classes: Path) -> None:
    command = [_javac(), "-d", str(classes), "-classpath", f"{jars}/*", "-encoding", "UTF-8"]
    command += ["-Xlint:none", "-nowarn", "-proc:none", "--release", str(release)]
    finished = subprocess.run([*command, *map(str, files)], capture_output=True, text=True)
    if finished.returncode != 0:
        said = next((line for line in finished.stderr.splitlines() if "error" in line), finished.stderr.strip())
        raise ExtensionNotBuilt(f"{command[0]} can't compile the Spark extension against {jars}: {said}")


def _javac() -> str:
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "javac").exists():
        return str(Path(home) / "bin" / "javac")
    if found := shutil.which("javac"):
        return found
    raise ExtensionNotBuilt(
        "building the Spark extension needs a JDK (Debian: apt-get install openjdk-17-jdk-headless), or install a "
        "released wheel of lake-metastore-client, which has it built"
    )


def _pack(classes: Path, jar: Path) -> None:
    """The same classes make the same bytes."""
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("META-INF/MANIFEST.MF"), "Manifest-Version: 1.0\r\n\r\n")
        for path in sorted(classes.rglob("*.class")):
            archive.writestr(zipfile.ZipInfo(path.relative_to(classes).as_posix()), path.read_bytes())


def _cache_directory() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "lake-metastore"


def _fingerprint(source: Path, spark: Path) -> str:
    """Changes with the source and with the Spark it is compiled against."""
    digest = hashlib.sha256()
    for path in sorted(source.rglob("*.java")):
        digest.update(path.relative_to(source).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    for jar in sorted((spark / "jars").glob("spark-catalyst_*.jar")):
        digest.update(jar.name.encode() + b"\0")
    return digest.hexdigest()[:16]
