package lake.metastore.spark;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** A file that was written, as thrift_idl/lake_metastore.thrift describes a DataFile. */
final class WrittenFile implements Serializable {
    private static final long serialVersionUID = 1;

    static final String BASE = "base";
    static final String LOG = "log";
    static final String CHANGELOG = "changelog";
    /** The rows of a batch as they were given. No part of the table: see {@link KeptRows}. */
    static final String KEPT = "kept";

    /** The name of its partition, empty for a table without partitions. */
    final String partition;
    final String fileGroup;
    /** The instant that opened the file's slice. */
    final String slice;
    /** Relative to the table's location. */
    final String path;
    final String kind;
    /** In bytes. */
    final long size;
    /** -1 if that is not known. */
    final long rows;
    /** In milliseconds since 1970; null if that is not known. */
    final Long minEventTime;
    final Long maxEventTime;
    /** Of a column family; null for a file of all columns. */
    final List<String> columns;
    /** Null for none. */
    final byte[] statistics;

    WrittenFile(
            String partition,
            String fileGroup,
            String slice,
            String path,
            String kind,
            long size,
            long rows,
            EventTimes times,
            List<String> columns,
            byte[] statistics) {
        this(partition, fileGroup, slice, path, kind, size, rows, times.least, times.greatest, columns, statistics);
    }

    private WrittenFile(
            String partition,
            String fileGroup,
            String slice,
            String path,
            String kind,
            long size,
            long rows,
            Long minEventTime,
            Long maxEventTime,
            List<String> columns,
            byte[] statistics) {
        this.partition = partition;
        this.fileGroup = fileGroup;
        this.slice = slice;
        this.path = path;
        this.kind = kind;
        this.size = size;
        this.rows = rows;
        this.minEventTime = minEventTime;
        this.maxEventTime = maxEventTime;
        this.columns = columns;
        this.statistics = statistics;
    }

    /** The same file in another partition. */
    WrittenFile in(String other) {
        return new WrittenFile(
                other, fileGroup, slice, path, kind, size, rows, minEventTime, maxEventTime, columns, statistics);
    }

    /** As lake/spark/jvm_writer.py reads it. */
    ObjectNode json(ObjectMapper mapper) {
        ObjectNode found = mapper.createObjectNode();
        found.put("partition", partition).put("file_group", fileGroup).put("slice", slice).put("path", path);
        found.put("size", size).put("kind", kind);
        if (rows >= 0) {
            found.put("rows", rows);
        }
        if (minEventTime != null) {
            found.put("min_event_time", minEventTime).put("max_event_time", maxEventTime);
        }
        if (columns != null) {
            columns.forEach(found.putArray("columns")::add);
        }
        if (statistics != null) {
            found.put("statistics", new String(statistics, StandardCharsets.UTF_8));
        }
        return found;
    }

    /** The same file with other event times, in milliseconds. */
    WrittenFile between(long least, long greatest) {
        return new WrittenFile(
                partition, fileGroup, slice, path, kind, size, rows, least, greatest, columns, statistics);
    }

    Metastore.Struct struct() {
        return new Metastore.Struct()
                .with(1, partition)
                .with(2, fileGroup)
                .with(3, slice)
                .with(4, path)
                .with(5, kind)
                .with(6, size)
                .with(7, rows < 0 ? null : (Object) rows)
                .with(8, minEventTime)
                .with(9, maxEventTime)
                .with(10, columns)
                .with(12, statistics);
    }
}
