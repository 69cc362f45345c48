package lake.metastore.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.LongPredicate;

/**
 * What changed between two positions of a table without a primary key, by files, by the rules of lake/tables/file_changes.py:
 * a clustering is no change, since the rows of the files that it wrote are those of the files that it replaced.
 */
final class FileChanges {
    private static final String CLUSTERING = "clustering";
    private static final Set<String> UNDOING = new HashSet<>(Arrays.asList("rollback", "restore"));

    /** Files that a clustering wrote, which have the rows of others; as paths. */
    private static final class Replacement {
        private final Set<String> written = new TreeSet<>();
        private final Set<String> replaced = new TreeSet<>();
    }

    private final LakeTable table;
    private final String location;
    /** How often the rows of each file came, less how often they went. */
    private final Map<String, Integer> counts = new LinkedHashMap<>();
    private final Map<String, SnapshotFile> files = new HashMap<>();

    private FileChanges(LakeTable table, String location) {
        this.table = table;
        this.location = location;
    }

    /** Throws an IllegalStateException where files alone don't tell, Refused if files of the range have been cleaned. */
    static FileChanges of(LakeTable table, long after, long upTo) {
        LakeTable.Changed changed = table.changes(after, upTo, false);
        FileChanges found = new FileChanges(table, changed.location);
        List<Replacement> clusterings = new ArrayList<>();
        boolean undoes = false;
        for (Metastore.Answer each : changed.changes) {
            List<SnapshotFile> added = SnapshotFile.of(each.structs(2));
            List<SnapshotFile> removed = SnapshotFile.of(each.structs(3));
            found.know(added, removed);
            if (isClustering(each.struct(1))) {
                clusterings.addAll(replacements(added, removed));
                continue;
            }
            added.forEach(file -> found.counts.merge(file.path, 1, Integer::sum));
            removed.forEach(file -> found.counts.merge(file.path, -1, Integer::sum));
            undoes |= UNDOING.contains(each.struct(1).text(2));
        }
        Collections.reverse(clusterings);
        clusterings.forEach(found::undoRemoval);
        if (undoes) {
            found.undoExchanges(after);
        }
        return found;
    }

    /** The files whose rows came. */
    List<SnapshotFile> added() {
        return with(count -> count > 0);
    }

    /** What the paths of files are relative to. */
    String location() {
        return location;
    }

    private List<SnapshotFile> with(LongPredicate isWanted) {
        List<SnapshotFile> found = new ArrayList<>();
        counts.forEach(
                (path, count) -> {
                    if (isWanted.test(count)) {
                        found.add(files.get(path));
                    }
                });
        return found;
    }

    private void know(Collection<SnapshotFile> added, Collection<SnapshotFile> removed) {
        removed.forEach(file -> files.put(file.path, file));
        added.forEach(file -> files.put(file.path, file));
    }

    private int count(String path) {
        return counts.getOrDefault(path, 0);
    }

    /** Where all files of a clustering went, those that it had replaced went. */
    private void undoRemoval(Replacement clustering) {
        long gone = clustering.written.stream().filter(path -> count(path) < 0).count();
        if (gone > 0 && gone < clustering.written.size()) {
            throw new IllegalStateException(
                    table.name() + ": some files that a clustering wrote are gone, and others of it not, so which rows came"
                            + " and went isn't known by files. Start with a new checkpoint, since a later position");
        }
        if (gone > 0) {
            exchange(clustering, 1);
        }
    }

    private void exchange(Replacement clustering, int sign) {
        clustering.written.forEach(path -> counts.merge(path, sign, Integer::sum));
        clustering.replaced.forEach(path -> counts.merge(path, -sign, Integer::sum));
    }

