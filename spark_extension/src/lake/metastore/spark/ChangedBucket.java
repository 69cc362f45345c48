package lake.metastore.spark;

import java.io.Closeable;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The net changes of one bucket, by the rules of lake/tables/keyed/changes.py: its rows before are in memory, those after
 * stream past them. Rows of a base file that both states share are read only if log files have their keys.
 */
final class ChangedBucket implements PartitionReader<InternalRow> {
    /** The files of a bucket at both ends, what came between, and the commits of its instants. Sent to executors. */
    static final class Task implements InputPartition {
        private static final long serialVersionUID = 1;

        private final BucketPartition before;
        private final BucketPartition after;
        private final List<FileReaders.Source> logs;
        private final boolean[] areTombstones;
        private final List<FileReaders.Source> changelog;
        private final String[] changelogInstants;
        /** By instant, its position and its time. */
        private final Map<String, long[]> commits;
        /** Position and time of changes that no row tells the instant of. */
        private final long[] rewritten;
        private final InternalRow values;

        /**
         * @param before null for an empty bucket, as {@code after}
         * @param logs that came between; {@code areTombstones} says which have tombstones alone
         * @param changelog if it is all that is to be read, with the instants of its files
         * @param values of the partition's columns
         */
        Task(
                BucketPartition before,
                BucketPartition after,
                List<FileReaders.Source> logs,
                boolean[] areTombstones,
                List<FileReaders.Source> changelog,
                String[] changelogInstants,
                Map<String, long[]> commits,
                long[] rewritten,
                InternalRow values) {
            this.before = before;
            this.after = after;
            this.logs = logs;
            this.areTombstones = areTombstones;
            this.changelog = changelog;
            this.changelogInstants = changelogInstants;
            this.commits = commits;
            this.rewritten = rewritten;
            this.values = values;
        }
    }

    /** Makes readers. */
    static final class Factory implements PartitionReaderFactory {
        private static final long serialVersionUID = 1;

        private final KeyedTable table;
        private final StructType versions;
        private final BucketReaders states;
        private final FileReaders changelogs;
        private final int[] places;
        private final StructType required;
        private final boolean isOfRows;

        /**
         * {@code versions}: the columns of states. {@code places}: of the required columns, as of {@link #places}. {@code
         * isOfRows}: inserted and updated rows alone are wanted.
         */
        Factory(
                KeyedTable table,
                StructType versions,
                BucketReaders states,
                FileReaders changelogs,
                int[] places,
                StructType required,
                boolean isOfRows) {
            this.table = table;
            this.versions = versions;
            this.states = states;
            this.changelogs = changelogs;
            this.places = places;
            this.required = required;
            this.isOfRows = isOfRows;
        }

        @Override
        public PartitionReader<InternalRow> createReader(InputPartition partition) {
            return new ChangedBucket(this, (Task) partition);
        }
    }

    /** The marks of changes have these places, partition columns lower ones. */
    private static final List<String> MARKS =
            Arrays.asList(Changes.CHANGE_TYPE, ChangesTable.VERSION, ChangesTable.TIMESTAMP);

    private final Factory factory;
    private final Task task;
    private final MergeEngine engine;
    private final int instant;
    private final Map<UnsafeRow, InternalRow> before = new HashMap<>();
    /** By key, the version that deleted the row. */
    private final Map<UnsafeRow, InternalRow> deletes = new HashMap<>();
    private final Deque<InternalRow> ready = new ArrayDeque<>();
    private Iterator<InternalRow> after;
    private LiveRows open;
    private boolean isOver;
    private InternalRow row;

    private ChangedBucket(Factory factory, Task task) {
        this.factory = factory;
        this.task = task;
        this.engine = MergeEngine.of(factory.table, factory.versions);
        this.instant = factory.versions.fieldIndex(KeyedTable.INSTANT);
    }

    /** Where required columns come from: a data column, a mark (from -1 down), or a partition column (below the marks). */
    static int[] places(StructType required, StructType data, StructType partitions) {
        int[] found = new int[required.size()];
        for (int i = 0; i < found.length; i++) {
            String name = required.apply(i).name();
            int mark = MARKS.indexOf(name);
            int column = Arrays.asList(data.fieldNames()).indexOf(name.toLowerCase(Locale.ROOT));
            if (mark >= 0) {
                found[i] = -1 - mark;
            } else if (column >= 0) {
                found[i] = column;
            } else {
                found[i] = -1 - MARKS.size() - partitions.fieldIndex(name);
            }
        }
        return found;
    }

    @Override
    public boolean next() throws IOException {
        if (after == null && open == null) {
            begin();
        }
        while (ready.isEmpty() && !isOver) {
            InternalRow found = open == null ? null : open.next();
            if (found == null && after != null && after.hasNext()) {
                found = after.next();
            }
            if (found != null) {
                compare(before.remove(engine.keys.of(found)), found);
            } else {
                isOver = true;
                addDeletes();
            }
        }
        row = ready.poll();
        return row != null;
    }

