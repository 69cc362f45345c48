package lake.metastore.spark;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FileUtil;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.spark.sql.SparkSession;

/**
 * Gives Hive the rows of a keyed table's latest position, as lake/tables/publishing.py does it: the base files of changed
 * partitions are linked on a local file system and copied on others, by the driver.
 */
final class Publishing {
    private static final int PAGE = 10_000;

    private Publishing() {}

    /** Publishes the partitions that changed since they were published last. {@code filter}: in Hive's grammar, or null. */
    static Map<String, Object> run(LakeTable table, String filter) {
        if (!table.keyed.families.isEmpty()) {
            throw Errors.analysis(
                    table.name() + " has column families: Hive's readers find whole rows in a file, and can't join them");
        }
        if (table.keyed.isTableWide && filter != null) {
            throw Errors.analysis(
                    "rows of " + table.name() + " move between partitions: they are published together, without a filter");
        }
        LakeTable.Snapshot snapshot = table.latest();
        Map<String, List<SnapshotFile>> files = new TreeMap<>();
        snapshot.files.forEach(file -> files.computeIfAbsent(file.partition, name -> new ArrayList<>()).add(file));
        List<String> wanted = new ArrayList<>();
        int unmerged = 0;
        for (String partition : behind(table, filter, snapshot.position, files)) {
            if (SnapshotFile.needMerging(files.getOrDefault(partition, new ArrayList<>()))) {
                unmerged++;
            } else {
                wanted.add(partition);
            }
        }
        Map<String, Object> result = new LinkedHashMap<>();
        boolean isWhole = unmerged == 0 || !table.keyed.isTableWide;
        result.put("partitions", isWhole ? wanted.size() : 0);
        if (isWhole && !wanted.isEmpty()) {
            put(table, snapshot, wanted, files, result);
        }
        if (unmerged > 0) {
            result.put("unmerged", unmerged);
            result.put("advice", "partitions have log files: CALL lake.system.compact, then publish again");
        }
        return result;
    }

    private static void put(
            LakeTable table,
            LakeTable.Snapshot snapshot,
            List<String> partitions,
            Map<String, List<SnapshotFile>> files,
            Map<String, Object> result) {
        ColumnNames names = table.columnNames();
        PendingInstant instant = table.begin("publish");
        try {
            int count = 0;
            int linked = 0;
            Configuration hadoop = Catalogs.state(SparkSession.active()).newHadoopConf();
            for (String partition : partitions) {
                for (SnapshotFile file : files.getOrDefault(partition, new ArrayList<>())) {
                    if (!file.isBase) {
                        continue; // tombstones, which the base file has applied
                    }
                    if (!names.inFile(file.completedAt).isEmpty()) {
                        throw Errors.analysis(
                                table.name() + " has files from before a column was renamed, which must be written again:"
                                        + " publish it with lake.spark.publish");
                    }
                    String name = file.path.substring(file.path.lastIndexOf('/') + 1);
                    String below = partition.isEmpty() ? name : partition + "/" + name;
                    linked += isLinked(snapshot.location + "/" + file.path, instant.directory + "/" + below, hadoop) ? 1 : 0;
                    count++;
                }
            }
            String about =
                    "{\"operation\": \"publish\", \"partitions\": " + partitions.size() + ", \"files\": " + count
                            + ", \"linked\": " + linked + "}";
            instant.complete(
                    new Metastore.Struct()
                            .with(5, about.getBytes(StandardCharsets.UTF_8))
                            .with(11, snapshot.position)
                            .with(21, partitions)
                            .with(25, table.layout()));
            result.put("files", count);
            result.put("linked", linked);
            result.put("instant", instant.timestamp);
        } catch (FileNotFoundException | NoSuchFileException gone) {
            throw Errors.analysis(
                    "a clean has removed files of " + table.name() + " while they were published: publish again");
        } catch (IOException error) {
            throw Errors.analysis(table.name() + " could not be published: " + error.getMessage());
        } finally {
            instant.abort(); // unless it is complete
        }
    }

    /** Puts a file at another place of the same storage; false if it was copied. URIs are not encoded. */
    private static boolean isLinked(String source, String target, Configuration hadoop) throws IOException {
        Path from = new Path(source);
        Path to = new Path(target);
        FileSystem storage = from.getFileSystem(hadoop);
        if (storage instanceof LocalFileSystem || storage instanceof RawLocalFileSystem) {
            java.nio.file.Path local = Paths.get(to.toUri().getPath());
            java.nio.file.Path there = Paths.get(from.toUri().getPath());
            Files.createDirectories(local.getParent());
            try {
                Files.createLink(local, there);
                return true;
            } catch (NoSuchFileException gone) {
                throw gone;
            } catch (IOException | UnsupportedOperationException error) {
                Files.copy(there, local); // no links, or no more of them for this file
                return false;
            }
        }
        FileUtil.copy(storage, from, to.getFileSystem(hadoop), to, false, hadoop);
        return false;
    }

    /** The partitions of which Hive sees an older state, in the order of their names. */
    private static List<String> behind(
            LakeTable table, String filter, long position, Map<String, List<SnapshotFile>> files) {
        List<String> found = new ArrayList<>();
        if (table.partitionColumns().isEmpty()) {
            Metastore.Answer whole = table.call("lake_timeline_position", table.reference());
            if (whole.has(6) && isBehind(whole, 6, 7, position, files.containsKey(""))) {
                found.add("");
            }
            return found;
        }
        String after = null;
        List<Metastore.Answer> page;
        do {
            Metastore.Struct request =
                    new Metastore.Struct().with(1, table.reference()).with(2, filter).with(3, true).with(4, PAGE).with(5, after);
            page = table.call("lake_list_partitions", request).structs(1);
            for (Metastore.Answer each : page) {
                after = each.text(1);
                if (each.has(10) && isBehind(each, 10, 11, position, files.containsKey(after))) {
                    found.add(after);
                }
            }
        } while (page.size() == PAGE);
        return found;
    }

    private static boolean isBehind(Metastore.Answer state, int changed, int published, long position, boolean hasFiles) {
        return state.has(published)
                ? state.number(published, 0) < Math.min(state.number(changed, 0), position)
                : hasFiles;
    }
}
