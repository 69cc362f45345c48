package lake.metastore.spark;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** The net changes of a batch in one bucket, by the rules of lake/tables/keyed/changes.py. */
final class Changes {
    /** The column that says what happened to a row. */
    static final String CHANGE_TYPE = "_change_type";

    static final String DELETE = "delete";
    static final String PREIMAGE = "update_preimage";
    static final String POSTIMAGE = "update_postimage";
    static final String INSERT = "insert";

    /** All of them, for messages. */
    static final String KINDS = String.join(", ", INSERT, PREIMAGE, POSTIMAGE, DELETE);

    /** By kind, in the order of a changelog. */
    private final Map<String, List<InternalRow>> rows = new LinkedHashMap<>();

    Changes() {
        for (String kind : new String[] {DELETE, PREIMAGE, POSTIMAGE, INSERT}) {
            rows.put(kind, new ArrayList<>());
        }
    }

    /** The columns of a changelog's file. {@code base}: those of base files, of which the last is INSTANT. */
    static StructType columns(StructType base) {
        StructType found = new StructType();
        for (int i = 0; i < base.size() - 1; i++) {
            if (base.apply(i).name().equals(CHANGE_TYPE)) {
                throw Errors.analysis("a table with changelogs can't have a column " + CHANGE_TYPE + ", which these have: rename it");
            }
            found = found.add(base.apply(i));
        }
        return found.add(CHANGE_TYPE, DataTypes.StringType, true);
    }

    /** Adds what became of the row of one key, null for none. */
    void add(MergeEngine engine, InternalRow before, InternalRow after) {
        if (before != null && after != null) {
            if (!engine.haveSameValues(before, after)) {
                add(engine, PREIMAGE, before);
                add(engine, POSTIMAGE, after);
            }
        } else if (before != null) {
            add(engine, DELETE, before);
        } else if (after != null) {
            add(engine, INSERT, after);
        }
    }

    /** Adds one row of a changelog. */
    void add(MergeEngine engine, String kind, InternalRow row) {
        Object[] values = new Object[engine.schema.size() - 1]; // CHANGE_TYPE is in the place of the marks
        for (int i = 0; i < values.length - 1; i++) {
            values[i] = engine.value(row, i);
        }
        values[values.length - 1] = UTF8String.fromString(kind);
        rows.get(kind).add(new GenericInternalRow(values));
    }

    boolean isEmpty() {
        return rows.values().stream().allMatch(List::isEmpty);
    }

    /** The rows of a changelog's file. */
    List<InternalRow> inOrder() {
        List<InternalRow> found = new ArrayList<>();
        rows.values().forEach(found::addAll);
        return found;
    }
}
