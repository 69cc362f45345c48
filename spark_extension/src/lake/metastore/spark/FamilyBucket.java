package lake.metastore.spark;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** The rows of a bucket with column families: its files have the same rows in the same order. */
final class FamilyBucket implements PartitionReader<InternalRow> {
    /** One file, and where its columns are among those that are wanted. */
    private static final class Part {
        private final PartitionReader<InternalRow> rows;
        private final DataType[] types;
        private final int[] places;
        private final int instant;

        private Part(FileReaders files, FileReaders.Source file, StructType wanted) throws IOException {
            StructType columns = files.schema;
            types = new DataType[columns.size()];
            places = new int[types.length];
            for (int i = 0; i < types.length; i++) {
                types[i] = columns.apply(i).dataType();
                places[i] = wanted.fieldIndex(columns.apply(i).name());
            }
            instant = Arrays.asList(columns.fieldNames()).indexOf(KeyedTable.INSTANT);
            rows = files.read(file);
        }

        private void put(Object[] values) {
            InternalRow row = rows.get();
            for (int i = 0; i < types.length; i++) {
                Object value = row.isNullAt(i) ? null : row.get(i, types[i]);
                values[places[i]] = i == instant ? later(values[places[i]], value) : value;
            }
        }

        /** A row was changed last by the latest instant in any of its files. */
        private static Object later(Object one, Object other) {
            boolean isOther = one == null || (other != null && ((UTF8String) other).compareTo((UTF8String) one) > 0);
            return isOther ? other : one;
        }
    }

    private final Map<String, FileReaders> files;
    private final BucketPartition bucket;
    private final StructType wanted;
    private final PickedColumns output;
    private final List<Part> parts = new ArrayList<>();

    /** {@code files}: by family, the main file's under an empty name. */
    FamilyBucket(
            Map<String, FileReaders> files,
            BucketPartition bucket,
            StructType wanted,
            PickedColumns output) {
        this.files = files;
        this.bucket = bucket;
        this.wanted = wanted;
        this.output = output;
    }

    @Override
    public boolean next() throws IOException {
        if (parts.isEmpty()) {
            for (Map.Entry<String, FileReaders> each : files.entrySet()) {
                FileReaders.Source file = each.getKey().isEmpty() ? bucket.base : bucket.families.get(each.getKey());
                parts.add(new Part(each.getValue(), file, wanted));
            }
        }
        int have = 0;
        for (Part part : parts) {
            have += part.rows.next() ? 1 : 0;
        }
        if (have != 0 && have != parts.size()) {
            throw new IllegalStateException("the files of " + bucket.name + " have different numbers of rows");
        }
        return have != 0;
    }

    @Override
    public InternalRow get() {
        Object[] values = new Object[wanted.size()];
        for (Part part : parts) {
            part.put(values);
        }
        return output.of(new GenericInternalRow(values));
    }

    @Override
    public void close() throws IOException {
        for (Part part : parts) {
            part.rows.close();
        }
    }
}
