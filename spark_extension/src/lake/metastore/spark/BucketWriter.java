package lake.metastore.spark;

import java.io.IOException;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.time.DateTimeException;
import java.time.LocalDateTime;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeFormatterBuilder;
import java.time.temporal.ChronoField;
import java.time.temporal.ChronoUnit;
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
import java.util.TreeMap;
import java.util.UUID;
import java.util.stream.IntStream;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.execution.datasources.parquet.ParquetOutputWriter;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import scala.reflect.ClassTag$;

/**
 * Writes the files of an instant, bucket by bucket, in a task, by the rules of lake/tables/buckets.py. Sent to executors.
 *
 * <p>The rows of a batch are in memory, and so are the log files of a bucket that are merged; base files stream past.
 */
final class BucketWriter implements Serializable {
    private static final long serialVersionUID = 1;

    private static final DateTimeFormatter TIMESTAMP =
            new DateTimeFormatterBuilder()
                    .appendPattern("uuuuMMddHHmmss")
                    .appendValue(ChronoField.MILLI_OF_SECOND, 3)
                    .toFormatter();

    /** Where an instant's files go. */
    static final class Target implements Serializable {
        private static final long serialVersionUID = 1;

        /** Its timestamp: the slice of new files, and INSTANT of new rows. */
        final String instant;
        /** The URI of its directory, not encoded. */
        final String directory;
        /** The same, relative to the table's location. */
        final String path;
        /** The column of which the least and the greatest value are kept for each file; null for none. */
        final String eventTime;
        /** The column that names the source of a row, whose event times are apart from others'; null for none. */
        final String source;

        Target(String instant, String directory, String path, String eventTime) {
            this(instant, directory, path, eventTime, null);
        }

        Target(String instant, String directory, String path, String eventTime, String source) {
            this.instant = instant;
            this.directory = directory;
            this.path = path;
            this.eventTime = eventTime;
            this.source = source;
        }
    }

    /** What a writer has to know of a table. */
    static final class Definition {
        /** For messages. */
        final String name;
        final KeyedTable keyed;
        final ColumnNames names;
        /** The data columns, with names in lower case. */
        final StructType columns;

        Definition(String name, KeyedTable keyed, ColumnNames names, StructType columns) {
            this.name = name;
            this.keyed = keyed;
            this.names = names;
            this.columns = columns;
        }

        private static Definition of(LakeTable table, StructType columns) {
            return new Definition(table.name(), table.keyed, table.columnNames(), columns);
        }
    }

    /** What a write wants of the buckets that it changes. */
    static final class Wanted implements Serializable {
        private static final long serialVersionUID = 1;

        /** Nothing that is in the buckets stays, so nothing is read, and no changelog is written. */
        final boolean replaces;
        /** The rows of each bucket are kept in a file, to be merged again with what another writer has completed. */
        final boolean keepsRows;
        /** A row that the table's sequence would not let win is refused: an UPDATE does what it says, or nothing. */
        final boolean refusesOlder;
        /** Two rows of one key are refused, also where they are equal, or ordered. */
        private final boolean refusesRepeated;
        /** What becomes of rows whose key exists: as {@link KeyedTable#duplicateKey}. */
        private final String duplicates;

        Wanted(boolean replaces, boolean keepsRows, boolean refusesOlder, String duplicates) {
            this(replaces, keepsRows, refusesOlder, false, duplicates);
        }

        Wanted(
                boolean replaces,
                boolean keepsRows,
                boolean refusesOlder,
                boolean refusesRepeated,
                String duplicates) {
            this.replaces = replaces;
            this.keepsRows = keepsRows;
            this.refusesOlder = refusesOlder;
            this.refusesRepeated = refusesRepeated;
            this.duplicates = duplicates;
        }

        /** Whether rows are ignored or refused because of what is there. */
        boolean dependsOnKeys() {
            return !duplicates.equals("replace");
        }

        /** Whether what is in the buckets decides if rows are written, so that a change by others is a conflict. */
        boolean looksIn(KeyedTable table) {
            return dependsOnKeys() || (refusesOlder && !table.sequence.isEmpty());
        }

        private boolean refusesDuplicates() {
            return duplicates.equals("fail");
        }

