package lake.metastore.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.Set;
import java.util.function.Predicate;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.execution.datasources.DataSourceStrategy$;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * A read of a snapshot: which of its files, and which of their columns. Files of a table without a primary key are read as
 * they are, with columns by their names.
 */
final class LakeScan implements Scan, Batch, SupportsReportStatistics {
    /** Takes what a query needs of a table. */
    private static final class Builder extends PushedConditions {
        private final LakeTable table;
        private final List<Expression> partitionFilters = new ArrayList<>();
        private final List<Filter> dataFilters = new ArrayList<>();
        private final List<Filter> keyFilters = new ArrayList<>();
        private final KeyLookup keys;

        private Builder(LakeTable table) {
            super(table.schema());
            this.table = table;
            this.keys = new KeyLookup(table.keyed);
        }

        @Override
        void take(Expression filter) {
            if (!filter.deterministic() || SubqueryExpression.hasSubquery(filter)) {
                return;
            }
            if (PartitionValues.canDecide(table, filter)) {
                partitionFilters.add(filter);
            } else if (!Plans.refersOnlyTo(filter, column -> table.isPartitionedBy(column.name()))) {
                keys.add(filter);
                Option<Filter> translated = DataSourceStrategy$.MODULE$.translateFilter(filter, true);
                if (translated.isDefined()) {
                    dataFilters.add(translated.get());
                    if (keys.isOnKey(filter)) {
                        keyFilters.add(translated.get());
                    }
                }
            }
        }

        @Override
        void take(Filter filter) {
            Expression place = SourceFilters.over(PartitionValues.columns(table), filter);
            if (place != null) {
                partitionFilters.add(place);
                return;
            }
            keys.add(filter, table.schema());
            dataFilters.add(filter);
            if (keys.isOnKey(filter)) {
                keyFilters.add(filter);
            }
        }

        @Override
        Scan build() {
            return new LakeScan(this);
        }
    }

    /** What builds a read of a table. */
    static ScanBuilder of(LakeTable table) {
        return new Builder(table).builder();
    }

    private final LakeTable table;
    private final StructType dataColumns;
    private final StructType partitionColumns;
    private final PartitionValues partitions;
    private final List<Filter> dataFilters;
    /** Those on columns of the key alone, which skip versions of rows, too. */
    private final List<Filter> keyFilters;
    private final List<List<SnapshotFile>> buckets;
    private final LakeTable.Snapshot snapshot;
    private final ColumnNames names;
    private final SparkSession session = SparkSession.active();

    private LakeScan(Builder builder) {
        this.table = builder.table;
        this.names = table.columnNames();
        this.dataFilters = builder.dataFilters;
        this.keyFilters = builder.keyFilters;
        List<StructField> data = new ArrayList<>();
        List<StructField> places = new ArrayList<>();
        for (StructField each : builder.required.fields()) {
            (table.isPartitionedBy(each.name()) ? places : data).add(each);
        }
        dataColumns = new StructType(data.toArray(new StructField[0]));
        partitionColumns = new StructType(places.toArray(new StructField[0]));
        snapshot = table.snapshot();
        // An earlier snapshot may be from before the number of buckets was changed.
        Set<String> wanted = table.hasBucketsOfDefinition() ? builder.keys.buckets() : null;
        partitions = new PartitionValues(table, session);
        Predicate<String> isWanted = partitions.matching(builder.partitionFilters);
        if (table.keyed == null) {
            SnapshotFile.checkWhole(table.name(), snapshot.files);
        }
        buckets = SnapshotFile.byBucket(snapshot.files);
        buckets.removeIf(
                bucket ->
                        !isWanted.test(bucket.get(0).partition)
                                || (wanted != null && !wanted.contains(bucket.get(0).fileGroup)));
    }

    private SQLConf conf() {
        return Catalogs.state(session).conf();
    }

    @Override
    public StructType readSchema() {
        List<StructField> found = new ArrayList<>();
        Collections.addAll(found, dataColumns.fields());
        Collections.addAll(found, partitionColumns.fields());
        return new StructType(found.toArray(new StructField[0]));
    }

