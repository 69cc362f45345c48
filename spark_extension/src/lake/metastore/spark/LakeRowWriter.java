package lake.metastore.spark;

import java.io.IOException;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.util.CharVarcharUtils;
import org.apache.spark.sql.connector.write.DeltaWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Writes the rows of a task into the files of their buckets. The rows of a bucket come one after the other, those of
 * several partitions in between perhaps; see {@link PlaceFunction}. Those of a bucket are in memory.
 */
final class LakeRowWriter extends UpdatingWriter<InternalRow> {
    static final String NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__";

    /** What a task has written. */
    static final class Written implements WriterCommitMessage {
        private static final long serialVersionUID = 1;

        final List<WrittenFile> files = new ArrayList<>();
        long rows;
        /** The rows by partition. */
        final Map<String, Long> rowsOf = new HashMap<>();
        /** Of a table whose key is unique over all partitions: the file groups in which keys were looked up. */
        final Set<String> readGroups = new HashSet<>();
        /** By source, as of {@link SourceTimes}, in milliseconds since 1970. */
        final Map<String, Long> leastEventTimes = new HashMap<>();

        /** What all tasks of a write have written. Throws IllegalStateException if two of them wrote one bucket. */
        static Written ofBuckets(WriterCommitMessage[] messages) {
            Written found = new Written();
            Set<List<String>> buckets = new HashSet<>();
            for (WriterCommitMessage message : messages) {
                Written each = (Written) message;
                Set<List<String>> ofTask = new HashSet<>();
                each.files.forEach(file -> ofTask.add(Arrays.asList(file.partition, file.fileGroup)));
                for (List<String> bucket : ofTask) {
                    if (!buckets.add(bucket)) {
                        throw new IllegalStateException("two tasks wrote the bucket " + bucket + ": nothing is written");
                    }
                }
                found.add(each);
            }
            return found;
        }

        void add(Written other) {
            files.addAll(other.files);
            rows += other.rows;
            readGroups.addAll(other.readGroups);
            other.rowsOf.forEach((partition, count) -> rowsOf.merge(partition, count, Long::sum));
            other.leastEventTimes.forEach((source, time) -> leastEventTimes.merge(source, time, Math::min));
        }

        /** The same for a request; null for none. {@code unnamed}: the source of rows that don't say theirs. */
        Map<String, Long> eventTimes(String unnamed) {
            Map<String, Long> found = new HashMap<>();
            leastEventTimes.forEach(
                    (source, time) ->
                            found.merge(source.equals(SourceTimes.UNNAMED) ? unnamed : source, time, Math::min));
            return found.isEmpty() ? null : found;
        }
    }

    /** What the columns of a row are, and how they become those of a bucket's files. */
    static final class Columns implements java.io.Serializable {
        private static final long serialVersionUID = 1;

        /** By column of the batch, its place in the row; -1 if the row doesn't have it. */
        final int[] places;
        final DataType[] types;
        /** With the lengths of CHAR and VARCHAR, by column of the batch. */
        final DataType[] raw;
        final int[] partitions;
        final DataType[] partitionTypes;
        /** With the lengths of CHAR and VARCHAR. */
        final DataType[] rawPartitions;
        /** Where a row says whether its key is deleted; -1 if it doesn't say so. */
        final int deleted;
        /** Where a row says what it is, see {@link Changes}; -1 if it doesn't. */
        final int kind;

        /**
         * @param given the row's
         * @param batch the data columns, and KeyedTable.DELETED
         * @param definition the table's columns with the lengths of CHAR and VARCHAR
         */
        Columns(StructType given, StructType batch, List<String> partitionColumns, StructType definition) {
            this(given, batch, partitionColumns, definition, false);
        }