        /**
         * Whether a record is merged into its bucket. {@code newest}: the last version of its key, null for none; {@code
         * isLive}: that is a row. Throws UnfitRows.
         */
        boolean takes(MergeEngine engine, InternalRow record, InternalRow newest, boolean isLive) {
            if (newest == null || engine.isDeleted(record)) {
                return true;
            }
            if (isLive && refusesDuplicates()) {
                throw Errors.unfitRows(LogRecords.key(engine, record) + " exists, and insert.duplicate-key=fail");
            }
            if (refusesOlder && engine.compare(record, newest) < 0) {
                throw Errors.unfitRows(
                        LogRecords.key(engine, record) + (isLive ? " has" : " was deleted with") + " a later "
                                + String.join(", ", engine.table.sequence)
                                + " (sequence.field) than the row that is written, which would have no effect: give"
                                + " it a later one");
            }
            return !isLive || !duplicates.equals("ignore");
        }
    }

    private final KeyedTable table;
    private final Target target;
    private final Wanted wanted;
    /** The columns of rows that are given, of base files, and of log files. */
    private final StructType batch;
    private final StructType rows;
    private final StructType versions;
    private final BucketReaders readers;
    /** Of the columns of key and sequence alone; null for writes that don't look keys up. */
    private final BucketReaders orderings;
    /** Of rows that were kept. */
    private final FileReaders keptReaders;
    private final ParquetFiles files;
    /** The columns that rows update, which have nothing else but the key; null where rows are whole. */
    private final Set<String> updated;
    /** By column family, readers of the key and the family's columns. */
    private final Map<String, BucketReaders> families = new HashMap<>();
    /** By file group and partition, the files that a batch is merged with. */
    private final Broadcast<HashMap<String, TreeMap<String, BucketPartition>>> existing;
    private final boolean writesChangelog;
    private transient MergeEngine engine;

    private BucketWriter(
            SparkSession session,
            Definition definition,
            LakeTable.Snapshot snapshot,
            Target target,
            Wanted wanted,
            Set<String> updated,
            boolean writesChangelog) {
        this.table = definition.keyed;
        this.target = target;
        this.wanted = wanted;
        this.updated = updated;
        this.writesChangelog = writesChangelog;
        StructType dataColumns = definition.columns;
        ColumnNames names = definition.names;
        Set<Map<String, String>> namings = new HashSet<>();
        HashMap<String, TreeMap<String, BucketPartition>> found = new HashMap<>();
        List<SnapshotFile> read = wanted.replaces ? Collections.emptyList() : snapshot.files;
        read.forEach(file -> namings.add(names.inFile(file.completedAt)));
        for (List<SnapshotFile> bucket : SnapshotFile.byBucket(read)) {
            SnapshotFile first = bucket.get(0);
            found.computeIfAbsent(first.fileGroup, key -> new TreeMap<>())
                    .put(
                            first.partition,
                            BucketPartition.of(definition.name, table, snapshot.location, names, bucket, null));
        }
        existing = session.sparkContext().broadcast(found, ClassTag$.MODULE$.apply(HashMap.class));
        Map<String, Integer> ids = ids(names, dataColumns);
        if (!ids.isEmpty()) {
            ids.put(KeyedTable.INSTANT, KeyedTable.INSTANT_ID);
        }
        StructType nullable = withIds(dataColumns.asNullable(), ids);
        StructType instant = withIds(new StructType().add(KeyedTable.INSTANT, DataTypes.StringType, true), ids);
        batch = nullable.add(KeyedTable.DELETED, DataTypes.BooleanType, true);
        rows = nullable.add(instant.apply(0));
        versions = rows.add(KeyedTable.DELETED, DataTypes.BooleanType, true);
        readers = new BucketReaders(session, table, versions, Arrays.asList(nullable.fieldNames()), namings);
        List<String> ordering = new ArrayList<>(table.key);
        ordering.addAll(table.sequence);
        boolean looksUp = table.isTableWide || !table.sequence.isEmpty() || wanted.dependsOnKeys();
        orderings = looksUp ? new BucketReaders(session, table, versions, ordering, namings) : null;
        for (Map.Entry<String, List<String>> family : table.families.entrySet()) {
            if (updated != null && !Collections.disjoint(family.getValue(), updated)) {
                List<String> columns = new ArrayList<>(table.key);
                columns.addAll(family.getValue());
                families.put(family.getKey(), new BucketReaders(session, table, versions, columns, namings));
            }
        }
        keptReaders = LakeReaders.files(session, batch, batch, new Filter[0], Collections.singleton(KeptRows.NAMES));
        files = ParquetFiles.of(session);
    }

