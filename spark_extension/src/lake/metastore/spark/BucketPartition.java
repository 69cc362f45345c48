package lake.metastore.spark;

import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;

/** The files of a bucket whose rows are more than its base file, or whose columns have other names than today. */
final class BucketPartition implements InputPartition {
    private static final long serialVersionUID = 1;

    /** For messages. */
    final String name;
    /** Null if there is none. */
    final FileReaders.Source base;
    /** The files of column families, which have the same rows as the base file in the same order. */
    final Map<String, FileReaders.Source> families;
    /** In the order in which they are merged. */
    final List<FileReaders.Source> logs;
    /** Of the partition's columns. */
    final InternalRow values;

    BucketPartition(
            String name,
            FileReaders.Source base,
            Map<String, FileReaders.Source> families,
            List<FileReaders.Source> logs,
            InternalRow values) {
        this.name = name;
        this.base = base;
        this.families = families;
        this.logs = logs;
        this.values = values;
    }
}
