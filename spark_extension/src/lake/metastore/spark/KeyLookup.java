package lake.metastore.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * The buckets in which rows can be whose key a query gives, by {@code =} or {@code IN} for each of the columns by which
 * buckets are found.
 */
final class KeyLookup {
    /** More keys are hardly in fewer buckets than all. */
    private static final int MOST_KEYS = 1_000;

    /** Null for a table without a primary key. */
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
        if (!Values.plain(column.dataType()).equals(column.dataType())) {
            return; // by a collation, other texts are equal, too
        }
        add(((Attribute) column).name(), column.dataType(), values(filter, parts, column));
    }

    /** The same, in Spark 3.5's form. {@code columns}: of the table. */
    void add(Filter filter, StructType columns) {
        String attribute = filter.references().length == 1 ? SourceFilters.column(filter.references()[0]) : null;
        if (attribute == null || !isKey(attribute)) {
            return;
        }
        Object[] given = new Object[0];
        if (filter instanceof org.apache.spark.sql.sources.EqualTo) {
            given = new Object[] {((org.apache.spark.sql.sources.EqualTo) filter).value()};
        } else if (filter instanceof org.apache.spark.sql.sources.In) {
            given = ((org.apache.spark.sql.sources.In) filter).values();
        }
        for (StructField each : columns.fields()) {
            if (each.name().equalsIgnoreCase(attribute)) {
                List<Object> values = new ArrayList<>();
                for (Object value : given) {
                    values.add(SourceFilters.literal(value, each.dataType()).value());
                }
                add(each.name(), each.dataType(), values);
            }
        }
    }

    private void add(String column, DataType type, List<Object> given) {
        List<byte[]> values = new ArrayList<>();
        for (Object value : given) {
            byte[] text = KeyHash.text(value, type);
            if (text == null) {
                return;
            }
            values.add(text);
        }
        String name = column.toLowerCase(Locale.ROOT);
        if (!values.isEmpty() && (!texts.containsKey(name) || values.size() < texts.get(name).size())) {
            texts.put(name, values);
        }
    }

    /** Whether a condition is on columns of the key alone: it holds for all versions of a row, or for none. */
    boolean isOnKey(Expression filter) {
        return Plans.refersOnlyTo(filter, this::isKey);
    }

    boolean isOnKey(Filter filter) {
        for (String each : filter.references()) {
            String column = SourceFilters.column(each);
            if (column == null || !isKey(column)) {
                return false;
            }
        }
        return true;
    }

    private boolean isKey(Expression expression) {
        return expression instanceof Attribute && isKey(((Attribute) expression).name());
    }

    private boolean isKey(String column) {
        return table != null && table.key.contains(column.toLowerCase(Locale.ROOT));
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

    /** The names of the buckets, null for all. */
    Set<String> buckets() {
        if (table == null) {
            return null;
        }
        List<List<byte[]>> keys = new ArrayList<>();
        keys.add(new ArrayList<>());
        for (String column : table.bucketKey) {
            List<byte[]> values = texts.get(column);
            if (values == null || (long) keys.size() * values.size() > MOST_KEYS) {
                return null;
            }
            List<List<byte[]>> longer = new ArrayList<>();
            for (List<byte[]> key : keys) {
                for (byte[] value : values) {
                    List<byte[]> joined = new ArrayList<>(key);
                    joined.add(value);
                    longer.add(joined);
                }
            }
            keys = longer;
        }
        Set<String> found = new HashSet<>();
        for (List<byte[]> key : keys) {
            KeyHash hash = new KeyHash();
            key.forEach(hash::add);
            found.add(KeyedTable.fileGroup(hash.bucket(table.buckets)));
        }
        return found;
    }
}
