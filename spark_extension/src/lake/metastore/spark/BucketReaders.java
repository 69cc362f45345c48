package lake.metastore.spark;

import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetPartitionReaderFactory;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;

/** Reads the files of buckets for a writer: all their columns, with the instants. Sent to executors. */
final class BucketReaders implements Serializable {
    private static final long serialVersionUID = 1;

    private final StructType rows;
    private final ParquetPartitionReaderFactory base;
    private final ParquetPartitionReaderFactory logs;
    /** Of the main file and those of column families, by their names; the main file's is empty. */
    private final Map<String, ParquetPartitionReaderFactory> parts = new LinkedHashMap<>();

    /** {@code rows}: the columns of base files. {@code versions}: those of log files. */
    BucketReaders(SparkSession session, KeyedTable table, StructType rows, StructType versions) {
        this.rows = rows;
        base = files(session, rows);
        logs = files(session, versions);
        List<String> apart = new ArrayList<>();
        for (Map.Entry<String, List<String>> family : table.families.entrySet()) {
            apart.addAll(family.getValue());
            List<String> columns = new ArrayList<>(family.getValue());
            columns.add(KeyedTable.INSTANT);
            parts.put(family.getKey(), files(session, LakeReaders.only(rows, columns, true)));
        }
        if (!apart.isEmpty()) {
            parts.put("", files(session, LakeReaders.only(rows, apart, false)));
        }
    }

    private static ParquetPartitionReaderFactory files(SparkSession session, StructType columns) {
        return LakeReaders.parquet(session, columns, columns, new StructType(), new Filter[0]);
    }

    /** The rows of a bucket's base file, in their order. The bucket has one. Rows may be overwritten by the next one. */
    PartitionReader<InternalRow> base(BucketPartition bucket) {
        return bucket.families.isEmpty()
                ? base.buildReader(bucket.base)
                : new FamilyBucket(parts, bucket, rows, new PickedColumns(rows, new StructType(), null));
    }

    /** Copies of the versions in the log files, in the order in which they are merged. */
    void logs(BucketPartition bucket, Consumer<InternalRow> found) throws IOException {
        for (PartitionedFile file : bucket.logs) {
            try (PartitionReader<InternalRow> reader = logs.buildReader(file)) {
                while (reader.next()) {
                    found.accept(reader.get().copy());
                }
            }
        }
    }
}
