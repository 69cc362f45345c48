"""Policies: the nearest property wins, Hudi's names are understood, and what means nothing is said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lake.maintenance.decisions.policy import BadPolicy, policy_of

MIB = 1 << 20


def test_defaults() -> None:
    policy = policy_of()
    assert policy.enabled
    assert policy.compaction.delta_commits == 5
    assert (policy.clustering.target_file_bytes, policy.clustering.small_file_bytes) == (256 * MIB, 192 * MIB)
    assert (policy.cleaning.commits, policy.cleaning.hours, policy.cleaning.versions) == (None, 168, None)
    assert set(policy.windows.values()) == {None}


def test_the_nearest_place_wins() -> None:
    name = "compaction.delta-commits"
    assert policy_of({}, {name: "7"}, {name: "9"}).compaction.delta_commits == 7
    assert policy_of({name: "3"}, {name: "7"}, {name: "9"}).compaction.delta_commits == 3
    assert policy_of({}, {}, {name: "9"}).compaction.delta_commits == 9
    kept = policy_of({"clean.versions-retained": "2"}, {"clean.commits-retained": "10"}).cleaning
    assert (kept.commits, kept.hours, kept.versions) == (None, None, 2), "the table says it whole"


def test_hudis_names() -> None:
    policy = policy_of(
        {
            "hoodie.compact.inline.max.delta.commits": "11",
            "hoodie.clustering.plan.strategy.target.file.max.bytes": str(100 * MIB),
            "hoodie.clustering.plan.strategy.small.file.limit": str(10 * MIB),
            "hoodie.clustering.plan.strategy.sort.columns": "Day, id",
            "hoodie.cleaner.commits.retained": "12",
        }
    )
    assert policy.compaction.delta_commits == 11
    assert (policy.clustering.target_file_bytes, policy.clustering.small_file_bytes) == (100 * MIB, 10 * MIB)
    assert policy.clustering.order_by == ("day", "id")
    assert policy.cleaning.commits == 12
    ours = policy_of({"compaction.delta-commits": "2", "hoodie.compact.inline.max.delta.commits": "11"})
    assert ours.compaction.delta_commits == 2


def test_windows_of_one_action() -> None:
    policy = policy_of({"table-services.windows": "01:00-02:00", "clean.windows": "03:00-04:00 Asia/Shanghai"})
    assert policy.windows == {
        "compaction": "01:00-02:00",
        "clustering": "01:00-02:00",
        "clean": "03:00-04:00 Asia/Shanghai",
        "publish": "01:00-02:00",
        "orphans": "01:00-02:00",
        "iceberg": "01:00-02:00",
    }
    assert policy.publishing.commits is None
    assert policy_of({"publish.commits": "7"}).publishing.commits == 7


def test_the_time_for_which_snapshots_are_kept() -> None:
    """Cleans count whole hours; the server keeps to the millisecond what the property says."""
    for text, hours in (("90 min", 2), ("2 h", 2), ("1 s", 1), ("3 d", 72)):
        assert policy_of({"snapshot.time-retained": text}).cleaning.hours == hours
    given = policy_of({"snapshot.time-retained": "2 h", "clean.commits-retained": "4"}).cleaning
    assert (given.commits, given.hours) == (4, None)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("compaction.delta-commits", "0", "1 to"),
        ("compaction.delta-commits", "many", "1 to"),
        ("hoodie.compact.inline.max.delta.commits", "-1", "hoodie.compact.inline.max.delta.commits is '-1'"),
        ("compaction.log-ratio", "nan", "a number from 0 on"),
        ("compaction.log-size", "5 parsecs", "256 mb"),
        ("compaction.log-age", "soon", "12 h"),
        ("clustering.curve", "hilbert", "linear or z-order"),
        ("clustering.small-file-size", "1 tb", "is more than"),
        ("table-services.enabled", "perhaps", "true or false"),
        ("table-services.windows", "at night", "windows such as"),
        ("clean.commits-retained", "0", "1 to"),
    ],
    ids=range(11),
)
def test_what_means_nothing(name: str, value: str, expected: str) -> None:
    with pytest.raises(BadPolicy, match=expected):
        policy_of({}, {name: value})


def test_a_clean_keeps_by_one_thing() -> None:
    with pytest.raises(BadPolicy, match="both given in its database's"):
        policy_of({}, {"clean.commits-retained": "1", "hoodie.cleaner.hours.retained": "2"})


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "compaction.delta-commits",
                "compaction.log-size",
                "compaction.log-ratio",
                "compaction.log-age",
                "clustering.target-file-size",
                "clustering.order-by",
                "clean.hours-retained",
                "table-services.windows",
                "table-services.priority",
            ]
        ),
        st.text(max_size=30),
    )
)
def test_any_text_is_a_policy_or_refused(properties: dict[str, str]) -> None:
    try:
        policy = policy_of(properties)
    except BadPolicy as error:
        assert str(error)
    else:
        assert policy.compaction.delta_commits >= 1
