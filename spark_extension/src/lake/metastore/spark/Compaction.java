package lake.metastore.spark;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.sql.SparkSession;

/**
 * Compaction of a keyed table by Spark's executors, as lake/tables/compaction.py does it: the log files and the base file of
 * a bucket become one new base file. Writers go on meanwhile, and are never refused for it.
 */
final class Compaction {
    private static final String COMPACTION = "compaction";

    /** Compacts the buckets of a task, given by partition and file group. */
    private static final class Task implements FlatMapFunction<List<String>, WrittenFile> {
        private static final long serialVersionUID = 1;

        private final BucketWriter writer;

        private Task(BucketWriter writer) {
            this.writer = writer;
        }

        @Override
        public Iterator<WrittenFile> call(List<String> bucket) throws Exception {
            return writer.compact(bucket.get(0), bucket.get(1)).iterator();
        }
    }

    private Compaction() {}

    /** Plans a compaction of the buckets with at least {@code minLogs} log files, and runs it. */
    static Map<String, Object> run(LakeTable table, long minLogs) {
        table.keyed.checkUnderstood(table.name());
        Map<String, Object> result = new LinkedHashMap<>();
        if (!table.keyed.isMergeOnRead) {
            result.put("buckets", 0);
            result.put("reason", table.name() + " is copy-on-write: it has no log files to compact");
            return result;
        }
        Set<List<String>> pending = pending(table);
        List<Metastore.Struct> plan = new ArrayList<>();
        Set<List<String>> planned = new HashSet<>();
        for (List<SnapshotFile> bucket : SnapshotFile.byBucket(table.latest().files)) {
            SnapshotFile first = bucket.get(0);
            List<String> place = Arrays.asList(first.partition, first.fileGroup);
            long logs = bucket.stream().filter(file -> !file.isBase && !file.isTombstones()).count();
            if (logs >= minLogs && !pending.contains(place)) {
                planned.add(place);
                plan.add(new Metastore.Struct().with(1, first.partition).with(2, first.fileGroup));
            }
        }
        result.put("buckets", plan.size());
        if (plan.isEmpty()) {
            result.put("reason", "no bucket has " + minLogs + " log files, but for those in plans that are pending");
            return result;
        }
        Metastore.Struct request =
                new Metastore.Struct().with(5, about(plan.size(), -1)).with(7, plan).with(9, table.layout());
        PendingInstant instant = table.takeUp(COMPACTION, request);
        try {
            List<WrittenFile> files = compacted(table, instant, planned);
            result.put("files", files.size());
            result.put("bytes", files.stream().mapToLong(file -> file.size).sum());
            result.put("instant", instant.timestamp);
        } finally {
            instant.abort(); // unless it is complete
        }
        return result;
    }

    private static List<WrittenFile> compacted(LakeTable table, PendingInstant instant, Set<List<String>> planned) {
        LakeTable.Snapshot latest = table.latest();
        BucketWriter.Target target =
                new BucketWriter.Target(instant.timestamp, instant.directory, instant.path, null);
        List<WrittenFile> files = merged(SparkSession.active(), table, latest, target, planned);
        List<Metastore.Struct> added = new ArrayList<>();
        files.forEach(file -> added.add(file.struct()));
        instant.complete(
                new Metastore.Struct()
                        .with(4, "commit")
                        .with(5, about(planned.size(), files.size()))
                        .with(6, added)
                        .with(11, latest.position)
                        .with(25, table.layout()));
        return files;
    }

    /**
     * The new files of planned buckets, which the executors make of all that was written before the plan.
     *
     * @param snapshot of the table, with uncommitted partitions
     * @param target the plan's instant, which has been taken up
     * @param planned by partition and file group
     */
    static List<WrittenFile> merged(
            SparkSession session,
            LakeTable table,
            LakeTable.Snapshot snapshot,
            BucketWriter.Target target,
            Set<List<String>> planned) {
        // What was written since the plan is in later slices.
        LakeTable.Snapshot older =
                snapshot.only(
                        file ->
                                file.slice.compareTo(target.instant) < 0
                                        && planned.contains(Arrays.asList(file.partition, file.fileGroup)));
        if (planned.isEmpty()) {
            return new ArrayList<>();
        }
        BucketWriter writer = BucketWriter.compacting(session, table, table.dataSchema(), older, target);
        JavaSparkContext context = new JavaSparkContext(session.sparkContext());
        List<WrittenFile> written =
                context.parallelize(new ArrayList<>(planned), planned.size()).flatMap(new Task(writer)).collect();
        Set<String> paths = new HashSet<>();
        written.forEach(file -> paths.add(file.path));
        PendingInstant.removeOthers(Catalogs.state(session).newHadoopConf(), target.directory, paths);
        Map<List<String>, long[]> times = times(older.files);
        List<WrittenFile> found = new ArrayList<>();
        for (WrittenFile file : written) {
            long[] range = times.get(Arrays.asList(file.partition, file.fileGroup));
            boolean hasTimes = range != null && file.kind.equals(WrittenFile.BASE) && file.columns == null;
            found.add(hasTimes ? file.between(range[0], range[1]) : file);
        }
        return found;
    }

    /** By bucket, the least and the greatest event time of its files; none where no file says them. */
    private static Map<List<String>, long[]> times(List<SnapshotFile> files) {
        Map<List<String>, long[]> found = new LinkedHashMap<>();
        for (SnapshotFile file : files) {
            if (file.minEventTime != null && file.maxEventTime != null) {
                found.merge(
                        Arrays.asList(file.partition, file.fileGroup),
                        new long[] {file.minEventTime, file.maxEventTime},
                        (one, other) -> new long[] {Math.min(one[0], other[0]), Math.max(one[1], other[1])});
            }
        }
        return found;
    }

    /** The buckets that other plans name. */
    private static Set<List<String>> pending(LakeTable table) {
        Set<List<String>> found = new HashSet<>();
        for (Metastore.Answer each : table.instants()) {
            boolean isPlan = each.text(2).equals(COMPACTION) && !each.text(3).equals("completed");
            if (isPlan) {
                Metastore.Answer details = table.call("lake_get_instant", table.reference(), each.text(1), COMPACTION);
                details.structs(3).forEach(group -> found.add(Arrays.asList(group.text(1), group.text(2))));
            }
        }
        return found;
    }

    /** What the instant says of itself. {@code files}: -1 in a plan. */
    private static byte[] about(int buckets, int files) {
        String text = "{\"operation\": \"compaction\", \"buckets\": " + buckets + (files < 0 ? "" : ", \"files\": " + files) + "}";
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
