package lake.metastore.spark;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Collection;
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

    private static final String BUCKETS = "bucket";

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
    /** The columns that have files of their own, by family. */
    final Map<String, List<String>> families;

    private KeyedTable(Map<String, String> properties, Collection<String> partitionColumns) {
        key = names(properties.get(PRIMARY_KEY));
        key.removeAll(partitionColumns);
        buckets = Integer.parseInt(properties.getOrDefault(BUCKETS, "1").trim());
        engine = properties.getOrDefault("merge-engine", "deduplicate").trim().toLowerCase(Locale.ROOT);
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
                families.put(text.substring(0, colon).trim(), names(text.substring(colon + 1)));
            }
        }
    }

    /** The definition; null for a table without a primary key, and for one that only another system can have made. */
    static KeyedTable of(Map<String, String> properties, Collection<String> partitionColumns) {
        String key = properties.getOrDefault(PRIMARY_KEY, "").trim();
        boolean hasBuckets = properties.getOrDefault(BUCKETS, "1").trim().matches("0*[1-9][0-9]{0,8}");
        return key.isEmpty() || !hasBuckets ? null : new KeyedTable(properties, partitionColumns);
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
