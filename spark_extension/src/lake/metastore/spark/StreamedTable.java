package lake.metastore.spark;

import java.util.Collections;
import java.util.EnumSet;
import java.util.Set;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.V1Table;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;

/**
 * A Parquet table without a primary key, which is Spark's own for queries. Streams read and write its timeline if it has
 * one; statements write it as a {@link PlainTable} then.
 */
final class StreamedTable extends V1Table implements SupportsWrite {
    private static final long serialVersionUID = 1;

    /** Null until it was asked for. */
    private transient LakeTable lake;

    StreamedTable(CatalogTable definition) {
        super(definition);
    }

    /** The table of the metastore that has its name, which stays the same for this object. */
    LakeTable lake() {
        if (lake == null) {
            lake = lake(v1Table());
        }
        return lake;
    }

    /** The table of the metastore that a definition of Spark's is of. */
    static LakeTable lake(CatalogTable definition) {
        Metastore metastore = Metastore.of(SparkSession.active());
        return LakeTable.of(
                metastore,
                new V1Table(definition),
                null,
                LakeTable.find(metastore, definition.identifier(), ReadPoint.LATEST));
    }

    /** The table of the metastore behind one of Spark's catalog, null for another. */
    static LakeTable lakeOf(Table table) {
        if (table instanceof LakeTable) {
            return (LakeTable) table;
        } else if (table instanceof PlainTable) {
            return ((PlainTable) table).lake;
        }
        return table instanceof StreamedTable ? ((StreamedTable) table).lake() : null;
    }

    /** The table of the metastore that a relation is of; null for another plan. */
    static LakeTable lakeOf(Object relation) {
        return relation instanceof DataSourceV2Relation ? lakeOf(((DataSourceV2Relation) relation).table()) : null;
    }

    @Override
    public Set<TableCapability> capabilities() {
        return lake().isStreamedByTimeline() ? EnumSet.of(TableCapability.STREAMING_WRITE) : Collections.emptySet();
    }

    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
        lake().checkWritable();
        return new PlainWrite.Builder(lake(), info);
    }
}
