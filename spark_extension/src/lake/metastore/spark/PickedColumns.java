package lake.metastore.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/** Makes rows of a scan: the first columns of a file's rows, and the values of the partition. */
final class PickedColumns {
    private final DataType[] types;
    private final Object[] constants;

    PickedColumns(StructType dataColumns, StructType partitionColumns, InternalRow partitionValues) {
        types = new DataType[dataColumns.size()];
        for (int i = 0; i < types.length; i++) {
            types[i] = dataColumns.apply(i).dataType();
        }
        constants = new Object[partitionColumns.size()];
        for (int i = 0; i < constants.length; i++) {
            constants[i] =
                    partitionValues.isNullAt(i)
                            ? null
                            : partitionValues.get(i, partitionColumns.apply(i).dataType());
        }
    }

    InternalRow of(InternalRow row) {
        Object[] values = new Object[types.length + constants.length];
        for (int i = 0; i < types.length; i++) {
            values[i] = row.isNullAt(i) ? null : row.get(i, types[i]);
        }
        System.arraycopy(constants, 0, values, types.length, constants.length);
        return new GenericInternalRow(values);
    }
}
