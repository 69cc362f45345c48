package lake.metastore.spark;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
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
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.RequiresDistributionAndOrdering;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;

/**
 * A stream into a table without a primary key: each micro-batch is one instant, whose files the metastore moves into the
 * directories of their partitions.
 */
final class PlainWrite implements Write, RequiresDistributionAndOrdering {
    /** What Spark asks for when it plans a micro-batch. */
    static final class Builder implements WriteBuilder, SupportsTruncate {
        private final LakeTable table;
        private final LogicalWriteInfo info;
        private boolean replaces;

        Builder(LakeTable table, LogicalWriteInfo info) {
            this.table = table;
            this.info = info;
        }

        /** Each micro-batch has all rows: output mode complete. */
        @Override
        public Builder truncate() {
            replaces = true;
            return this;
        }

        @Override
        public PlainWrite build() {
            return new PlainWrite(this);
        }
    }

    private final LakeTable table;
    private final LogicalWriteInfo info;
    private final boolean replaces;

    private PlainWrite(Builder builder) {
        table = builder.table;
        info = builder.info;
        replaces = builder.replaces;
    }

    @Override
    public Distribution requiredDistribution() {
        return Distributions.unspecified();
    }

    /** A task writes one partition after the other. */
    @Override
    public SortOrder[] requiredOrdering() {
        return order(table.partitionColumns());
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
        return "stream into " + table.name();
    }

    @Override
    public StreamingWrite toStreaming() {
        return new BatchWrites();
    }

    /** What all tasks of a write have written. */
    static LakeRowWriter.Written collected(WriterCommitMessage[] messages) {
        LakeRowWriter.Written written = new LakeRowWriter.Written();
        for (WriterCommitMessage message : messages) {
            written.add((LakeRowWriter.Written) message);
        }
        return written;
    }

    /** The writes of micro-batches, one after the other. */
    private final class BatchWrites implements StreamingWrite {
        private final SparkSession session = SparkSession.active();
        private PendingInstant instant;

        @Override
        public StreamingDataWriterFactory createStreamingWriterFactory(PhysicalWriteInfo physical) {
            String eventTime = LakeWrite.column(info, LakeWrite.EVENT_TIME);
            String source = LakeWrite.column(info, LakeWrite.SOURCE_COLUMN);
            if (eventTime != null) {
                EventTimes.check(table.name(), ColumnNames.lower(table.dataSchema()), eventTime);
                SourceTimes.check(table.name(), ColumnNames.lower(table.dataSchema()), source);
            }
            instant = table.begin(replaces ? "replacecommit" : "commit");
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

        @Override
        public void commit(long batch, WriterCommitMessage[] messages) {
            LakeRowWriter.Written written = collected(messages);
            if (written.files.isEmpty() && !replaces) {
                instant.abort();
                return;
            }
            Configuration hadoop = Catalogs.state(session).newHadoopConf();
            instant.removeOthers(hadoop, written.files.stream().map(file -> file.path).collect(Collectors.toSet()));
            if (replaces) {
                instant.complete(completion(batch, written, written.files));
                return;
            }
            LateRows.complete(
                    instant,
                    table,
                    written.files,
                    written.rowsOf,
                    routed -> completion(batch, written, routed),
                    hadoop);
        }

        private Metastore.Struct completion(
                long batch, LakeRowWriter.Written written, List<WrittenFile> files) {
            List<Metastore.Struct> added = new ArrayList<>();
            for (WrittenFile file : files) {
                added.add(file.struct().with(15, replaces ? null : (Object) true));
            }
            String source = info.options().getOrDefault(LakeWrite.SOURCE, info.queryId());
            String about =
                    "{\"operation\": \"" + (replaces ? "overwrite" : "append") + "\", \"files\": " + added.size()
                            + ", \"rows\": " + written.rows + "}";
            return new Metastore.Struct()
                    .with(5, about.getBytes(StandardCharsets.UTF_8))
                    .with(6, added.isEmpty() ? null : added)
                    .with(9, replaces ? new ArrayList<>(replaced(files)) : null)
                    .with(13, info.options().get(LakeWrite.CHAIN))
                    .with(14, written.eventTimes(source))
                    .with(17, replaces ? (Object) true : null)
                    .with(22, info.queryId())
                    .with(23, batch);
        }

        /** All partitions, those that get rows among them. */
        private Set<String> replaced(List<WrittenFile> files) {
            if (table.partitionColumns().isEmpty()) {
                return Collections.singleton("");
            }
            Set<String> found = new TreeSet<>(table.allPartitions());
            files.forEach(each -> found.add(each.partition));
            return found;
        }

        @Override
        public void abort(long batch, WriterCommitMessage[] messages) {
            if (instant != null) {
                instant.abort(); // unless it is complete
            }
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