    /**
     * On the driver. Throws UnfitRows if the table can't be written so.
     *
     * @param dataColumns as {@link LakeTable#dataSchema()}
     * @param snapshot what the rows are merged with; it has the uncommitted partitions, too
     */
    static BucketWriter of(
            SparkSession session,
            LakeTable table,
            StructType dataColumns,
            LakeTable.Snapshot snapshot,
            Target target,
            Wanted wanted) {
        if (table.keyed.changelogProducer.equals("input")) {
            throw Errors.unfitRows(
                    "changelog-producer=input takes merges alone, not SQL: rows with _change_type, and each update with"
                            + " its update_preimage. Set changelog-producer=lookup to write without");
        }
        if (target.eventTime != null) {
            EventTimes.check(table.name(), dataColumns, target.eventTime);
            SourceTimes.check(table.name(), dataColumns, target.source);
        }
        return of(session, Definition.of(table, dataColumns), snapshot, target, wanted, null);
    }

    /**
     * The same for rows that may bring the changelog with them.
     *
     * @param updated the columns that the rows update, which have nothing else but the key; null where rows are whole
     */
    static BucketWriter of(
            SparkSession session,
            Definition definition,
            LakeTable.Snapshot snapshot,
            Target target,
            Wanted wanted,
            Set<String> updated) {
        boolean writesChangelog = definition.keyed.changelogProducer.equals("lookup") && !wanted.replaces;
        return new BucketWriter(session, definition, snapshot, target, wanted, updated, writesChangelog);
    }

    /** A writer that compacts buckets alone. {@code snapshot}: the files that are merged. On the driver. */
    static BucketWriter compacting(
            SparkSession session, LakeTable table, StructType dataColumns, LakeTable.Snapshot snapshot, Target target) {
        Wanted all = new Wanted(false, false, false, "replace");
        return new BucketWriter(session, Definition.of(table, dataColumns), snapshot, target, all, null, false);
    }

    /** The ids of columns, which go into files; empty where readers find columns by their names alone. */
    static Map<String, Integer> ids(ColumnNames names, StructType dataColumns) {
        // Readers that find field ids go by these alone, and parts of nested columns have none.
        return Arrays.stream(dataColumns.fields()).anyMatch(each -> isNested(each.dataType()))
                ? new HashMap<>()
                : new HashMap<>(names.ids(dataColumns));
    }

    private static boolean isNested(DataType type) {
        return type instanceof ArrayType || type instanceof MapType || type instanceof StructType;
    }

    /** Columns with their ids, which go into files. */
    static StructType withIds(StructType columns, Map<String, Integer> ids) {
        StructType found = new StructType();
        for (StructField each : columns.fields()) {
            MetadataBuilder metadata = new MetadataBuilder();
            if (ids.containsKey(each.name())) {
                metadata.putLong("parquet.field.id", ids.get(each.name()));
            }
            found = found.add(new StructField(each.name(), each.dataType(), true, metadata.build()));
        }
        return found;
    }

    /** Counts the event times of rows by their sources. */
    SourceTimes eventTimes() {
        return new SourceTimes(batch, target.eventTime, target.source);
    }

    /** The columns of rows that are given to write: the data columns, then KeyedTable.DELETED. */
    StructType batchSchema() {
        return batch;
    }

    /**
     * Writes the rows of one bucket, which are kept: the caller has copied them. Throws UnfitRows.
     *
     * @param partition the name of the partition, empty for a table without partitions
     */
    List<WrittenFile> write(String partition, int bucket, List<InternalRow> rows) throws IOException {
        Bucket made = new Bucket(partition, KeyedTable.fileGroup(bucket));
        if (wanted.keepsRows && made.hasOtherRows()) {
            made.put(WrittenFile.KEPT, batch, rows, null);
        }
        return made.write(versionsOf(rows));
    }

    /**
     * Writes the rows of one bucket, of which some only say what there was: the changelog is made of them. Throws UnfitRows.
     *
     * @param kinds by row, what it is, as {@link Changes} names it
     */
    List<WrittenFile> write(String partition, int bucket, List<InternalRow> rows, List<UTF8String> kinds)
            throws IOException {
        Changes given = GivenChanges.of(engine(), versionsOf(rows), kinds);
        List<InternalRow> current = new ArrayList<>();
        for (int i = 0; i < rows.size(); i++) {
            if (!kinds.get(i).equals(GivenChanges.PREIMAGE)) {
                current.add(rows.get(i));
            }
        }
        Bucket made = new Bucket(partition, KeyedTable.fileGroup(bucket));
        made.write(versionsOf(current));
        made.putChangelog(given);
        return made.written;
    }