    private void begin() throws IOException {
        if (!task.changelog.isEmpty()) {
            readChangelog();
            return;
        }
        Set<UnsafeRow> differing = differing();
        Map<UnsafeRow, InternalRow> stored =
                differing == null || !task.after.families.isEmpty() ? null : stored(differing);
        try (LiveRows rows = new LiveRows(task.before, differing, stored)) {
            for (InternalRow found = rows.next(); found != null; found = rows.next()) {
                before.put(engine.keys.of(found).copy(), found);
            }
        }
        open = new LiveRows(task.after, differing, stored);
    }

    /** The rows of the base file, which is that of both states, with some keys. It is read once for both. */
    private Map<UnsafeRow, InternalRow> stored(Set<UnsafeRow> wanted) throws IOException {
        Map<UnsafeRow, InternalRow> found = new LinkedHashMap<>();
        if (wanted.isEmpty()) {
            return found;
        }
        try (PartitionReader<InternalRow> base = factory.states.base(task.after)) {
            while (found.size() < wanted.size() && base.next()) {
                UnsafeRow key = factory.states.key(base.get());
                if (wanted.contains(key)) {
                    found.put(key.copy(), factory.states.version(base.get()));
                }
            }
        }
        return found;
    }

    /** The keys whose rows may differ, null for any: with the same base file, those in log files of one side alone. */
    private Set<UnsafeRow> differing() throws IOException {
        boolean hasSameBase =
                task.before != null
                        && task.after != null
                        && task.before.base != null
                        && task.after.base != null
                        && path(task.before.base).equals(path(task.after.base))
                        && task.before.families.isEmpty();
        if (!hasSameBase) {
            return null;
        }
        Map<String, FileReaders.Source> logs = new HashMap<>();
        task.before.logs.forEach(each -> logs.put(path(each), each));
        for (FileReaders.Source each : task.after.logs) {
            if (logs.remove(path(each)) == null) {
                logs.put(path(each), each);
            }
        }
        Set<UnsafeRow> found = new HashSet<>();
        for (FileReaders.Source each : logs.values()) {
            factory.states.log(each, version -> found.add(engine.keys.of(version).copy()));
        }
        return found;
    }

    private static String path(FileReaders.Source source) {
        return source.file.filePath().toString();
    }

    /** What a changelog comes to: of each key the row before the first change, and the one after the last. */
    private void readChangelog() throws IOException {
        Map<UnsafeRow, InternalRow> last = new HashMap<>();
        Set<UnsafeRow> seen = new HashSet<>();
        int kind = factory.changelogs.schema.fieldIndex(Changes.CHANGE_TYPE);
        for (int i = 0; i < task.changelog.size(); i++) {
            UTF8String by = UTF8String.fromString(task.changelogInstants[i]);
            try (PartitionReader<InternalRow> reader = factory.changelogs.read(task.changelog.get(i))) {
                while (reader.next()) {
                    String change = reader.get().getUTF8String(kind).toString();
                    boolean isThere = change.equals(Changes.INSERT) || change.equals(Changes.POSTIMAGE);
                    InternalRow version = version(reader.get(), by, !isThere);
                    UnsafeRow key = engine.keys.of(version).copy();
                    if (seen.add(key) && !isThere) {
                        // A pre-image doesn't know the instant that wrote its row; without one, the contents are compared.
                        before.put(key, version(reader.get(), null, false));
                    }
                    last.put(key, version);
                }
            }
        }
        last.forEach((key, version) -> {
            if (engine.isDeleted(version)) {
                deletes.put(key, version);
            }
        });
        last.values().removeIf(engine::isDeleted);
        after = last.values().iterator();
    }

    private InternalRow version(InternalRow change, UTF8String by, boolean isDeleted) {
        InternalRow copy = change.copy();
        Object[] values = new Object[factory.versions.size()];
        for (int i = 0; i < instant; i++) {
            values[i] = copy.isNullAt(i) ? null : copy.get(i, factory.versions.apply(i).dataType());
        }
        values[instant] = by;
        values[instant + 1] = isDeleted;
        return new GenericInternalRow(values);
    }

    private void compare(InternalRow old, InternalRow found) {
        if (old == null) {
            add(Changes.INSERT, found, found);
        } else if (!areSame(old, found)) {
            add(Changes.PREIMAGE, old, found);
            add(Changes.POSTIMAGE, found, found);
        }
    }

    private boolean areSame(InternalRow old, InternalRow found) {
        // For these engines a row is one version, whole. Two updates of families may complete in another order.
        boolean isWhole =
                (factory.table.engine.equals("deduplicate") || factory.table.engine.equals("first-row"))
                        && factory.table.families.isEmpty();
        return (isWhole
                        && !old.isNullAt(instant)
                        && !found.isNullAt(instant)
                        && old.getUTF8String(instant).equals(found.getUTF8String(instant)))
                || engine.haveSameValues(old, found);
    }

