package lake.metastore.spark;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.ConcurrentModificationException;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.java.function.Function;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.distributions.Distribution;
import org.apache.spark.sql.connector.distributions.Distributions;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.SortDirection;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DeltaBatchWrite;
import org.apache.spark.sql.connector.write.DeltaWrite;
import org.apache.spark.sql.connector.write.DeltaWriteBuilder;
import org.apache.spark.sql.connector.write.DeltaWriter;
import org.apache.spark.sql.connector.write.DeltaWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.RequiresDistributionAndOrdering;
import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsOverwrite;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend;
import org.apache.spark.sql.sources.AlwaysTrue;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;

/**
 * A statement that writes a keyed table: one instant, which begins when the statement is executed, and is complete or
 * invisible.
 */
final class LakeWrite implements DeltaWrite, RequiresDistributionAndOrdering {
    /** Before the name of an option, a property of tables: what writes take that don't say it. */
    static final String DEFAULTS = "write.";

    /** An option of writes: the column of which the least value moves the table's watermark. */
    static final String EVENT_TIME = "event-time";

    /** An option of writes: as of which source event times come. */
    static final String SOURCE = "source";

    /** An option of writes: the column that names the source of each row. */
    static final String SOURCE_COLUMN = "source-column";

    /** An option of writes: of several streams that write the same rows, which one it is. */
    static final String CHAIN = "chain";

    /** How often the rows of a statement are merged, as others complete changes of the same buckets. */
    private static final int MOST_ATTEMPTS = 20;

    /** What Spark asks for when it plans a write. */
    static final class Builder
            implements DeltaWriteBuilder,
                    SupportsOverwrite,
                    SupportsDynamicOverwrite,
                    SupportsStreamingUpdateAsAppend {
        private final LakeTable table;
        private final LogicalWriteInfo info;
        private final String operation;
        /** The partitions that are replaced, by their names; null if none is. */
        private PartitionFilter replaced;
        private boolean replacesWritten;

        /** {@code operation}: what the instant says of itself, such as {@code upsert}. */
        Builder(LakeTable table, LogicalWriteInfo info, String operation) {
            this.table = table;
            this.info = info;
            this.operation = operation;
        }

        @Override
        public boolean canOverwrite(Filter[] filters) {
            return PartitionFilter.of(table, filters) != null;
        }

        @Override
        public Builder overwrite(Filter[] filters) {
            if (Arrays.stream(filters).allMatch(AlwaysTrue.class::isInstance)) {
                return truncate();
            }
            checkPartitions();
            replaced = PartitionFilter.of(table, filters);
            return this;
        }

        @Override
        public Builder truncate() {
            replaced = PartitionFilter.ALL;
            return this;
        }

        /** A row of another partition may have the key of one that is written. */
        private void checkPartitions() {
            if (table.keyed.isTableWide) {
                throw Errors.analysis(
                        "rows of " + table.name() + " may be in any partition: INSERT INTO updates them by their key,"
                                + " and an INSERT OVERWRITE of the whole table, with"
                                + " spark.sql.sources.partitionOverwriteMode=static, replaces all");
            }
        }

        @Override
        public Builder overwriteDynamicPartitions() {
            checkPartitions();
            String named = table.overwritten();
            replaced = PartitionFilter.named(named);
            replacesWritten = named == null;
            return this;
        }

        @Override
        public LakeWrite build() {
            return new LakeWrite(this);
        }
    }

    private final LakeTable table;
    private final KeyedTable keyed;
    private final LogicalWriteInfo info;
    private final String operation;
    /** Otherwise it changes rows that are there, such as an UPDATE. */
    private final boolean isInsert;
    private final PartitionFilter replaced;
    private final boolean replacesWritten;

    private LakeWrite(Builder builder) {
        table = builder.table;
        keyed = table.keyed;
        isInsert = builder.operation.equals("upsert");
        info = builder.info;
        replaced = builder.replaced;
        replacesWritten = builder.replacesWritten;
        operation = replaced == null ? builder.operation : replacesWritten ? "replace_partitions" : "overwrite";
    }

