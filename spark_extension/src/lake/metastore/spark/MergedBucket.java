package lake.metastore.spark;

import java.io.IOException;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * The rows of a bucket with log files. The logs are in memory, by key; the base file streams past them.
 *
 * <p>What the logs of a bucket hold must fit into a task's share of memory: a compaction makes it small again.
 */
final class MergedBucket implements PartitionReader<InternalRow> {
    private final FileReaders files;
    private final BucketPartition bucket;
    private final MergeEngine engine;
    private final StructType schema;
    private final int[] keys;
    private final UnsafeProjection toKey;
    private final PickedColumns output;
    private final Map<UnsafeRow, Object> logs = new HashMap<>();
    private PartitionReader<InternalRow> base;
    private Iterator<Object> added;
    private InternalRow row;

    MergedBucket(KeyedTable table, FileReaders files, BucketPartition bucket, PickedColumns output) {
        this.files = files;
        this.bucket = bucket;
        this.schema = files.schema;
        this.engine = MergeEngine.of(table, schema);
        this.keys = table.key.stream().mapToInt(schema::fieldIndex).toArray();
        DataType[] types = new DataType[keys.length];
        for (int i = 0; i < keys.length; i++) {
            types[i] = schema.apply(keys[i]).dataType();
        }
        this.toKey = UnsafeProjection.create(types);
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
            Object state = logs.isEmpty() ? null : logs.remove(key(found));
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
                    logs.compute(key(version).copy(), (key, state) -> engine.add(state, version));
                }
            }
        }
    }

    private UnsafeRow key(InternalRow version) {
        Object[] values = new Object[keys.length];
        for (int i = 0; i < keys.length; i++) {
            values[i] = version.get(keys[i], schema.apply(keys[i]).dataType());
        }
        return toKey.apply(new GenericInternalRow(values));
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
