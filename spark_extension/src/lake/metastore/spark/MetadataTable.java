package lake.metastore.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.types.UTF8String;

/** What the metastore knows of a keyed table, as a table: {@code shop.customers.instants} and others. */
final class MetadataTable implements SupportsRead {
    private static final Pattern HISTORY =
            Pattern.compile("\\s*DESC(?:RIBE)?\\s+HISTORY\\s+(\\S+?)\\s*;?\\s*", Pattern.CASE_INSENSITIVE);

    /** What there is: names, and columns. */
    private static final Map<String, String> SCHEMAS = new TreeMap<>();

    static {
        SCHEMAS.put(
                "instants",
                "timestamp STRING, action STRING, state STRING, position BIGINT, moment BIGINT, requested_at TIMESTAMP,"
                        + " changed_at TIMESTAMP, conflict STRING, undone_by STRING, name STRING");
        SCHEMAS.put("partitions", "partition STRING, files BIGINT, log_files BIGINT, size BIGINT");
        SCHEMAS.put(
                "files",
                "partition STRING, bucket STRING, kind STRING, path STRING, size BIGINT, rows BIGINT, columns STRING");
        SCHEMAS.put("options", "key STRING, value STRING");
        SCHEMAS.put(
                "snapshots",
                "position BIGINT, instant STRING, action STRING, committed_at TIMESTAMP, added_files BIGINT,"
                        + " removed_files BIGINT, added_rows BIGINT, removed_rows BIGINT, added_bytes BIGINT,"
                        + " removed_bytes BIGINT");
        SCHEMAS.put(
                "changelogs",
                "position BIGINT, instant STRING, partition STRING, bucket STRING, path STRING, size BIGINT, rows BIGINT");
    }

    private final LakeTable table;
    private final String kind;

    private MetadataTable(LakeTable table, String kind) {
        this.table = table;
        this.kind = kind;
    }

    static boolean isKind(String name) {
        return SCHEMAS.containsKey(name.toLowerCase(Locale.ROOT));
    }

    static MetadataTable of(LakeTable table, String kind) {
        return new MetadataTable(table, kind.toLowerCase(Locale.ROOT));
    }

    @Override
    public String name() {
        return table.name() + "." + kind;
    }

    @Override
    public StructType schema() {
        return StructType.fromDDL(SCHEMAS.get(kind));
    }

    @Override
    public Set<TableCapability> capabilities() {
        return Collections.singleton(TableCapability.BATCH_READ);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
        return () ->
                new LocalScan() {
                    @Override
                    public InternalRow[] rows() {
                        return MetadataTable.this.rows().toArray(new InternalRow[0]);
                    }

                    @Override
                    public StructType readSchema() {
                        return schema();
                    }
                };
    }

    private List<InternalRow> rows() {
        try {
            return known();
        } catch (Metastore.Failed failed) {
            throw Errors.analysis(failed.getMessage());
        }
    }

    private List<InternalRow> known() {
        switch (kind) {
            case "instants":
                return instants();
            case "partitions":
                return partitions();
            case "files":
                return files();
            case "snapshots":
                return snapshots();
            case "changelogs":
                return changelogs();
            default:
                return options();
        }
    }

    private List<InternalRow> instants() {
        List<InternalRow> found = new ArrayList<>();
        for (Metastore.Answer each : table.instants()) {
            found.add(
                    row(
                            each.text(1),
                            each.text(2),
                            each.text(3),
                            each.has(8) ? each.number(8, 0) : null,
                            each.has(9) ? each.number(9, 0) : null,
                            each.number(4, 0) * 1_000,
                            each.number(5, 0) * 1_000,
                            each.text(13),
                            each.text(14),
                            each.text(18)));
        }
        return found;
    }

    private List<InternalRow> partitions() {
        Map<String, long[]> sums = new TreeMap<>();
        for (SnapshotFile each : table.snapshot().files) {
            long[] sum = sums.computeIfAbsent(each.partition, name -> new long[3]);
            sum[0]++;
            sum[1] += each.isBase ? 0 : 1;
            sum[2] += each.size;
        }
        List<InternalRow> found = new ArrayList<>();
        sums.forEach((name, sum) -> found.add(row(name, sum[0], sum[1], sum[2])));
        return found;
    }