        /** {@code isFeed}: rows say by KeyedTable.DELETED and Changes.CHANGE_TYPE what they do with their key. */
        Columns(
                StructType given,
                StructType batch,
                List<String> partitionColumns,
                StructType definition,
                boolean isFeed) {
            Map<String, Integer> known = new HashMap<>();
            for (int i = 0; i < given.size(); i++) {
                known.put(given.apply(i).name().toLowerCase(Locale.ROOT), i);
            }
            Map<String, DataType> defined = new HashMap<>();
            for (StructField each : definition.fields()) {
                scala.Option<DataType> raw = CharVarcharUtils.getRawType(each.metadata());
                defined.put(each.name().toLowerCase(Locale.ROOT), raw.isDefined() ? raw.get() : each.dataType());
            }
            deleted = isFeed ? known.getOrDefault(KeyedTable.DELETED, -1) : -1;
            kind = isFeed ? known.getOrDefault(Changes.CHANGE_TYPE, -1) : -1;
            int count = batch.size() - 1;
            places = new int[count];
            types = new DataType[count];
            raw = new DataType[count];
            for (int i = 0; i < count; i++) {
                String name = batch.apply(i).name();
                places[i] = known.getOrDefault(name, -1);
                types[i] = batch.apply(i).dataType();
                raw[i] = defined.getOrDefault(name, types[i]);
            }
            partitions = partitionColumns.stream().mapToInt(name -> known.getOrDefault(name, -1)).toArray();
            partitionTypes = new DataType[partitions.length];
            rawPartitions = new DataType[partitions.length];
            for (int i = 0; i < partitions.length; i++) {
                partitionTypes[i] = partitions[i] < 0 ? null : given.apply(partitions[i]).dataType();
                rawPartitions[i] = defined.get(partitionColumns.get(i));
            }
        }

        /** By column of the batch, what checks its texts, see {@link LakeRowWriter#check}. */
        Expression[] checks() {
            return checksOf(places, types, raw);
        }

        /** The same by partition column. */
        Expression[] partitionChecks() {
            return checksOf(partitions, partitionTypes, rawPartitions);
        }

        private static Expression[] checksOf(int[] places, DataType[] types, DataType[] raw) {
            Expression[] found = new Expression[places.length];
            for (int i = 0; i < found.length; i++) {
                found[i] = check(places[i], types[i], raw[i]);
            }
            return found;
        }
    }

    /** The rows of one bucket. */
    private static final class Pending {
        List<InternalRow> rows = new ArrayList<>();
        /** The partitions of the rows. */
        List<String> partitions = new ArrayList<>();
        /** What the rows are; empty if they don't say it. */
        List<UTF8String> kinds = new ArrayList<>();
        boolean hasDeletes;
    }

    private final KeyedTable table;
    private final List<String> partitionColumns;
    private final BucketWriter writer;
    private final Columns rowColumns;
    private final Columns idColumns;
    private final Expression[] checks;
    private final Expression[] partitionChecks;
    private final int[] keys;
    /** Of each column of the key, whether buckets are found by it. */
    private final boolean[] saysBucket;
    private final RowKeys rowKeys;
    private final SourceTimes eventTimes;
    private final Written written = new Written();
    /** By partition, which is empty if the key is unique over all of them. All are of one place. */
    private final Map<String, Pending> pending = new TreeMap<>();
    private final Set<Long> done = new HashSet<>();
    private final int deleted;
    private long lastPlace;
    private boolean isBegun;

    /** {@code idColumns}: of the rows by which rows are deleted. */
    LakeRowWriter(
            KeyedTable table,
            List<String> partitionColumns,
            BucketWriter writer,
            Columns rowColumns,
            Columns idColumns) {
        this.table = table;
        this.partitionColumns = partitionColumns;
        this.writer = writer;
        this.rowColumns = rowColumns;
        this.idColumns = idColumns;
        StructType batch = writer.batchSchema();
        eventTimes = writer.eventTimes();
        rowKeys = new RowKeys(table, batch);
        deleted = batch.size() - 1;
        keys = rowKeys.columns;
        saysBucket = new boolean[keys.length];
        for (int i = 0; i < keys.length; i++) {
            saysBucket[i] = table.bucketKey.contains(table.key.get(i));
        }
        checks = rowColumns.checks();
        partitionChecks = rowColumns.partitionChecks();
    }

    /** Checks the length of texts, and fills CHARs up; null for other types. */
    private static Expression check(int place, DataType type, DataType raw) {
        return place < 0 || !CharVarcharUtils.hasCharVarchar(raw)
                ? null
                : CharVarcharUtils.stringLengthCheck(new BoundReference(place, type, true), raw);
    }

    @Override
    public void write(InternalRow row) throws IOException {
        int place = rowColumns.deleted;
        if (place >= 0 && row.isNullAt(place)) {
            throw Errors.unfitRows(
                    Changes.CHANGE_TYPE + " is one of " + Changes.KINDS + ", and something else in some rows");
        }
        add(row, rowColumns, place >= 0 && row.getBoolean(place));
    }

