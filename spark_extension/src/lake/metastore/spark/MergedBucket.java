package lake.metastore.spark;

import java.io.IOException;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.connector.read.PartitionReader;

/**
 * The rows of a bucket with log files. The logs are in memory, by key; the base file streams past them.
 *
 * <p>What the logs of a bucket hold must fit into a task's share of memory: a compaction makes it small again.
 */
final class MergedBucket implements PartitionReader<InternalRow> {
    private final FileReaders files;
    private final BucketPartition bucket;
    private final MergeEngine engine;
    private final PickedColumns output;
    private final Map<UnsafeRow, Object> logs = new HashMap<>();
    private PartitionReader<InternalRow> base;
    private Iterator<Object> added;
    private InternalRow row;

    MergedBucket(KeyedTable table, FileReaders files, BucketPartition bucket, PickedColumns output) {
        this.files = files;
        this.bucket = bucket;
        this.engine = MergeEngine.of(table, files.schema);
        this.output = output;
    }

    @Override
    public boolean next() throws IOException {
        if (added == null && base == null) {
            readLogs();
            base = bucket.base == null ? null : files.read(bucket.base);
            added = base == null ? logs.values().iterator() : null;
        }
        while (base != null && base.next()) {
            InternalRow found = base.get();
            Object state = logs.isEmpty() ? null : logs.remove(engine.keys.of(found));
            InternalRow merged = state == null ? found : engine.result(found, state);
            if (merged != null) {
                row = merged;
                return true;
            }
        }
        if (base != null) {
            base.close();
            base = null;
            added = logs.values().iterator();
        }
        while (added.hasNext()) {
            InternalRow merged = engine.result(null, added.next());
            if (merged != null) {
                row = merged;
                return true;
            }
        }
        return false;
    }

    private void readLogs() throws IOException {
        for (FileReaders.Source file : bucket.logs) {
            try (PartitionReader<InternalRow> reader = files.read(file)) {
                while (reader.next()) {
                    InternalRow version = reader.get().copy();
                    logs.compute(engine.keys.of(version).copy(), (key, state) -> engine.add(state, version));
                }
            }
        }
    }

    @Override
    public InternalRow get() {
        return output.of(row);
    }

    @Override
    public void close() throws IOException {
        if (base != null) {
            base.close();
        }
    }
}
