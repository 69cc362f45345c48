package lake.metastore.spark;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.TypeUtils;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StructType;
import scala.math.Ordering;

/**
 * What becomes of the versions of one key, by the rules of lake/tables/keyed/engines.py.
 *
 * <p>Versions are rows of one schema, whose last column says whether the key was deleted. They are merged in the order in
 * which their files completed, the base file's first.
 */
abstract class MergeEngine {
    final KeyedTable table;
    /** The columns of the versions. */
    final StructType schema;
    final RowKeys keys;
    private final int deleted;
    /** The columns beside those of the key and the marks. */
    private final int[] values;

    private MergeEngine(KeyedTable table, StructType schema) {
        this.table = table;
        this.schema = schema;
        this.keys = new RowKeys(table, schema);
        this.deleted = schema.fieldIndex(KeyedTable.DELETED);
        this.values =
                IntStream.range(0, schema.size())
                        .filter(i -> isValue(table, schema.apply(i).name()))
                        .toArray();
    }

    private static boolean isValue(KeyedTable table, String column) {
        return !table.key.contains(column)
                && !column.equals(KeyedTable.DELETED)
                && !column.equals(KeyedTable.INSTANT);
    }

    /** {@code schema}: of the versions. */
    static MergeEngine of(KeyedTable table, StructType schema) {
        switch (table.engine) {
            case "deduplicate":
                return new Deduplicate(table, schema);
            case "first-row":
                return new FirstRow(table, schema);
            case "partial-update":
            case "aggregation":
                return new Columns(table, schema);
            default:
                throw new IllegalStateException("unknown merge engine " + table.engine + ": update the extension");
        }
    }

    /** The logs' state of a key with one more version; {@code state} is null for the first. The row is kept. */
    abstract Object add(Object state, InternalRow version);

    /** Which of two versions is the later by the table's sequence; 0 if that doesn't say. */
    int compare(InternalRow one, InternalRow other) {
        return 0;
    }

    /** The row of a key, null if it has none. {@code base}: its row in the base file, null if there is none. */
    abstract InternalRow result(InternalRow base, Object state);

    /**
     * The state of one key, into which versions are merged one after the other. Unlike {@link #add}, it knows which
     * version changed the row last. The schema has INSTANT.
     */
    abstract class Key {
        /** The version that last changed the row; it has the instant. Null without any version. */
        InternalRow newest;
        /** Of a key without a row, the version that deleted the row, or the first one that found none to delete. */
        InternalRow gone;

        /** Merges one version, which is kept. */
        final void apply(InternalRow version) {
            boolean before = isLive();
            merge(version);
            if (isLive()) {
                gone = null;
            } else if (before || gone == null) {
                gone = version;
            }
        }

        /** Merges one version into the row. */
        abstract void merge(InternalRow version);

        /** Whether the key has a row. */
        abstract boolean isLive();

        /** The row, with the columns of versions. The key has one. */
        abstract InternalRow row();

        /** Whether a version that was merged would have given another result in another order. */
        abstract boolean isAmbiguous(InternalRow version);
    }

    /** A key without versions. */
    abstract Key key();

    /** Whether two versions have the same values beside key and instant. */
    final boolean haveSameValues(InternalRow one, InternalRow other) {
        for (int column : values) {
            if (!isSame(column, one, other)) {
                return false;
            }
        }
        return true;
    }

    final boolean isSame(int column, InternalRow one, InternalRow other) {
        return Values.areSame(value(one, column), value(other, column), schema.apply(column).dataType());
    }

    /** A delete of a version's key: its key and sequence, and the instant of another one, are all that it has. */
    final InternalRow deletion(InternalRow version, InternalRow instant) {
        Object[] found = new Object[schema.size()];
        for (int i = 0; i < found.length; i++) {
            String name = schema.apply(i).name();
            if (table.key.contains(name) || table.sequence.contains(name)) {
                found[i] = value(version, i);
            } else if (name.equals(KeyedTable.INSTANT)) {
                found[i] = value(instant, i);
            }
        }
        found[deleted] = true;
        return new GenericInternalRow(found);
    }

    /** Null for none. */
    final Object value(InternalRow version, int column) {
        return version.isNullAt(column) ? null : version.get(column, schema.apply(column).dataType());
    }

    final boolean isDeleted(InternalRow version) {
        return !version.isNullAt(deleted) && version.getBoolean(deleted);
    }

    /** Strings are ordered by their bytes, whatever their collation is: so all readers see the same rows. */
    private static Ordering<Object> ordering(DataType type) {
        return TypeUtils.getInterpretedOrdering(Values.plain(type));
    }

    /** Engines for which one version is the row. */
    private abstract static class WholeRow extends MergeEngine {
        private WholeRow(KeyedTable table, StructType schema) {
            super(table, schema);
        }

        /** Whether a version takes the place of one before it. */
        abstract boolean wins(InternalRow version, InternalRow before);

        /** Whether only the order decides between two versions. */
        private boolean isTie(InternalRow one, InternalRow other) {
            return compare(one, other) == 0;
        }

        @Override
        final Object add(Object state, InternalRow version) {
            return state == null || wins(version, (InternalRow) state) ? version : state;
        }

        @Override
        final InternalRow result(InternalRow base, Object state) {
            InternalRow row = (InternalRow) (base == null ? state : add(base, (InternalRow) state));
            return isDeleted(row) ? null : row;
        }