    /** Files that a rollback exchanged for those with the same rows are no change, in either direction. */
    private void undoExchanges(long after) {
        List<SnapshotFile> came = with(count -> count > 0);
        List<SnapshotFile> went = with(count -> count < 0);
        came.removeIf(each -> each.completedAt > after);
        went.removeIf(each -> each.completedAt > after);
        Set<String> both = partitions(came);
        both.retainAll(partitions(went));
        Set<Long> wanted = new TreeSet<>(Collections.reverseOrder());
        for (List<SnapshotFile> some : Arrays.asList(came, went)) {
            some.stream().filter(each -> both.contains(each.partition)).forEach(each -> wanted.add(each.completedAt));
        }
        List<Replacement> tried = new ArrayList<>();
        List<Integer> signs = new ArrayList<>();
        for (Metastore.Answer change : clusteringsAmong(wanted)) {
            List<SnapshotFile> added = SnapshotFile.of(change.structs(2));
            List<SnapshotFile> removed = SnapshotFile.of(change.structs(3));
            know(added, removed);
            for (Replacement each : replacements(added, removed)) {
                for (int sign : new int[] {1, -1}) {
                    if (!each.written.isEmpty() && each.written.stream().allMatch(path -> count(path) * sign < 0)) {
                        exchange(each, sign);
                        tried.add(each);
                        signs.add(sign);
                    }
                }
            }
        }
        for (int i = tried.size() - 1; i >= 0; i--) { // nothing was exchanged: the files themselves went, or came
            int sign = signs.get(i);
            if (tried.get(i).replaced.stream().allMatch(path -> count(path) * sign < 0)) {
                exchange(tried.get(i), -sign);
            }
        }
    }

    /**
     * The clusterings at some positions, and those of whose files they were made, the latest first. A rollback may undo one
     * from before the range, or bring its files back.
     */
    private List<Metastore.Answer> clusteringsAmong(Set<Long> positions) {
        List<Metastore.Answer> found = new ArrayList<>();
        if (positions.isEmpty()) {
            return found;
        }
        Set<Long> known = new HashSet<>();
        for (Metastore.Answer each : table.completed("replacecommit", CLUSTERING)) {
            if (isClustering(each)) {
                known.add(each.number(8, 0));
            }
        }
        positions.retainAll(known);
        while (!positions.isEmpty()) {
            long position = positions.iterator().next();
            positions.remove(position);
            for (Metastore.Answer change : table.changes(position - 1, position, false).changes) {
                SnapshotFile.of(change.structs(3)).stream()
                        .filter(each -> known.contains(each.completedAt))
                        .forEach(each -> positions.add(each.completedAt));
                found.add(change);
            }
        }
        return found;
    }

    private static boolean isClustering(Metastore.Answer instant) {
        return CLUSTERING.equals(instant.has(10) ? instant.text(10) : instant.text(2));
    }

    private static Set<String> partitions(List<SnapshotFile> files) {
        Set<String> found = new HashSet<>();
        files.forEach(each -> found.add(each.partition));
        return found;
    }

    private static Set<List<String>> groups(List<SnapshotFile> files) {
        Set<List<String>> found = new HashSet<>();
        files.forEach(each -> found.add(Arrays.asList(each.partition, each.fileGroup)));
        return found;
    }

    /** What stands for what after a clustering: each file that came along by itself, a partition's rest together. */
    private static Collection<Replacement> replacements(List<SnapshotFile> added, List<SnapshotFile> removed) {
        Set<List<String>> onBoth = groups(added);
        onBoth.retainAll(groups(removed));
        Map<List<String>, Replacement> found = new LinkedHashMap<>();
        for (List<SnapshotFile> side : Arrays.asList(added, removed)) {
            for (SnapshotFile each : side) {
                boolean isAlone = onBoth.contains(Arrays.asList(each.partition, each.fileGroup));
                Replacement unit =
                        found.computeIfAbsent(
                                Arrays.asList(each.partition, isAlone ? each.fileGroup : null), key -> new Replacement());
                (side == added ? unit.written : unit.replaced).add(each.path);
            }
        }
        return found.values();
    }
}