    /** Writes the columns that rows of one bucket update, in the files of their families. Throws UnfitRows. */
    List<WrittenFile> update(String partition, int bucket, List<InternalRow> rows) throws IOException {
        return new Bucket(partition, KeyedTable.fileGroup(bucket)).update(versionsOf(rows));
    }

    /** Whether rows have nothing but the key and columns that they update. */
    boolean updatesColumns() {
        return updated != null;
    }

    /** Makes one base file of all that a bucket has. Its rows stay what they are, and when they changed last. */
    List<WrittenFile> compact(String partition, String fileGroup) throws IOException {
        return new Bucket(partition, fileGroup).compact();
    }

    /**
     * Writes the rows of one bucket number into the partitions in which they are, or to which they come. For tables whose
     * key is unique over all partitions. The rows are kept: the caller has copied them. Throws UnfitRows.
     *
     * @param partitions the name of each row's partition, null for a delete that doesn't say it
     */
    List<WrittenFile> writeAnywhere(int bucket, List<String> partitions, List<InternalRow> rows) throws IOException {
        String fileGroup = KeyedTable.fileGroup(bucket);
        Map<String, BucketPartition> places = existing.value().getOrDefault(fileGroup, new TreeMap<>());
        Placing placing = new Placing(engine(), wanted);
        List<InternalRow> given = versionsOf(rows);
        for (int i = 0; i < given.size(); i++) {
            placing.add(partitions.get(i), given.get(i));
        }
        for (Map.Entry<String, BucketPartition> each : places.entrySet()) {
            placing.include(each.getKey(), states(orderings, each.getValue(), placing.keys()));
        }
        List<WrittenFile> found = new ArrayList<>();
        for (Map.Entry<String, List<InternalRow>> each : placing.placed().entrySet()) {
            found.addAll(new Bucket(each.getKey(), fileGroup).write(each.getValue()));
        }
        if (wanted.keepsRows && !places.isEmpty()) {
            Map<String, List<InternalRow>> kept = new TreeMap<>();
            for (int i = 0; i < rows.size(); i++) {
                kept.computeIfAbsent(partitions.get(i), key -> new ArrayList<>()).add(rows.get(i));
            }
            for (Map.Entry<String, List<InternalRow>> each : kept.entrySet()) {
                Bucket made = new Bucket(each.getKey(), fileGroup);
                made.put(WrittenFile.KEPT, batch, each.getValue(), null);
                found.addAll(made.written);
            }
        }
        return found;
    }

    /** Writes rows that an earlier attempt has kept. Throws UnfitRows. */
    List<WrittenFile> writeAgain(KeptRows kept) throws IOException {
        List<InternalRow> rows = new ArrayList<>();
        List<String> partitions = new ArrayList<>();
        for (Map.Entry<String, FileReaders.Source> each : kept.files.entrySet()) {
            try (PartitionReader<InternalRow> reader = keptReaders.read(each.getValue())) {
                while (reader.next()) {
                    rows.add(reader.get().copy());
                    partitions.add(each.getKey());
                }
            }
        }
        return table.isTableWide
                ? writeAnywhere(kept.bucket(), partitions, rows)
                : write(kept.files.keySet().iterator().next(), kept.bucket(), rows);
    }

    /** The rows of a batch as versions. Throws UnfitRows for a key with nulls, also in a delete that is ignored. */
    private List<InternalRow> versionsOf(List<InternalRow> rows) {
        for (String name : table.key) {
            int column = versions.fieldIndex(name);
            if (rows.stream().anyMatch(row -> row.isNullAt(column))) {
                throw Errors.unfitRows("the column " + name + " belongs to the key and is null in some rows");
            }
        }
        Set<UnsafeRow> keys = new HashSet<>();
        List<InternalRow> found = new ArrayList<>(rows.size());
        UTF8String instant = UTF8String.fromString(target.instant);
        int columns = batch.size() - 1;
        for (InternalRow row : rows) {
            Object[] values = new Object[versions.size()];
            for (int i = 0; i < columns; i++) {
                values[i] = engine().value(row, i);
            }
            values[columns] = instant;
            values[columns + 1] = !row.isNullAt(columns) && row.getBoolean(columns);
            InternalRow version = new GenericInternalRow(values);
            boolean isCounted = wanted.refusesDuplicates() || wanted.refusesRepeated;
            if (isCounted && !keys.add(engine().keys.of(version).copy())) {
                throw Errors.unfitRows(
                        wanted.refusesRepeated
                                ? "multiple source rows have " + LogRecords.key(engine(), version)
                                        + ": a MERGE changes a row once"
                                : LogRecords.key(engine(), version) + " is there twice, and insert.duplicate-key=fail");
            }
            found.add(version);
        }
        return found;
    }

