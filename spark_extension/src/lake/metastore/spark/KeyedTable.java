package lake.metastore.spark;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * What a table's properties say of its primary key, as lake/protocol/formats/keyed_table.py reads them. Names of columns
 * are in lower case. The server has checked that the properties go together.
 */
final class KeyedTable implements Serializable {
    private static final long serialVersionUID = 1;

    static final String PRIMARY_KEY = "primary-key";

    /** A column of every file: the instant that last changed the row. */
    static final String INSTANT = "_metastore_instant";

    /** A column of log files: the row was deleted. */
    static final String DELETED = "_metastore_deleted";

    private static final String FIELDS = "fields.";
    private static final String GROUP = ".sequence-group";
    private static final String AGGREGATE = ".aggregate-function";

    /** The columns of the key without those that partition the table. */
    final List<String> key;
    /** Of each partition. */
    final int buckets;
    /** {@code deduplicate}, {@code partial-update}, {@code aggregation} or {@code first-row}. */
    final String engine;
    /** The columns that order the versions of a row; may be empty. */
    final List<String> sequence;
    /** By their version, the columns that change together with it. */
    final Map<String, List<String>> groups;
    /** By column, how its values become one. */
    final Map<String, String> aggregates;
    /** Writes add log files, instead of replacing base files. */
    final boolean isMergeOnRead;
    /** The key is unique over all partitions: a row may move to another. */
    final boolean isTableWide;
    final boolean ignoresDeletes;
    final boolean removesOnDelete;
    /** {@code none}, {@code input} or {@code lookup}. */
    final String changelogProducer;
    private final List<String> partitionColumns;
    /** The columns that have files of their own, by family. */
    final Map<String, List<String>> families;

    private KeyedTable(Map<String, String> properties, Collection<String> partitionColumns) {
        key = names(properties.get(PRIMARY_KEY));
        key.removeAll(partitionColumns);
        buckets = Integer.parseInt(properties.getOrDefault("bucket", "1").trim());
        engine = word(properties, "merge-engine", "deduplicate");
        isMergeOnRead = word(properties, "table-type", "copy-on-write").equals("merge-on-read");
        this.partitionColumns = new ArrayList<>(partitionColumns);
        isTableWide =
                !partitionColumns.isEmpty()
                        && Collections.disjoint(partitionColumns, names(properties.get(PRIMARY_KEY)));
        ignoresDeletes = word(properties, "ignore-delete", "false").equals("true");
        removesOnDelete = word(properties, "partial-update.remove-record-on-delete", "false").equals("true");
        changelogProducer = word(properties, "changelog-producer", "none");
        sequence = names(properties.get("sequence.field"));
        groups = new LinkedHashMap<>();
        aggregates = new LinkedHashMap<>();
        for (Map.Entry<String, String> each : new TreeMap<>(properties).entrySet()) {
            String name = each.getKey();
            if (name.startsWith(FIELDS) && name.endsWith(GROUP)) {
                groups.put(column(name, GROUP), names(each.getValue()));
            } else if (name.startsWith(FIELDS) && name.endsWith(AGGREGATE)) {
                aggregates.put(column(name, AGGREGATE), each.getValue().trim().toLowerCase(Locale.ROOT));
            }
        }
        families = new LinkedHashMap<>();
        for (String text : properties.getOrDefault("column-families", "").split(";")) {
            int colon = text.indexOf(':');
            if (colon > 0) {
                families.put(text.substring(0, colon).trim().toLowerCase(Locale.ROOT), names(text.substring(colon + 1)));
            }
        }
    }

    /** The definition; null for a table without a primary key. */
    static KeyedTable of(Map<String, String> properties, Collection<String> partitionColumns) {
        String text = properties.get(PRIMARY_KEY);
        return text == null || text.trim().isEmpty() ? null : new KeyedTable(properties, partitionColumns);
    }

    /** The columns that must be read to merge versions, beside {@code wanted}, so that these come out right. */
    Set<String> neededFor(Collection<String> wanted) {
        Set<String> found = new LinkedHashSet<>(wanted);
        found.addAll(key);
        found.addAll(sequence);
        for (Map.Entry<String, List<String>> group : groups.entrySet()) {
            for (String column : group.getValue()) {
                if (wanted.contains(column)) {
                    found.add(group.getKey());
                }
            }
        }
        return found;
    }

    /** The file group of a bucket, the same in every partition. */
    static String fileGroup(int bucket) {
        return String.format(Locale.ROOT, "bucket-%05d", bucket);
    }

    boolean writesChangelog() {
        return !changelogProducer.equals("none");
    }

    /** Whether the merge engine lets a delete remove a row. */
    boolean takesDeletes() {
        return !ignoresDeletes && (engine.equals("deduplicate") || (engine.equals("partial-update") && removesOnDelete));
    }

    /** Whether an update, which is a delete and an insert, does what it says: the last version of a row is the row. */
    boolean takesUpdates() {
        return !ignoresDeletes && engine.equals("deduplicate");
    }

    /**
     * The properties by which rows are placed and merged, in one spelling. A writer sends them with a completion, so that
     * it is refused if the table has others by then.
     */
    Map<String, String> layout() {
        List<String> columns = new ArrayList<>(key);
        if (!isTableWide) {
            columns.addAll(partitionColumns);
        }
        Map<String, String> found = new LinkedHashMap<>();
        found.put(PRIMARY_KEY, String.join(",", columns));
        found.put("bucket", String.valueOf(buckets));
        found.put("merge-engine", engine);
        found.put("sequence.field", String.join(",", sequence));
        found.put("column-families", joined(families));
        found.put(FIELDS + "*" + GROUP, joined(groups));
        List<String> functions = new ArrayList<>();
        aggregates.forEach((column, function) -> functions.add(column + ":" + function));
        found.put(FIELDS + "*" + AGGREGATE, String.join(";", functions));
        return found;
    }

    private static String joined(Map<String, List<String>> columns) {
        List<String> found = new ArrayList<>();
        columns.forEach((name, members) -> found.add(name + ":" + String.join(",", members)));
        return String.join(";", found);
    }

    private static String word(Map<String, String> properties, String name, String missing) {
        return properties.getOrDefault(name, missing).trim().toLowerCase(Locale.ROOT);
    }

    private static String column(String property, String ending) {
        return property.substring(FIELDS.length(), property.length() - ending.length()).toLowerCase(Locale.ROOT);
    }

    private static List<String> names(String text) {
        List<String> found = new ArrayList<>();
        for (String name : (text == null ? "" : text).split(",")) {
            if (!name.trim().isEmpty()) {
                found.add(name.trim().toLowerCase(Locale.ROOT));
            }
        }
        return found;
    }
}
