package lake.metastore.spark;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A file of a snapshot, as the metastore names it. */
final class SnapshotFile {
    private static final String TOMBSTONES = "{\"tombstones\": true}";

    final String partition;
    final String fileGroup;
    /** Relative to the snapshot's location. */
    final String path;
    /** In bytes. */
    final long size;
    /** -1 if that is not known. */
    final long rows;
    final boolean isBase;
    /** The columns of a family's file, null for a file of all columns. */
    final List<String> columns;
    final String statistics;
    /** The position at which it became part of the table first. */
    final long completedAt;

    SnapshotFile(Metastore.Answer file) {
        partition = file.text(1);
        fileGroup = file.text(2);
        path = file.text(4);
        size = file.number(6, 0);
        rows = file.number(7, -1);
        isBase = !file.has(5) || file.text(5).equals("base");
        columns = file.texts(10);
        statistics = file.has(12) ? file.text(12) : "";
        completedAt = file.number(16, file.number(13, 0));
    }

    /** Whether it has the columns of a family alone. */
    boolean isFamily() {
        return isBase && columns != null;
    }

    /** Whether it has tombstones alone, which the base file beside it has applied already. */
    boolean isTombstones() {
        return !isBase && statistics.equals(TOMBSTONES);
    }

    /** What a family's file says of the main file whose rows it has. */
    boolean isOfRowsOf(SnapshotFile main) {
        return statistics.equals("{\"rows_of\": \"" + main.path + "\"}");
    }

    /** Whether the base file of a bucket alone isn't what its rows are. */
    static boolean needMerging(List<SnapshotFile> bucket) {
        return bucket.stream().anyMatch(each -> each.isFamily() || (!each.isBase && !each.isTombstones()));
    }

    /** The files by their buckets, in the order in which they are merged: base, tombstones, logs by their completion. */
    static List<List<SnapshotFile>> byBucket(List<SnapshotFile> files) {
        Map<List<String>, List<SnapshotFile>> found = new LinkedHashMap<>();
        for (SnapshotFile each : files) {
            List<String> bucket = java.util.Arrays.asList(each.partition, each.fileGroup);
            found.computeIfAbsent(bucket, key -> new ArrayList<>()).add(each);
        }
        Comparator<SnapshotFile> order =
                Comparator.<SnapshotFile, Boolean>comparing(each -> !each.isBase)
                        .thenComparing(each -> !each.isTombstones())
                        .thenComparing(each -> each.completedAt);
        for (List<SnapshotFile> bucket : found.values()) {
            bucket.sort(order);
        }
        return new ArrayList<>(found.values());
    }
}