    /** What is read, so that Spark reads it once for two parts of a query. */
    private List<Object> identity() {
        return Arrays.asList(
                table.identity(), snapshot.position, dataColumns, partitionColumns, dataFilters, keyFilters, buckets);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof LakeScan && ((LakeScan) other).identity().equals(identity());
    }

    @Override
    public int hashCode() {
        return Objects.hash(table.identity(), snapshot.position, buckets.size());
    }

    @Override
    public String description() {
        return table.name() + " at position " + snapshot.position + ", buckets: " + buckets.size();
    }

    @Override
    public Batch toBatch() {
        return this;
    }

    @Override
    public Statistics estimateStatistics() {
        long size = 0;
        long rows = 0;
        for (List<SnapshotFile> bucket : buckets) {
            boolean isMerged = SnapshotFile.needMerging(bucket);
            for (SnapshotFile file : bucket) {
                size += file.size;
                rows = isMerged || file.rows < 0 || rows < 0 ? -1 : rows + (file.isBase ? file.rows : 0);
            }
        }
        OptionalLong sizeInBytes = OptionalLong.of(size);
        OptionalLong numRows = rows < 0 ? OptionalLong.empty() : OptionalLong.of(rows);
        return new Statistics() {
            @Override
            public OptionalLong sizeInBytes() {
                return sizeInBytes;
            }

            @Override
            public OptionalLong numRows() {
                return numRows;
            }
        };
    }

    @Override
    public InputPartition[] planInputPartitions() {
        List<PartitionedFile> clean = new ArrayList<>();
        List<InputPartition> found = new ArrayList<>();
        long total = buckets.stream().flatMap(List::stream).mapToLong(each -> each.size).sum();
        long most = Catalogs.maxSplitBytes(session, total);
        Map<String, InternalRow> known = new HashMap<>();
        for (List<SnapshotFile> bucket : buckets) {
            InternalRow values =
                    known.computeIfAbsent(bucket.get(0).partition, name -> partitions.of(name, partitionColumns));
            if (needsMerging(bucket)) {
                found.add(BucketPartition.of(table, snapshot.location, names, bucket, values));
                continue;
            }
            for (SnapshotFile file : bucket) {
                for (long start = 0; file.isBase && start < Math.max(file.size, 1); start += most) {
                    clean.add(file.part(snapshot.location, values, start, Math.min(most, file.size - start)));
                }
            }
        }
        found.addAll(packed(session, clean, most, found.size()));
        return found.toArray(new InputPartition[0]);
    }

    /** Tasks of about so many bytes each, of whole or parts of files. */
    static List<InputPartition> packed(SparkSession session, List<PartitionedFile> files, long most, int next) {
        files.sort((one, other) -> Long.compare(other.length(), one.length()));
        long openCost = Catalogs.state(session).conf().filesOpenCostInBytes();
        List<InputPartition> found = new ArrayList<>();
        List<PartitionedFile> current = new ArrayList<>();
        long size = 0;
        for (PartitionedFile file : files) {
            if (!current.isEmpty() && size + file.length() > most) {
                found.add(new FilePartition(next + found.size(), current.toArray(new PartitionedFile[0])));
                current.clear();
                size = 0;
            }
            current.add(file);
            size += file.length() + openCost;
        }
        if (!current.isEmpty()) {
            found.add(new FilePartition(next + found.size(), current.toArray(new PartitionedFile[0])));
        }
        return found;
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        boolean isMerged = buckets.stream().anyMatch(this::needsMerging);
        Set<Map<String, String>> namings = new HashSet<>();
        buckets.forEach(bucket -> bucket.forEach(file -> namings.add(names.inFile(file.completedAt))));
        StructType stored = table.keyed == null ? dataColumns.asNullable() : ColumnNames.lower(dataColumns);
        return LakeReaders.of(
                session, table, stored, partitionColumns, dataFilters, keyFilters, isMerged, namings);
    }

    /** Whether the rows of a bucket are more than its base file, or its columns have other names there. */
    private boolean needsMerging(List<SnapshotFile> bucket) {
        return table.keyed != null
                && (SnapshotFile.needMerging(bucket)
                        || bucket.stream().anyMatch(file -> !names.inFile(file.completedAt).isEmpty()));
    }
}
