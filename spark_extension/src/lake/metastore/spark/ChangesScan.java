package lake.metastore.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.Set;
import java.util.function.Predicate;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.internal.connector.SupportsPushDownCatalystFilters;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/**
 * A read of what changed in a keyed table: its buckets that may have changed, by the rules of
 * lake/tables/keyed_tables.py.
 */
final class ChangesScan implements Scan, Batch, SupportsReportStatistics {
    /** The actions of instants that change no row. */
    private static final Set<String> SERVICES =
            new HashSet<>(Arrays.asList("compaction", "logcompaction", "clustering"));

    /** The actions of instants that replace the rows of buckets, or bring or take all of them. */
    private static final Set<String> REWRITES =
            new HashSet<>(Arrays.asList("replacecommit", "rollback", "restore", "readiness"));

    /** Takes what a query needs. */
    static final class Builder
            implements ScanBuilder, SupportsPushDownRequiredColumns, SupportsPushDownCatalystFilters {
        private final ChangesTable changes;
        private final List<Expression> filters = new ArrayList<>();
        private StructType required;

        Builder(ChangesTable changes) {
            this.changes = changes;
            this.required = changes.schema();
        }

        @Override
        public void pruneColumns(StructType required) {
            this.required = required;
        }

        /** Spark 3.5 calls this one. All filters are evaluated again: buckets are only skipped by them. */
        public scala.collection.Seq<Expression> pushFilters(scala.collection.Seq<Expression> filters) {
            push(Plans.elements(filters));
            return filters;
        }

        /** Spark 4 calls this one. */
        public scala.collection.immutable.Seq<Expression> pushFilters(
                scala.collection.immutable.Seq<Expression> filters) {
            push(Plans.elements(filters));
            return filters;
        }

        private void push(List<Object> given) {
            for (Object each : given) {
                if (PartitionValues.canDecide(changes.table, (Expression) each)) {
                    filters.add((Expression) each);
                }
            }
        }

        @Override
        public org.apache.spark.sql.connector.expressions.filter.Predicate[] pushedFilters() {
            return new org.apache.spark.sql.connector.expressions.filter.Predicate[0];
        }

        @Override
        public Scan build() {
            return ChangesScan.of(this);
        }
    }

    /** What happened to one bucket. */
    private static final class Touched {
        private final List<SnapshotFile> before = new ArrayList<>();
        private final List<SnapshotFile> after = new ArrayList<>();
        /** The log files that came between, in the order of their completion. */
        private final List<SnapshotFile> logs = new ArrayList<>();
        /** Instead of the others. */
        private final List<SnapshotFile> changelog = new ArrayList<>();
        /** By the timestamps of instants, the positions at which they were complete. */
        private final Map<String, Long> positions = new HashMap<>();
        /** The position of the last replacement or rollback; 0 for none. */
        private long rewritten;
        private boolean hasChanged;

        private List<SnapshotFile> files() {
            List<SnapshotFile> found = new ArrayList<>();
            for (List<SnapshotFile> some : Arrays.asList(before, after, logs, changelog)) {
                found.addAll(some);
            }
            return found;
        }
    }

    private final LakeTable table;
    private final StructType required;
    private final List<Expression> filters;
    /** Inserted and updated rows alone, without pre-images and deletes. */
    private final boolean isOfRows;
    private final long after;
    private final long upTo;
    private final SparkSession session = SparkSession.active();
    private final PartitionValues partitions;
    private final ColumnNames names;
    private String location;
    /** By partition and file group. */
    private final Map<List<String>, Touched> buckets = new LinkedHashMap<>();
    /** By position, in microseconds since 1970. */
    private final Map<Long, Long> times = new HashMap<>();

    private ChangesScan(
            LakeTable table, StructType required, List<Expression> filters, boolean isOfRows, long after, long upTo) {
        this.table = table;
        this.required = required;
        this.filters = filters;
        this.isOfRows = isOfRows;
        this.after = after;
        this.upTo = upTo;
        names = table.columnNames();
        partitions = new PartitionValues(table, session);
    }

    private static ChangesScan of(Builder builder) {
        LakeTable table = builder.changes.table;
        try {
            long after = builder.changes.from();
            long upTo = builder.changes.upTo();
            if (after > upTo) {
                throw Errors.analysis(
                        table.name() + ": position " + after + " is not before position " + upTo + ", the end of the range");
            }
            table.keepChanges(after);
            ChangesScan found = new ChangesScan(table, builder.required, builder.filters, false, after, upTo);
            found.collect();
            return found;
        } catch (Metastore.Failed failed) {
            throw Errors.analysis(failed.getMessage());
        }
    }

    /**
     * What a stream reads of a range whose files the caller keeps: net changes if {@code required} has {@code
     * _change_type}, otherwise inserted and updated rows. Raises Refused if files of it have been cleaned.
     */
    static ChangesScan between(LakeTable table, StructType required, long after, long upTo) {
        boolean isOfRows = !Arrays.asList(required.fieldNames()).contains(Changes.CHANGE_TYPE);
        ChangesScan found = new ChangesScan(table, required, new ArrayList<>(), isOfRows, after, upTo);
        found.collect();
        return found;
    }

    /** Whether an instant changes no row. {@code instant}: as the metastore describes it. */
    static boolean isService(Metastore.Answer instant) {
        return SERVICES.contains(instant.has(10) ? instant.text(10) : instant.text(2));
    }

