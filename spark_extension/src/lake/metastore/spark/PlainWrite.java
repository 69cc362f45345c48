package lake.metastore.spark;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.distributions.Distribution;
import org.apache.spark.sql.connector.distributions.Distributions;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.SortDirection;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.RequiresDistributionAndOrdering;
import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsOverwrite;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.sources.AlwaysTrue;
import org.apache.spark.sql.sources.Filter;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A statement, or a stream, that writes a table without a primary key: the statement or each micro-batch is one instant.
 * The metastore moves files that are added into the directories of their partitions; those that replace others stay where
 * they are.
 */
final class PlainWrite implements Write, RequiresDistributionAndOrdering {
    private static final Logger LOG = LoggerFactory.getLogger(PlainWrite.class);

    /** What Spark asks for when it plans a write. */
    static final class Builder implements WriteBuilder, SupportsOverwrite, SupportsDynamicOverwrite {
        private final LakeTable table;
        private final LogicalWriteInfo info;
        /** The partitions that are replaced, by their names; null if none is. */
        private PartitionFilter replaced;
        private boolean replacesWritten;

        Builder(LakeTable table, LogicalWriteInfo info) {
            this.table = table;
            this.info = info;
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
            replaced = PartitionFilter.of(table, filters);
            return this;
        }

        /** Streams say so by the output mode complete: each micro-batch has all rows. */
        @Override
        public Builder truncate() {
            replaced = PartitionFilter.ALL;
            return this;
        }

        @Override
        public Builder overwriteDynamicPartitions() {
            String named = table.overwritten();
            replaced = PartitionFilter.named(named);
            replacesWritten = named == null;
            return this;
        }

        @Override
        public PlainWrite build() {
            return new PlainWrite(this);
        }
    }

    private final LakeTable table;
    private final LogicalWriteInfo info;
    private final PartitionFilter replaced;
    private final boolean replacesWritten;

    private PlainWrite(Builder builder) {
        table = builder.table;
        info = builder.info;
        replaced = builder.replaced;
        replacesWritten = builder.replacesWritten;
    }

    private boolean replaces() {
        return replaced != null;
    }

    @Override
    public Distribution requiredDistribution() {
        return Distributions.unspecified();
    }

    /** A task writes one partition after the other. */
    @Override
    public SortOrder[] requiredOrdering() {
        return order(table.spelled(table.partitionColumns()));
    }

    static SortOrder[] order(List<String> partitionColumns) {
        List<SortOrder> found = new ArrayList<>();
        for (String column : Catalogs.quoted(partitionColumns.toArray(new String[0]))) {
            found.add(Expressions.sort(Expressions.column(column), SortDirection.ASCENDING));
        }
        if (found.isEmpty()) { // it sorts nothing: without any order Spark takes a write for continuous processing
            found.add(Expressions.sort(Expressions.literal(1), SortDirection.ASCENDING));
        }
        return found.toArray(new SortOrder[0]);
    }

    @Override
    public String description() {
        return operation() + " into " + table.name();
    }

    private String operation() {
        return !replaces() ? "append" : replacesWritten ? "replace_partitions" : "overwrite";
    }

    @Override
    public BatchWrite toBatch() {
        return new StatementWrite();
    }

    @Override
    public StreamingWrite toStreaming() {
        return new BatchWrites();
    }

    /** Removes all rows of a table, in one instant. */
    static void truncate(SparkSession session, LakeTable table) {
        Builder builder = new Builder(table, null).truncate();
        InstantWrite write = new PlainWrite(builder).new InstantWrite(session);
        try {
            write.begin();
            write.complete(new LakeRowWriter.Written(), null);
        } finally {
            write.abort();
        }
    }

    /** What all tasks of a write have written. */
    static LakeRowWriter.Written collected(WriterCommitMessage[] messages) {
        LakeRowWriter.Written written = new LakeRowWriter.Written();
        for (WriterCommitMessage message : messages) {
            written.add((LakeRowWriter.Written) message);
        }
        return written;
    }

    /** The instant of a statement, or of a micro-batch. */
    private final class InstantWrite {
        private final SparkSession session;
        private PendingInstant instant;

        private InstantWrite(SparkSession session) {
            this.session = session;
        }

        private void begin() {
            instant = table.begin(replaces() ? "replacecommit" : "commit");
        }

        private TaskWriters writers() {
            String eventTime = LakeWrite.column(table, info, LakeWrite.EVENT_TIME);
            String source = LakeWrite.column(table, info, LakeWrite.SOURCE_COLUMN);
            if (eventTime != null) {
                EventTimes.check(table.name(), ColumnNames.lower(table.dataSchema()), eventTime);
                SourceTimes.check(table.name(), ColumnNames.lower(table.dataSchema()), source);
            }
            begin();
            try {
                BucketWriter.Target target =
                        new BucketWriter.Target(
                                instant.timestamp, instant.directory, instant.path, eventTime, source);
                return new TaskWriters(PlainRowWriter.Files.of(session, table, target, info.schema()));
            } catch (Throwable error) {
                instant.abort();
                throw error;
            }
        }

