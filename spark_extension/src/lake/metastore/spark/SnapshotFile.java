package lake.metastore.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.datasources.PartitionedFile;

/** A file of a snapshot, as the metastore names it. */
final class SnapshotFile {
    private static final String BASE = "base";
    static final String TOMBSTONES = "{\"tombstones\": true}";

    final String partition;
    final String fileGroup;
    /** The timestamp of the instant that opened its slice. */
    final String slice;
    /** Relative to the snapshot's location. */
    final String path;
    /** In bytes. */
    final long size;
    /** -1 if that is not known. */
    final long rows;
    final String kind;
    final boolean isBase;
    /** The columns of a family's file, null for a file of all columns. */
    final List<String> columns;
    final String statistics;
    /** In milliseconds since 1970; null if that is not known. */
    final Long minEventTime;
    final Long maxEventTime;
    /** The position at which it became part of the table first. */
    final long completedAt;

    SnapshotFile(Metastore.Answer file) {
        partition = file.text(1);
        fileGroup = file.text(2);
        slice = file.text(3);
        path = file.text(4);
        size = file.number(6, 0);
        rows = file.number(7, -1);
        kind = file.has(5) ? file.text(5) : BASE;
        isBase = kind.equals(BASE);
        columns = file.texts(10);
        statistics = file.has(12) ? file.text(12) : "";
        minEventTime = file.has(8) ? (Long) file.number(8, 0) : null;
        maxEventTime = file.has(9) ? (Long) file.number(9, 0) : null;
        completedAt = file.number(16, file.number(13, 0));
    }

    /** A file as a program that has asked the metastore itself names it, see lake/spark/jvm_writer.py. */
    SnapshotFile(JsonNode file) {
        partition = file.get("partition").asText();
        fileGroup = file.get("file_group").asText();
        slice = file.get("slice").asText();
        path = file.get("path").asText();
        size = file.get("size").asLong();
        rows = file.path("rows").asLong(-1);
        kind = file.get("kind").asText();
        isBase = kind.equals(BASE);
        columns = file.has("columns") ? new ArrayList<>() : null;
        file.path("columns").forEach(each -> columns.add(each.asText()));
        statistics = file.path("statistics").asText("");
        minEventTime = null;
        maxEventTime = null;
        completedAt = file.get("completed_at").asLong();
    }

    static List<SnapshotFile> of(List<Metastore.Answer> files) {
        List<SnapshotFile> found = new ArrayList<>();
        files.forEach(each -> found.add(new SnapshotFile(each)));
        return found;
    }

    /** Refuses a file of a keyed table that a later version has written. */
    void checkUnderstood() {
        if (!isBase && !kind.equals(WrittenFile.LOG)) {
            throw Errors.analysis(
                    path + " is of the kind " + kind + ", which this version of the extension can't read: install the"
                            + " lake-metastore-client of the server's version");
        }
    }

    /** Some of its bytes, to be read. {@code location}: the snapshot's. {@code values}: of the partition's columns. */
    PartitionedFile part(String location, InternalRow values, long start, long length) {
        // The location isn't encoded: a %3A is in the name of a directory.
        SparkPath file = SparkPath.fromPath(new Path(location + "/" + path));
        return new PartitionedFile(values, file, start, length, new String[0], 0, size, Catalogs.noConstants());
    }

    PartitionedFile whole(String location, InternalRow values) {
        return part(location, values, 0, size);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof SnapshotFile && ((SnapshotFile) other).path.equals(path);
    }

    @Override
    public int hashCode() {
        return path.hashCode();
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
        return statistics.equals(rowsOf(main.path));
    }

    /** The statistics of a family's file, as Python's JSON has them. {@code main}: the path of the main file. */
    static String rowsOf(String main) {
        StringBuilder found = new StringBuilder("{\"rows_of\": \"");
        for (char sign : main.toCharArray()) {
            if (sign == '"' || sign == '\\') {
                found.append('\\').append(sign);
            } else if (sign < ' ' || sign > '~') {
                found.append(String.format("\\u%04x", (int) sign));
            } else {
                found.append(sign);
            }
        }
        return found.append("\"}").toString();
    }

    /** Refuses files that don't have whole rows by themselves. {@code table}: its name. */
    static void checkWhole(String table, List<SnapshotFile> files) {
        for (SnapshotFile each : files) {
            if (!each.isBase || each.isFamily()) {
                throw Errors.analysis(
                        table + " has " + (each.isBase ? "files of some columns alone" : "log files") + ", such as " + each.path
                                + ": read it by what wrote it");
            }
        }
    }

    /** Whether the base file of a bucket alone isn't what its rows are. */
    static boolean needMerging(List<SnapshotFile> bucket) {
        return bucket.stream().anyMatch(each -> each.isFamily() || (!each.isBase && !each.isTombstones()));
    }

    /**
     * The files by their buckets, in the order in which they are merged: base, tombstones, logs by their completion. Raises
     * an AnalysisException for a file of a kind that a later version writes.
     */
    static List<List<SnapshotFile>> byBucket(List<SnapshotFile> files) {
        Map<List<String>, List<SnapshotFile>> found = new LinkedHashMap<>();
        for (SnapshotFile each : files) {
            if (!each.isBase && !each.kind.equals("log")) {
                throw Errors.analysis(
                        each.path + " is of the kind " + each.kind
                                + ", which this version can't read: install a later extension");
            }
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
