package lake.metastore.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.types.UTF8String;

/** What the metastore knows of a keyed table, as a table: {@code shop.customers.instants} and others. */
final class MetadataTable implements SupportsRead {
    /** What there is: names, and columns. */
    private static final Map<String, String> SCHEMAS = new TreeMap<>();

    static {
        SCHEMAS.put(
                "instants",
                "timestamp STRING, action STRING, state STRING, position BIGINT, moment BIGINT, requested_at TIMESTAMP,"
                        + " changed_at TIMESTAMP, conflict STRING, undone_by STRING");
        SCHEMAS.put("partitions", "partition STRING, files BIGINT, log_files BIGINT, size BIGINT");
        SCHEMAS.put(
                "files",
                "partition STRING, bucket STRING, kind STRING, path STRING, size BIGINT, rows BIGINT, columns STRING");
        SCHEMAS.put("options", "key STRING, value STRING");
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
        switch (kind) {
            case "instants":
                return instants();
            case "partitions":
                return partitions();
            case "files":
                return files();
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
                            each.text(14)));
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

    private List<InternalRow> options() {
        List<InternalRow> found = new ArrayList<>();
        new TreeMap<>(Catalogs.properties(table.definition.v1Table()))
                .forEach((key, value) -> found.add(row(key, value)));
        return found;
    }

    private static InternalRow row(Object... values) {
        return new GenericInternalRow(
                Arrays.stream(values)
                        .map(each -> each instanceof String ? UTF8String.fromString((String) each) : each)
                        .toArray());
    }
}
