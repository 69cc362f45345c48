package lake.metastore.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The micro-batches of a query that reads a lake table. An offset is a position of the timeline, and a batch what came
 * between two of them, so that a batch which is repeated has the same rows.
 */
final class MicroBatches implements MicroBatchStream {
    private static final int SNAPSHOT_GONE = 4;

    /** A position, and the table whose it is, as Spark keeps it in the checkpoint. */
    private static final class Position extends Offset {
        private final long position;
        /** 0 if that isn't known: releases before the one that kept it. */
        private final long table;

        private Position(long position, long table) {
            this.position = position;
            this.table = table;
        }

        @Override
        public String json() {
            return "{\"position\": " + position + (table == 0 ? "" : ", \"table\": " + table) + "}";
        }
    }

    /** What a task reads, and by what: the files of one batch have other columns and settings than those of another. */
    private static final class Part implements InputPartition {
        private static final long serialVersionUID = 1;

        private final InputPartition files;
        private final PartitionReaderFactory reader;
        /** The values of further columns, null for none. */
        private final Object[] marks;

        private Part(InputPartition files, PartitionReaderFactory reader, Object[] marks) {
            this.files = files;
            this.reader = reader;
            this.marks = marks;
        }
    }

    private static final class Readers implements PartitionReaderFactory {
        private static final long serialVersionUID = 1;

        @Override
        public PartitionReader<InternalRow> createReader(InputPartition partition) {
            Part part = (Part) partition;
            PartitionReader<InternalRow> rows = part.reader.createReader(part.files);
            return part.marks == null ? rows : new Marked(rows, new GenericInternalRow(part.marks));
        }
    }

    /** Rows with further columns. */
    private static final class Marked implements PartitionReader<InternalRow> {
        private final PartitionReader<InternalRow> rows;
        private final InternalRow marks;

        private Marked(PartitionReader<InternalRow> rows, InternalRow marks) {
            this.rows = rows;
            this.marks = marks;
        }

        @Override
        public boolean next() throws IOException {
            return rows.next();
        }

        @Override
        public InternalRow get() {
            return new JoinedRow(rows.get(), marks);
        }

        @Override
        public void close() throws IOException {
            rows.close();
        }
    }

    private final LakeStream stream;
    private final LakeTable table;
    private final SparkSession session = SparkSession.active();
    /** Keeps what the next micro-batch reads. */
    private final ReaderLeases.Pin pin;

    MicroBatches(LakeStream stream) {
        this.stream = stream;
        this.table = stream.table;
        this.pin = table.pin();
    }

    @Override
    public Offset initialOffset() {
        return new Position(stream.begin(), table.tableId());
    }

    @Override
    public Offset latestOffset() {
        return new Position(table.lastPosition(), table.tableId());
    }

    @Override
    public Offset deserializeOffset(String json) {
        try {
            JsonNode found = new ObjectMapper().readTree(json);
            if (found.path("position").isIntegralNumber()) {
                return new Position(found.get("position").asLong(), found.path("table").asLong(0));
            }
        } catch (IOException error) {
            // said below
        }
        throw new IllegalStateException(
                "the query's checkpoint has the offset " + json + ", which is none of a lake table: the query has read"
                        + " something else, or directories. Start it with a new checkpoint");
    }

    @Override
    public void commit(Offset end) {
        pin.moveTo(((Position) end).position);
    }

    @Override
    public void stop() {
        pin.release();
    }

    @Override
    public InputPartition[] planInputPartitions(Offset start, Offset end) {
        checkIsOf((Position) start);
        checkIsOf((Position) end);
        long after = ((Position) start).position;
        long upTo = ((Position) end).position;
        if (upTo <= after) {
            return new InputPartition[0];
        }
        pin.moveTo(after == 0 ? upTo : after);
        List<InputPartition> found =
                table.keyed == null ? files(after, upTo) : after == 0 ? snapshot(upTo) : changes(after, upTo);
        return found.toArray(new InputPartition[0]);
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        return new Readers();
    }

    /** Refuses an offset in the checkpoint that is a position of another table. */
    private void checkIsOf(Position offset) {
        if (offset.table == table.tableId() || (offset.table == 0 && isOwn(offset.position))) {
            return;
        }
        throw new IllegalStateException(
                "the query's checkpoint has read another table (id " + (offset.table == 0 ? "unknown" : offset.table)
                        + ") than " + table.name() + " is now (id " + table.tableId() + "): that one was dropped or renamed."
                        + " Start the query with a new checkpoint");
    }

    /** Whether a position that was kept without a table's id is of this table. */
    private boolean isOwn(long position) {
        try {
            table.call(
                    "lake_get_snapshot",
                    new Metastore.Struct()
                            .with(1, LakeTable.reference(table.identifier(), 0))
                            .with(3, position)
                            .with(6, Collections.emptyList()));
            return true;
        } catch (Metastore.Refused refused) {
            return refused.field == SNAPSHOT_GONE;
        }
    }

    private static List<InputPartition> parts(Batch batch, Object[] marks) {
        PartitionReaderFactory reader = batch.createReaderFactory();
        List<InputPartition> found = new ArrayList<>();
        for (InputPartition each : batch.planInputPartitions()) {
            found.add(new Part(each, reader, marks));
        }
        return found;
    }

    /** All rows of a keyed table at a position, as if its completion had inserted them. */
    private List<InputPartition> snapshot(long position) {
        LakeTable read = table.readAt(position, stream.filter);
        Object[] marks =
                stream.hasChanges
                        ? new Object[] {UTF8String.fromString(Changes.INSERT), position, table.completedAt(position)}
                        : null;
        return parts((LakeScan) LakeScan.of(read).build(), marks);
    }

    private List<InputPartition> changes(long after, long upTo) {
        LakeTable read = table.readAt(upTo, stream.filter);
        return parts(ChangesScan.between(read, stream.schema(), after, upTo, stream.isOfEachCommit), null);
    }

    /** The files that came into a table without a primary key. */
    private List<InputPartition> files(long after, long upTo) {
        LakeTable read = table.readAt(upTo, stream.filter);
        List<SnapshotFile> added;
        String location;
        if (after == 0) {
            LakeTable.Snapshot snapshot = read.snapshot();
            added = snapshot.files;
            location = snapshot.location;
        } else {
            FileChanges changes = FileChanges.of(read, after, upTo);
            added = changes.added();
            location = changes.location();
        }
        PartitionValues values = new PartitionValues(table, session);
        List<PartitionedFile> files = new ArrayList<>();
        long total = added.stream().mapToLong(each -> each.size).sum();
        long most = Catalogs.maxSplitBytes(session, total);
        for (SnapshotFile each : added) {
            if (!each.isBase) {
                throw new IllegalStateException(
                        each.path + " is a file of the kind " + each.kind + ", which only its own system reads");
            }
            for (long start = 0; start < Math.max(each.size, 1); start += most) {
                files.add(each.part(location, values.of(each.partition), start, Math.min(most, each.size - start)));
            }
        }
        StructType columns = table.dataSchema();
        PartitionReaderFactory reader =
                LakeReaders.parquet(session, columns, columns, values.columns(), new Filter[0]);
        List<InputPartition> found = new ArrayList<>();
        for (InputPartition each : LakeScan.packed(session, files, most, 0)) {
            found.add(new Part(each, reader, null));
        }
        return found;
    }

    @Override
    public String toString() {
        return stream.description();
    }
}
