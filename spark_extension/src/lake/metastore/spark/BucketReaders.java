package lake.metastore.spark;

import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Reads the files of buckets for a writer, as versions with the instants. Sent to executors. */
final class BucketReaders implements Serializable {
    private static final long serialVersionUID = 1;

    private final KeyedTable table;
    private final StructType versions;
    /** The columns that are read of base files. */
    private final StructType rows;
    private final StructType records;
    private final FileReaders base;
    private final FileReaders logs;
    /** Of the main file and those of column families, by their names; the main file's is empty. */
    private final Map<String, FileReaders> parts = new LinkedHashMap<>();
    private transient RowKeys keys;

    /** {@code versions}: their columns. {@code wanted}: which of them are read; the others are null. {@code namings}: of the files. */
    BucketReaders(
            SparkSession session,
            KeyedTable table,
            StructType versions,
            Collection<String> wanted,
            Set<Map<String, String>> namings) {
        this.table = table;
        this.versions = versions;
        List<String> names = new ArrayList<>(wanted);
        names.add(KeyedTable.INSTANT);
        rows = LakeReaders.only(versions, names, true);
        records = rows.add(versions.apply(KeyedTable.DELETED));
        base = files(session, rows, namings);
        logs = files(session, records, namings);
        List<String> apart = new ArrayList<>();
        for (Map.Entry<String, List<String>> family : table.families.entrySet()) {
            apart.addAll(family.getValue());
            if (!Collections.disjoint(family.getValue(), wanted)) {
                List<String> columns = new ArrayList<>(family.getValue());
                columns.add(KeyedTable.INSTANT);
                parts.put(family.getKey(), files(session, LakeReaders.only(rows, columns, true), namings));
            }
        }
        if (!apart.isEmpty()) {
            parts.put("", files(session, LakeReaders.only(rows, apart, false), namings));
        }
    }

    private static FileReaders files(SparkSession session, StructType columns, Set<Map<String, String>> namings) {
        return LakeReaders.files(session, columns, columns, new Filter[0], namings);
    }

    /** The rows of a bucket's base file, in their order. The bucket has one. Rows may be overwritten by the next one. */
    PartitionReader<InternalRow> base(BucketPartition bucket) throws IOException {
        return bucket.families.isEmpty()
                ? base.read(bucket.base)
                : new FamilyBucket(parts, bucket, rows, new PickedColumns(rows, new StructType(), null));
    }

    /** The key of a base file's row. It is overwritten by the next call. */
    UnsafeRow key(InternalRow row) {
        if (keys == null) {
            keys = new RowKeys(table, rows);
        }
        return keys.of(row);
    }

    /** A copy of a base file's row. */
    InternalRow version(InternalRow row) {
        return version(row, rows);
    }

    private InternalRow version(InternalRow row, StructType columns) {
        InternalRow copy = row.copy();
        Object[] values = new Object[versions.size()];
        for (int i = 0; i < columns.size(); i++) {
            StructField column = columns.apply(i);
            values[versions.fieldIndex(column.name())] = copy.isNullAt(i) ? null : copy.get(i, column.dataType());
        }
        return new GenericInternalRow(values);
    }

    /** The versions in the log files, in the order in which they are merged. */
    void logs(BucketPartition bucket, Consumer<InternalRow> found) throws IOException {
        for (FileReaders.Source file : bucket.logs) {
            log(file, found);
        }
    }

    /** The versions in one log file. */
    void log(FileReaders.Source file, Consumer<InternalRow> found) throws IOException {
        try (PartitionReader<InternalRow> reader = logs.read(file)) {
            while (reader.next()) {
                found.accept(version(reader.get(), records));
            }
        }
    }
}
