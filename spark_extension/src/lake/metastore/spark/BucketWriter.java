package lake.metastore.spark;

import java.io.Serializable;
import java.util.*;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.TaskType;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.execution.datasources.parquet.ParquetOutputWriter;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.util.SerializableConfiguration;

/** Stub until the real one is there. */
final class BucketWriter implements Serializable {
    static final class Target implements Serializable {
        final String instant;
        final String directory;
        final String path;
        final String eventTime;

        Target(String instant, String directory, String path, String eventTime) {
            this.instant = instant;
            this.directory = directory;
            this.path = path;
            this.eventTime = eventTime;
        }
    }

    private StructType schema;
    private StructType data;
    private Target target;
    private Set<String> existing = new HashSet<>();
    private SerializableConfiguration conf;

    static BucketWriter of(
            SparkSession session,
            LakeTable table,
            StructType dataColumns,
            LakeTable.Snapshot snapshot,
            Target target,
            boolean replaces) {
        BucketWriter found = new BucketWriter();
        found.data = dataColumns;
        found.schema = dataColumns.add(KeyedTable.DELETED, DataTypes.BooleanType, true);
        found.target = target;
        if (!replaces) for (SnapshotFile f : snapshot.files) found.existing.add(f.partition + " " + f.fileGroup);
        Configuration hadoop = Catalogs.state(session).newHadoopConf();
        Catalogs.setParquetSettings(hadoop, Catalogs.state(session).conf());
        hadoop.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS");
        hadoop.set("spark.sql.parquet.writeLegacyFormat", "false");
        hadoop.set("spark.sql.parquet.fieldId.write.enabled", "false");
        hadoop.set("parquet.write.support.class", "org.apache.spark.sql.execution.datasources.parquet.ParquetWriteSupport");
        found.conf = new SerializableConfiguration(hadoop);
        return found;
    }

    StructType batchSchema() {
        return schema;
    }

    List<WrittenFile> write(String partition, int bucket, List<InternalRow> rows) throws java.io.IOException {
        String group = KeyedTable.fileGroup(bucket);
        boolean log = existing.contains(partition + " " + group);
        StructType out = data.add(KeyedTable.INSTANT, DataTypes.StringType, true);
        if (log) out = out.add(KeyedTable.DELETED, DataTypes.BooleanType, true);
        String name = group + "_" + target.instant + "_" + UUID.randomUUID().toString().replace("-", "").substring(0, 12) + (log ? ".log" : "") + ".parquet";
        String below = partition.isEmpty() ? name : partition + "/" + name;
        Configuration c = new Configuration(conf.value());
        c.set("org.apache.spark.sql.parquet.row.attributes", out.json());
        c.set("parquet.compression", "snappy");
        ParquetOutputWriter w = new ParquetOutputWriter(target.directory + "/" + below, new TaskAttemptContextImpl(c, new TaskAttemptID("x", 1, TaskType.MAP, 1, 1)));
        int n = data.size(), count = 0;
        for (InternalRow r : rows) {
            if (!log && r.getBoolean(n)) continue;
            Object[] v = new Object[out.size()];
            for (int i = 0; i < n; i++) v[i] = r.get(i, data.apply(i).dataType());
            v[n] = UTF8String.fromString(target.instant);
            if (log) v[n + 1] = r.getBoolean(n);
            w.write(new GenericInternalRow(v));
            count++;
        }
        w.close();
        WrittenFile f = new WrittenFile();
        f.partition = partition; f.fileGroup = group; f.slice = target.instant; f.path = target.path + "/" + below;
        f.size = new Path(target.directory + "/" + below).getFileSystem(c).getFileStatus(new Path(target.directory + "/" + below)).getLen();
        f.kind = log ? "log" : "base"; f.rows = count;
        return Collections.singletonList(f);
    }

    List<WrittenFile> writeAnywhere(int bucket, List<String> partitions, List<InternalRow> rows) throws java.io.IOException {
        throw new UnsupportedOperationException("stub");
    }
}
