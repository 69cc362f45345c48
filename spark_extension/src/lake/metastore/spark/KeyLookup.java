package lake.metastore.spark;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.zip.CRC32;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The buckets in which rows can be whose key a query gives, by {@code =} or {@code IN} for each of its columns. The
 * bucket of a key is that of lake/tables/keyed/hashing.py.
 */
final class KeyLookup {
    private static final byte SEPARATOR = 0x1f;

    /** More keys are hardly in fewer buckets than all. */
    private static final int MOST_KEYS = 1_000;

    private final KeyedTable table;
    /** By column, the texts of the values that it may have. */
    private final Map<String, List<byte[]>> texts = new HashMap<>();

    KeyLookup(KeyedTable table) {
        this.table = table;
    }

    /** One of the conditions that rows must fulfil. */
    void add(Expression filter) {
        List<Expression> parts = Plans.parts(filter);
        Expression column = parts.stream().filter(this::isKey).findFirst().orElse(null);
        if (column == null || (filter instanceof In && parts.get(0) != column)) {
            return; // such as 7 IN (id, 7)
        }
        List<byte[]> values = new ArrayList<>();
        for (Object value : values(filter, parts, column)) {
            byte[] text = text(value, column.dataType());
            if (text == null) {
                return;
            }
            values.add(text);
        }
        String name = ((Attribute) column).name().toLowerCase(Locale.ROOT);
        if (!values.isEmpty() && (!texts.containsKey(name) || values.size() < texts.get(name).size())) {
            texts.put(name, values);
        }
    }

    /** Whether a condition is on columns of the key alone: it holds for all versions of a row, or for none. */
    boolean isOnKey(Expression filter) {
        return Plans.refersOnlyTo(filter, this::isKey);
    }

    private boolean isKey(Expression expression) {
        return expression instanceof Attribute
                && table.key.contains(((Attribute) expression).name().toLowerCase(Locale.ROOT));
    }

    /** The values of the column for which the filter can hold; none if that isn't known. */
    private static List<Object> values(Expression filter, List<Expression> parts, Expression column) {
        List<Object> found = new ArrayList<>();
        if (filter instanceof InSet) {
            scala.collection.Iterator<Object> set = ((InSet) filter).hset().iterator();
            while (set.hasNext()) {
                found.add(set.next());
            }
            return found;
        }
        if (!(filter instanceof In) && !(filter instanceof EqualTo)) {
            return found;
        }
        for (Expression part : parts) {
            if (part == column) {
                continue;
            }
            if (!(part instanceof Literal) || !part.dataType().equals(column.dataType())) {
                return new ArrayList<>();
            }
            found.add(((Literal) part).value());
        }
        return found;
    }

    /** A value as it is hashed; null if that isn't known. */
    private static byte[] text(Object value, DataType type) {
        if (value instanceof UTF8String && type.equals(DataTypes.StringType)) {
            return ((UTF8String) value).getBytes();
        } else if (value instanceof byte[]) {
            return (byte[]) value;
        } else if (value instanceof Number || value instanceof Boolean) {
            // Dates are days and timestamps microseconds here, too. Keys have no other numbers.
            return String.valueOf(value).getBytes(StandardCharsets.US_ASCII);
        }
        return null;
    }

    /** The names of the buckets, null for all. */
    Set<String> buckets() {
        List<byte[]> keys = new ArrayList<>(Collections.singletonList(new byte[0]));
        for (int i = 0; i < table.key.size(); i++) {
            List<byte[]> values = texts.get(table.key.get(i));
            if (values == null || (long) keys.size() * values.size() > MOST_KEYS) {
                return null;
            }
            List<byte[]> longer = new ArrayList<>();
            for (byte[] key : keys) {
                for (byte[] value : values) {
                    ByteArrayOutputStream joined = new ByteArrayOutputStream();
                    joined.write(key, 0, key.length);
                    if (i > 0) {
                        joined.write(SEPARATOR);
                    }
                    joined.write(value, 0, value.length);
                    longer.add(joined.toByteArray());
                }
            }
            keys = longer;
        }
        Set<String> found = new HashSet<>();
        for (byte[] key : keys) {
            CRC32 hash = new CRC32();
            hash.update(key, 0, key.length);
            found.add(String.format(Locale.ROOT, "bucket-%05d", hash.getValue() % table.buckets));
        }
        return found;
    }
}
