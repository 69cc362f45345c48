package lake.metastore.spark;

import java.util.Collections;
import java.util.EnumSet;
import java.util.Set;
import java.util.function.Function;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.distributions.Distribution;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.RequiresDistributionAndOrdering;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * What Spark writes the rows of a program into. Their files are then known here, and are no part of any table yet: the
 * program completes its instant with them, or aborts it.
 */
final class GivenTable implements SupportsWrite {
    /** Where Spark finds the function by which rows of a bucket come together, whatever the session's catalog is. */
    static final class Functions implements FunctionCatalog {
        @Override
        public void initialize(String name, CaseInsensitiveStringMap options) {}

        @Override
        public String name() {
            return "lake_functions";
        }

        @Override
        public Identifier[] listFunctions(String[] namespace) {
            return new Identifier[0];
        }

        @Override
        public UnboundFunction loadFunction(Identifier name) throws NoSuchFunctionException {
            if (name.name().equals(PlaceFunction.NAME)) {
                return new PlaceFunction();
            }
            throw new NoSuchFunctionException(name);
        }
    }

    private final String name;
    private final StructType rows;
    private final Distribution distribution;
    private final SortOrder[] order;
    private final Function<StructType, DataWriterFactory> writers;
    private final Function<WriterCommitMessage[], LakeRowWriter.Written> collected;
    private LakeRowWriter.Written written;

    /**
     * @param rows their columns
     * @param writers makes the tasks' writers, on the driver, for rows of some columns
     * @param collected makes one of what tasks have written
     */
    GivenTable(
            String name,
            StructType rows,
            Distribution distribution,
            SortOrder[] order,
            Function<StructType, DataWriterFactory> writers,
            Function<WriterCommitMessage[], LakeRowWriter.Written> collected) {
        this.name = name;
        this.rows = rows;
        this.distribution = distribution;
        this.order = order;
        this.writers = writers;
        this.collected = collected;
    }

    /** What Spark has written; null if it hasn't. */
    LakeRowWriter.Written written() {
        return written;
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    @SuppressWarnings("deprecation")
    public StructType schema() {
        return rows;
    }

    @Override
    public Set<TableCapability> capabilities() {
        // The rows have the columns of the files already: Spark has nothing to assign.
        return Collections.unmodifiableSet(
                EnumSet.of(TableCapability.BATCH_WRITE, TableCapability.ACCEPT_ANY_SCHEMA));
    }

    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
        return new WriteBuilder() {
            @Override
            public Write build() {
                return new Rows(info.schema());
            }
        };
    }

    private final class Rows implements RequiresDistributionAndOrdering {
        private final StructType columns;

        private Rows(StructType columns) {
            this.columns = columns;
        }

        @Override
        public Distribution requiredDistribution() {
            return distribution;
        }

        @Override
        public SortOrder[] requiredOrdering() {
            return order;
        }

        @Override
        public String description() {
            return "rows of " + name;
        }

        @Override
        public BatchWrite toBatch() {
            return new BatchWrite() {
                @Override
                public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo physical) {
                    return writers.apply(columns);
                }

                @Override
                public void commit(WriterCommitMessage[] messages) {
                    written = collected.apply(messages);
                }

                @Override
                public void abort(WriterCommitMessage[] messages) {
                    // The program aborts its instant.
                }
            };
        }
    }
}
