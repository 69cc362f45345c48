package lake.metastore.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.apache.spark.sql.connector.read.InputPartition;

/**
 * What happened to a keyed table's buckets between two positions, by the rules of lake/tables/keyed_tables.py: which of
 * them may have changed, and by which files that is found out.
 */
final class ChangedRange {
    /** The actions of instants that change no row. */
    private static final Set<String> SERVICES =
            new HashSet<>(Arrays.asList("compaction", "logcompaction", "clustering"));

    /** The actions of instants that replace the rows of buckets, or bring or take all of them. */
    private static final Set<String> REWRITES =
            new HashSet<>(Arrays.asList("replacecommit", "rollback", "restore", "readiness"));

    /** What happened to one bucket. */
    private static final class Touched {
        private final List<SnapshotFile> before = new ArrayList<>();
        private final List<SnapshotFile> after = new ArrayList<>();
        /** The log files that came between, in the order of their completion. */
        private final List<SnapshotFile> logs = new ArrayList<>();
        /** Instead of the others. */
        private final List<SnapshotFile> changelog = new ArrayList<>();
        /** By the timestamps of instants, the positions at which they were complete. */
        private final Map<String, Long> positions = new HashMap<>();
        /** The position of the last replacement or rollback; 0 for none. */
        private long rewritten;
        private boolean hasChanged;
    }

    private final LakeTable table;
    private String location;
    /** By partition and file group. */
    private final Map<List<String>, Touched> buckets = new LinkedHashMap<>();
    /** By position, in microseconds since 1970. */
    private final Map<Long, Long> times = new HashMap<>();

    private ChangedRange(LakeTable table) {
        this.table = table;
    }

    /**
     * What happened after one position up to another, in the partitions that are wanted. Raises Refused if files of it have
     * been cleaned.
     */
    static ChangedRange of(LakeTable table, long after, long upTo, Predicate<String> isWanted) {
        LakeTable.Changed changed = table.changes(after, upTo, true);
        ChangedRange found = new ChangedRange(table);
        found.location = changed.location;
        changed.changes.forEach(each -> found.add(each, isWanted));
        found.buckets.values().removeIf(each -> !each.hasChanged);
        if (!changed.isOfChangelogs) {
            found.addStates(after, upTo);
        }
        return found;
    }

    /** The same for each completion by itself, in their order. Those that change no row are left out. */
    static List<ChangedRange> ofEachCommit(LakeTable table, long after, long upTo, Predicate<String> isWanted) {
        LakeTable.Changed changed = table.changes(after, upTo, true);
        List<ChangedRange> found = new ArrayList<>();
        for (Metastore.Answer each : changed.changes) {
            boolean hasFiles = !each.structs(2).isEmpty() || !each.structs(3).isEmpty() || !each.structs(4).isEmpty();
            if (!hasFiles || SERVICES.contains(action(each.struct(1)))) {
                continue;
            }
            if (changed.isOfChangelogs) {
                ChangedRange one = new ChangedRange(table);
                one.location = changed.location;
                one.add(each, isWanted);
                found.add(one);
            } else {
                long position = each.struct(1).number(8, 0);
                found.add(of(table, position - 1, position, isWanted));
            }
        }
        return found;
    }

    /** {@code instant}: as the metastore describes it. */
    private static String action(Metastore.Answer instant) {
        return instant.has(10) ? instant.text(10) : instant.text(2);
    }

    /** A completion. {@code change}: an InstantChanges of the metastore. */
    private void add(Metastore.Answer change, Predicate<String> isWanted) {
        Metastore.Answer instant = change.struct(1);
        List<SnapshotFile> added = SnapshotFile.of(change.structs(2));
        List<SnapshotFile> changelog = SnapshotFile.of(change.structs(4));
        List<SnapshotFile> all = new ArrayList<>(added);
        all.addAll(SnapshotFile.of(change.structs(3)));
        all.addAll(changelog);
        if (all.isEmpty()) {
            return; // a savepoint has the timestamp of the instant that it protects
        }
        String action = action(instant);
        long position = instant.number(8, 0);
        times.put(position, instant.number(5, 0) * 1_000);
        for (SnapshotFile file : all) {
            if (isWanted.test(file.partition)) {
                Touched bucket = touched(file);
                bucket.positions.put(instant.text(1), position);
                bucket.hasChanged |= !SERVICES.contains(action);
                if (REWRITES.contains(action)) {
                    bucket.rewritten = position;
                }
            }
        }
        if (!SERVICES.contains(action)) {
            added.stream()
                    .filter(file -> file.kind.equals("log") && isWanted.test(file.partition))
                    .forEach(file -> touched(file).logs.add(file));
        }
        changelog.stream()
                .filter(file -> isWanted.test(file.partition))
                .forEach(file -> touched(file).changelog.add(file));
    }

