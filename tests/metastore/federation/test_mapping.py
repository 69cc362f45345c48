"""Where names lie: a name means one place, a place has one name, and what can't be so is refused when it is read."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from metastore.federation.configuration import Configuration, FederationError
from metastore.federation.mapping import Mapping
from metastore.federation.names import Name, in_words, joined, split

URI = "thrift://a.example:9083"
NAMES = st.text("ab_", min_size=1, max_size=4)
PREFIXES = st.sampled_from(["", "a", "a_", "ab", "b_", "b"])


def mapping(**backends: Any) -> Mapping:
    values = {name: {"uris": URI, **each} for name, each in backends.items()}
    return Mapping(Configuration.model_validate({"backends": values}))


def place(of: Mapping, name: str) -> tuple[str, str] | None:
    found = of.place(in_words(name))
    return None if found is None else (found.backend, str(found.name))


@st.composite
def backends(draw: st.DrawFn) -> dict[str, Any]:
    return {
        f"m{number}": {
            "prefix": draw(PREFIXES),
            "catalog": draw(st.sampled_from(["hive", "region"])),
            "backend_catalog": draw(st.sampled_from(["hive", "other"])),
            "rename": draw(st.dictionaries(NAMES, NAMES, max_size=2)),
            "allow": draw(st.sampled_from(["*", "a*", ["a", "b*"]])),
            "deny": draw(st.lists(st.one_of(NAMES, st.just("*a")), max_size=2)),
        }
        for number in range(draw(st.integers(1, 3)))
    }


@given(backends(), st.lists(NAMES, min_size=1, max_size=20))
def test_names_and_places_are_one_to_one(given_backends: dict[str, Any], texts: list[str]) -> None:
    try:
        found = mapping(**given_backends)
    except (FederationError, ValueError):
        assume(False)
    for text in texts:
        for catalog in ("hive", "region"):
            name = Name(catalog, text)
            where = found.place(name)
            if where is not None:
                assert found.name(where.backend, where.name) == name
        for backend, settings in found.backends.items():
            there = Name(settings.backend_catalog, text)
            shown = found.name(backend, there)
            if shown is None:
                continue
            back = found.place(shown)
            assert back is not None
            assert (back.backend, back.name) == (backend, there)


@given(st.text("a_1", min_size=1), st.text("a_1"))
def test_catalogs_before_names(catalog: str, database: str) -> None:
    assert split(joined(catalog, database)) == (catalog, database or None)


def test_the_longest_prefix_leads() -> None:
    found = mapping(main={}, eu={"prefix": "eu_"}, paris={"prefix": "eu_paris_"})
    assert place(found, "sales") == ("main", "sales")
    assert place(found, "EU_Sales") == ("eu", "sales")
    assert place(found, "eu_paris_sales") == ("paris", "sales")
    assert place(found, "eu_") == ("main", "eu_")
    assert found.name("main", Name("hive", "eu_sales")) is None  # hidden: the name means another place
    assert found.name("eu", Name("hive", "paris_sales")) is None


def test_catalogs() -> None:
    found = mapping(main={}, region={"catalog": "region", "backend_catalog": "spark"})
    assert place(found, "region.db") == ("region", "spark.db")
    assert place(found, "db") == ("main", "db")
    assert found.name("region", Name("spark", "db")) == Name("region", "db")
    assert found.name("region", Name("hive", "db")) is None
    assert found.catalogs == ("hive", "region")
    assert place(found, "nowhere.db") is None


def test_a_renamed_database_loses_its_other_name() -> None:
    found = mapping(eu={"prefix": "eu_", "rename": {"people": "hr"}})
    assert place(found, "people") == ("eu", "hr")
    assert place(found, "eu_hr") is None
    assert found.name("eu", Name("hive", "hr")) == Name("hive", "people")


def test_what_is_left_out_has_no_name() -> None:
    found = mapping(main={"allow": ["sales", "hr_*"], "deny": "hr_secret"})
    assert place(found, "sales") == ("main", "sales")
    assert place(found, "hr_secret") is None
    assert place(found, "other") is None
    assert found.name("main", Name("hive", "hr_secret")) is None


@pytest.mark.parametrize(
    ("backends", "words"),
    [
        ({"a": {}, "b": {}}, ["backends.a", "backends.b", "no prefix"]),
        ({"a": {"prefix": "x_"}, "b": {"prefix": "X_"}}, ["backends.a", "backends.b", "'x_'"]),
        (
            {"a": {"rename": {"x": "y"}, "deny": "x"}, "b": {"prefix": "b_", "rename": {"x": "z"}}},
            ["backends.a.rename.x", "backends.b.rename.x"],
        ),
        ({"a": {}, "b": {"prefix": "b_", "rename": {"x": "y"}}}, ["backends.b.rename.x", "backends.a.deny"]),
        ({"a": {"allow": "b_x"}, "b": {"prefix": "b_"}}, ["backends.a.allow", "b_x", "backends.b.prefix"]),
        ({"a": {"primary": True}, "b": {"prefix": "b_", "primary": True}}, ["backends.a", "backends.b", "primary"]),
        (
            {"a": {"prefix": "a_", "number": 1}, "b": {"prefix": "b_", "number": 1}},
            ["backends.a", "backends.b", "number"],
        ),
    ],
)
def test_clashes_are_refused_with_both_places(backends: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(FederationError) as refused:
        mapping(**backends)
    for word in words:
        assert word in str(refused.value)


def test_explanations() -> None:
    found = mapping(main={"deny": "tmp"}, eu={"prefix": "eu_", "read_only": True})
    assert "sales of backend eu" in found.explain(in_words("eu_sales"))
    assert "read-only, by backends.eu.prefix 'eu_'" in found.explain(in_words("eu_sales"))
    assert "read-write, by backends.main, which has no prefix" in found.explain(in_words("sales"))
    assert "allow and deny leave it out" in found.explain(in_words("tmp"))
    assert "The catalogs are hive" in found.explain(in_words("mars.tmp"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[backends.a]\nuris = 'http://x'", "thrift://host:port"),
        ("[backends.a]\nuris = 'thrift://x'\nprefx = 'a'", "backends.a.prefx: there is no such key"),
        ("[backends.a]\nuris = 'thrift://x'\nrename = {a = 'c', b = 'c'}", "two names, a and b"),
        ("[backends.a]\nuris = 'thrift://x'\nrename = {a = 'c'}\ndeny = 'c'", "allow and deny leave out"),
        ("[backends.a]\nuris = 'thrift://x'\nprefix = 'a.b'", "is no name"),
        ("[backends.a]\nuris = 'thrift://x'\nnumber = 1\nprimary = true", "keep their ids"),
        ("[backends", "is not TOML"),
        ("", "backends"),
    ],
)
def test_files_that_cant_be_used(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "federation.toml"
    file.write_text(text)
    with pytest.raises(FederationError) as refused:
        Mapping.load(file)
    assert str(file) in str(refused.value)
    assert words in str(refused.value)
