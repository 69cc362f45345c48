package lake.metastore.spark;

import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Set;

/** The part of a table that a program reads, whatever the conditions of its queries. */
final class Selection {
    static final Selection ALL = new Selection(null, null, null, false, false, false);

    /** Which partitions, in Hive's grammar; null for all. */
    final String filter;
    /** The names of the partitions, instead of a filter; null for all. */
    final List<String> partitions;
    /** Which file groups of the partitions; null for all. */
    final Set<String> groups;
    /** Without log files. */
    final boolean isOfBaseFiles;
    /** The reader keeps cleans off the files by a lease of its own. */
    final boolean isPinned;
    /** The files are placed by the number of buckets that the definition says. */
    final boolean hasBucketsOfDefinition;

    Selection(
            String filter,
            List<String> partitions,
            Set<String> groups,
            boolean isOfBaseFiles,
            boolean isPinned,
            boolean hasBucketsOfDefinition) {
        this.filter = filter;
        this.partitions = partitions;
        this.groups = groups;
        this.isOfBaseFiles = isOfBaseFiles;
        this.isPinned = isPinned;
        this.hasBucketsOfDefinition = hasBucketsOfDefinition;
    }

    /** What a micro-batch reads. */
    static Selection pinned(String filter) {
        return new Selection(filter, null, null, false, true, false);
    }

    boolean has(SnapshotFile file) {
        return groups == null || groups.contains(file.fileGroup);
    }

    private List<Object> parts() {
        return Arrays.asList(filter, partitions, groups, isOfBaseFiles, isPinned, hasBucketsOfDefinition);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Selection && ((Selection) other).parts().equals(parts());
    }

    @Override
    public int hashCode() {
        return Objects.hash(filter, partitions, groups);
    }
}
