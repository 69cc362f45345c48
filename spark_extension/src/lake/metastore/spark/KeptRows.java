package lake.metastore.spark;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.fs.Path;
import org.apache.spark.paths.SparkPath;
import org.apache.spark.sql.execution.datasources.PartitionedFile;

/**
 * The rows that a statement inserts into one bucket, in files of its instant. If another writer completes a change of the
 * bucket first, they are merged with that. Sent to executors.
 */
final class KeptRows implements Serializable {
    private static final long serialVersionUID = 1;

    /** Where their files are, in the directory of the instant. */
    static final String DIRECTORY = "kept/";

    /** Their columns have today's names. */
    static final Map<String, String> NAMES = Collections.emptyMap();

    private final String fileGroup;
    /** By partition: of several partitions if the key is unique over all of them. */
    final Map<String, FileReaders.Source> files = new TreeMap<>();

    private KeptRows(String fileGroup) {
        this.fileGroup = fileGroup;
    }

    int bucket() {
        return KeyedTable.bucket(fileGroup);
    }

    /**
     * The rows of each bucket of a statement that deletes nothing. Where no file was made to keep them, the bucket's only
     * file has them.
     *
     * @param location to which the paths of files are relative
     */
    static List<KeptRows> of(KeyedTable table, String location, List<WrittenFile> written) {
        Map<String, KeptRows> keptApart = new HashMap<>();
        Map<String, KeptRows> others = new HashMap<>();
        for (WrittenFile file : written) {
            if (!file.kind.equals(WrittenFile.CHANGELOG)) {
                String bucket = table.isTableWide ? file.fileGroup : file.fileGroup + "/" + file.partition;
                (file.kind.equals(WrittenFile.KEPT) ? keptApart : others)
                        .computeIfAbsent(bucket, key -> new KeptRows(file.fileGroup))
                        .files
                        .put(file.partition, source(location, file));
            }
        }
        others.putAll(keptApart);
        return new ArrayList<>(others.values());
    }

    private static FileReaders.Source source(String location, WrittenFile file) {
        SparkPath path = SparkPath.fromPath(new Path(location + "/" + file.path));
        PartitionedFile whole =
                new PartitionedFile(
                        null, path, 0, file.size, new String[0], 0, file.size, Catalogs.noConstants());
        return new FileReaders.Source(whole, NAMES);
    }
}
