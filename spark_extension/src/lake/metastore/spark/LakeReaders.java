package lake.metastore.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.parquet.ParquetOptions;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetPartitionReaderFactory;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.SerializableConfiguration;
import scala.Option;
import scala.reflect.ClassTag$;

/** Reads the files of a keyed table: whole files by Spark's own Parquet reader, in columns, and buckets that are merged. */
final class LakeReaders implements PartitionReaderFactory {
    private static final long serialVersionUID = 1;

    /** What Spark's Parquet reader is told of the columns to read. */
    private static final String REQUESTED = "org.apache.spark.sql.parquet.row.requested_schema";

    /** Options of the Parquet reader, and the settings that say their default. */
    private static final String[][] CALENDARS = {
        {"datetimeRebaseMode", "spark.sql.parquet.datetimeRebaseModeInRead"},
        {"int96RebaseMode", "spark.sql.parquet.int96RebaseModeInRead"}
    };

    private final KeyedTable table;
    private final StructType dataColumns;
    private final ParquetPartitionReaderFactory whole;
    /** Of versions: the columns by which they are merged, too. */
    private final FileReaders versions;
    /** Of the main file and those of column families, by their names; the main file's is empty. */
    private final Map<String, FileReaders> parts;
    private final boolean isMerged;

    private LakeReaders(
            KeyedTable table,
            StructType dataColumns,
            ParquetPartitionReaderFactory whole,
            FileReaders versions,
            Map<String, FileReaders> parts,
            boolean isMerged) {
        this.table = table;
        this.dataColumns = dataColumns;
        this.whole = whole;
        this.versions = versions;
        this.parts = parts;
        this.isMerged = isMerged;
    }

    /**
     * {@code isMerged}: some buckets are, so that all rows come one by one. {@code namings}: the names of columns in the
     * files of those, each as of {@link ColumnNames#inFile}.
     */
    static LakeReaders of(
            SparkSession session,
            LakeTable table,
            StructType dataColumns,
            StructType partitionColumns,
            List<Filter> filters,
            List<Filter> keyFilters,
            boolean isMerged,
            Set<Map<String, String>> namings) {
        StructType all = table.dataSchema().add(KeyedTable.DELETED, DataTypes.BooleanType, true);
        Map<String, FileReaders> parts = new LinkedHashMap<>();
        FileReaders versions = null;
        if (isMerged && table.keyed.families.isEmpty()) {
            StructType columns = versionSchema(table, dataColumns);
            versions = files(session, all, columns, keyFilters.toArray(new Filter[0]), namings);
        } else if (isMerged) {
            List<String> apart = new ArrayList<>();
            for (Map.Entry<String, List<String>> family : table.keyed.families.entrySet()) {
                apart.addAll(family.getValue());
                StructType columns = only(dataColumns, family.getValue(), true);
                if (columns.size() > 0) {
                    parts.put(family.getKey(), files(session, all, columns, new Filter[0], namings));
                }
            }
            StructType columns = only(dataColumns, apart, false);
            parts.put("", files(session, all, columns, new Filter[0], namings));
        }
        ParquetPartitionReaderFactory whole =
                parquet(session, table.dataSchema(), dataColumns, partitionColumns, filters.toArray(new Filter[0]));
        return new LakeReaders(table.keyed, dataColumns, whole, versions, parts, isMerged);
    }

    /** The columns of versions: those that are wanted first, then what they are merged by. */
    private static StructType versionSchema(LakeTable table, StructType wanted) {
        Set<String> needed = table.keyed.neededFor(java.util.Arrays.asList(wanted.fieldNames()));
        StructType found = wanted;
        for (StructField each : table.dataSchema().fields()) {
            if (needed.contains(each.name()) && !java.util.Arrays.asList(wanted.fieldNames()).contains(each.name())) {
                found = found.add(each);
            }
        }
        return found.add(KeyedTable.DELETED, DataTypes.BooleanType, true);
    }

    static StructType only(StructType columns, List<String> names, boolean isAmong) {
        StructType found = new StructType();
        for (StructField each : columns.fields()) {
            if (names.contains(each.name()) == isAmong) {
                found = found.add(each);
            }
        }
        return found;
    }

    /** {@code filters} are on columns of the key alone, which can't be renamed. */
    static FileReaders files(
            SparkSession session,
            StructType all,
            StructType columns,
            Filter[] filters,
            Set<Map<String, String>> namings) {
        Map<Map<String, String>, ParquetPartitionReaderFactory> found = new HashMap<>();
        for (Map<String, String> names : namings) {
            StructType stored = ColumnNames.in(names, columns);
            found.put(names, parquet(session, ColumnNames.in(names, all), stored, new StructType(), filters));
        }
        return new FileReaders(columns, found);
    }

    /** Reads whole files, or parts of them. {@code given}: the columns that files may have; {@code wanted}: what is read. */
    static ParquetPartitionReaderFactory parquet(
            SparkSession session, StructType given, StructType wanted, StructType partitions, Filter[] filters) {
        // Columns are found by the names that they have in a file, which an earlier version may have written without ids.
        StructType all = (StructType) ColumnNames.withoutIds(given);
        StructType columns = (StructType) ColumnNames.withoutIds(wanted);
        SQLConf conf = Catalogs.state(session).conf();
        Configuration hadoop = Catalogs.state(session).newHadoopConf();
        Catalogs.setParquetSettings(hadoop, conf);
        hadoop.set("parquet.read.support.class", "org.apache.spark.sql.execution.datasources.parquet.ParquetReadSupport");
        hadoop.set(REQUESTED, columns.json());
        hadoop.set("spark.sql.session.timeZone", conf.sessionLocalTimeZone());
        scala.collection.immutable.Map<String, String> options = Catalogs.noOptions();
        for (String[] calendar : CALENDARS) {
            // Files that don't say their calendar are taken as they are, unless the session says that they are old.
            if (!"LEGACY".equalsIgnoreCase(conf.getConfString(calendar[1]))) {
                options = Catalogs.with(options, calendar[0], "CORRECTED");
            }
        }
        return new ParquetPartitionReaderFactory(
                conf,
                session.sparkContext()
                        .broadcast(
                                new SerializableConfiguration(hadoop),
                                ClassTag$.MODULE$.apply(SerializableConfiguration.class)),
                all,
                columns,
                partitions,
                filters,
                Option.empty(),
                new ParquetOptions(options, conf));
    }

    @Override
    public boolean supportColumnarReads(InputPartition partition) {
        return !isMerged && whole.supportColumnarReads(partition);
    }

    @Override
    public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
        return whole.createColumnarReader(partition);
    }

    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
        if (partition instanceof FilePartition) {
            return whole.createReader(partition);
        }
        BucketPartition bucket = (BucketPartition) partition;
        PickedColumns output = new PickedColumns(dataColumns, whole.partitionSchema(), bucket.values);
        return bucket.families.isEmpty()
                ? new MergedBucket(table, versions, bucket, output)
                : new FamilyBucket(parts, bucket, dataColumns, output);
    }
}
