#!/usr/bin/env bash
# Makes the virtual environments and sees to Java. Usage: tools/setup.sh [--spark35] [--spark-connect] [--jdbc]
#     [--logins] [--mariadb] [--engines] [--dbt]
#
# .venv holds the server, its tests and PySpark 4, .venv-spark35 (with --spark35) PySpark 3.5 alone. Packages come from
# the lock files, checked by their hashes. What Debian has to bring (venv, Java; with --jdbc Postgres' driver for Java,
# which Hive's server needs in the benchmark) is installed by apt-get if we are root; otherwise one line says what to
# install. A second run does nothing until a lock file changes.
#
# --engines makes .venv-engines: engines that read Iceberg tables, in the tests of other systems (half a gigabyte).
# --dbt makes .venv-dbt: dbt and a Spark for it, in the same tests (half a gigabyte).
#
# --spark-connect adds what spark-pipelines needs, which is beside our layers in a benchmark and a test.
#
# --logins adds what logins by Kerberos and LDAP need: libraries that pip compiles, and Debian's servers for the tests.
# --mariadb brings MariaDB for the tests of its capture. Where these can't be had, one line says so, and those tests are
# skipped.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "setup: $*"; }
fail() { echo "setup: $*" >&2; exit 1; }

# apt_install REASON PACKAGE...: installs the first of these Debian packages that exists.
apt_install() {
    local reason=$1 package
    shift
    if ! command -v apt-get >/dev/null; then
        fail "$reason; please install it"
    elif [ "$(id -u)" -ne 0 ]; then
        fail "$reason; install it with: sudo apt-get install $1"
    fi
    say "$reason: installing it"
    apt-get -qq update || fail "$reason, and apt-get can't reach Debian's packages"
    for package in "$@"; do
        if apt-cache show "$package" >/dev/null 2>&1; then
            install_package "$package" || fail "$reason, and apt-get could not install $package"
            return
        fi
    done
    fail "$reason, and Debian has none of: $*"
}

# install_package PACKAGE: silent, unless it fails.
install_package() {
    local output
    output=$(DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends "$1" 2>&1 </dev/null) || {
        echo "$output" >&2
        return 1
    }
}

is_new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3.11 python3 python3.12 python3.13}; do
        if is_new_enough "$candidate"; then
            python=$candidate
            return
        fi
    done
    return 1
}

# find_or_install_python: sets `python`, which can make virtual environments.
find_or_install_python() {
    find_python || apt_install "Python 3.11 or newer is missing" python3.11 python3
    find_python || fail "Python 3.11 or newer is missing; this one is $(python3 --version 2>&1)"
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        apt_install "Python's venv module is missing" \
            "$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')" python3-venv
    fi
}

# make_environment DIRECTORY LOCK: a virtual environment with exactly checked packages, and the project in .venv.
make_environment() {
    local directory=$1 lock=$2 stamp key quiet=--quiet
    stamp=$directory/.setup
    key=$(cat requirements/build.lock "$lock" pyproject.toml lake/pyproject.toml <(pwd) | sha256sum)
    if [ "$(cat "$stamp" 2>/dev/null)" = "$key" ]; then
        return
    fi
    if ! "$directory/bin/pip" --version >/dev/null 2>&1; then
        "$python" -m venv --clear "$directory"
    fi
    say "installing packages into $directory (the first time some 500 MB, a few minutes)"
    if [ -t 1 ]; then quiet=; fi
    local pip=("$directory/bin/python" -m pip --disable-pip-version-check --no-input install ${quiet:+"$quiet"})
    "${pip[@]}" --require-hashes -r requirements/build.lock
    "${pip[@]}" --require-hashes --no-build-isolation --no-deps -r "$lock"
    if [ "$directory" = .venv ]; then
        # The client's last: it owns the script `metastore`, which belonged to the server's before.
        "${pip[@]}" --no-build-isolation --no-deps --editable .
        "${pip[@]}" --no-build-isolation --no-deps --editable ./lake
    fi
    echo "$key" >"$stamp"
}

java_version() {
    "${JAVA_HOME:+$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' || true
}

# The Spark extension is compiled: a JDK, not only a JRE.
find_java() {
    [ "$(java_version)" -ge 17 ] 2>/dev/null && command -v "${JAVA_HOME:+$JAVA_HOME/bin/}javac" >/dev/null
}

