package lake.metastore.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * A function by which Spark brings the rows of a bucket together before they are written. Rows of one bucket of one
 * partition have the same number; rows of others mostly have another one. Sorting by a single number is what Spark does
 * fastest, and it spills.
 *
 * <p>Arguments: the number of buckets, how many partition columns follow (0 if the key is unique over all partitions),
 * these columns, those of the key by which buckets are found.
 */
final class PlaceFunction implements UnboundFunction {
    static final String NAME = "lake_place";

    /** Of the rows that statements write into a table, whose columns are spelled as in its definition. */
    static Transform of(LakeTable table) {
        return of(table.keyed, table.spelled(table.partitionColumns()), table.spelled(table.keyed.bucketKey));
    }

    /** Of rows whose columns have their names in lower case. */
    static Transform of(KeyedTable table, List<String> partitionColumns) {
        return of(table, partitionColumns, table.bucketKey);
    }

    private static Transform of(KeyedTable table, List<String> partitionColumns, List<String> key) {
        List<String> places = table.isTableWide ? new ArrayList<>() : partitionColumns;
        List<Expression> arguments = new ArrayList<>();
        arguments.add(Expressions.literal(table.buckets));
        arguments.add(Expressions.literal(places.size()));
        List<String> columns = new ArrayList<>(places);
        columns.addAll(key);
        for (String name : Catalogs.quoted(columns.toArray(new String[0]))) {
            arguments.add(Expressions.column(name));
        }
        return Expressions.apply(NAME, arguments.toArray(new Expression[0]));
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public String description() {
        return NAME + "(buckets, partition columns, ..., key columns, ...): where a row of a keyed table is written";
    }

    @Override
    public BoundFunction bind(StructType inputType) {
        if (inputType.size() < 3) {
            throw new UnsupportedOperationException(description());
        }
        List<DataType> types = new ArrayList<>();
        for (StructField each : inputType.fields()) {
            types.add(each.dataType());
        }
        return new Bound(types.toArray(new DataType[0]));
    }

    private static final class Bound implements ScalarFunction<Long> {
        private static final long serialVersionUID = 1;

        private final DataType[] types;

        private Bound(DataType[] types) {
            this.types = types;
        }

        @Override
        public DataType[] inputTypes() {
            return types;
        }

        @Override
        public DataType resultType() {
            return DataTypes.LongType;
        }

        @Override
        public boolean isResultNullable() {
            return false;
        }

        @Override
        public String name() {
            return NAME;
        }

        @Override
        public String canonicalName() {
            return "lake.metastore." + NAME + Arrays.toString(types);
        }

        @Override
        public Long produceResult(InternalRow input) {
            int firstKey = 2 + input.getInt(1);
            KeyHash hash = new KeyHash();
            for (int i = firstKey; i < types.length; i++) {
                byte[] text = input.isNullAt(i) ? null : KeyHash.text(input.get(i, types[i]), types[i]);
                hash.add(text == null ? new byte[0] : text); // a null is refused when the row is written
            }
            int found = 0;
            for (int i = 2; i < firstKey; i++) {
                found = hash(found, input, i, types[i]);
            }
            return place(found, hash.bucket(input.getInt(0)));
        }
    }

    /** A number for the partition of a row, 0 without partitions. */
    static long hash(InternalRow row, int[] partitions, DataType[] types) {
        int found = 0;
        for (int i = 0; i < partitions.length; i++) {
            found = hash(found, row, partitions[i], types[i]);
        }
        return found;
    }

    private static int hash(int before, InternalRow row, int column, DataType type) {
        return 31 * before + (row.isNullAt(column) ? 0 : row.get(column, type).hashCode());
    }

    /** The number of a bucket of a partition. Its last 32 bits are the bucket. */
    static long place(long partition, int bucket) {
        return partition << 32 | bucket;
    }
}
