package lake.metastore.spark;

import java.io.IOException;
import java.io.Serializable;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetPartitionReaderFactory;
import org.apache.spark.sql.types.StructType;

/** Reads some columns of files, which may have them under other names than today's. */
final class FileReaders implements Serializable {
    /** A file, and its names of columns by today's, as far as they differ. */
    static final class Source implements Serializable {
        private static final long serialVersionUID = 1;

        final PartitionedFile file;
        final Map<String, String> names;

        Source(PartitionedFile file, Map<String, String> names) {
            this.file = file;
            this.names = names;
        }
    }

    private static final long serialVersionUID = 1;

    /** By today's names. */
    final StructType schema;
    private final Map<Map<String, String>, ParquetPartitionReaderFactory> byNames;

    FileReaders(StructType schema, Map<Map<String, String>, ParquetPartitionReaderFactory> byNames) {
        this.schema = schema;
        this.byNames = byNames;
    }

    PartitionReader<InternalRow> read(Source source) throws IOException {
        return byNames.get(source.names).buildReader(source.file);
    }
}