    private MergeEngine engine() {
        if (engine == null) {
            engine = MergeEngine.of(table, versions);
        }
        return engine;
    }

    /** The state of some keys in a bucket. {@code existing}: its files, null for none. */
    private Map<UnsafeRow, MergeEngine.Key> states(
            BucketReaders readers, BucketPartition existing, Set<UnsafeRow> keys) throws IOException {
        Map<UnsafeRow, MergeEngine.Key> found = new HashMap<>();
        keys.forEach(key -> found.put(key, engine().key()));
        if (existing == null || keys.isEmpty()) {
            return found;
        }
        if (existing.base != null) {
            try (PartitionReader<InternalRow> base = readers.base(existing)) {
                while (base.next()) {
                    MergeEngine.Key state = found.get(readers.key(base.get()));
                    if (state != null) {
                        state.apply(readers.version(base.get()));
                    }
                }
            }
        }
        readers.logs(
                existing,
                version -> {
                    MergeEngine.Key state = found.get(engine().keys.of(version));
                    if (state != null) {
                        state.apply(version);
                    }
                });
        return found;
    }

    /** The oldest instant whose tombstones are kept; empty if all are. */
    private String oldestTombstone() {
        if (table.tombstoneMillis == null) {
            return "";
        }
        try {
            LocalDateTime time = LocalDateTime.parse(target.instant, TIMESTAMP);
            return time.minus(table.tombstoneMillis, ChronoUnit.MILLIS).format(TIMESTAMP);
        } catch (DateTimeException notATime) {
            return "";
        }
    }

    /** One bucket of a partition, and the files that are written for it. */
    private final class Bucket {
        private final String partition;
        private final String fileGroup;
        private final BucketPartition existing;
        private final List<WrittenFile> written = new ArrayList<>();
        private final List<InternalRow> tombstones = new ArrayList<>();
        private final Changes changes = new Changes();

        Bucket(String partition, String fileGroup) {
            this.partition = partition;
            this.fileGroup = fileGroup;
            TreeMap<String, BucketPartition> places = BucketWriter.this.existing.value().get(fileGroup);
            this.existing = places == null ? null : places.get(partition);
        }

        /** Writes a batch's versions. */
        List<WrittenFile> write(List<InternalRow> given) throws IOException {
            List<InternalRow> records = taken(LogRecords.of(engine(), withSequences(given)));
            if (records.isEmpty()) {
                return written;
            }
            if (table.isMergeOnRead && existing != null) {
                if (writesChangelog) {
                    compare(records);
                }
                put(WrittenFile.LOG, versions, records, null);
            } else {
                // Even if no row is left: another writer of the bucket must learn that it wasn't alone.
                merge(records);
                putTombstones();
            }
            putChangelog(changes);
            return written;
        }

        private void putChangelog(Changes found) throws IOException {
            if (!found.isEmpty()) {
                put(WrittenFile.CHANGELOG, Changes.columns(rows), found.inOrder(), null);
            }
        }

        /** Writes the files of column families again whose values change. Rows without a stored one change nothing. */
        List<WrittenFile> update(List<InternalRow> given) throws IOException {
            Map<UnsafeRow, InternalRow> byKey = byKey(given);
            if (byKey.size() < given.size()) {
                throw Errors.unfitRows(twice(given) + " has several rows: an update of columns takes one per key");
            }
            if (existing == null || existing.base == null) {
                return written;
            }
            for (Map.Entry<String, List<String>> family : table.families.entrySet()) {
                BucketReaders reader = families.get(family.getKey());
                if (reader != null && changes(reader, byKey, family.getValue())) {
                    rewrite(reader, byKey, family.getValue());
                }
            }
            if (writesChangelog && !written.isEmpty()) {
                compareColumns(byKey);
                putChangelog(changes);
            }
            return written;
        }

        /** The first key that is there twice, for a message. */
        private String twice(List<InternalRow> given) {
            Set<UnsafeRow> keys = new HashSet<>();
            for (InternalRow each : given) {
                if (!keys.add(engine().keys.of(each).copy())) {
                    return LogRecords.key(engine(), each);
                }
            }
            throw new IllegalStateException("all keys are there once");
        }

