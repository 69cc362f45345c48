package lake.metastore.spark;

import java.io.Serializable;
import java.util.List;

/** A file that a task has written, as the metastore is told of it. */
final class WrittenFile implements Serializable {
    private static final long serialVersionUID = 1;

    String partition;
    String fileGroup;
    /** The timestamp of the instant that opened the slice. */
    String slice;
    /** Relative to the table's location. */
    String path;
    /** In bytes. */
    long size;
    /** {@code base}, {@code log} or {@code changelog}. */
    String kind;
    /** -1 if that is not known. */
    long rows = -1;
    /** The least event time of its rows, in milliseconds since 1970; null if that is not known. */
    Long minEventTime;
    Long maxEventTime;
    /** The columns of a family's file, null for a file of all columns. */
    List<String> columns;
    byte[] statistics;

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
