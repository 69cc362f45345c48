"""The form in which objects of two metastores are compared."""

from lake.protocol.hive import HiveObjectPrivilege, HiveObjectRef, HiveObjectType, PrincipalType, PrivilegeGrantInfo
from metastore.migration import canonical
from metastore.migration.objects import MOVED_TO, MOVING_TO
from metastore.migration.verifying import grant_name
from tests.support import builders


def test_partitions_that_share_columns_have_the_form_of_each_by_itself() -> None:
    wide = builders.storage(*(f"c{number}:int#number {number}" for number in range(20)))
    some = [
        builders.partition("d", "t", "1", sd=wide),
        builders.partition("d", "t", "2", sd=wide.replace(location="file:///a")),
        builders.partition("d", "t", "3", sd=builders.storage("c0:int")),
        builders.partition("d", "t", "4", sd=wide.replace(cols=[*wide.cols[:-1], builders.columns("c19:bigint")[0]])),
        builders.partition("d", "t", "5", sd=wide.replace(cols=[])),
        builders.partition("d", "t", "6").replace(sd=None),
        builders.partition("d", "t", "7", sd=wide),
    ]
    forms = canonical.Partitions()
    made = [forms.form(each) for each in some]
    assert made == [canonical.of_struct(each) for each in some]
    other = canonical.Partitions()
    again = [other.form(each) for each in reversed(some)][::-1]
    assert [canonical.digest(each) for each in made] == [canonical.digest(each) for each in again]


def test_each_difference_of_columns_changes_the_digest() -> None:
    sd = builders.storage("a:int#x", "b:string")
    columns = [
        sd.cols,
        builders.columns("a:int#y", "b:string"),
        builders.columns("a:bigint#x", "b:string"),
        builders.columns("b:string", "a:int#x"),
        builders.columns("a:int#x"),
        [],
    ]
    forms = canonical.Partitions()
    digests = {
        canonical.digest(forms.form(builders.partition("d", "t", "1", sd=sd.replace(cols=each)))) for each in columns
    }
    assert len(digests) == len(columns)


def test_that_a_database_moves_is_no_difference() -> None:
    own = builders.database("d", parameters={"a": "b"})
    for marks in ({MOVING_TO: "x"}, {MOVED_TO: "y", MOVING_TO: ""}):
        assert canonical.of_struct(own.replace(parameters={"a": "b", **marks})) == canonical.of_struct(own)
        assert canonical.of_struct(own.replace(parameters=marks)) == canonical.of_struct(own.replace(parameters=None))
    assert canonical.of_struct(own) != canonical.of_struct(own.replace(parameters=None))


def test_two_grants_have_two_names() -> None:
    """Or one of them would hide the other when both metastores are compared."""

    def name(values: list[str], grantor: PrincipalType) -> str:
        of = HiveObjectRef(HiveObjectType.PARTITION, "d", "t", values)
        info = PrivilegeGrantInfo("SELECT", 0, "ops", grantor, False)
        return grant_name(HiveObjectPrivilege(of, "ann", PrincipalType.USER, info))

    user, role = PrincipalType.USER, PrincipalType.ROLE
    assert name(["a", "b/c"], user) == "ann (user): SELECT on partition d.t.a/b%2Fc by ops"
    assert len({name(["a", "b/c"], user), name(["a/b", "c"], user), name(["a", "b/c"], role)}) == 3
