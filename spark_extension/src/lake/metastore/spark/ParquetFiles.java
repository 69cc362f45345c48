package lake.metastore.spark;

import java.io.IOException;
import java.io.Serializable;
import java.util.Collections;
import java.util.Locale;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.parquet.ParquetOutputWriter;
import org.apache.spark.sql.execution.datasources.parquet.ParquetWriteSupport;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.util.SerializableConfiguration;
import scala.reflect.ClassTag$;

/** Makes Parquet files by Spark's own writer. Sent to executors. */
final class ParquetFiles implements Serializable {
    private static final long serialVersionUID = 1;

    /** Dates and times are of the proleptic Gregorian calendar, however long ago. Executors have other settings. */
    private static final String[] CALENDARS = {
        "spark.sql.parquet.datetimeRebaseModeInWrite", "spark.sql.parquet.int96RebaseModeInWrite"
    };

    /** Spark's writer, which says in footers what Hive wants to know of the calendar. */
    public static final class Support extends ParquetWriteSupport {
        @Override
        public FinalizedWriteContext finalizeWrite() {
            return new FinalizedWriteContext(Collections.singletonMap("writer.date.proleptic", "true"));
        }
    }

    private final Broadcast<SerializableConfiguration> settings;

    private ParquetFiles(Broadcast<SerializableConfiguration> settings) {
        this.settings = settings;
    }

    /** Files of keyed tables, which are the same whatever the session's settings are. */
    static ParquetFiles of(SparkSession session) {
        Configuration hadoop = Catalogs.state(session).newHadoopConf();
        Catalogs.setParquetSettings(hadoop, Catalogs.state(session).conf());
        hadoop.set("parquet.compression", "SNAPPY");
        hadoop.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS");
        hadoop.set("spark.sql.parquet.writeLegacyFormat", "false");
        return of(session, hadoop);
    }

    /** Files of other tables, as Spark writes them by the session's settings and these options of its Parquet writer. */
    static ParquetFiles of(SparkSession session, Map<String, String> options) {
        Configuration hadoop = Catalogs.state(session).newHadoopConf();
        SQLConf conf = Catalogs.state(session).conf();
        Catalogs.setParquetSettings(hadoop, conf);
        options.forEach(hadoop::set);
        CaseInsensitiveStringMap given = new CaseInsensitiveStringMap(options);
        String codec = given.getOrDefault("parquet.compression", conf.parquetCompressionCodec());
        codec = given.getOrDefault("compression", codec).toUpperCase(Locale.ROOT);
        codec = codec.equals("NONE") ? "UNCOMPRESSED" : codec.equals("LZ4RAW") ? "LZ4_RAW" : codec;
        hadoop.set("parquet.compression", CompressionCodecName.fromConf(codec).name());
        return of(session, hadoop);
    }

    /** The most rows of a file, by an option or a setting of Spark's; 0 for any number. */
    static long mostRows(SparkSession session, Map<String, String> options) {
        long usual = Catalogs.state(session).conf().maxRecordsPerFile();
        return new CaseInsensitiveStringMap(options).getLong("maxRecordsPerFile", usual);
    }

    private static ParquetFiles of(SparkSession session, Configuration hadoop) {
        hadoop.set("parquet.write.support.class", Support.class.getName());
        hadoop.set("spark.sql.parquet.fieldId.write.enabled", "true");
        // Checksums would be files of their own, which nobody removes.
        hadoop.set("fs.file.impl", RawLocalFileSystem.class.getName());
        hadoop.set("fs.file.impl.disable.cache", "true");
        return new ParquetFiles(
                session.sparkContext()
                        .broadcast(
                                new SerializableConfiguration(hadoop),
                                ClassTag$.MODULE$.apply(SerializableConfiguration.class)));
    }

    /** Begins a file. {@code uri} is not encoded. */
    ParquetOutputWriter create(String uri, StructType columns) {
        Configuration hadoop = new Configuration(settings.value().value());
        ParquetWriteSupport.setSchema(columns, hadoop);
        TaskAttemptContext context = new TaskAttemptContextImpl(hadoop, new TaskAttemptID());
        SQLConf conf = new SQLConf();
        for (String calendar : CALENDARS) {
            conf.setConfString(calendar, "CORRECTED");
        }
        return SQLConf$.MODULE$.withExistingConf(conf, () -> new ParquetOutputWriter(uri, context));
    }

    /** The bytes of a file that was written. */
    long size(String uri) throws IOException {
        Path path = new Path(uri);
        return path.getFileSystem(settings.value().value()).getFileStatus(path).getLen();
    }
}