    private List<InternalRow> files() {
        LakeTable.Snapshot snapshot = table.snapshot();
        List<InternalRow> found = new ArrayList<>();
        for (SnapshotFile each : snapshot.files) {
            found.add(
                    row(
                            each.partition,
                            each.fileGroup,
                            each.kind,
                            snapshot.location + "/" + each.path,
                            each.size,
                            each.rows < 0 ? null : (Object) each.rows,
                            each.columns == null ? null : String.join(",", each.columns)));
        }
        return found;
    }

    /** One row per completion. What files of it came and went isn't known any more before the oldest readable position. */
    private List<InternalRow> snapshots() {
        Map<Long, Metastore.Answer> completed = completed();
        Map<Long, Metastore.Answer> changes = new HashMap<>();
        long last = table.position();
        if (last > 0) {
            long oldest = table.oldestReadable();
            for (Metastore.Answer each : table.changes(Math.min(oldest, last), last, false).changes) {
                changes.put(each.struct(1).number(8, 0), each);
            }
        }
        List<InternalRow> found = new ArrayList<>();
        completed.forEach(
                (position, instant) -> {
                    Object[] values = new Object[10];
                    values[0] = position;
                    values[1] = instant.text(1);
                    values[2] = instant.text(2);
                    values[3] = instant.number(5, 0) * 1_000;
                    Metastore.Answer change = changes.get(position);
                    for (int side = 0; change != null && side < 2; side++) {
                        List<SnapshotFile> files = SnapshotFile.of(change.structs(2 + side));
                        boolean hasRows = files.stream().allMatch(each -> each.rows >= 0 || each.isFamily());
                        values[4 + side] = (long) files.size();
                        values[6 + side] =
                                hasRows ? files.stream().mapToLong(each -> Math.max(each.rows, 0)).sum() : null;
                        values[8 + side] = files.stream().mapToLong(each -> each.size).sum();
                    }
                    found.add(row(values));
                });
        return found;
    }

    /** The files with the rows that commits changed, as far as they are kept. */
    private List<InternalRow> changelogs() {
        List<InternalRow> found = new ArrayList<>();
        if (!table.keyed.writesChangelog()) {
            return found;
        }
        completed()
                .forEach(
                        (position, instant) -> {
                            LakeTable.Changed changed;
                            try {
                                changed = table.changes(position - 1, position, true);
                            } catch (Metastore.Refused gone) {
                                return; // cleaned, and without a changelog
                            }
                            for (Metastore.Answer each : changed.changes) {
                                for (SnapshotFile file : SnapshotFile.of(each.structs(4))) {
                                    found.add(
                                            row(
                                                    position,
                                                    instant.text(1),
                                                    file.partition,
                                                    file.fileGroup,
                                                    changed.location + "/" + file.path,
                                                    file.size,
                                                    file.rows < 0 ? null : (Object) file.rows));
                                }
                            }
                        });
        return found;
    }

    /** The completed instants by their positions. A savepoint has that of the instant which it protects. */
    private Map<Long, Metastore.Answer> completed() {
        Map<Long, Metastore.Answer> found = new TreeMap<>();
        for (Metastore.Answer each : table.instants()) {
            if (each.has(8) && !each.text(2).equals("savepoint")) {
                found.put(each.number(8, 0), each);
            }
        }
        return found;
    }

    private List<InternalRow> options() {
        List<InternalRow> found = new ArrayList<>();
        new TreeMap<>(Catalogs.properties(table.definition.v1Table()))
                .forEach((key, value) -> found.add(row(key, value)));
        return found;
    }

    /** The query of {@code DESCRIBE HISTORY t}; null for another statement, and for tables that aren't keyed. */
    static String historyQuery(String statement, ParserInterface parser) {
        Matcher history = HISTORY.matcher(statement);
        if (!history.matches()) {
            return null;
        }
        TableIdentifier name;
        try {
            name = parser.parseTableIdentifier(history.group(1));
        } catch (ParseException error) {
            return null;
        }
        boolean isOwn =
                name.catalog().isDefined()
                        ? name.catalog().get().equalsIgnoreCase("spark_catalog")
                        : Catalogs.isOwn(SparkSession.active(), name);
        LakeTable table = isOwn ? LakeTable.ifKeyed(name) : null;
        if (table == null) {
            return null;
        }
        return "SELECT * FROM " + table.quotedName() + ".snapshots ORDER BY position DESC";
    }

    private static InternalRow row(Object... values) {
        return new GenericInternalRow(
                Arrays.stream(values)
                        .map(each -> each instanceof String ? UTF8String.fromString((String) each) : each)
                        .toArray());
    }
}
