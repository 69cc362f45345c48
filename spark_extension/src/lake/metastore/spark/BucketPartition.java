package lake.metastore.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;

/** The files of a bucket whose rows are more than its base file, or whose columns have other names than today. */
final class BucketPartition implements InputPartition {
    private static final long serialVersionUID = 1;

    /** For messages. */
    final String name;
    /** Null if there is none. */
    final FileReaders.Source base;
    /** The path of the base file, relative to the table; null if there is none. */
    final String basePath;
    /** The files of column families, which have the same rows as the base file in the same order. */
    final Map<String, FileReaders.Source> families;
    /** In the order in which they are merged. */
    final List<FileReaders.Source> logs;
    /** Of the partition's columns. */
    final InternalRow values;

    private BucketPartition(
            String name,
            FileReaders.Source base,
            String basePath,
            Map<String, FileReaders.Source> families,
            List<FileReaders.Source> logs,
            InternalRow values) {
        this.name = name;
        this.base = base;
        this.basePath = basePath;
        this.families = families;
        this.logs = logs;
        this.values = values;
    }

    /** {@code files}: of one bucket, in the order in which they are merged. {@code location}: the snapshot's. */
    static BucketPartition of(
            LakeTable table, String location, ColumnNames names, List<SnapshotFile> files, InternalRow values) {
        return of(table.name(), table.keyed, location, names, files, values);
    }

    /** {@code tableName}: for messages. */
    static BucketPartition of(
            String tableName,
            KeyedTable table,
            String location,
            ColumnNames names,
            List<SnapshotFile> files,
            InternalRow values) {
        Function<SnapshotFile, FileReaders.Source> source =
                file -> new FileReaders.Source(file.whole(location, values), names.inFile(file.completedAt));
        SnapshotFile main = null;
        List<FileReaders.Source> logs = new ArrayList<>();
        Map<String, FileReaders.Source> families = new HashMap<>();
        for (SnapshotFile file : files) {
            if (file.isBase && !file.isFamily()) {
                main = file;
            } else if (!file.isBase) {
                logs.add(source.apply(file));
            }
        }
        if (files.stream().anyMatch(SnapshotFile::isFamily)) {
            for (Map.Entry<String, List<String>> family : table.families.entrySet()) {
                families.put(family.getKey(), source.apply(familyFile(tableName, family, main, files)));
            }
        }
        String name = tableName + ", bucket " + (files.get(0).partition + " " + files.get(0).fileGroup).trim();
        return new BucketPartition(
                name,
                main == null ? null : source.apply(main),
                main == null ? null : main.path,
                families,
                logs,
                values);
    }

    private static SnapshotFile familyFile(
            String tableName, Map.Entry<String, List<String>> family, SnapshotFile main, List<SnapshotFile> files) {
        Set<String> wanted = new HashSet<>(family.getValue());
        for (SnapshotFile file : files) {
            if (file.isFamily() && new HashSet<>(file.columns).equals(wanted)) {
                if (main == null || !file.isOfRowsOf(main)) {
                    throw new IllegalStateException(
                            file.path + " has columns of other rows than its main file: roll back what was written last");
                }
                return file;
            }
        }
        throw new IllegalStateException(
                "the column family " + family.getKey() + " of " + tableName
                        + " has no file in a bucket: roll back what was written last");
    }
}
