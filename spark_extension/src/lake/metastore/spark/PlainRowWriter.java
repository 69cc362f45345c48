package lake.metastore.spark;

import java.io.IOException;
import java.io.Serializable;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.UUID;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.execution.datasources.parquet.ParquetOutputWriter;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Writes the rows of a task into files of a table without a primary key, a file for each run of rows of one partition. */
final class PlainRowWriter implements DataWriter<InternalRow> {
    /** How rows become files. Sent to executors. */
    static final class Files implements Serializable {
        private static final long serialVersionUID = 1;

        private final BucketWriter.Target target;
        private final List<String> partitionColumns;
        /** The columns of files, with their ids. */
        private final StructType stored;
        private final LakeRowWriter.Columns columns;
        private final ParquetFiles files;
        /** The most rows of one file; 0 for any number. */
        private final long mostRows;

        private Files(
                BucketWriter.Target target,
                List<String> partitionColumns,
                StructType stored,
                LakeRowWriter.Columns columns,
                ParquetFiles files,
                long mostRows) {
            this.target = target;
            this.partitionColumns = partitionColumns;
            this.stored = stored;
            this.columns = columns;
            this.files = files;
            this.mostRows = mostRows;
        }

        /**
         * For rows whose columns are those of files, and the texts of those that partition the table.
         *
         * @param stored the columns of files, with their ids
         * @param options of Spark's Parquet writer
         */
        static Files given(
                SparkSession session,
                BucketWriter.Target target,
                List<String> partitionColumns,
                StructType stored,
                StructType rows,
                Map<String, String> options) {
            StructType batch = ColumnNames.lower(stored).add(KeyedTable.DELETED, DataTypes.BooleanType, true);
            LakeRowWriter.Columns columns = new LakeRowWriter.Columns(rows, batch, partitionColumns, rows);
            return new Files(
                    target,
                    partitionColumns,
                    stored,
                    columns,
                    ParquetFiles.of(session, options),
                    ParquetFiles.mostRows(session, options));
        }

        /** {@code rows}: their columns. */
        static Files of(SparkSession session, LakeTable table, BucketWriter.Target target, StructType rows) {
            StructType data = table.dataSchema();
            StructType batch = ColumnNames.lower(data).add(KeyedTable.DELETED, DataTypes.BooleanType, true);
            StructType definition = table.definition.v1Table().schema();
            LakeRowWriter.Columns columns =
                    new LakeRowWriter.Columns(rows, batch, table.partitionColumns(), definition);
            for (int i = 0; i < columns.partitionTypes.length; i++) {
                checkPartition(table, table.partitionColumns().get(i), columns.partitionTypes[i]);
            }
            Map<String, Integer> ids = BucketWriter.ids(table.columnNames(), ColumnNames.lower(data));
            StructType stored = new StructType();
            StructType withIds = BucketWriter.withIds(ColumnNames.lower(data).asNullable(), ids);
            for (int i = 0; i < data.size(); i++) {
                StructField each = withIds.apply(i);
                stored = stored.add(new StructField(data.apply(i).name(), each.dataType(), true, each.metadata()));
            }
            Map<String, String> options = Collections.emptyMap();
            return new Files(
                    target,
                    table.partitionColumns(),
                    stored,
                    columns,
                    ParquetFiles.of(session, options),
                    ParquetFiles.mostRows(session, options));
        }

        private static void checkPartition(LakeTable table, String column, DataType type) {
            boolean hasText =
                    type instanceof StringType
                            || type instanceof IntegralType
                            || type instanceof DateType
                            || type instanceof BooleanType
                            || type instanceof DecimalType;
            if (!hasText) {
                throw Errors.unfitRows(
                        "the column " + column + " partitions " + table.name() + " and is "
                                + (type == null ? "missing in the rows" : type.simpleString())
                                + ": statements and streams take texts, dates, booleans and exact numbers there;"
                                + " lake.spark.write and write_stream take others");
            }
        }
    }

