package lake.metastore.spark;

import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/** The least and the greatest event time of some rows, in milliseconds since 1970. */
final class EventTimes {
    private static final long MILLIS_OF_DAY = 86_400_000;

    /** Null if no row has one. */
    Long least;
    Long greatest;
    private final int column;
    private final boolean isDate;

    /** {@code name}: of the column that has event times; null for none. {@code schema}: of the rows. */
    EventTimes(StructType schema, String name) {
        column = name == null ? -1 : Arrays.asList(schema.fieldNames()).indexOf(name);
        isDate = column >= 0 && schema.apply(column).dataType() instanceof DateType;
    }

    /** Throws UnfitRows for a column that isn't there, or has no times. */
    static void check(String table, StructType columns, String name) {
        if (!Arrays.asList(columns.fieldNames()).contains(name)) {
            throw Errors.unfitRows(table + " has no column " + name + ", of which to take event times");
        }
        DataType type = columns.apply(name).dataType();
        if (!(type instanceof DateType || type instanceof TimestampType || type instanceof TimestampNTZType)) {
            throw Errors.unfitRows(
                    "the column " + name + " of " + table + " is " + type.simpleString()
                            + ": event times are timestamps or dates");
        }
    }

    void add(InternalRow row) {
        if (column < 0 || row.isNullAt(column)) {
            return;
        }
        long time = isDate ? row.getInt(column) * MILLIS_OF_DAY : row.getLong(column) / 1000;
        least = least == null ? time : Math.min(least, time);
        greatest = greatest == null ? time : Math.max(greatest, time);
    }
}
