package lake.metastore.spark;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** The rows of a bucket with column families: its files have the same rows in the same order. */
final class FamilyBucket implements PartitionReader<InternalRow> {
    /** One file, and where its columns are among those that are wanted. */
    private static final class Part {
        private final PartitionReader<InternalRow> rows;
        private final DataType[] types;
        private final int[] places;

        private Part(FileReaders files, FileReaders.Source file, StructType wanted) throws IOException {
            StructType columns = files.schema;
            types = new DataType[columns.size()];
            places = new int[types.length];
            for (int i = 0; i < types.length; i++) {
                types[i] = columns.apply(i).dataType();
                places[i] = wanted.fieldIndex(columns.apply(i).name());
            }
            rows = files.read(file);
        }

        private void put(Object[] values) {
            InternalRow row = rows.get();
            for (int i = 0; i < types.length; i++) {
                values[places[i]] = row.isNullAt(i) ? null : row.get(i, types[i]);
            }
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