make_java() {
    if find_java; then return; fi
    if [ -n "${JAVA_HOME:-}" ]; then
        fail "JAVA_HOME ($JAVA_HOME) has no JDK 17 or newer, which Spark and its extension need; set or unset it"
    fi
    apt_install "a JDK, 17 or newer, is missing" openjdk-17-jdk-headless openjdk-21-jdk-headless default-jdk-headless
    find_java || fail "a JDK is installed, but \`java\` or \`javac\` is another: see update-alternatives --config java"
}

make_driver() {
    if [ ! -e /usr/share/java/postgresql.jar ]; then
        apt_install "Postgres' driver for Java is missing" libpostgresql-jdbc-java
    fi
}

# has_header HEADER: whether the C compiler finds it.
has_header() {
    echo "#include <$1>" | gcc -E -I"$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("include"))')" - \
        >/dev/null 2>&1
}

# Each in a shell of its own: what is missing ends that one alone.
install_for_logins() (
    local python_dev program
    python_dev=$(.venv/bin/python -c 'import sys; print("python%d.%d-dev" % sys.version_info[:2])')
    command -v gcc >/dev/null || apt_install "a C compiler is missing" gcc
    has_header stdio.h || apt_install "the C library's headers are missing" libc6-dev
    has_header Python.h || apt_install "Python's headers are missing" "$python_dev" python3-dev
    has_header gssapi/gssapi.h || apt_install "Kerberos' headers are missing" libkrb5-dev
    has_header ldap.h || apt_install "OpenLDAP's headers are missing" libldap-dev
    has_header sasl/sasl.h || apt_install "SASL's headers are missing" libsasl2-dev
    PATH=$PATH:/usr/sbin
    for program in krb5kdc=krb5-kdc kadmin.local=krb5-admin-server kinit=krb5-user slapd=slapd; do
        command -v "${program%=*}" >/dev/null || apt_install "${program%=*} is missing" "${program#*=}"
    done
)

# key_of_addition NAME: what .venv/.setup-NAME says once the packages of requirements/NAME.lock are in .venv.
key_of_addition() { cat requirements/build.lock "requirements/$1.lock" .venv/.setup | sha256sum; }

is_added() { [ "$(cat ".venv/.setup-$1" 2>/dev/null)" = "$(key_of_addition "$1")" ]; }

# add NAME: installs the packages of requirements/NAME.lock into .venv, beside what is there.
add() {
    .venv/bin/python -m pip --disable-pip-version-check --no-input install --quiet --require-hashes \
        --no-build-isolation --no-deps -r "requirements/$1.lock" && key_of_addition "$1" >".venv/.setup-$1"
}

make_logins() {
    if is_added logins; then return; fi
    if ! install_for_logins; then
        say "without these packages, tests of logins by Kerberos and LDAP are skipped"
        return
    fi
    say "compiling the libraries of Kerberos and LDAP (a minute)"
    add logins || say "the libraries of Kerberos and LDAP can't be compiled: their tests are skipped"
}

make_spark_connect() { is_added spark-connect || add spark-connect; }

make_mariadb() (
    PATH=$PATH:/usr/sbin
    command -v mariadbd >/dev/null || apt_install "MariaDB is missing" mariadb-server-core
    # mariadb-install-db calls it.
    command -v my_print_defaults >/dev/null || apt_install "MariaDB's tools are missing" mariadb-client-core
)

make_java
find_or_install_python
# Two environments take a core each. The second one's end is waited for below.
spark35=
trap '[ -z "$spark35" ] || kill "$spark35" 2>/dev/null || true' EXIT
if [[ " $* " == *" --spark35 "* ]]; then
    make_environment .venv-spark35 requirements/spark35.lock &
    spark35=$!
fi
make_environment .venv requirements/dev.lock
for option in "$@"; do
    case $option in
        --spark35)
            wait "$spark35" || fail "the environment of Spark 3.5 can't be made, see above"
            spark35=
            ;;
        --spark-connect) make_spark_connect ;;
        --engines) make_environment .venv-engines requirements/engines.lock || say "without these engines, tests of what they read are skipped" ;;
        --dbt) make_environment .venv-dbt requirements/dbt.lock || say "without dbt, tests of what it does are skipped" ;;
        --jdbc) make_driver ;;
        --logins) make_logins ;;
        --mariadb) make_mariadb || say "without MariaDB, tests of its capture are skipped" ;;
        *) fail "no such option: $option" ;;
    esac
done