        /** Whether a family's columns get other values. */
        private boolean changes(BucketReaders reader, Map<UnsafeRow, InternalRow> byKey, List<String> columns)
                throws IOException {
            try (PartitionReader<InternalRow> base = reader.base(existing)) {
                while (base.next()) {
                    InternalRow update = byKey.get(reader.key(base.get()));
                    if (update != null && !hasValues(reader.version(base.get()), update, columns)) {
                        return true;
                    }
                }
            }
            return false;
        }

        private void rewrite(BucketReaders reader, Map<UnsafeRow, InternalRow> byKey, List<String> family)
                throws IOException {
            List<String> columns = new ArrayList<>(family);
            columns.add(KeyedTable.INSTANT);
            StructType stored = LakeReaders.only(rows, columns, true);
            try (PartitionReader<InternalRow> base = reader.base(existing);
                    Output output = new Output(WrittenFile.BASE, stored, versions)) {
                while (base.next()) {
                    InternalRow update = byKey.get(reader.key(base.get()));
                    InternalRow row = reader.version(base.get());
                    output.add(update == null || hasValues(row, update, family) ? row : updated(row, update, family));
                }
                written.add(output.done(family, SnapshotFile.rowsOf(existing.basePath)));
            }
        }

        /** Whether a row has the values already that an update gives to some columns. */
        private boolean hasValues(InternalRow row, InternalRow update, List<String> columns) {
            return columns.stream()
                    .allMatch(name -> !updated.contains(name) || engine().isSame(versions.fieldIndex(name), row, update));
        }

        private InternalRow updated(InternalRow row, InternalRow update, Collection<String> columns) {
            Object[] values = new Object[versions.size()];
            for (int i = 0; i < values.length; i++) {
                String name = versions.apply(i).name();
                boolean isNew = name.equals(KeyedTable.INSTANT) || (columns.contains(name) && updated.contains(name));
                values[i] = engine().value(isNew ? update : row, i);
            }
            return new GenericInternalRow(values);
        }

        /** Finds what an update of columns changes in whole rows. */
        private void compareColumns(Map<UnsafeRow, InternalRow> byKey) throws IOException {
            try (PartitionReader<InternalRow> base = readers.base(existing)) {
                while (base.next()) {
                    InternalRow update = byKey.get(readers.key(base.get()));
                    if (update != null) {
                        InternalRow before = readers.version(base.get());
                        changes.add(engine(), before, updated(before, update, updated));
                    }
                }
            }
        }

        /** Whether neither a log file nor the first base file of the bucket has exactly the rows that were given. */
        private boolean hasOtherRows() {
            return existing == null ? !table.families.isEmpty() : !table.isMergeOnRead || wanted.dependsOnKeys();
        }

        /** The records that are merged. Throws UnfitRows. */
        private List<InternalRow> taken(List<InternalRow> records) throws IOException {
            if (existing == null || !wanted.looksIn(table) || table.isTableWide) { // Placing has looked
                return records;
            }
            Map<UnsafeRow, MergeEngine.Key> states = states(orderings, existing, byKey(records).keySet());
            List<InternalRow> found = new ArrayList<>(records.size());
            for (InternalRow record : records) {
                MergeEngine.Key state = states.get(engine().keys.of(record));
                if (wanted.takes(engine(), record, state.newest, state.isLive())) {
                    found.add(record);
                }
            }
            return found;
        }

        private Map<UnsafeRow, InternalRow> byKey(List<InternalRow> records) {
            Map<UnsafeRow, InternalRow> found = new HashMap<>();
            records.forEach(each -> found.put(engine().keys.of(each).copy(), each));
            return found;
        }

        List<WrittenFile> compact() throws IOException {
            merge(Collections.emptyList());
            if (!table.keepsTombstones()) {
                tombstones.clear();
            }
            putTombstones();
            return written;
        }

        private void putTombstones() throws IOException {
            tombstones.removeIf(each -> !isRemembered(each));
            if (!tombstones.isEmpty()) {
                put(WrittenFile.LOG, tombstoneColumns(), tombstones, SnapshotFile.TOMBSTONES);
            }
        }

