package lake.metastore.spark;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;

/**
 * What a table's properties say of its primary key, as lake/protocol/formats/keyed_table.py reads them. Names of columns
 * are in lower case. The server has checked that the properties go together.
 */
final class KeyedTable implements Serializable {
    private static final long serialVersionUID = 1;

    static final String PRIMARY_KEY = "primary-key";

    private static final String BUCKETS = "bucket";
    private static final String BUCKET_KEY = "bucket-key";

    /** A column of every file: the instant that last changed the row. */
    static final String INSTANT = "_metastore_instant";

    /** Its field id, which no column of a table has. */
    static final int INSTANT_ID = 2_000_000_001;

    /** A column of log files: the row was deleted. */
    static final String DELETED = "_metastore_deleted";

    private static final String FIELDS = "fields.";
    private static final String GROUP = ".sequence-group";
    private static final String AGGREGATE = ".aggregate-function";

    /** By their names, the units of durations, which are those of Flink's grammar. */
    private static final Map<String, TimeUnit> UNITS = new HashMap<>();

    static {
        unit(TimeUnit.DAYS, "d", "day", "days");
        unit(TimeUnit.HOURS, "h", "hour", "hours");
        unit(TimeUnit.MINUTES, "min", "m", "minute", "minutes");
        unit(TimeUnit.SECONDS, "s", "sec", "secs", "second", "seconds");
        unit(TimeUnit.MILLISECONDS, "", "ms", "milli", "millis", "millisecond", "milliseconds");
        unit(TimeUnit.MICROSECONDS, "µs", "micro", "micros", "microsecond", "microseconds");
        unit(TimeUnit.NANOSECONDS, "ns", "nano", "nanos", "nanosecond", "nanoseconds");
    }

    /** The columns of the key without those that partition the table. */
    final List<String> key;
    /** Those of the key by which a row's bucket is found, in the key's order: all, unless the table says which. */
    final List<String> bucketKey;
    /** The columns that partition the table, in lower case. */
    final List<String> partitionColumns;
    /** The key is unique over all partitions, so that a row may move to another. */
    final boolean isTableWide;
    /** Of each partition. */
    final int buckets;
    /** A write adds log files, which readers merge with the base files. */
    final boolean isMergeOnRead;
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

    /** Deletes are ignored. */
    final boolean ignoresDeletes;
    /** A delete removes the row of a partial-update table. */
    final boolean removesOnDelete;
    /** {@code none}, {@code input} or {@code lookup}. */
    final String changelogProducer;
    /** What an INSERT does with a key that exists: {@code replace}, {@code ignore} or {@code fail}. */
    final String duplicateKey;
    /** How long deletes are remembered, in milliseconds; null for good. */
    final Long tombstoneMillis;
    /** A property with a value that only a later version knows; null if there is none. */
    final String laterProperty;