        /** {@code batch}: the number of a stream's micro-batch; null for a statement. */
        private void complete(LakeRowWriter.Written written, Long batch) {
            Configuration hadoop = Catalogs.state(session).newHadoopConf();
            instant.removeOthers(hadoop, written.files.stream().map(file -> file.path).collect(Collectors.toSet()));
            if (replaces() || batch == null) {
                instant.complete(completion(batch, written, written.files));
            } else {
                LateRows.complete(
                        instant,
                        table,
                        written.files,
                        written.rowsOf,
                        routed -> completion(batch, written, routed),
                        hadoop);
            }
        }

        private void abort() {
            if (instant != null) {
                instant.abort(); // unless it is complete
            }
        }

        private Metastore.Struct completion(Long batch, LakeRowWriter.Written written, List<WrittenFile> files) {
            List<Metastore.Struct> added = new ArrayList<>();
            for (WrittenFile file : files) {
                added.add(file.struct().with(15, replaces() ? null : (Object) true));
            }
            String about =
                    "{\"operation\": \"" + operation() + "\", \"files\": " + added.size() + ", \"rows\": " + written.rows
                            + "}";
            Metastore.Struct found =
                    new Metastore.Struct()
                            .with(5, about.getBytes(StandardCharsets.UTF_8))
                            .with(6, added.isEmpty() ? null : added)
                            .with(17, replaces() ? (Object) true : null);
            if (replaces()) {
                Set<String> gone = replacedPartitions(files);
                found.with(9, gone.isEmpty() ? null : new ArrayList<>(gone)).with(29, replaced.text);
            }
            if (info != null) {
                found.with(13, info.options().get(LakeWrite.CHAIN))
                        .with(14, written.eventTimes(LakeWrite.source(table, info, batch)));
            }
            return batch == null ? found : found.with(22, info.queryId()).with(23, batch);
        }

        private Set<String> replacedPartitions(List<WrittenFile> files) {
            Set<String> found = new TreeSet<>();
            if (table.partitionColumns().isEmpty()) {
                found.add("");
                return found;
            }
            for (WrittenFile each : files) {
                if (!replacesWritten && !replaced.holdsFor(each.partition)) {
                    throw Errors.unfitRows("a row of " + each.partition + " is outside of what is overwritten");
                }
                found.add(each.partition);
            }
            table.allPartitions().stream().filter(replaced::holdsFor).forEach(found::add);
            return found;
        }
    }

    /** The write of a statement. */
    private final class StatementWrite implements BatchWrite {
        private final SparkSession session = SparkSession.active();
        private final InstantWrite write = new InstantWrite(session);

        @Override
        public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo physical) {
            return write.writers();
        }

        @Override
        public void commit(WriterCommitMessage[] messages) {
            write.complete(collected(messages), null);
            refresh(session, table);
        }

        @Override
        public void abort(WriterCommitMessage[] messages) {
            write.abort();
        }
    }

    /**
     * Has a session list the table's directories again, by which it reads them, and forgets what was known of older rows. A
     * failure is ignored: the rows are written.
     */
    static void refresh(SparkSession session, LakeTable table) {
        TableStatistics.forget(session, table);
        try {
            session.catalog().refreshTable(table.quotedName());
        } catch (RuntimeException error) {
            LOG.warn("the session may keep old listings of {}: {}", table.name(), error.getMessage());
        }
    }

    /** The writes of micro-batches, one after the other. */
    private final class BatchWrites implements StreamingWrite {
        private final InstantWrite write = new InstantWrite(SparkSession.active());

        @Override
        public StreamingDataWriterFactory createStreamingWriterFactory(PhysicalWriteInfo physical) {
            return write.writers();
        }

        @Override
        public void commit(long batch, WriterCommitMessage[] messages) {
            LakeRowWriter.Written written = collected(messages);
            if (written.files.isEmpty() && !replaces()) {
                write.abort();
                return;
            }
            write.complete(written, batch);
        }

        @Override
        public void abort(long batch, WriterCommitMessage[] messages) {
            write.abort();
        }
    }

    /** Makes the writers of tasks. */
    static final class TaskWriters implements StreamingDataWriterFactory, DataWriterFactory {
        private static final long serialVersionUID = 1;

        private final PlainRowWriter.Files files;

        TaskWriters(PlainRowWriter.Files files) {
            this.files = files;
        }

        @Override
        public DataWriter<InternalRow> createWriter(int partition, long task) {
            return new PlainRowWriter(files, partition);
        }

        @Override
        public DataWriter<InternalRow> createWriter(int partition, long task, long batch) {
            return new PlainRowWriter(files, partition);
        }
    }
}
