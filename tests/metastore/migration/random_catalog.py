"""A random catalog with objects of every kind that Hive 2.3 knows, made by its own calls."""

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lake.protocol.connection.thrift_client import ThriftClient
from lake.protocol.hive import (
    AddForeignKeyRequest,
    AddPrimaryKeyRequest,
    BooleanColumnStatsData,
    ColumnStatistics,
    ColumnStatisticsData,
    ColumnStatisticsDesc,
    ColumnStatisticsObj,
    Database,
    Decimal,
    DecimalColumnStatsData,
    DoubleColumnStatsData,
    FieldSchema,
    Function,
    FunctionType,
    GetTableRequest,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    LongColumnStatsData,
    Order,
    Partition,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    ResourceType,
    ResourceUri,
    Role,
    SerDeInfo,
    SkewedInfo,
    SQLForeignKey,
    SQLPrimaryKey,
    StorageDescriptor,
    StringColumnStatsData,
    Table,
)

TEXTS = (
    "",
    "plain",
    'it\'s "quoted"',
    "line\nbreak\tand tab",
    "Ünïcödé 表 🙂",
    "a" * 300,
    " blanks ",
    "\\x00",
    "%20;=,",
)
TYPES = ("bigint", "string", "double", "boolean", "decimal(10,2)", "array<struct<a:int,b:string>>", "map<string,int>")
VALUES = (
    "1",
    "2020-01-01",
    "a/b",
    "a b",
    "x=y",
    "100%",
    "Ünï",
    "quo'te",
    "#hash",
    "UPPER",
    "__HIVE_DEFAULT_PARTITION__",
)
SERDES = (
    "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
    "com.example.UnknownSerDe",
    "org.apache.hadoop.hive.ql.io.orc.OrcSerde",
)
KINDS_OF_OWNERS = (PrincipalType.USER, PrincipalType.ROLE, PrincipalType.GROUP)


@dataclass
class Catalog:
    """What was made. `tables`: by database; `partitioned`: those that have partitions."""

    databases: list[str] = field(default_factory=list)
    tables: dict[str, list[str]] = field(default_factory=dict)
    roles: list[str] = field(default_factory=list)
    objects: int = 0


