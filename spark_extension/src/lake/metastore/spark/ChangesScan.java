package lake.metastore.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Predicate;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** A read of what changed in a keyed table: its buckets that may have changed, and which of their columns. */
final class ChangesScan implements Scan, Batch, SupportsReportStatistics {
    /** Takes what a query needs. */
    private static final class Builder extends PushedConditions {
        private final ChangesTable changes;
        /** On partition columns. */
        private final List<Expression> filters = new ArrayList<>();

        private Builder(ChangesTable changes) {
            super(changes.schema());
            this.changes = changes;
        }

        @Override
        void take(Expression filter) {
            if (PartitionValues.canDecide(changes.table, filter)) {
                filters.add(filter);
            }
        }

        @Override
        void take(Filter filter) {
            Expression place = SourceFilters.over(PartitionValues.columns(changes.table), filter);
            if (place != null) {
                filters.add(place);
            }
        }

        @Override
        Scan build() {
            return ChangesScan.of(this);
        }
    }

    /** What builds a read of changes. */
    static ScanBuilder of(ChangesTable changes) {
        return new Builder(changes).builder();
    }

    private final LakeTable table;
    private final StructType required;
    private final List<Expression> filters;
    private final ChangesTable.Kind kind;
    private final long[] ends;
    private final List<ChangedRange> ranges;
    private final SparkSession session = SparkSession.active();
    private final PartitionValues partitions;
    private final Predicate<String> isWanted;
    private final ColumnNames names;

    /** {@code ranges}: what happened, given those partitions for which the filters hold. */
    private ChangesScan(
            LakeTable table,
            StructType required,
            List<Expression> filters,
            ChangesTable.Kind kind,
            long[] ends,
            Function<Predicate<String>, List<ChangedRange>> ranges) {
        this.table = table;
        this.required = required;
        this.filters = filters;
        this.kind = kind;
        this.ends = ends;
        names = table.columnNames();
        partitions = new PartitionValues(table, session);
        isWanted = partitions.matching(filters);
        this.ranges = ranges.apply(isWanted);
    }

    private static ChangesScan of(Builder builder) {
        ChangesTable changes = builder.changes;
        try {
            long[] ends = changes.ends();
            return new ChangesScan(
                    changes.table,
                    builder.required,
                    builder.filters,
                    changes.kind(),
                    ends,
                    isWanted -> changes.ranges(ends, isWanted));
        } catch (Metastore.Failed failed) {
            throw Errors.analysis(failed.getMessage());
        }
    }

    /**
     * What a stream reads of a range whose files the caller keeps: net changes if {@code required} has {@code
     * _change_type}, otherwise inserted and updated rows; with {@code isOfEachCommit} the changes of each commit. Raises
     * Refused if files of it have been cleaned.
     */
    static ChangesScan between(
            LakeTable table, StructType required, long after, long upTo, boolean isOfEachCommit) {
        boolean hasTypes = Arrays.asList(required.fieldNames()).contains(Changes.CHANGE_TYPE);
        return new ChangesScan(
                table,
                required,
                new ArrayList<>(),
                hasTypes ? ChangesTable.Kind.NET : ChangesTable.Kind.ROWS,
                new long[] {after, upTo},
                isWanted ->
                        isOfEachCommit
                                ? ChangedRange.ofEachCommit(table, after, upTo, isWanted)
                                : Collections.singletonList(ChangedRange.of(table, after, upTo, isWanted)));
    }

    @Override
    public StructType readSchema() {
        return required;
    }

    @Override
    public String description() {
        long buckets = ranges.stream().mapToLong(each -> each.count(isWanted)).sum();
        return "changes of " + table.name() + " after position " + ends[0] + " up to " + ends[1] + ", buckets: " + buckets;
    }

    @Override
    public Batch toBatch() {
        return this;
    }

    private List<Object> identity() {
        return Arrays.asList(table.identity(), ends[0], ends[1], required, filters, kind);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof ChangesScan && ((ChangesScan) other).identity().equals(identity());
    }

    @Override
    public int hashCode() {
        return Objects.hash(table.identity(), ends[0], ends[1]);
    }

    @Override
    public Statistics estimateStatistics() {
        long[] size = {0};
        ranges.forEach(each -> each.forEachFile(isWanted, file -> size[0] += file.size));
        return new Statistics() {
            @Override
            public OptionalLong sizeInBytes() {
                return OptionalLong.of(size[0]);
            }

            @Override
            public OptionalLong numRows() {
                return OptionalLong.empty();
            }
        };
    }

    @Override
    public InputPartition[] planInputPartitions() {
        List<InputPartition> found = new ArrayList<>();
        ranges.forEach(each -> found.addAll(each.tasks(names, partitions, isWanted)));
        return found.toArray(new InputPartition[0]);
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        Set<Map<String, String>> namings = new HashSet<>();
        ranges.forEach(each -> each.forEachFile(isWanted, file -> namings.add(names.inFile(file.completedAt))));
        StructType data = table.dataSchema().asNullable();
        StructType versions =
                data.add(KeyedTable.INSTANT, DataTypes.StringType, true)
                        .add(KeyedTable.DELETED, DataTypes.BooleanType, true);
        BucketReaders states =
                new BucketReaders(session, table.keyed, versions, Arrays.asList(data.fieldNames()), namings);
        StructType changed = data.add(Changes.CHANGE_TYPE, DataTypes.StringType, true);
        FileReaders changelogs =
                LakeReaders.files(session, changed, changed, new org.apache.spark.sql.sources.Filter[0], namings);
        return new ChangedBucket.Factory(
                table.keyed, versions, states, changelogs, ChangedBucket.places(required, data, partitions.columns()), required, kind == ChangesTable.Kind.ROWS);
    }
}