    private void collect() {
        Predicate<String> isWanted = partitions.matching(filters);
        LakeTable.Changed changed = table.changes(after, upTo, true);
        location = changed.location;
        for (Metastore.Answer each : changed.changes) {
            Metastore.Answer instant = each.struct(1);
            List<SnapshotFile> added = SnapshotFile.of(each.structs(2));
            List<SnapshotFile> all = new ArrayList<>(added);
            all.addAll(SnapshotFile.of(each.structs(3)));
            List<SnapshotFile> changelog = SnapshotFile.of(each.structs(4));
            all.addAll(changelog);
            if (all.isEmpty()) {
                continue; // a savepoint has the timestamp of the instant that it protects
            }
            String action = instant.has(10) ? instant.text(10) : instant.text(2);
            long position = instant.number(8, 0);
            times.put(position, instant.number(5, 0) * 1_000);
            for (SnapshotFile file : all) {
                if (!isWanted.test(file.partition)) {
                    continue;
                }
                Touched bucket = touched(file);
                bucket.positions.put(instant.text(1), position);
                bucket.hasChanged |= !SERVICES.contains(action);
                if (REWRITES.contains(action)) {
                    bucket.rewritten = position;
                }
            }
            if (!SERVICES.contains(action)) {
                added.stream()
                        .filter(file -> file.kind.equals("log") && isWanted.test(file.partition))
                        .forEach(file -> touched(file).logs.add(file));
            }
            changelog.stream()
                    .filter(file -> isWanted.test(file.partition))
                    .forEach(file -> touched(file).changelog.add(file));
        }
        buckets.values().removeIf(each -> !each.hasChanged);
        if (!changed.isOfChangelogs) {
            Set<String> places = new LinkedHashSet<>();
            buckets.keySet().forEach(each -> places.add(each.get(0)));
            for (SnapshotFile file : table.filesAt(after, new ArrayList<>(places))) {
                ifTouched(file).before.add(file);
            }
            for (SnapshotFile file : table.filesAt(upTo, new ArrayList<>(places))) {
                ifTouched(file).after.add(file);
            }
            // Where there is nothing at either end, rows came and went meanwhile.
            buckets.values().removeIf(each -> each.before.isEmpty() && each.after.isEmpty());
        }
    }

    private Touched touched(SnapshotFile file) {
        return buckets.computeIfAbsent(Arrays.asList(file.partition, file.fileGroup), missing -> new Touched());
    }

    private Touched ifTouched(SnapshotFile file) {
        return buckets.getOrDefault(Arrays.asList(file.partition, file.fileGroup), new Touched());
    }

    @Override
    public StructType readSchema() {
        return required;
    }

    @Override
    public String description() {
        return "changes of " + table.name() + " after position " + after + " up to " + upTo + ", buckets: " + buckets.size();
    }

    @Override
    public Batch toBatch() {
        return this;
    }

    private List<Object> identity() {
        return Arrays.asList(table.identity(), after, upTo, required, filters);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof ChangesScan && ((ChangesScan) other).identity().equals(identity());
    }

    @Override
    public int hashCode() {
        return Objects.hash(table.identity(), after, upTo);
    }

    @Override
    public Statistics estimateStatistics() {
        long size = buckets.values().stream().flatMap(each -> each.files().stream()).mapToLong(file -> file.size).sum();
        return new Statistics() {
            @Override
            public OptionalLong sizeInBytes() {
                return OptionalLong.of(size);
            }

            @Override
            public OptionalLong numRows() {
                return OptionalLong.empty();
            }
        };
    }

    @Override
    public InputPartition[] planInputPartitions() {
        long last = times.keySet().stream().mapToLong(Long::longValue).max().orElse(0);
        List<InputPartition> found = new ArrayList<>();
        buckets.forEach(
                (place, bucket) -> {
                    long rewritten = bucket.rewritten == 0 ? last : bucket.rewritten;
                    Map<String, long[]> commits = new HashMap<>();
                    bucket.positions.forEach((instant, at) -> commits.put(instant, new long[] {at, times.get(at)}));
                    found.add(
                            new ChangedBucket.Task(
                                    side(bucket.before),
                                    side(bucket.after),
                                    sources(bucket.logs),
                                    tombstones(bucket.logs),
                                    sources(bucket.changelog),
                                    bucket.changelog.stream().map(file -> file.slice).toArray(String[]::new),
                                    commits,
                                    new long[] {rewritten, times.get(rewritten)},
                                    partitions.of(place.get(0))));
                });
        return found.toArray(new InputPartition[0]);
    }

    private static boolean[] tombstones(List<SnapshotFile> files) {
        boolean[] found = new boolean[files.size()];
        for (int i = 0; i < found.length; i++) {
            found[i] = files.get(i).isTombstones();
        }
        return found;
    }

    /** A state of a bucket, null for an empty one. */
    private BucketPartition side(List<SnapshotFile> files) {
        return files.isEmpty()
                ? null
                : BucketPartition.of(table, location, names, SnapshotFile.byBucket(files).get(0), null);
    }

    private List<FileReaders.Source> sources(Collection<SnapshotFile> files) {
        List<FileReaders.Source> found = new ArrayList<>();
        for (SnapshotFile file : files) {
            found.add(new FileReaders.Source(file.whole(location, null), names.inFile(file.completedAt)));
        }
        return found;
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        Set<Map<String, String>> namings = new HashSet<>();
        buckets.values().forEach(each -> each.files().forEach(file -> namings.add(names.inFile(file.completedAt))));
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
                table.keyed, versions, states, changelogs, ChangedBucket.places(required, data, partitions.columns()), required, isOfRows);
    }
}