class Maker:
    """Makes a catalog in a Hive. `begin`: how the names of databases and roles begin. `place`: a directory."""

    def __init__(self, client: ThriftClient, begin: str, place: Path, seed: int, *, latin: bool = False) -> None:
        """`latin`: only texts that Hive's tables on MySQL can hold."""
        self._texts = [each for each in TEXTS if not latin or _is_latin(each)]
        self._client = client
        self._begin = begin
        self._place = place
        self._rng = random.Random(seed)
        self.made = Catalog()

    def make(self, *, databases: int = 2, tables: int = 5, partitions: int = 4) -> Catalog:
        for number in range(databases):
            self._database(f"{self._begin}_{number}")
        for number in range(2):
            self._role(f"{self._begin}_role_{number}")
        for database in self.made.databases:
            for number in range(tables):
                self._table(database, number, partitions)
            self._keys(database)
            self._function(database)
            self._grants(database)
        return self.made

    # --- namespaces -------------------------------------------------------------------------------------------

    def _database(self, name: str) -> None:
        rng = self._rng
        kind = rng.choice(KINDS_OF_OWNERS)
        self._client.create_database(
            Database(
                name=name,
                description=rng.choice(self._texts) or None,
                locationUri=f"file:{self._place}/{name}.db",
                parameters=self._parameters(),
                ownerName=rng.choice(("ann", "Bob.Müller", "etl@EXAMPLE.COM")),
                ownerType=kind,
            )
        )
        self._add(self.made.databases, name)

    def _role(self, name: str) -> None:
        self._client.create_role(Role(name, 0, "boss"))
        self._add(self.made.roles, name)
        self._client.grant_role(name, "ann", PrincipalType.USER, "boss", PrincipalType.USER, self._rng.random() < 0.5)
        if len(self.made.roles) > 1:
            self._client.grant_role(name, self.made.roles[0], PrincipalType.ROLE, "boss", PrincipalType.USER, False)

    def _function(self, database: str) -> None:
        resources = [ResourceUri(ResourceType.JAR, f"hdfs:///jars/{database}.jar")] if self._rng.random() < 0.5 else []
        kind = self._rng.choice(KINDS_OF_OWNERS)
        function = Function("f_1", database, "com.example.F", "ann", kind, 0, FunctionType.JAVA, resources)
        self._client.create_function(function)
        self.made.objects += 1

    # --- tables -----------------------------------------------------------------------------------------------

    def _table(self, database: str, number: int, partitions: int) -> None:
        rng = self._rng
        name = f"t_{number}"
        view = number == 1
        keys = rng.choice(((), ("dt",), ("dt", "region"))) if number else ("dt",)
        if view:
            keys = ()
        parameters = self._parameters()
        external = not view and rng.random() < 0.5
        if external:
            parameters["EXTERNAL"] = "TRUE"
        table = Table(
            tableName=name,
            dbName=database,
            owner=rng.choice(("ann", "Bob.Müller", "")),
            retention=rng.choice((0, 7)),
            lastAccessTime=rng.choice((0, 1_500_000_000)),
            sd=self._descriptor(f"file:{self._place}/{rng.choice(('here', 'there'))}/{database}/{name}", view=view),
            partitionKeys=[FieldSchema(key, "string", rng.choice((None, "a key"))) for key in keys],
            parameters=parameters,
            viewOriginalText="select 'ü' -- a view\nfrom t_0" if view else None,
            viewExpandedText=f"select 'ü' from `{database}`.`t_0`" if view else None,
            tableType="VIRTUAL_VIEW" if view else ("EXTERNAL_TABLE" if external else "MANAGED_TABLE"),
        )
        self._client.create_table(table)
        self._add(self.made.tables.setdefault(database, []), name)
        if view:
            return
        if keys:
            self._partitions(database, name, keys, partitions)
        elif rng.random() < 0.8:
            self._client.update_table_column_statistics(self._statistics(database, name, None))

    def _descriptor(self, location: str, *, view: bool = False) -> StorageDescriptor:
        rng = self._rng
        columns = [
            FieldSchema(f"c{place}", kind, rng.choice((None, "", "a ü comment"))) for place, kind in enumerate(TYPES)
        ]
        skewed = SkewedInfo(["c1"], [["a"], ["b"]], {}) if not view and rng.random() < 0.3 else None
        return StorageDescriptor(
            cols=columns[: rng.randint(5, len(columns))],
            location=None if view else location,
            inputFormat=None if view else "org.apache.hadoop.mapred.TextInputFormat",
            outputFormat=None if view else "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
            compressed=rng.random() < 0.2,
            numBuckets=rng.choice((-1, 0, 4)),
            serdeInfo=SerDeInfo(None, None if view else rng.choice(SERDES), self._parameters()),
            bucketCols=[] if view else rng.choice(([], ["c0"])),
            sortCols=[] if view else rng.choice(([], [Order("c0", 1), Order("c1", 0)])),
            parameters=self._parameters(),
            skewedInfo=skewed,
            storedAsSubDirectories=False,
        )

    def _partitions(self, database: str, table: str, keys: tuple[str, ...], count: int) -> None:
        rng = self._rng
        values: set[tuple[str, ...]] = set()
        while len(values) < count:
            values.add(tuple(rng.choice((*VALUES, str(rng.randrange(1_000_000)))) for _ in keys))
        of_table = self._client.get_table_req(GetTableRequest(database, table)).table  # Hive 4 has no other call
        new = []
        for number, each in enumerate(sorted(values)):
            place = f"file:{self._place}/elsewhere/{database}/{table}/{number}" if rng.random() < 0.3 else None
            sd = of_table.sd.replace(location=place)
            if rng.random() < 0.2:
                sd = self._descriptor(place or "").replace(location=place)
            own = Partition(values=list(each), dbName=database, tableName=table, sd=sd, parameters=self._parameters())
            new.append(own)
        self._client.add_partitions(new)
        self.made.objects += len(new)
        for name in self._client.get_partition_names(database, table, -1)[: count // 2]:
            self._client.update_partition_column_statistics(self._statistics(database, table, name))

    def _parameters(self) -> dict[str, str]:
        rng = self._rng
        return {
            f"key {rng.choice(('a', 'ü', '.', 'B'))}{number}": rng.choice(self._texts)
            for number in range(rng.randint(0, 4))
        }

    # --- belongings -------------------------------------------------------------------------------------------

    def _statistics(self, database: str, table: str, partition: str | None) -> ColumnStatistics:
        rng = self._rng
        numbers: dict[str, Any] = {"numNulls": rng.randrange(10), "numDVs": rng.randrange(1, 1000)}
        kinds = (
            ("c0", "bigint", ColumnStatisticsData(longStats=LongColumnStatsData(lowValue=-5, highValue=7, **numbers))),
            ("c1", "string", ColumnStatisticsData(stringStats=StringColumnStatsData(9, 3.5, **numbers))),
            ("c2", "double", ColumnStatisticsData(doubleStats=DoubleColumnStatsData(-1.5, 2.25, **numbers))),
            ("c3", "boolean", ColumnStatisticsData(booleanStats=BooleanColumnStatsData(3, 4, 5))),
            (
                "c4",
                "decimal(10,2)",
                ColumnStatisticsData(
                    decimalStats=DecimalColumnStatsData(
                        lowValue=Decimal(scale=2, unscaled=b"\x01"),
                        highValue=Decimal(scale=2, unscaled=b"\x7f"),
                        **numbers,
                    )
                ),
            ),
        )
        some = [ColumnStatisticsObj(*each) for each in kinds if rng.random() < 0.8] or [ColumnStatisticsObj(*kinds[0])]
        self.made.objects += len(some)
        return ColumnStatistics(
            ColumnStatisticsDesc(
                isTblLevel=partition is None, dbName=database, tableName=table, partName=partition, lastAnalyzed=1
            ),
            some,
            engine="hive",
        )

    def _keys(self, database: str) -> None:
        def key(table: str) -> SQLPrimaryKey:
            return SQLPrimaryKey(database, table, "c0", 1, f"pk_{database}_{table}", False, False, True)

        tables = [each for each in self.made.tables[database] if each != "t_1"]
        for table in tables[:2]:
            self._client.add_primary_key(AddPrimaryKeyRequest([key(table)]))
        if len(tables) > 1:
            foreign = SQLForeignKey(
                database, tables[0], "c0", database, tables[1], "c0", 1, 1, 2, f"fk_{database}",
                f"pk_{database}_{tables[0]}", False, False, True,
            )  # fmt: skip
            self._client.add_foreign_key(AddForeignKeyRequest([foreign]))
        self.made.objects += 3

    def _grants(self, database: str) -> None:
        refs = [HiveObjectRef(HiveObjectType.DATABASE, database)]
        refs += [HiveObjectRef(HiveObjectType.TABLE, database, each) for each in self.made.tables[database][:3]]
        refs.append(HiveObjectRef(HiveObjectType.COLUMN, database, self.made.tables[database][0], None, "c1"))
        for ref in refs:
            who, kind = self._rng.choice((("ann", PrincipalType.USER), (self.made.roles[0], PrincipalType.ROLE)))
            info = PrivilegeGrantInfo("SELECT", 0, "boss", PrincipalType.USER, self._rng.random() < 0.5)
            self._client.grant_privileges(PrivilegeBag([HiveObjectPrivilege(ref, who, kind, info)]))
            self.made.objects += 1

    def _add(self, names: list[str], name: str) -> None:
        names.append(name)
        self.made.objects += 1


def _is_latin(text: str) -> bool:
    return all(ord(each) < 256 for each in text)
