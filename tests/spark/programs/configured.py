"""As session.py, but the session is made by `lake.spark.configure`, with a given jar of the extension."""

import sys
from pathlib import Path

import session

if __name__ == "__main__":
    parser = session.parser()
    parser.add_argument("--jar", type=Path, help="in place of the one that a wheel has, or that is built")
    options = parser.parse_args()
    sys.path.append(str(Path(__file__).resolve().parents[3]))
    from lake.spark import configure, jar

    if options.jar is not None:
        jar.PACKAGED_JAR = options.jar
    builder = session.builder(options.scratch, options.settings)
    session.serve(lambda: configure(builder, options.uri, warehouse_dir=options.warehouse).getOrCreate())
