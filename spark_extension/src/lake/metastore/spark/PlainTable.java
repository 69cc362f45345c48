package lake.metastore.spark;

import java.util.EnumSet;
import java.util.Set;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TruncatableTable;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;

/**
 * A table without a primary key that has a timeline, as statements write it: each is an instant. Queries read its
 * directories, as Spark does.
 */
final class PlainTable implements SupportsWrite, TruncatableTable {
    final LakeTable lake;

    private PlainTable(LakeTable lake) {
        this.lake = lake;
    }

    /** What statements write of a table that was loaded: the table itself unless it is one without a key, and has a timeline. */
    static Table written(Table table) {
        if (!(table instanceof StreamedTable)) {
            return table;
        }
        LakeTable lake = ((StreamedTable) table).lake();
        try {
            return lake.isOnTimeline() ? new PlainTable(lake) : table;
        } catch (Metastore.Refused refused) {
            if (refused.field == Metastore.Refused.NO_METHOD) {
                return table; // another system's metastore has no timelines
            }
            throw Errors.analysis(refused.getMessage());
        }
    }

    /** The table of a name; null for all others than those without a key that have a timeline. */
    static PlainTable named(TableIdentifier name) {
        CatalogPlugin catalog = Catalogs.sessionCatalog(SparkSession.active());
        if (!(catalog instanceof LakeCatalog)) {
            return null;
        }
        try {
            Table found = written(((LakeCatalog) catalog).loadTable(identifier(name)));
            return found instanceof PlainTable ? (PlainTable) found : null;
        } catch (NoSuchTableException missing) {
            return null;
        }
    }

    static Identifier identifier(TableIdentifier name) {
        return Identifier.of(new String[] {LakeTable.inDatabase(name).database().get()}, name.table());
    }

    /** The same table, of which a statement overwrites a partition, also without rows. */
    PlainTable overwriting(String partition) {
        return new PlainTable(lake.overwriting(partition));
    }

    /** The same table, written by a statement that reads it, too: a change of what it replaces since is a conflict. */
    PlainTable readByItsWriter() {
        return new PlainTable(lake.readByItsWriter(lake));
    }

    @Override
    public String name() {
        return lake.name();
    }

    @Override
    @SuppressWarnings("deprecation")
    public StructType schema() {
        return lake.schema();
    }

    @Override
    public org.apache.spark.sql.connector.expressions.Transform[] partitioning() {
        return lake.partitioning();
    }

    @Override
    public Set<TableCapability> capabilities() {
        return EnumSet.of(
                TableCapability.BATCH_WRITE,
                TableCapability.STREAMING_WRITE,
                TableCapability.TRUNCATE,
                TableCapability.OVERWRITE_BY_FILTER,
                TableCapability.OVERWRITE_DYNAMIC);
    }

    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
        lake.checkWritable();
        return new PlainWrite.Builder(lake, info);
    }

    @Override
    public boolean truncateTable() {
        lake.checkWritable();
        PlainWrite.truncate(SparkSession.active(), lake);
        PlainWrite.refresh(SparkSession.active(), lake);
        return true;
    }

    @Override
    public String toString() {
        return name();
    }
}
