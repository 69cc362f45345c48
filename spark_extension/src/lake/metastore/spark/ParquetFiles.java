package lake.metastore.spark;

import java.io.IOException;
import java.io.Serializable;
import java.util.Collections;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.datasources.parquet.ParquetOutputWriter;
import org.apache.spark.sql.execution.datasources.parquet.ParquetWriteSupport;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;
import scala.reflect.ClassTag$;

/** Makes the Parquet files of keyed tables by Spark's own writer, whatever the session's settings. Sent to executors. */
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

    static ParquetFiles of(SparkSession session) {
        Configuration hadoop = Catalogs.state(session).newHadoopConf();
        Catalogs.setParquetSettings(hadoop, Catalogs.state(session).conf());
        hadoop.set("parquet.write.support.class", Support.class.getName());
        hadoop.set("parquet.compression", "SNAPPY");
        hadoop.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS");
        hadoop.set("spark.sql.parquet.writeLegacyFormat", "false");
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