    /** Removes all rows of a table, in one instant. */
    static void truncate(LakeTable table) {
        PendingInstant instant = table.begin("replacecommit");
        try {
            Set<String> partitions = new TreeSet<>();
            for (SnapshotFile file : table.snapshotToChange(instant.readPosition).files) {
                partitions.add(file.partition);
            }
            instant.complete(
                    new Metastore.Struct()
                            .with(5, about("overwrite", 0, 0))
                            .with(9, partitions.isEmpty() ? null : new ArrayList<>(partitions))
                            .with(25, table.layout())
                            .with(29, PartitionFilter.ALL.text));
        } finally {
            instant.abort(); // unless it is complete
        }
    }

    /** What an instant says of itself. */
    private static byte[] about(String operation, int files, long rows) {
        String text = "{\"operation\": \"" + operation + "\", \"files\": " + files + ", \"rows\": " + rows + "}";
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** What a write says, else what the table's property {@code write.…} says for those that don't; null for nothing. */
    static String option(LakeTable table, LogicalWriteInfo info, String option) {
        String given = info.options().getOrDefault(option, table.properties().get(DEFAULTS + option));
        return given == null || given.trim().isEmpty() ? null : given;
    }

    /** The column that an option names, in lower case; null for none. */
    static String column(LakeTable table, LogicalWriteInfo info, String option) {
        String name = option(table, info, option);
        return name == null ? null : name.trim().toLowerCase(Locale.ROOT);
    }

    /** The source as of which event times come that name none. {@code batch}: of a stream; null for a statement. */
    static String source(LakeTable table, LogicalWriteInfo info, Long batch) {
        if (batch != null) {
            return info.options().getOrDefault(SOURCE, info.queryId());
        }
        String given = option(table, info, SOURCE);
        return given == null ? "spark" : given;
    }

    private boolean replaces() {
        return replaced != null;
    }

    @Override
    public Distribution requiredDistribution() {
        return Distributions.clustered(new Expression[] {PlaceFunction.of(table)});
    }

    @Override
    public SortOrder[] requiredOrdering() {
        return new SortOrder[] {
            Expressions.sort(PlaceFunction.of(table), SortDirection.ASCENDING)
        };
    }

    @Override
    public String description() {
        return operation + " into " + table.name();
    }

    @Override
    public DeltaBatchWrite toBatch() {
        return new InstantWrite();
    }

    @Override
    public StreamingWrite toStreaming() {
        return new BatchWrites();
    }

    /** Whether its rows were given, and may be merged again with what others have written meanwhile. */
    private boolean canMergeAgain() {
        return (isInsert || table.isMerged()) && !replaces() && !table.isReadByItsWriter();
    }

    private final class InstantWrite implements DeltaBatchWrite {
        private final SparkSession session = SparkSession.active();
        private PendingInstant instant;
        /** A later one, which writes the same rows after a conflict. */
        private PendingInstant again;
        private LakeTable.Snapshot snapshot;
        /** The number of a stream's micro-batch; null for a statement. */
        private Long batch;

        private PendingInstant begin() {
            return table.begin(replaces() ? "replacecommit" : keyed.isMergeOnRead ? "deltacommit" : "commit");
        }

        private BucketWriter.Wanted wanted(boolean keepsRows) {
            String duplicates = isInsert ? keyed.duplicateKey : "replace";
            boolean refusesOlder = !isInsert || duplicates.equals("fail");
            return new BucketWriter.Wanted(replaces(), keepsRows, refusesOlder, table.isMerged(), duplicates);
        }

        private BucketWriter writer(PendingInstant target, boolean keepsRows) {
            return BucketWriter.of(
                    session,
                    table,
                    table.dataSchema(),
                    snapshot,
                    new BucketWriter.Target(
                            target.timestamp,
                            target.directory,
                            target.path,
                            column(table, info, EVENT_TIME),
                            column(table, info, SOURCE_COLUMN)),
                    wanted(keepsRows));
        }

        private TaskWriters writers() {
            BucketWriter writer = writer(instant, canMergeAgain());
            StructType definition = table.definition.v1Table().schema();
            StructType batch = writer.batchSchema();
            LakeRowWriter.Columns rows =
                    new LakeRowWriter.Columns(info.schema(), batch, table.partitionColumns(), definition);
            LakeRowWriter.Columns ids =
                    new LakeRowWriter.Columns(
                            info.rowIdSchema().orElse(info.schema()), batch, table.partitionColumns(), definition);
            return new TaskWriters(keyed, table.partitionColumns(), writer, rows, ids);
        }

        @Override
        public DeltaWriterFactory createBatchWriterFactory(PhysicalWriteInfo physical) {
            // Spark has run the query's own stages by now: if they fail, nobody tells this object.
            instant = begin();
            try {
                snapshot = table.snapshotToChange(instant.readPosition);
                return writers();
            } catch (Throwable error) {
                instant.abort();
                throw error;
            }
        }

        /** Completes a micro-batch. A repeated one, which is part of the table already, changes nothing. */
        void commit(long number, WriterCommitMessage[] messages) {
            batch = number;
            commit(messages);
        }

        @Override
        public void commit(WriterCommitMessage[] messages) {
            LakeRowWriter.Written written = LakeRowWriter.Written.ofBuckets(messages);
            if (batch != null && written.rows == 0 && !replaces()) {
                instant.abort(); // Spark ran it for its own state alone
                return;
            }
            try {
                complete(instant, written, written.files);
                if (written.files.stream().anyMatch(file -> file.kind.equals(WrittenFile.KEPT))) {
                    instant.remove(hadoop(), KeptRows.DIRECTORY);
                }
                return;
            } catch (ConcurrentModificationException conflict) {
                if (!canMergeAgain()) {
                    throw conflict;
                }
            }
            mergeAgain(written);
        }

        /**
         * Merges the rows again with what others have completed, until nobody is quicker. Each attempt is an instant of its
         * own, whose files are later than those of the others. All buckets are written again: what the attempt before has
         * written names its instant, which is aborted.
         */
        private void mergeAgain(LakeRowWriter.Written written) {
            List<KeptRows> kept = KeptRows.of(keyed, snapshot.location, written.files);
            for (int attempt = 2; ; attempt++) {
                again = begin();
                snapshot = table.snapshotToChange(again.readPosition);
                List<WrittenFile> files = new ArrayList<>();
                JavaSparkContext.fromSparkContext(session.sparkContext())
                        .parallelize(kept, Math.max(kept.size(), 1))
                        .map(new WriteAgain(writer(again, false)))
                        .collect()
                        .forEach(files::addAll);
                try {
                    complete(again, written, files);
                    instant.abort(); // and with it what it kept
                    return;
                } catch (ConcurrentModificationException conflict) {
                    if (attempt == MOST_ATTEMPTS) {
                        throw conflict;
                    }
                }
                again.abort();
            }
        }

        private void complete(PendingInstant target, LakeRowWriter.Written written, List<WrittenFile> files) {
            target.removeOthers(hadoop(), files.stream().map(file -> file.path).collect(Collectors.toSet()));
            if (batch == null || replaces()) {
                target.complete(completion(files, written));
                return;
            }
            List<WrittenFile> joining =
                    files.stream().filter(file -> !file.kind.equals(WrittenFile.KEPT)).collect(Collectors.toList());
            LateRows.complete(
                    target, table, joining, written.rowsOf, routed -> completion(routed, written), hadoop());
        }

        private Configuration hadoop() {
            return Catalogs.state(session).newHadoopConf();
        }

        private Metastore.Struct completion(List<WrittenFile> files, LakeRowWriter.Written written) {
            List<Metastore.Struct> added = new ArrayList<>();
            List<Metastore.Struct> changelog = new ArrayList<>();
            Set<String> partitions = new TreeSet<>();
            for (WrittenFile file : files) {
                if (!file.kind.equals(WrittenFile.KEPT)) {
                    (file.kind.equals(WrittenFile.CHANGELOG) ? changelog : added).add(file.struct());
                    partitions.add(file.partition);
                }
            }
            Set<String> gone = replaces() ? replacedPartitions(partitions) : Collections.emptySet();
            return new Metastore.Struct()
                    .with(5, about(operation, added.size(), written.rows))
                    .with(6, added.isEmpty() ? null : added)
                    .with(9, gone.isEmpty() ? null : new ArrayList<>(gone))
                    .with(13, info.options().get(CHAIN))
                    .with(14, written.eventTimes(source(table, info, batch)))
                    .with(19, table.isReadByItsWriter() || wanted(false).looksIn(keyed) ? (Object) true : null)
                    .with(22, batch == null ? null : info.queryId())
                    .with(23, batch)
                    .with(24, keyed.writesChangelog() && !replaces() ? changelog : null)
                    .with(25, table.layout())
                    .with(29, replaces() ? replaced.text : null);
        }

        /** {@code written}: the partitions that got rows. */
        private Set<String> replacedPartitions(Set<String> written) {
            Set<String> found = new TreeSet<>(written);
            for (SnapshotFile file : snapshot.files) {
                if (replaced.holdsFor(file.partition)) {
                    found.add(file.partition);
                }
            }
            if (table.partitionColumns().isEmpty()) {
                found.add("");
            }
            if (!replacesWritten) {
                for (String each : written) {
                    if (!replaced.holdsFor(each)) {
                        throw Errors.unfitRows("a row of " + each + " is outside of what is overwritten");
                    }
                }
            }
            return found;
        }

        @Override
        public void abort(WriterCommitMessage[] messages) {
            for (PendingInstant each : new PendingInstant[] {again, instant}) {
                if (each != null) {
                    each.abort(); // unless it is complete
                }
            }
        }
    }

    /** The writes of a stream's micro-batches, each of which is an instant. */
    private final class BatchWrites implements StreamingWrite {
        private final InstantWrite write = new InstantWrite();

        @Override
        public StreamingDataWriterFactory createStreamingWriterFactory(PhysicalWriteInfo physical) {
            return new BatchWriters(write.createBatchWriterFactory(physical));
        }

        @Override
        public void commit(long batch, WriterCommitMessage[] messages) {
            write.commit(batch, messages);
        }

        @Override
        public void abort(long batch, WriterCommitMessage[] messages) {
            write.abort(messages);
        }
    }

    /** Makes the writers of a micro-batch's tasks. */
    private static final class BatchWriters implements StreamingDataWriterFactory {
        private static final long serialVersionUID = 1;

        private final DeltaWriterFactory writers;

        private BatchWriters(DeltaWriterFactory writers) {
            this.writers = writers;
        }

        @Override
        public DataWriter<InternalRow> createWriter(int partition, long task, long batch) {
            return writers.createWriter(partition, task);
        }
    }

    /** Writes the rows of a bucket that an earlier attempt has kept. */
    private static final class WriteAgain implements Function<KeptRows, List<WrittenFile>> {
        private static final long serialVersionUID = 1;

        private final BucketWriter writer;

        private WriteAgain(BucketWriter writer) {
            this.writer = writer;
        }

        @Override
        public List<WrittenFile> call(KeptRows kept) throws IOException {
            return writer.writeAgain(kept);
        }
    }

    /** Makes the writers of tasks. */
    private static final class TaskWriters implements DeltaWriterFactory {
        private static final long serialVersionUID = 1;

        private final KeyedTable table;
        private final List<String> partitionColumns;
        private final BucketWriter writer;
        private final LakeRowWriter.Columns rows;
        private final LakeRowWriter.Columns ids;

        private TaskWriters(
                KeyedTable table,
                List<String> partitionColumns,
                BucketWriter writer,
                LakeRowWriter.Columns rows,
                LakeRowWriter.Columns ids) {
            this.table = table;
            this.partitionColumns = partitionColumns;
            this.writer = writer;
            this.rows = rows;
            this.ids = ids;
        }

        @Override
        public DeltaWriter<InternalRow> createWriter(int partition, long task) {
            return new LakeRowWriter(table, partitionColumns, writer, rows, ids);
        }
    }
}
