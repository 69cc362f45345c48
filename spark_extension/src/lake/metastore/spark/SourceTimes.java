package lake.metastore.spark;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;

/** The least event time of the rows of each source, which move the table's watermark. */
final class SourceTimes {
    /** The source of rows that don't say theirs. */
    static final String UNNAMED = "";

    private final StructType schema;
    private final String eventTime;
    private final int source;
    private final DataType type;
    private final Map<String, EventTimes> times = new HashMap<>();

    /** {@code eventTime}, {@code source}: columns; null for none. */
    SourceTimes(StructType schema, String eventTime, String source) {
        this.schema = schema;
        this.eventTime = eventTime;
        this.source = source == null ? -1 : Arrays.asList(schema.fieldNames()).indexOf(source);
        this.type = this.source < 0 ? null : schema.apply(this.source).dataType();
    }

    /** Throws UnfitRows for a column that isn't there, or whose values have no text. */
    static void check(String table, StructType columns, String source) {
        if (source == null) {
            return;
        }
        if (!Arrays.asList(columns.fieldNames()).contains(source)) {
            throw Errors.unfitRows(table + " has no column " + source + ", which names the source of a row");
        }
        DataType type = columns.apply(source).dataType();
        boolean hasText =
                type instanceof StringType
                        || type instanceof NumericType
                        || type instanceof BooleanType
                        || type instanceof DateType
                        || type instanceof TimestampType
                        || type instanceof TimestampNTZType;
        if (!hasText) {
            throw Errors.unfitRows(
                    "the column " + source + " of " + table + " is " + type.simpleString()
                            + ": sources are named by texts, numbers or times");
        }
    }

    void add(InternalRow row) {
        if (eventTime != null) {
            boolean isNamed = source >= 0 && !row.isNullAt(source);
            String name = isNamed ? LakeRowWriter.text(row.get(source, type), type) : UNNAMED;
            times.computeIfAbsent(name, missing -> new EventTimes(schema, eventTime)).add(row);
        }
    }

    /** By source, in milliseconds since 1970. */
    Map<String, Long> least() {
        Map<String, Long> found = new HashMap<>();
        times.forEach(
                (name, each) -> {
                    if (each.least != null) {
                        found.put(name, each.least);
                    }
                });
        return found;
    }
}