    private final Files files;
    private final String prefix;
    private final Expression[] checks;
    private final Expression[] partitionChecks;
    private final LakeRowWriter.Written written = new LakeRowWriter.Written();
    private ParquetOutputWriter output;
    private String partition;
    private String uri;
    private String name;
    private long rows;
    private EventTimes times;
    private final SourceTimes sources;
    private int count;

    /** {@code task}: its number in the job. */
    PlainRowWriter(Files files, int task) {
        this.files = files;
        sources = new SourceTimes(ColumnNames.lower(files.stored), files.target.eventTime, files.target.source);
        prefix = String.format(Locale.ROOT, "part-%05d-%s", task, UUID.randomUUID());
        LakeRowWriter.Columns columns = files.columns;
        checks = columns.checks();
        partitionChecks = columns.partitionChecks();
    }

    @Override
    public void write(InternalRow row) throws IOException {
        String wanted = partition(row);
        boolean isFull = files.mostRows > 0 && rows >= files.mostRows;
        if (output == null || isFull || !wanted.equals(partition)) {
            finish();
            begin(wanted);
        }
        LakeRowWriter.Columns columns = files.columns;
        Object[] values = new Object[columns.places.length];
        for (int i = 0; i < values.length; i++) {
            int place = columns.places[i];
            if (place >= 0 && !row.isNullAt(place)) {
                values[i] = checks[i] == null ? row.get(place, columns.types[i]) : checks[i].eval(row);
            }
        }
        InternalRow stored = new GenericInternalRow(values);
        times.add(stored);
        sources.add(stored);
        output.write(stored);
        rows++;
    }

    private void begin(String wanted) {
        partition = wanted;
        name = prefix + "-" + count++;
        String path = (partition.isEmpty() ? "" : partition + "/") + name + ".parquet";
        uri = files.target.directory + "/" + path;
        output = files.files.create(uri, files.stored);
        times = new EventTimes(ColumnNames.lower(files.stored), files.target.eventTime);
        rows = 0;
    }

    private void finish() throws IOException {
        if (output == null) {
            return;
        }
        output.close();
        output = null;
        String path = files.target.path + uri.substring(files.target.directory.length());
        written.files.add(
                new WrittenFile(
                        partition,
                        name,
                        files.target.instant,
                        path,
                        WrittenFile.BASE,
                        files.files.size(uri),
                        rows,
                        times,
                        null,
                        null));
        written.rows += rows;
        written.rowsOf.merge(partition, rows, Long::sum);
    }

    /** The name of a row's partition; empty for a table without partitions. */
    private String partition(InternalRow row) {
        LakeRowWriter.Columns columns = files.columns;
        StringBuilder found = new StringBuilder();
        for (int i = 0; i < columns.partitions.length; i++) {
            int place = columns.partitions[i];
            DataType type = columns.partitionTypes[i];
            Object value = row.isNullAt(place) ? null : row.get(place, type);
            if (value != null && partitionChecks[i] != null) {
                value = partitionChecks[i].eval(row);
            }
            String text = LakeRowWriter.text(value, type);
            String shown = text == null || text.isEmpty() ? LakeRowWriter.NULL_PARTITION : text;
            found.append(i == 0 ? "" : "/").append(LakeRowWriter.part(files.partitionColumns.get(i), shown));
        }
        return found.toString();
    }

    @Override
    public WriterCommitMessage commit() throws IOException {
        finish();
        written.leastEventTimes.putAll(sources.least());
        return written;
    }

    @Override
    public void abort() {
        // The driver clears up: what was written is named by nobody.
    }

    @Override
    public void close() throws IOException {
        if (output != null) {
            output.close();
            output = null;
        }
    }

    @Override
    public String toString() {
        return prefix + " of " + Arrays.asList(files.stored.fieldNames());
    }
}
