package lake.metastore.spark;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;

/**
 * Turns the rows of a batch into log records, one per key, by the rules of lake/tables/keyed/batches.py.
 *
 * <p>The rows of a batch have no order. So several versions of a key in one batch must give the same result in any order,
 * or the batch is refused.
 */
final class LogRecords {
    private static final int LONGEST_TEXT = 60;

    private LogRecords() {}

    /**
     * The log records of a batch of one bucket, sorted by key. {@code versions}: rows of the engine's schema, with the
     * instant that writes them; their keys have no nulls. Throws UnfitRows.
     */
    static List<InternalRow> of(MergeEngine engine, List<InternalRow> versions) {
        Map<UnsafeRow, List<InternalRow>> byKey = new LinkedHashMap<>();
        for (InternalRow version : versions) {
            InternalRow checked = engine.isDeleted(version) ? deletion(engine, version) : version;
            if (checked != null) {
                checkSequence(engine, checked);
                byKey.computeIfAbsent(engine.keys.of(checked).copy(), key -> new ArrayList<>(1)).add(checked);
            }
        }
        List<Map.Entry<UnsafeRow, List<InternalRow>>> ordered = new ArrayList<>(byKey.entrySet());
        ordered.sort((one, other) -> engine.keys.keyOrder.compare(one.getKey(), other.getKey()));
        List<InternalRow> found = new ArrayList<>(ordered.size());
        for (Map.Entry<UnsafeRow, List<InternalRow>> each : ordered) {
            List<InternalRow> rows = each.getValue();
            found.add(rows.size() == 1 ? rows.get(0) : once(engine, rows));
        }
        return found;
    }

    /** A delete without values beside those of key and sequence; null if deletes are ignored. */
    private static InternalRow deletion(MergeEngine engine, InternalRow version) {
        KeyedTable table = engine.table;
        if (table.ignoresDeletes) {
            return null;
        }
        if (!table.engine.equals("deduplicate") && !table.removesOnDelete) {
            String also = table.engine.equals("partial-update") ? " or partial-update.remove-record-on-delete=true" : "";
            throw Errors.unfitRows(
                    "the merge engine " + table.engine + " takes no deletes: set ignore-delete=true" + also);
        }
        return engine.deletion(version, version);
    }

    /** Throws UnfitRows for nulls in what orders the versions. */
    static void checkSequence(MergeEngine engine, InternalRow version) {
        for (String name : engine.table.sequence) {
            if (version.isNullAt(engine.schema.fieldIndex(name))) {
                throw Errors.unfitRows(
                        "the column " + name + " orders versions (sequence.field) and is null in some rows");
            }
        }
    }

    /** What the versions of one key come to. */
    private static InternalRow once(MergeEngine engine, List<InternalRow> versions) {
        MergeEngine.Key state = engine.key();
        versions.forEach(state::apply);
        for (InternalRow version : versions) {
            if (state.isAmbiguous(version)) {
                throw Errors.unfitRows(unclear(engine, version));
            }
        }
        return state.isLive() ? state.row() : state.newest;
    }

    /** A message: only the order of the rows of a key would decide between them. */
    static String unclear(MergeEngine engine, InternalRow version) {
        KeyedTable table = engine.table;
        String key = key(engine, version);
        List<String> versions = table.sequence.isEmpty() ? new ArrayList<>(table.groups.keySet()) : table.sequence;
        if (!versions.isEmpty()) {
            return key + " has rows of one " + String.join(", ", versions)
                    + " with different values: make them differ in it";
        }
        String advice = "write";
        if (table.engine.equals("deduplicate")) {
            advice = "set sequence.field, or write";
        } else if (table.engine.equals("partial-update")) {
            advice = "set fields.<f>.sequence-group, or write";
        }
        return key + " has several rows with different values, and nothing orders them: " + advice
                + " one of them";
    }

    /** The key of a version, for messages. */
    static String key(MergeEngine engine, InternalRow version) {
        return engine.table.key.stream()
                .map(name -> name + "=" + text(engine.schema, version, engine.schema.fieldIndex(name)))
                .collect(Collectors.joining(", ", "the key ", ""));
    }

    private static String text(StructType schema, InternalRow version, int column) {
        Object value = version.get(column, schema.apply(column).dataType());
        String text = new Literal(value, schema.apply(column).dataType()).toString();
        text = schema.apply(column).dataType() instanceof StringType ? "'" + text + "'" : text;
        return text.length() <= LONGEST_TEXT ? text : text.substring(0, LONGEST_TEXT - 3) + "...";
    }
}
