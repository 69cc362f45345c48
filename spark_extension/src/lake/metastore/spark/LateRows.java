package lake.metastore.spark;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;

/**
 * Completes micro-batches by the rules of lake/tables/late_rows.py: rows for partitions that are ready already go where the
 * table's {@code partition.late-rows} says. Which are is found in the transaction of the completion.
 */
final class LateRows {
    /** How often a completion may be refused because further partitions turned ready, before the batch fails. */
    private static final int MOST_REFUSALS = 20;

    private static final String NEXT = "next";
    private static final String REOPEN = "reopen";
    private static final String DROP = "drop";

    private final LakeTable table;
    /** By partition, its route as the metastore describes it. */
    private final Map<String, Metastore.Answer> routes = new HashMap<>();

    /** @param partitions which are looked up; none to go by what the completion finds */
    private LateRows(LakeTable table, Set<String> partitions) {
        this.table = table;
        List<String> names = new ArrayList<>(partitions);
        List<Metastore.Answer> found =
                names.isEmpty()
                        ? new ArrayList<>()
                        : table.call(
                                        "lake_route_partitions",
                                        new Metastore.Struct().with(1, table.reference()).with(2, names))
                                .structs(1);
        for (int i = 0; i < names.size(); i++) {
            routes.put(names.get(i), found.get(i)); // the server spells names as Hive does
        }
    }

    /**
     * Completes the instant of a micro-batch.
     *
     * @param rows the batch's rows by partition
     * @param completion makes the request of the files that join the table
     */
    static void complete(
            PendingInstant instant,
            LakeTable table,
            List<WrittenFile> files,
            Map<String, Long> rows,
            Function<List<WrittenFile>, Metastore.Struct> completion,
            Configuration configuration) {
        if (table.partitionColumns().isEmpty()) {
            instant.complete(completion.apply(files));
            return;
        }
        // The query knows the properties of when it began. If the table got others since, the completion is refused.
        boolean asksFirst = table.makesReadyLater();
        Set<String> partitions = new TreeSet<>();
        files.stream().filter(file -> !file.partition.isEmpty()).forEach(file -> partitions.add(file.partition));
        List<String> refused = null;
        for (int i = 0; i < MOST_REFUSALS; i++) {
            LateRows late;
            try {
                late = new LateRows(table, asksFirst || i > 0 ? partitions : Collections.emptySet());
            } catch (Metastore.Refused error) {
                throw Errors.analysis(error.getMessage());
            }
            List<WrittenFile> routed = late.routed(files);
            refused = instant.complete(late.addTo(completion.apply(routed), rows)).texts(6);
            if (refused == null || refused.isEmpty()) {
                if (routed.size() < files.size()) {
                    instant.removeOthers(configuration, routed.stream().map(file -> file.path).collect(Collectors.toSet()));
                }
                return;
            }
        }
        throw new IllegalStateException(
                table.name() + ": the batch was refused " + MOST_REFUSALS + " times, because partitions turned ready that it"
                        + " wrote to; the last ones: " + String.join(", ", refused));
    }

    private String action(String partition) {
        Metastore.Answer route = routes.get(partition);
        return route == null ? "write" : route.text(4);
    }

    /** The files that join the table, in the partitions that they go to. */
    private List<WrittenFile> routed(List<WrittenFile> files) {
        List<WrittenFile> found = new ArrayList<>();
        for (WrittenFile file : files) {
            if (!action(file.partition).equals(DROP)) {
                Metastore.Answer route = routes.get(file.partition);
                found.add(route == null ? file : file.in(route.text(2)));
            }
        }
        return found;
    }

    private Metastore.Struct addTo(Metastore.Struct completion, Map<String, Long> rows) {
        Map<String, Long> counts = new HashMap<>();
        List<String> reopened = new ArrayList<>();
        for (String partition : new TreeSet<>(routes.keySet())) {
            counts.merge(action(partition), rows.getOrDefault(partition, 0L), Long::sum);
            if (action(partition).equals(REOPEN)) {
                reopened.add(partition);
            }
        }
        Metastore.Struct late =
                new Metastore.Struct()
                        .with(1, counts.getOrDefault(NEXT, 0L))
                        .with(2, counts.getOrDefault(REOPEN, 0L))
                        .with(3, counts.getOrDefault(DROP, 0L));
        return completion.with(26, true).with(27, reopened.isEmpty() ? null : reopened).with(28, late);
    }

    @Override
    public String toString() {
        return "routes of " + table.name() + ": " + routes.keySet();
    }
}
