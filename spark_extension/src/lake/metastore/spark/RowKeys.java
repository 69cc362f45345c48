package lake.metastore.spark;

import java.util.Comparator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.util.TypeUtils;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.math.Ordering;

/** The keys of rows: to compare, to sort and to look up. */
final class RowKeys {
    /** Where the columns of the key are in a row. */
    final int[] columns;
    /** The order of keys, as {@link #of} gives them, in files. */
    final Comparator<InternalRow> keyOrder;
    private final DataType[] types;
    private final UnsafeProjection projection;

    RowKeys(KeyedTable table, StructType schema) {
        columns = table.key.stream().mapToInt(schema::fieldIndex).toArray();
        types = new DataType[columns.length];
        StructType key = new StructType();
        for (int i = 0; i < columns.length; i++) {
            types[i] = Values.plain(schema.apply(columns[i]).dataType());
            key = key.add(table.key.get(i), types[i]);
        }
        Ordering<Object> ordering = TypeUtils.getInterpretedOrdering(key);
        keyOrder = ordering::compare;
        projection = UnsafeProjection.create(types);
    }

    /** The key of a row. It is overwritten by the next call: copy what is kept. */
    UnsafeRow of(InternalRow row) {
        return projection.apply(values(row));
    }

    private InternalRow values(InternalRow row) {
        Object[] values = new Object[columns.length];
        for (int i = 0; i < columns.length; i++) {
            values[i] = row.isNullAt(columns[i]) ? null : row.get(columns[i], types[i]);
        }
        return new GenericInternalRow(values);
    }
}
