package lake.metastore.spark;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.TypeUtils;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import scala.math.Ordering;

/**
 * What becomes of the versions of one key, by the rules of lake/tables/keyed/engines.py.
 *
 * <p>Versions are rows of one schema, whose last column says whether the key was deleted. They are merged in the order in
 * which their files completed, the base file's first.
 */
abstract class MergeEngine {
    /** The columns of the versions. */
    final StructType schema;
    private final int deleted;

    private MergeEngine(StructType schema) {
        this.schema = schema;
        this.deleted = schema.fieldIndex(KeyedTable.DELETED);
    }

    /** {@code schema}: of the versions. */
    static MergeEngine of(KeyedTable table, StructType schema) {
        switch (table.engine) {
            case "deduplicate":
                return new Deduplicate(table, schema);
            case "first-row":
                return new FirstRow(schema);
            case "partial-update":
            case "aggregation":
                return new Columns(table, schema);
            default:
                throw new IllegalStateException("unknown merge engine " + table.engine + ": update the extension");
        }
    }

    /** The logs' state of a key with one more version; {@code state} is null for the first. The row is kept. */
    abstract Object add(Object state, InternalRow version);

    /** The row of a key, null if it has none. {@code base}: its row in the base file, null if there is none. */
    abstract InternalRow result(InternalRow base, Object state);

    final boolean isDeleted(InternalRow version) {
        return !version.isNullAt(deleted) && version.getBoolean(deleted);
    }

    /** Strings are ordered by their bytes, whatever their collation is: so all readers see the same rows. */
    private static Ordering<Object> ordering(DataType type) {
        return TypeUtils.getInterpretedOrdering(type instanceof StringType ? DataTypes.StringType : type);
    }

    /** The version with the greatest sequence, of equal ones the later. */
    private static final class Deduplicate extends MergeEngine {
        private final int[] columns;
        private final DataType[] types;
        private final List<Ordering<Object>> orders = new ArrayList<>();

        private Deduplicate(KeyedTable table, StructType schema) {
            super(schema);
            columns = new int[table.sequence.size()];
            types = new DataType[columns.length];
            for (int i = 0; i < columns.length; i++) {
                columns[i] = schema.fieldIndex(table.sequence.get(i));
                types[i] = schema.apply(columns[i]).dataType();
                orders.add(ordering(types[i]));
            }
        }

        @Override
        Object add(Object state, InternalRow version) {
            return state == null || compare(version, (InternalRow) state) >= 0 ? version : state;
        }

        @Override
        InternalRow result(InternalRow base, Object state) {
            InternalRow row = base == null ? (InternalRow) state : (InternalRow) add(base, (InternalRow) state);
            return isDeleted(row) ? null : row;
        }

        /** A null is greater than all values. */
        private int compare(InternalRow one, InternalRow other) {
            for (int i = 0; i < columns.length; i++) {
                boolean isNull = one.isNullAt(columns[i]);
                boolean otherIsNull = other.isNullAt(columns[i]);
                int found =
                        isNull || otherIsNull
                                ? Boolean.compare(isNull, otherIsNull)
                                : orders.get(i)
                                        .compare(one.get(columns[i], types[i]), other.get(columns[i], types[i]));
                if (found != 0) {
                    return found;
                }
            }
            return 0;
        }
    }

    /** The first version. */
    private static final class FirstRow extends MergeEngine {
        private FirstRow(StructType schema) {
            super(schema);
        }

        @Override
        Object add(Object state, InternalRow version) {
            return state == null ? version : state;
        }

        @Override
        InternalRow result(InternalRow base, Object state) {
            InternalRow row = base == null ? (InternalRow) state : base;
            return isDeleted(row) ? null : row;
        }
    }

    /** Partial update and aggregation: each column by its own rule. */
    private static final class Columns extends MergeEngine {
        private final Rule[] rules;
        private final int[] keys;

        private Columns(KeyedTable table, StructType schema) {
            super(schema);
            rules = new Rule[schema.size()];
            for (Map.Entry<String, List<String>> group : table.groups.entrySet()) {
                Integer version = index(schema, group.getKey());
                if (version != null) {
                    Grouped rule = new Grouped(version, schema.apply(version).dataType());
                    rules[version] = rule;
                    for (String member : group.getValue()) {
                        Integer column = index(schema, member);
                        if (column != null) {
                            rules[column] = rule;
                        }
                    }
                }
            }
            keys = table.key.stream().mapToInt(schema::fieldIndex).toArray();
            for (int i = 0; i < rules.length; i++) {
                String name = schema.apply(i).name();
                if (rules[i] == null && !table.key.contains(name) && !name.equals(KeyedTable.DELETED)) {
                    String function = table.aggregates.getOrDefault(name, "last_non_null_value");
                    rules[i] = Rule.of(function, name, schema.apply(i).dataType());
                }
            }
        }

        private static Integer index(StructType schema, String name) {
            scala.Option<Object> found = schema.getFieldIndex(name);
            return found.isEmpty() ? null : (Integer) found.get();
        }

        @Override
        @SuppressWarnings("unchecked")
        Object add(Object state, InternalRow version) {
            List<InternalRow> versions = state == null ? new ArrayList<>(1) : (List<InternalRow>) state;
            versions.add(version);
            return versions;
        }