    @Override
    public void insert(InternalRow row) throws IOException {
        add(row, rowColumns, false);
    }

    @Override
    public void reinsert(InternalRow metadata, InternalRow row) throws IOException {
        if (!table.takesUpdates()) {
            throw Errors.unfitRows("rows can't be updated, by the table's merge-engine=" + table.engine);
        }
        insert(row);
    }

    @Override
    public void delete(InternalRow metadata, InternalRow id) throws IOException {
        if (!table.takesDeletes()) {
            throw Errors.unfitRows("rows can't be deleted, by the table's merge-engine=" + table.engine);
        }
        add(id, idColumns, true);
    }

    @Override
    public void update(InternalRow metadata, InternalRow id, InternalRow row) {
        throw new IllegalStateException("updates come as deletes and inserts");
    }

    private void add(InternalRow row, Columns columns, boolean isDelete) throws IOException {
        Object[] values = new Object[columns.places.length + 1];
        for (int i = 0; i < columns.places.length; i++) {
            int place = columns.places[i];
            if (place < 0 || row.isNullAt(place)) {
                continue;
            }
            Object value = isDelete || checks[i] == null ? row.get(place, columns.types[i]) : checks[i].eval(row);
            values[i] = InternalRow.copyValue(value);
        }
        values[values.length - 1] = isDelete;
        KeyHash hash = new KeyHash();
        for (int i = 0; i < keys.length; i++) {
            int key = keys[i];
            byte[] text = values[key] == null ? null : KeyHash.text(values[key], columns.types[key]);
            if (text == null) {
                throw Errors.unfitRows(
                        "the column " + writer.batchSchema().apply(key).name() + " belongs to the key and is null in some rows");
            }
            if (checks[key] != null && !isDelete && !values[key].equals(row.get(columns.places[key], columns.types[key]))) {
                // Its bucket would be another one than that of the row which Spark has brought here.
                throw Errors.unfitRows(
                        "the column " + writer.batchSchema().apply(key).name()
                                + " belongs to the key and is longer than the column's type in some rows");
            }
            if (saysBucket[i]) {
                hash.add(text);
            }
        }
        String partition = isDelete && table.isTableWide && !saysPlace(row, columns) ? null : partition(row, columns);
        long partitionHash = table.isTableWide ? 0 : PlaceFunction.hash(row, columns.partitions, columns.partitionTypes);
        goTo(PlaceFunction.place(partitionHash, hash.bucket(table.buckets)));
        Pending some = pending.computeIfAbsent(table.isTableWide ? "" : partition, key -> new Pending());
        InternalRow version = new GenericInternalRow(values);
        some.rows.add(version);
        some.partitions.add(partition);
        some.hasDeletes |= isDelete;
        UTF8String kind = columns.kind < 0 ? null : row.getUTF8String(columns.kind).copy();
        if (kind != null) {
            some.kinds.add(kind);
        }
        if (columns.deleted < 0 ? !isDelete : !GivenChanges.PREIMAGE.equals(kind)) {
            eventTimes.add(version);
        }
    }

    /** Whether a row has all values of the columns that partition the table. */
    private static boolean saysPlace(InternalRow row, Columns columns) {
        return Arrays.stream(columns.partitions).allMatch(place -> place >= 0 && !row.isNullAt(place));
    }

    /** The name of a row's partition. */
    private String partition(InternalRow row, Columns columns) {
        StringBuilder name = new StringBuilder();
        for (int i = 0; i < columns.partitions.length; i++) {
            String column = partitionColumns.get(i);
            int place = columns.partitions[i];
            DataType type = columns.partitionTypes[i];
            String text = place < 0 || row.isNullAt(place) ? null : text(row.get(place, type), type);
            String what = table.isTableWide ? "partitions the table" : "belongs to the key";
            if (text == null || text.isEmpty() || text.equals(NULL_PARTITION)) {
                String found = text == null ? "is null" : text.isEmpty() ? "is empty" : "has " + NULL_PARTITION + ", Hive's name for null,";
                throw Errors.unfitRows("the column " + column + " " + what + " and " + found + " in some rows");
            }
            if (columns.partitionTypes[i] instanceof DateType && (text.length() != 10 || text.startsWith("0000"))) {
                throw Errors.unfitRows(
                        "the column " + column + " partitions the table: its dates are of the years 1 to 9999");
            }
            Expression check = columns == rowColumns ? partitionChecks[i] : null;
            if (check != null && !text.equals(check.eval(row).toString())) {
                throw Errors.unfitRows(
                        "the column " + column + " partitions the table, and in some rows it has not the length of its type");
            }
            name.append(i == 0 ? "" : "/").append(part(column, text));
        }
        return name.toString();
    }