    /** The files of the buckets at both ends. */
    private void addStates(long after, long upTo) {
        Set<String> places = new LinkedHashSet<>();
        buckets.keySet().forEach(each -> places.add(each.get(0)));
        for (SnapshotFile file : table.filesAt(after, new ArrayList<>(places))) {
            ifTouched(file).before.add(file);
        }
        for (SnapshotFile file : table.filesAt(upTo, new ArrayList<>(places))) {
            ifTouched(file).after.add(file);
        }
        // Where there is nothing at either end, rows came and went meanwhile.
        buckets.values().removeIf(each -> each.before.isEmpty() && each.after.isEmpty());
    }

    private Touched touched(SnapshotFile file) {
        return buckets.computeIfAbsent(Arrays.asList(file.partition, file.fileGroup), missing -> new Touched());
    }

    private Touched ifTouched(SnapshotFile file) {
        return buckets.getOrDefault(Arrays.asList(file.partition, file.fileGroup), new Touched());
    }

    /** The number of buckets in wanted partitions. */
    long count(Predicate<String> isWanted) {
        return buckets.keySet().stream().filter(each -> isWanted.test(each.get(0))).count();
    }

    /** The files that are read for wanted partitions. */
    void forEachFile(Predicate<String> isWanted, Consumer<SnapshotFile> action) {
        buckets.forEach(
                (place, bucket) -> {
                    if (isWanted.test(place.get(0))) {
                        for (List<SnapshotFile> some :
                                Arrays.asList(bucket.before, bucket.after, bucket.logs, bucket.changelog)) {
                            some.forEach(action);
                        }
                    }
                });
    }

    /** A task for each bucket in wanted partitions. */
    List<InputPartition> tasks(ColumnNames names, PartitionValues partitions, Predicate<String> isWanted) {
        long last = times.isEmpty() ? 0 : Collections.max(times.keySet());
        List<InputPartition> found = new ArrayList<>();
        buckets.forEach(
                (place, bucket) -> {
                    if (!isWanted.test(place.get(0))) {
                        return;
                    }
                    long rewritten = bucket.rewritten == 0 ? last : bucket.rewritten;
                    Map<String, long[]> commits = new HashMap<>();
                    bucket.positions.forEach((instant, at) -> commits.put(instant, new long[] {at, times.get(at)}));
                    found.add(
                            new ChangedBucket.Task(
                                    side(names, bucket.before),
                                    side(names, bucket.after),
                                    sources(names, bucket.logs),
                                    tombstones(bucket.logs),
                                    sources(names, bucket.changelog),
                                    bucket.changelog.stream().map(file -> file.slice).toArray(String[]::new),
                                    commits,
                                    new long[] {rewritten, times.get(rewritten)},
                                    partitions.of(place.get(0))));
                });
        return found;
    }

    private static boolean[] tombstones(List<SnapshotFile> files) {
        boolean[] found = new boolean[files.size()];
        for (int i = 0; i < found.length; i++) {
            found[i] = files.get(i).isTombstones();
        }
        return found;
    }

    /** A state of a bucket, null for an empty one. */
    private BucketPartition side(ColumnNames names, List<SnapshotFile> files) {
        return files.isEmpty()
                ? null
                : BucketPartition.of(table, location, names, SnapshotFile.byBucket(files).get(0), null);
    }

    private List<FileReaders.Source> sources(ColumnNames names, Collection<SnapshotFile> files) {
        List<FileReaders.Source> found = new ArrayList<>();
        for (SnapshotFile file : files) {
            found.add(new FileReaders.Source(file.whole(location, null), names.inFile(file.completedAt)));
        }
        return found;
    }
}
