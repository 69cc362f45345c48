package lake.metastore.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;

/**
 * Puts the rows of a batch into partitions, for tables whose key is unique over all of them, by the rules of
 * lake/tables/keyed/placing.py.
 *
 * <p>A row whose partition changes leaves the old place and comes to the new one in the same instant: a delete there, a
 * row here. So a writer has to know where each key of its batch is now.
 */
final class Placing {
    /** A version of a row in a partition, null for a delete that doesn't say where the row is. */
    private static final class Placed {
        private final String place;
        private final InternalRow version;

        private Placed(String place, InternalRow version) {
            this.place = place;
            this.version = version;
        }
    }

    /** One key of the batch. */
    private static final class Entry {
        private final List<Placed> given = new ArrayList<>(1);
        /** The greatest version of all partitions; of equal ones that of a row, since a row that moved left a tombstone. */
        private Placed current;
        private boolean isLive;
        /** The row that is in a partition. */
        private Placed row;
    }

    private final MergeEngine engine;
    private final BucketWriter.Wanted wanted;
    private final Map<UnsafeRow, Entry> entries = new HashMap<>();
    /** The first partition that has files. */
    private String anywhere;

    Placing(MergeEngine engine, BucketWriter.Wanted wanted) {
        this.engine = engine;
        this.wanted = wanted;
    }

    /** Adds a row of the batch. */
    void add(String place, InternalRow version) {
        UnsafeRow key = engine.keys.of(version);
        Entry entry = entries.get(key);
        if (entry == null) {
            entry = new Entry();
            entries.put(key.copy(), entry);
        }
        entry.given.add(new Placed(place, version));
    }

    /** The keys of the batch. */
    Set<UnsafeRow> keys() {
        return entries.keySet();
    }

    /** Includes what a partition has of the keys. Partitions come in the order of their names. */
    void include(String place, Map<UnsafeRow, MergeEngine.Key> states) {
        anywhere = anywhere == null ? place : anywhere;
        states.forEach(
                (key, state) -> {
                    if (state.isLive() || (state.newest != null && engine.table.keepsTombstones())) {
                        include(entries.get(key), place, state);
                    }
                });
    }

    private void include(Entry entry, String place, MergeEngine.Key state) {
        Placed found = new Placed(place, state.newest);
        int order = entry.current == null ? 1 : engine.compare(found.version, entry.current.version);
        if (order > 0 || (order == 0 && (state.isLive() || !entry.isLive))) {
            entry.current = found;
            entry.isLive = state.isLive();
        }
        entry.row = state.isLive() ? found : entry.row;
    }

    /**
     * What is written into each partition, by the partitions' names: one version per key and partition, and nothing that
     * is older than what is there. Throws UnfitRows.
     */
    Map<String, List<InternalRow>> placed() {
        Map<Entry, List<Placed>> given = new LinkedHashMap<>();
        for (Entry entry : entries.values()) {
            List<Placed> versions = withSequences(entry, withoutMoves(entry.given));
            if (!versions.isEmpty()) {
                versions.forEach(each -> LogRecords.checkSequence(engine, each.version));
                given.put(entry, versions);
            }
        }
        Map<String, List<InternalRow>> found = new TreeMap<>();
        given.forEach((entry, versions) -> put(entry, versions, found));
        return found;
    }

    /** The versions of a key without deletes where it comes to another partition: a feed of changes has both. */
    private List<Placed> withoutMoves(List<Placed> given) {
        Placed last = null;
        for (Placed each : given) {
            last = engine.isDeleted(each.version) ? last : each;
        }
        List<Placed> found = new ArrayList<>();
        for (Placed each : given) {
            boolean isMoved =
                    last != null
                            && engine.isDeleted(each.version)
                            && !last.place.equals(each.place)
                            && engine.compare(each.version, last.version) <= 0;
            if (!isMoved) {
                found.add(each);
            }
        }
        return found;
    }

    /** Gives deletes by key alone the sequence of the row that they delete. Without a row there is nothing to do. */
    private List<Placed> withSequences(Entry entry, List<Placed> given) {
        if (engine.table.sequence.isEmpty()) {
            return given;
        }
        int first = engine.schema.fieldIndex(engine.table.sequence.get(0));
        List<Placed> found = new ArrayList<>();
        for (Placed each : given) {
            if (!engine.isDeleted(each.version) || !each.version.isNullAt(first)) {
                found.add(each);
            } else if (entry.row != null) {
                found.add(new Placed(each.place, engine.deletion(entry.row.version, each.version)));
            }
        }
        return found;
    }

    private void put(Entry entry, List<Placed> given, Map<String, List<InternalRow>> found) {
        List<InternalRow> versions = new ArrayList<>();
        given.forEach(each -> versions.add(each.version));
        InternalRow record = LogRecords.of(engine, versions).get(0);
        Placed current = entry.current;
        if (current != null
                && (!wanted.takes(engine, record, current.version, entry.isLive)
                        || engine.compare(record, current.version) < 0)) {
            return; // it is ignored, or older than what is there
        }
        boolean hasRow = current != null && entry.isLive;
        String own = placeOf(record, given);
        if (!engine.isDeleted(record)) {
            put(found, own, record);
            if (hasRow && !own.equals(current.place)) {
                put(found, current.place, engine.deletion(record, record));
            }
        } else if (hasRow) {
            put(found, current.place, record);
        } else if (engine.table.keepsTombstones()) {
            String said = given.get(given.size() - 1).place;
            String place = current != null ? current.place : said != null ? said : anywhere;
            if (place != null) {
                put(found, place, record);
            }
        }
    }

    /** The partition of a record. Throws UnfitRows if versions that are as good have others. */
    private String placeOf(InternalRow record, List<Placed> given) {
        String found = null;
        for (Placed each : given) {
            if (!engine.isDeleted(each.version) && engine.compare(each.version, record) == 0) {
                if (found != null && !found.equals(each.place)) {
                    throw Errors.unfitRows(LogRecords.unclear(engine, record));
                }
                found = each.place;
            }
        }
        return found;
    }

    private static void put(Map<String, List<InternalRow>> found, String place, InternalRow version) {
        found.computeIfAbsent(place, key -> new ArrayList<>()).add(version);
    }
}