        @Override
        final Key key() {
            return new Key() {
                @Override
                void merge(InternalRow version) {
                    // A version with the same content changes nothing.
                    if (newest == null || (wins(version, newest) && !(isTie(version, newest) && isSame(version)))) {
                        newest = version;
                    }
                }

                @Override
                boolean isLive() {
                    return newest != null && !isDeleted(newest);
                }

                @Override
                InternalRow row() {
                    return newest;
                }

                @Override
                boolean isAmbiguous(InternalRow version) {
                    return isTie(version, newest) && !isSame(version);
                }

                private boolean isSame(InternalRow version) {
                    return isDeleted(version) == isDeleted(newest) && haveSameValues(version, newest);
                }
            };
        }
    }

    /** The version with the greatest sequence, of equal ones the later. */
    private static final class Deduplicate extends WholeRow {
        private final int[] columns;
        private final DataType[] types;
        private final List<Ordering<Object>> orders = new ArrayList<>();

        private Deduplicate(KeyedTable table, StructType schema) {
            super(table, schema);
            columns = new int[table.sequence.size()];
            types = new DataType[columns.length];
            for (int i = 0; i < columns.length; i++) {
                columns[i] = schema.fieldIndex(table.sequence.get(i));
                types[i] = schema.apply(columns[i]).dataType();
                orders.add(ordering(types[i]));
            }
        }

        @Override
        boolean wins(InternalRow version, InternalRow before) {
            return compare(version, before) >= 0;
        }

        /** By the sequence. A null is greater than all values. */
        @Override
        int compare(InternalRow one, InternalRow other) {
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
    private static final class FirstRow extends WholeRow {
        private FirstRow(KeyedTable table, StructType schema) {
            super(table, schema);
        }

        @Override
        boolean wins(InternalRow version, InternalRow before) {
            return false;
        }
    }

    /** Partial update and aggregation: each column by its own rule. */
    private static final class Columns extends MergeEngine {
        private final Rule[] rules;

        private Columns(KeyedTable table, StructType schema) {
            super(table, schema);
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
            for (int i = 0; i < rules.length; i++) {
                String name = schema.apply(i).name();
                if (rules[i] == null && isValue(table, name)) {
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

        @Override
        Key key() {
            return new Key() {
                private Object[] values;

                @Override
                void merge(InternalRow version) {
                    Object[] before = values == null ? null : values.clone();
                    values = merged(values, version);
                    if (values == null || before == null || !areSame(before, values)) {
                        newest = version;
                    }
                }

                private boolean areSame(Object[] some, Object[] others) {
                    return haveSameValues(new GenericInternalRow(some), new GenericInternalRow(others));
                }

                @Override
                boolean isLive() {
                    return values != null;
                }

                @Override
                InternalRow row() {
                    Object[] found = values.clone();
                    found[schema.fieldIndex(KeyedTable.DELETED)] = false;
                    int instant = schema.fieldIndex(KeyedTable.INSTANT);
                    found[instant] = value(newest, instant);
                    return new GenericInternalRow(found);
                }

                @Override
                boolean isAmbiguous(InternalRow version) {
                    if (isDeleted(version) || values == null) {
                        return isDeleted(version) != (values == null);
                    }
                    for (int i = 0; i < rules.length; i++) {
                        if (rules[i] != null
                                && rules[i].competes(values, i, version)
                                && !isSame(i, version, new GenericInternalRow(values))) {
                            return true;
                        }
                    }
                    return false;
                }
            };
        }

        /** The values of a row, null where the key has none, with one version more. */
        private Object[] merged(Object[] values, InternalRow version) {
            if (isDeleted(version)) {
                return null;
            }
            boolean isNew = values == null;
            Object[] found = isNew ? new Object[rules.length] : values;
            if (isNew) {
                for (int key : keys.columns) {
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
                    found[i] = rules[i].combined(found[i], value(version, i));
                }
            }
            return found;
        }
    }

    /** Whether a version's value counts. {@code isNew}: the key has had no row. */
    private interface Takes {
        boolean takes(Object[] values, int column, InternalRow version, boolean isNew);
    }

    /** How the values of a column become one. */
    private interface Rule extends Takes {
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
                    return new Placed((values, column, version, isNew) -> true, true);
                case "last_non_null_value":
                    return new Placed((values, column, version, isNew) -> !version.isNullAt(column), false);
                case "first_value":
                    return new Placed((values, column, version, isNew) -> isNew, true);
                case "first_non_null_value":
                    return new Placed(
                            (values, column, version, isNew) -> values[column] == null && !version.isNullAt(column),
                            false);
                default:
                    throw new IllegalStateException("unknown function " + function + ": update the extension");
            }
        }

        /** Whether only the order decides between the version's value and the one that counts now. */
        boolean competes(Object[] values, int column, InternalRow version);

        /** What comes of the old value and one that counts. */
        default Object combined(Object old, Object value) {
            return value;
        }
    }

    /** The first or the last value. */
    private static final class Placed implements Rule {
        private final Takes takes;
        private final boolean takesNulls;

        private Placed(Takes takes, boolean takesNulls) {
            this.takes = takes;
            this.takesNulls = takesNulls;
        }

        @Override
        public boolean takes(Object[] values, int column, InternalRow version, boolean isNew) {
            return takes.takes(values, column, version, isNew);
        }

        @Override
        public boolean competes(Object[] values, int column, InternalRow version) {
            return takesNulls || !version.isNullAt(column);
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

        @Override
        public boolean competes(Object[] values, int column, InternalRow row) {
            return !row.isNullAt(version)
                    && values[version] != null
                    && order.compare(row.get(version, type), values[version]) == 0;
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

        @Override
        public boolean competes(Object[] values, int column, InternalRow row) {
            return false;
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
        public boolean competes(Object[] values, int column, InternalRow row) {
            return false;
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

        private RuntimeException outOfRange() {
            return Errors.unfitRows(
                    "the sums of the column " + name + " are out of the range of " + type.simpleString());
        }
    }
}