    /** A column and its value in the name of a partition. */
    static String part(String column, String text) {
        return ExternalCatalogUtils.escapePathName(column) + "=" + ExternalCatalogUtils.escapePathName(text);
    }

    /** The text of a value in the name of a partition; null for null. */
    static String text(Object value, DataType type) {
        if (value == null) {
            return null;
        }
        return type instanceof DateType ? LocalDate.ofEpochDay((Integer) value).toString() : value.toString();
    }

    /** Writes the rows of the last place if these are done. */
    private void goTo(long place) throws IOException {
        if (isBegun && place == lastPlace) {
            return;
        }
        flush();
        if (!done.add(place)) {
            throw new IllegalStateException("the rows of a bucket did not come together: nothing is written");
        }
        lastPlace = place;
        isBegun = true;
    }

    private void flush() throws IOException {
        for (Map.Entry<String, Pending> each : pending.entrySet()) {
            Pending some = each.getValue();
            if (rowColumns.deleted < 0) { // a feed says itself what becomes of each key
                dropReplaced(some);
            }
            for (int i = 0; i < some.rows.size(); i++) {
                if (some.kinds.isEmpty() || !some.kinds.get(i).equals(GivenChanges.PREIMAGE)) {
                    String partition = some.partitions.get(i);
                    written.rowsOf.merge(partition == null ? "" : partition, 1L, Long::sum);
                    written.rows++;
                }
            }
            written.files.addAll(files(each.getKey(), some));
        }
        pending.clear();
    }

    private List<WrittenFile> files(String partition, Pending some) throws IOException {
        int bucket = (int) lastPlace;
        if (writer.updatesColumns()) {
            return writer.update(partition, bucket, some.rows);
        } else if (table.isTableWide) {
            written.readGroups.add(KeyedTable.fileGroup(bucket));
            return writer.writeAnywhere(bucket, some.partitions, some.rows);
        } else if (rowColumns.kind >= 0) {
            return writer.write(partition, bucket, some.rows, some.kinds);
        }
        return writer.write(partition, bucket, some.rows);
    }

    /** Leaves out deletes of rows that come again: an update is a delete and an insert, mostly of one key. */
    private void dropReplaced(Pending some) {
        Set<UnsafeRow> inserted = new HashSet<>();
        if (some.hasDeletes) {
            for (InternalRow row : some.rows) {
                if (!row.getBoolean(deleted)) {
                    inserted.add(rowKeys.of(row).copy());
                }
            }
        }
        if (inserted.isEmpty()) {
            return;
        }
        Pending kept = new Pending();
        for (int i = 0; i < some.rows.size(); i++) {
            InternalRow row = some.rows.get(i);
            boolean isReplaced = row.getBoolean(deleted) && inserted.contains(rowKeys.of(row));
            if (isReplaced && !table.takesUpdates()) {
                throw Errors.unfitRows("a key is deleted and inserted, which would keep values of the row that is deleted");
            }
            if (!isReplaced) {
                kept.rows.add(row);
                kept.partitions.add(some.partitions.get(i));
            }
        }
        some.rows = kept.rows;
        some.partitions = kept.partitions;
    }

    @Override
    public WriterCommitMessage commit() throws IOException {
        flush();
        written.leastEventTimes.putAll(eventTimes.least());
        return written;
    }

    @Override
    public void abort() {
        // What it has written is named by nobody; the driver clears up.
    }

    @Override
    public void close() {}
}

/** Has a method of Spark 4, which the interface that this is compiled against may not have. */
abstract class UpdatingWriter<T> implements DeltaWriter<T> {
    /** The new row of an update, which Spark 4 tells from other inserts. */
    public void reinsert(T metadata, T row) throws IOException {
        insert(row);
    }
}