    private KeyedTable(Map<String, String> properties, Collection<String> partitionColumns) {
        this.partitionColumns = new ArrayList<>(partitionColumns);
        key = names(properties.get(PRIMARY_KEY));
        isTableWide = !key.removeAll(partitionColumns) && !partitionColumns.isEmpty();
        // After a plus there is what a client must know to read the table. The server writes that.
        List<String> type = new ArrayList<>();
        for (String each : choice(properties, "table-type", "copy-on-write").split("\\+", -1)) {
            type.add(each.trim());
        }
        String tableType = type.remove(0);
        bucketKey = new ArrayList<>(key);
        if (type.remove(BUCKET_KEY)) {
            bucketKey.retainAll(names(properties.get(BUCKET_KEY)));
        }
        isMergeOnRead = tableType.equals("merge-on-read");
        ignoresDeletes = choice(properties, "ignore-delete", "false").equals("true");
        removesOnDelete = choice(properties, "partial-update.remove-record-on-delete", "false").equals("true");
        changelogProducer = choice(properties, "changelog-producer", "none");
        duplicateKey = choice(properties, "insert.duplicate-key", "replace");
        tombstoneMillis = duration(properties.get("tombstone.time-retained"));
        buckets = Integer.parseInt(properties.getOrDefault(BUCKETS, "1").trim());
        engine = choice(properties, "merge-engine", "deduplicate");
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
        String unknown = type.isEmpty() && !bucketKey.isEmpty() ? null : "table-type=" + properties.get("table-type");
        unknown = firstUnknown(unknown, "table-type", tableType, "copy-on-write", "merge-on-read");
        unknown = firstUnknown(unknown, "changelog-producer", changelogProducer, "none", "input", "lookup");
        unknown = firstUnknown(unknown, "insert.duplicate-key", duplicateKey, "replace", "ignore", "fail");
        laterProperty =
                firstUnknown(unknown, "merge-engine", engine, "deduplicate", "partial-update", "aggregation", "first-row");
        families = new LinkedHashMap<>();
        for (String text : properties.getOrDefault("column-families", "").split(";")) {
            int colon = text.indexOf(':');
            if (colon > 0) {
                families.put(text.substring(0, colon).trim().toLowerCase(Locale.ROOT), names(text.substring(colon + 1)));
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

    /** The columns that tell a row from all others of the table: the key, and what partitions it, unless keys are table-wide. */
    List<String> wholeKey() {
        List<String> found = new ArrayList<>(key);
        if (!isTableWide) {
            found.addAll(partitionColumns);
        }
        return found;
    }

    /** Whether a deleted key must be remembered: otherwise an older version that comes late would bring the row back. */
    boolean keepsTombstones() {
        return !sequence.isEmpty();
    }

    /** The file group of a bucket, the same in every partition. */
    static String fileGroup(int bucket) {
        return String.format(Locale.ROOT, "bucket-%05d", bucket);
    }

    /** The bucket of a file group. */
    static int bucket(String fileGroup) {
        return Integer.parseInt(fileGroup.substring(fileGroup.indexOf('-') + 1));
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
        Map<String, String> found = new LinkedHashMap<>();
        found.put(PRIMARY_KEY, String.join(",", wholeKey()));
        found.put(BUCKETS, String.valueOf(buckets));
        found.put("merge-engine", engine);
        found.put("sequence.field", String.join(",", sequence));
        found.put("column-families", joined(families));
        found.put(FIELDS + "*" + GROUP, joined(groups));
        List<String> functions = new ArrayList<>();
        aggregates.forEach((column, function) -> functions.add(column + ":" + function));
        found.put(FIELDS + "*" + AGGREGATE, String.join(";", functions));
        if (!bucketKey.equals(key)) {
            found.put(BUCKET_KEY, String.join(",", bucketKey));
        }
        return found;
    }

    private static String joined(Map<String, List<String>> columns) {
        List<String> found = new ArrayList<>();
        columns.forEach((name, members) -> found.add(name + ":" + String.join(",", members)));
        return String.join(";", found);
    }

    private static String choice(Map<String, String> properties, String name, String missing) {
        return properties.getOrDefault(name, missing).trim().toLowerCase(Locale.ROOT);
    }

    private static String firstUnknown(String before, String name, String value, String... known) {
        return before != null || Arrays.asList(known).contains(value) ? before : name + "=" + value;
    }

    /** Refuses a table that a later version has made, and that this one would read or write in another way. */
    void checkUnderstood(String table) {
        if (laterProperty != null) {
            throw Errors.analysis(
                    table + " has " + laterProperty + ", which this version of the extension doesn't know: install the"
                            + " lake-metastore-client of the server's version");
        }
    }

    private static void unit(TimeUnit unit, String... names) {
        for (String name : names) {
            UNITS.put(name, unit);
        }
    }

    /** The milliseconds of a duration such as {@code 10 min}; null for none. */
    private static Long duration(String text) {
        if (text == null || text.trim().isEmpty()) {
            return null;
        }
        String number = text.trim().replaceFirst("[^0-9].*", "");
        String unit = text.trim().substring(number.length()).trim().toLowerCase(Locale.ROOT);
        return UNITS.get(unit).toMillis(Long.parseLong(number));
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