        @Override
        @SuppressWarnings("unchecked")
        InternalRow result(InternalRow base, Object state) {
            Object[] values = base == null ? null : merged(null, base);
            for (InternalRow version : (List<InternalRow>) state) {
                values = merged(values, version);
            }
            return values == null ? null : new GenericInternalRow(values);
        }

        /** The values of a row, null where the key has none, with one version more. */
        private Object[] merged(Object[] values, InternalRow version) {
            if (isDeleted(version)) {
                return null;
            }
            boolean isNew = values == null;
            Object[] found = isNew ? new Object[rules.length] : values;
            if (isNew) {
                for (int key : keys) {
                    found[key] = version.get(key, schema.apply(key).dataType());
                }
            }
            boolean[] taken = new boolean[rules.length];
            for (int i = 0; i < rules.length; i++) {
                // The version of a group must be compared before the values of its members replace it.
                taken[i] = rules[i] != null && rules[i].takes(found, i, version, isNew);
            }
            for (int i = 0; i < rules.length; i++) {
                if (taken[i]) {
                    Object value = version.isNullAt(i) ? null : version.get(i, schema.apply(i).dataType());
                    found[i] = rules[i].combined(found[i], value);
                }
            }
            return found;
        }
    }

    /** How the values of a column become one. */
    private interface Rule {
        static Rule of(String function, String name, DataType type) {
            switch (function) {
                case "sum":
                    return new Sum(name, type);
                case "max":
                case "bool_or":
                    return new Extreme(type, 1);
                case "min":
                case "bool_and":
                    return new Extreme(type, -1);
                case "last_value":
                    return (values, column, version, isNew) -> true;
                case "last_non_null_value":
                    return (values, column, version, isNew) -> !version.isNullAt(column);
                case "first_value":
                    return (values, column, version, isNew) -> isNew;
                case "first_non_null_value":
                    return (values, column, version, isNew) -> values[column] == null && !version.isNullAt(column);
                default:
                    throw new IllegalStateException("unknown function " + function + ": update the extension");
            }
        }

        /** Whether the version's value counts. {@code isNew}: the key has had no row. */
        boolean takes(Object[] values, int column, InternalRow version, boolean isNew);

        /** What comes of the old value and one that counts. */
        default Object combined(Object old, Object value) {
            return value;
        }
    }

    /** Columns that change together: the greatest version wins, of equal ones the later; none is taken with a null. */
    private static final class Grouped implements Rule {
        private final int version;
        private final DataType type;
        private final Ordering<Object> order;

        private Grouped(int version, DataType type) {
            this.version = version;
            this.type = type;
            this.order = ordering(type);
        }

        @Override
        public boolean takes(Object[] values, int column, InternalRow row, boolean isNew) {
            return !row.isNullAt(version)
                    && (values[version] == null || order.compare(row.get(version, type), values[version]) >= 0);
        }
    }

    /** The least or greatest value that isn't null; of equal ones the first. */
    private static final class Extreme implements Rule {
        private final DataType type;
        private final int sign;
        private final Ordering<Object> order;

        private Extreme(DataType type, int sign) {
            this.type = type;
            this.sign = sign;
            this.order = ordering(type);
        }

        @Override
        public boolean takes(Object[] values, int column, InternalRow row, boolean isNew) {
            return !row.isNullAt(column)
                    && (values[column] == null
                            || Integer.signum(order.compare(row.get(column, type), values[column])) == sign);
        }
    }

    /** The sum of all values that aren't null. */
    private static final class Sum implements Rule {
        private final String name;
        private final DataType type;

        private Sum(String name, DataType type) {
            this.name = name;
            this.type = type;
        }

        @Override
        public boolean takes(Object[] values, int column, InternalRow row, boolean isNew) {
            return !row.isNullAt(column);
        }

        @Override
        public Object combined(Object old, Object value) {
            return old == null ? value : sum(old, value);
        }

        private Object sum(Object one, Object other) {
            if (type instanceof DoubleType) {
                return (Double) one + (Double) other;
            } else if (type instanceof FloatType) {
                return (Float) one + (Float) other;
            } else if (type instanceof DecimalType) {
                DecimalType decimal = (DecimalType) type;
                BigDecimal sum = ((Decimal) one).toJavaBigDecimal().add(((Decimal) other).toJavaBigDecimal());
                if (sum.precision() - sum.scale() > decimal.precision() - decimal.scale()) {
                    throw outOfRange();
                }
                return Decimal.apply(sum, decimal.precision(), decimal.scale());
            }
            long sum;
            try {
                sum = Math.addExact(((Number) one).longValue(), ((Number) other).longValue());
            } catch (ArithmeticException error) {
                throw outOfRange();
            }
            if (type instanceof IntegerType && sum == (int) sum) {
                return (int) sum;
            } else if (type instanceof ShortType && sum == (short) sum) {
                return (short) sum;
            } else if (type instanceof ByteType && sum == (byte) sum) {
                return (byte) sum;
            } else if (type instanceof IntegerType || type instanceof ShortType || type instanceof ByteType) {
                throw outOfRange();
            }
            return sum;
        }

        private ArithmeticException outOfRange() {
            return new ArithmeticException(
                    "the sums of the column " + name + " are out of the range of " + type.simpleString());
        }
    }
}