    /** Adds the rows that have gone. */
    private void addDeletes() throws IOException {
        if (before.isEmpty()) {
            return;
        }
        Map<UnsafeRow, MergeEngine.Key> states = new HashMap<>();
        for (int i = 0; i < task.logs.size(); i++) {
            boolean isTombstones = task.areTombstones[i];
            factory.states.log(
                    task.logs.get(i),
                    version -> {
                        UnsafeRow key = engine.keys.of(version);
                        InternalRow old = before.get(key);
                        if (old == null) {
                            return;
                        }
                        UnsafeRow kept = key.copy();
                        if (isTombstones) {
                            deletes.put(kept, version); // of a writer that has applied it itself
                        } else {
                            states.computeIfAbsent(
                                            kept,
                                            missing -> {
                                                MergeEngine.Key state = engine.key();
                                                state.apply(old);
                                                return state;
                                            })
                                    .apply(version);
                        }
                    });
        }
        states.forEach(
                (key, state) -> {
                    if (!state.isLive() && state.gone != null) {
                        deletes.put(key, state.gone);
                    }
                });
        before.forEach((key, old) -> add(Changes.DELETE, old, deletes.get(key)));
    }

    /** {@code by}: a version that has the instant of the change; null if none is known. */
    private void add(String kind, InternalRow content, InternalRow by) {
        if (factory.isOfRows && !kind.equals(Changes.INSERT) && !kind.equals(Changes.POSTIMAGE)) {
            return;
        }
        long[] commit = null;
        if (by != null && !by.isNullAt(instant)) {
            commit = task.commits.get(by.getUTF8String(instant).toString());
        }
        if (commit == null) {
            commit = task.rewritten;
        }
        Object[] values = new Object[factory.places.length];
        for (int i = 0; i < values.length; i++) {
            int place = factory.places[i];
            int partition = -1 - MARKS.size() - place;
            if (place >= 0) {
                values[i] = engine.value(content, place);
            } else if (place == -1) {
                values[i] = UTF8String.fromString(kind);
            } else if (place >= -MARKS.size()) {
                values[i] = commit[-2 - place];
            } else if (!task.values.isNullAt(partition)) {
                values[i] = task.values.get(partition, factory.required.apply(i).dataType());
            }
        }
        ready.add(new GenericInternalRow(values));
    }

    @Override
    public InternalRow get() {
        return row;
    }

    @Override
    public void close() throws IOException {
        if (open != null) {
            open.close();
        }
    }

    /** The rows of a state of the bucket, each with the instant that last changed it. */
    private final class LiveRows implements Closeable {
        private final Set<UnsafeRow> wanted;
        private final Map<UnsafeRow, List<InternalRow>> logs = new HashMap<>();
        private PartitionReader<InternalRow> base;
        private final Iterator<Map.Entry<UnsafeRow, InternalRow>> stored;
        private Iterator<List<InternalRow>> rest;

        /**
         * @param bucket null for no rows
         * @param wanted the keys that are read, null for all
         * @param stored what the base file has of these, null if it is to be read
         */
        LiveRows(BucketPartition bucket, Set<UnsafeRow> wanted, Map<UnsafeRow, InternalRow> stored)
                throws IOException {
            this.wanted = wanted;
            this.stored = stored == null ? Collections.emptyIterator() : stored.entrySet().iterator();
            if (bucket == null) {
                return;
            }
            factory.states.logs(
                    bucket,
                    version -> {
                        UnsafeRow key = engine.keys.of(version);
                        if (isWanted(key)) {
                            logs.computeIfAbsent(key.copy(), missing -> new ArrayList<>(1)).add(version);
                        }
                    });
            boolean isRead = stored == null && bucket.base != null && (wanted == null || !wanted.isEmpty());
            base = isRead ? factory.states.base(bucket) : null;
        }

        private boolean isWanted(UnsafeRow key) {
            return wanted == null || wanted.contains(key);
        }

        /** The next row, null after the last. */
        InternalRow next() throws IOException {
            while (base != null && base.next()) {
                UnsafeRow key = factory.states.key(base.get());
                if (!isWanted(key)) {
                    continue;
                }
                InternalRow found = current(key, factory.states.version(base.get()));
                if (found != null) {
                    return found;
                }
            }
            close();
            while (stored.hasNext()) {
                Map.Entry<UnsafeRow, InternalRow> each = stored.next();
                InternalRow found = current(each.getKey(), each.getValue());
                if (found != null) {
                    return found;
                }
            }
            if (rest == null) {
                rest = logs.values().iterator();
            }
            while (rest.hasNext()) {
                InternalRow found = merged(null, rest.next());
                if (found != null) {
                    return found;
                }
            }
            return null;
        }

        /** What log files have made of a row of the base file, null if they delete it. */
        private InternalRow current(UnsafeRow key, InternalRow row) {
            List<InternalRow> versions = logs.remove(key);
            return versions == null ? row : merged(row, versions);
        }

        private InternalRow merged(InternalRow stored, List<InternalRow> versions) {
            MergeEngine.Key state = engine.key();
            if (stored != null) {
                state.apply(stored);
            }
            versions.forEach(state::apply);
            return state.isLive() ? state.row() : null;
        }

        @Override
        public void close() throws IOException {
            if (base != null) {
                base.close();
                base = null;
            }
        }
    }
}
