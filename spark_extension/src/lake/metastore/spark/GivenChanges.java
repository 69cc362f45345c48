package lake.metastore.spark;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The changes of a batch whose rows come with pre-images, by the rules of lake/tables/keyed/given_changes.py.
 *
 * <p>Nothing is looked up: what the rows say was there is taken for it. So they are checked for being whole.
 */
final class GivenChanges {
    static final UTF8String DELETE = UTF8String.fromString(Changes.DELETE);
    static final UTF8String PREIMAGE = UTF8String.fromString(Changes.PREIMAGE);
    static final UTF8String POSTIMAGE = UTF8String.fromString(Changes.POSTIMAGE);
    static final UTF8String INSERT = UTF8String.fromString(Changes.INSERT);

    /** One key, and what the rows say of it. */
    private static final class Entry {
        private final UnsafeRow key;
        private final Map<UTF8String, InternalRow> rows = new HashMap<>();

        private Entry(UnsafeRow key) {
            this.key = key;
        }
    }

    private final MergeEngine engine;
    private final Map<UnsafeRow, Entry> entries = new HashMap<>();

    private GivenChanges(MergeEngine engine) {
        this.engine = engine;
    }

    /**
     * The changes that the rows of a bucket say, without updates that change nothing. Throws UnfitRows for an update
     * without one of its two images, and for several rows of a key that don't agree.
     *
     * @param versions rows of the engine's schema; their keys have no nulls
     * @param kinds what each of them is
     */
    static Changes of(MergeEngine engine, List<InternalRow> versions, List<UTF8String> kinds) {
        GivenChanges given = new GivenChanges(engine);
        for (int i = 0; i < versions.size(); i++) {
            given.add(kinds.get(i), versions.get(i));
        }
        return given.changes();
    }

    private void add(UTF8String kind, InternalRow version) {
        UnsafeRow key = engine.keys.of(version);
        Entry entry = entries.get(key);
        if (entry == null) {
            entry = new Entry(key.copy());
            entries.put(entry.key, entry);
        }
        InternalRow other = entry.rows.putIfAbsent(kind, version);
        if (other != null && !engine.haveSameValues(other, version)) {
            throw Errors.unfitRows(
                    LogRecords.key(engine, version) + " has several rows of the kind " + kind
                            + " with different values: write one of them");
        }
    }

    private Changes changes() {
        List<Entry> ordered = new ArrayList<>(entries.values());
        ordered.sort(Comparator.comparing(entry -> entry.key, engine.keys.keyOrder::compare));
        Changes found = new Changes();
        for (Entry entry : ordered) {
            InternalRow old = entry.rows.get(PREIMAGE);
            InternalRow updated = entry.rows.get(POSTIMAGE);
            check(old, updated, Changes.PREIMAGE);
            check(updated, old, Changes.POSTIMAGE);
            if (updated != null && entry.rows.containsKey(INSERT)) {
                throw Errors.unfitRows(
                        LogRecords.key(engine, updated) + " is inserted and updated: write one of the two");
            }
            put(found, Changes.DELETE, entry.rows.get(DELETE));
            if (old != null && !engine.haveSameValues(old, updated)) {
                put(found, Changes.PREIMAGE, old);
                put(found, Changes.POSTIMAGE, updated);
            }
            put(found, Changes.INSERT, entry.rows.get(INSERT));
        }
        return found;
    }

    /** Refuses an image of an update without the other one. {@code missing}: the kind of {@code image}. */
    private void check(InternalRow image, InternalRow other, String missing) {
        if (image == null && other != null) {
            throw Errors.unfitRows(
                    LogRecords.key(engine, other) + " has no " + missing
                            + ": with changelog-producer=input an update comes with both of its images");
        }
    }

    private void put(Changes found, String kind, InternalRow version) {
        if (version != null) {
            found.add(engine, kind, version);
        }
    }
}