        /** Gives deletes by key alone the sequence of the row that they delete; without a row, there is nothing to do. */
        private List<InternalRow> withSequences(List<InternalRow> given) throws IOException {
            if (table.sequence.isEmpty()) {
                return given;
            }
            List<InternalRow> found = new ArrayList<>();
            Map<UnsafeRow, InternalRow> bare = new HashMap<>();
            int first = versions.fieldIndex(table.sequence.get(0));
            for (InternalRow each : given) {
                if (engine().isDeleted(each) && each.isNullAt(first)) {
                    bare.put(engine().keys.of(each).copy(), each);
                } else {
                    found.add(each);
                }
            }
            for (Map.Entry<UnsafeRow, MergeEngine.Key> state : states(orderings, existing, bare.keySet()).entrySet()) {
                if (state.getValue().isLive()) {
                    // The version that was read is deleted: one that has a greater sequence by then stays.
                    found.add(engine().deletion(state.getValue().row(), bare.get(state.getKey())));
                }
            }
            return found;
        }

        private boolean isRemembered(InternalRow tombstone) {
            String oldest = oldestTombstone();
            int instant = versions.fieldIndex(KeyedTable.INSTANT);
            return oldest.isEmpty()
                    || (!tombstone.isNullAt(instant)
                            && tombstone.getUTF8String(instant).compareTo(UTF8String.fromString(oldest)) >= 0);
        }

        private StructType tombstoneColumns() {
            List<String> names = new ArrayList<>(table.key);
            names.addAll(table.sequence);
            names.addAll(Arrays.asList(KeyedTable.INSTANT, KeyedTable.DELETED));
            StructType found = new StructType();
            for (String name : names) {
                found = found.add(versions.apply(name));
            }
            return found;
        }

        /** Finds what records change, beside what is there. */
        private void compare(List<InternalRow> records) throws IOException {
            Map<UnsafeRow, InternalRow> byKey = byKey(records);
            for (Map.Entry<UnsafeRow, MergeEngine.Key> each : states(readers, existing, byKey.keySet()).entrySet()) {
                MergeEngine.Key state = each.getValue();
                InternalRow before = state.isLive() ? state.row() : null;
                state.apply(byKey.get(each.getKey()));
                changes.add(engine(), before, state.isLive() ? state.row() : null);
            }
        }

        /** Writes a base file of what is there and the records. */
        private void merge(List<InternalRow> records) throws IOException {
            Map<UnsafeRow, Touched> touched = new LinkedHashMap<>(); // the records are in their order already
            if (existing != null) {
                readers.logs(existing, version -> touched(touched, version).stored.add(version));
            }
            records.forEach(each -> touched(touched, each).record = each);
            List<Touched> queue = new ArrayList<>(touched.values());
            queue.sort((one, other) -> engine().keys.keyOrder.compare(one.key, other.key));
            try (BaseFiles output = new BaseFiles()) {
                int next = 0;
                if (existing != null && existing.base != null) {
                    try (PartitionReader<InternalRow> base = readers.base(existing)) {
                        while (base.next()) {
                            InternalRow row = base.get();
                            UnsafeRow key = readers.key(row);
                            while (next < queue.size() && engine().keys.keyOrder.compare(queue.get(next).key, key) < 0) {
                                finish(queue.get(next++), null, output);
                            }
                            Touched found = touched.get(key);
                            if (found == null) {
                                output.add(row);
                            } else {
                                finish(found, readers.version(row), output);
                            }
                        }
                    }
                }
                while (next < queue.size()) {
                    finish(queue.get(next++), null, output);
                }
                written.addAll(output.done());
            }
        }

        private Touched touched(Map<UnsafeRow, Touched> all, InternalRow version) {
            UnsafeRow key = engine().keys.of(version);
            Touched found = all.get(key);
            if (found == null) {
                found = new Touched(key.copy());
                all.put(found.key, found);
            }
            return found;
        }

        /** Merges the versions of one key. {@code base}: its row in the base file, null for none. */
        private void finish(Touched key, InternalRow base, BaseFiles output) throws IOException {
            if (key.isDone) {
                if (base != null) {
                    throw new IllegalStateException(
                            existing.name + ": the base file isn't sorted by its key: roll back what was written last");
                }
                return;
            }
            key.isDone = true;
            MergeEngine.Key state = engine().key();
            if (base != null) {
                state.apply(base);
            }
            key.stored.forEach(state::apply);
            InternalRow before = state.isLive() ? state.row() : null;
            if (key.record != null) {
                state.apply(key.record);
            }
            InternalRow after = state.isLive() ? state.row() : null;
            if (after != null) {
                output.add(after);
            } else if (table.keepsTombstones() || base != null) {
                // Without a sequence nobody merges by them, but they say which instant deleted a row.
                tombstones.add(engine().deletion(state.newest, state.gone));
            }
            if (writesChangelog && key.record != null) {
                changes.add(engine(), before, after);
            }
        }

        private void put(String kind, StructType columns, List<InternalRow> rows, String statistics)
                throws IOException {
            try (Output output = new Output(kind, columns, kind.equals(WrittenFile.LOG) ? versions : columns)) {
                for (InternalRow each : rows) {
                    output.add(each);
                }
                written.add(output.done(null, statistics));
            }
        }

        /** The base file that is being written, and those of column families, which have the same rows. */
        private final class BaseFiles implements AutoCloseable {
            private final Map<List<String>, Output> families = new LinkedHashMap<>();
            private final Output main;

            BaseFiles() {
                List<String> apart = new ArrayList<>();
                table.families.values().forEach(apart::addAll);
                main = new Output(WrittenFile.BASE, LakeReaders.only(rows, apart, false), versions);
                for (List<String> family : table.families.values()) {
                    List<String> columns = new ArrayList<>(family);
                    columns.add(KeyedTable.INSTANT);
                    families.put(family, new Output(WrittenFile.BASE, LakeReaders.only(rows, columns, true), versions));
                }
            }

            void add(InternalRow row) {
                main.add(row);
                families.values().forEach(each -> each.add(row));
            }

            List<WrittenFile> done() throws IOException {
                List<WrittenFile> found = new ArrayList<>();
                found.add(main.done(null, null));
                for (Map.Entry<List<String>, Output> each : families.entrySet()) {
                    found.add(each.getValue().done(each.getKey(), SnapshotFile.rowsOf(found.get(0).path)));
                }
                return found;
            }

            @Override
            public void close() {
                main.close();
                families.values().forEach(Output::close);
            }
        }

        /** A file that is being written. */
        private final class Output implements AutoCloseable {
            private final String kind;
            private final String path;
            private final StructType columns;
            private final int[] places;
            private final StructType given;
            private final boolean isPrefix;
            private final EventTimes times;
            private ParquetOutputWriter writer;
            private long count;

            /** {@code given}: the columns of the rows that are added, or more. */
            Output(String kind, StructType columns, StructType given) {
                this.kind = kind;
                this.columns = columns;
                this.given = given;
                places = Arrays.stream(columns.fieldNames()).mapToInt(given::fieldIndex).toArray();
                isPrefix = Arrays.equals(places, IntStream.range(0, places.length).toArray());
                times = new EventTimes(kind.equals(WrittenFile.BASE) ? rows : columns, target.eventTime);
                String distinct = UUID.randomUUID().toString().replace("-", "").substring(0, 12);
                String ending = kind.equals(WrittenFile.BASE) ? "" : "." + kind;
                String name = fileGroup + "_" + target.instant + "_" + distinct + ending + ".parquet";
                String place = kind.equals(WrittenFile.KEPT) ? KeptRows.DIRECTORY : "";
                path = place + (partition.isEmpty() ? name : partition + "/" + name);
                writer = files.create(target.directory + "/" + path, columns);
            }

            void add(InternalRow row) {
                InternalRow output = isPrefix && row.numFields() == places.length ? row : picked(row);
                times.add(kind.equals(WrittenFile.BASE) ? row : output);
                writer.write(output);
                count++;
            }

            private InternalRow picked(InternalRow row) {
                Object[] values = new Object[places.length];
                for (int i = 0; i < places.length; i++) {
                    StructField field = given.apply(places[i]);
                    values[i] = row.isNullAt(places[i]) ? null : row.get(places[i], field.dataType());
                }
                return new GenericInternalRow(values);
            }

            /** Ends the file. {@code family}: the columns of a column family's file. */
            WrittenFile done(List<String> family, String statistics) throws IOException {
                close();
                return new WrittenFile(
                        partition,
                        fileGroup,
                        target.instant,
                        target.path + "/" + path,
                        kind,
                        files.size(target.directory + "/" + path),
                        // Rows are counted once, those of the main file.
                        family == null ? count : -1,
                        family == null ? times : new EventTimes(columns, null),
                        family,
                        statistics == null ? null : statistics.getBytes(StandardCharsets.UTF_8));
            }

            @Override
            public void close() {
                if (writer != null) {
                    ParquetOutputWriter open = writer;
                    writer = null;
                    open.close();
                }
            }
        }
    }

    /** The versions of a key in log files and in a batch. */
    private static final class Touched {
        private final UnsafeRow key;
        private final List<InternalRow> stored = new ArrayList<>(1);
        /** Null if the batch has none. */
        private InternalRow record;
        private boolean isDone;

        private Touched(UnsafeRow key) {
            this.key = key;
        }
    }
}
