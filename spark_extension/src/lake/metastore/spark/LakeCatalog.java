package lake.metastore.spark;

import java.util.Arrays;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.QualifiedTableName;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.DelegatingCatalogExtension;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableWritePrivilege;
import org.apache.spark.sql.connector.catalog.V1Table;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SessionState;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Spark's session catalog, in which keyed tables are read from and written to their timeline: {@code
 * spark.sql.catalog.spark_catalog=lake.metastore.spark.LakeCatalog}. All other tables, views and functions stay Spark's.
 */
public final class LakeCatalog extends DelegatingCatalogExtension {
    private static final Logger LOG = LoggerFactory.getLogger(LakeCatalog.class);

    private static final String HIVE = "hive";
    private static final String HIVES_PARQUET = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat";

    /** As plans show it. */
    @Override
    public String toString() {
        return "LakeCatalog(" + name() + ")";
    }

    @Override
    public Table loadTable(Identifier name) throws NoSuchTableException {
        return loaded(name, ReadPoint.LATEST);
    }

    /** {@code version}: a position on the timeline, or the timestamp of an instant. */
    @Override
    public Table loadTable(Identifier name, String version) throws NoSuchTableException {
        return loaded(name, ReadPoint.version(version));
    }

    /** {@code timestamp}: in microseconds since 1970. */
    @Override
    public Table loadTable(Identifier name, long timestamp) throws NoSuchTableException {
        return loaded(name, ReadPoint.time(timestamp));
    }

    /** For a statement that writes the table, as Spark 3.5.3 and later say. */
    @Override
    public Table loadTable(Identifier name, Set<TableWritePrivilege> privileges) throws NoSuchTableException {
        return PlainTable.written(loadTable(name));
    }

    private Table loaded(Identifier name, ReadPoint point) throws NoSuchTableException {
        String[] namespace = name.namespace();
        if (namespace.length == 2 && MetadataTable.isKind(name.name())) {
            Table table = loaded(Identifier.of(new String[] {namespace[0]}, namespace[1]), point);
            if (!(table instanceof LakeTable) || ((LakeTable) table).keyed == null) {
                throw Errors.analysis(namespace[0] + "." + namespace[1] + " is no keyed table: it has no " + name.name());
            }
            return MetadataTable.of((LakeTable) table, name.name());
        }
        Table table = super.loadTable(name);
        if (!(table instanceof V1Table)) {
            return table;
        }
        CatalogTable definition = ((V1Table) table).v1Table();
        KeyedTable keyed = keyedTable(definition);
        QueryScope query = QueryScope.current();
        if (query != null) {
            return asOfQuery((V1Table) table, query, point, name);
        }
        Metastore metastore = keyed == null ? null : Metastore.of(SparkSession.active());
        if (metastore == null) {
            if (!point.isLatest()) {
                throw Errors.analysis(
                        definition.identifier().unquotedString()
                                + " has no primary-key: VERSION and TIMESTAMP AS OF read keyed tables");
            }
            return streamed((V1Table) table, point);
        }
        checkNotReplaced(definition);
        LakeTable.Origin origin = LakeTable.find(metastore, definition.identifier(), point);
        Table loaded = super.loadTable(name);
        KeyedTable found = loaded instanceof V1Table ? keyedTable(((V1Table) loaded).v1Table()) : null;
        return found == null ? loaded : LakeTable.of(metastore, (V1Table) loaded, found, origin);
    }

    /** A table as a query of {@code lake.spark.sql} reads it; Spark's own if it has no instants, and no primary key. */
    private Table asOfQuery(V1Table table, QueryScope query, ReadPoint given, Identifier name)
            throws NoSuchTableException {
        CatalogTable definition = table.v1Table();
        String shown = definition.identifier().unquotedString();
        ReadPoint point = query.point(given, shown);
        if (definition.tableType().name().equals("VIEW")) {
            return table;
        }
        Metastore metastore = Metastore.of(SparkSession.active());
        if (metastore == null
                || (keyedTable(definition) == null && !LakeTable.hasInstants(metastore, definition.identifier()))) {
            return table;
        }
        if (!isParquet(definition)) {
            throw Errors.analysis(
                    shown + " has a timeline, and files that only its own system reads: read it with lake.spark.read, and"
                            + " make the query without it");
        }
        LakeTable.Origin origin = LakeTable.find(metastore, definition.identifier(), point);
        Table loaded = super.loadTable(name);
        if (!(loaded instanceof V1Table) || !isParquet(((V1Table) loaded).v1Table())) {
            throw Errors.analysis(shown + " was made again as another table meanwhile: run the query again");
        }
        KeyedTable keyed = keyedTable(((V1Table) loaded).v1Table());
        return query.seen(LakeTable.of(metastore, (V1Table) loaded, keyed, origin));
    }

    /** A Parquet table without a primary key, which streams read and write by its timeline if it has one. */
    private static Table streamed(V1Table table, ReadPoint point) {
        if (!point.isLatest() || !isStreamed(table.v1Table())) {
            return table;
        }
        listAgain(table.v1Table());
        StreamedTable found = new StreamedTable(table.v1Table());
        if (isToBeReplaced() && found.lake().isOnTimeline()) {
            checkNotReplaced(table.v1Table());
        }
        return found;
    }

    /**
     * Has Spark list the directory of a table without partitions again. It keeps the files of such a table with its relation,
     * whatever is set for those of partitions, and would miss what other sessions have written. The relation is kept where
     * it can be, since CACHE TABLE knows the table's rows by it.
     */
    private static void listAgain(CatalogTable definition) {
        SessionState state = Catalogs.state(SparkSession.active());
        if (Catalogs.partitionColumns(definition).length > 0 || state.conf().filesourcePartitionFileCacheSize() > 0) {
            return;
        }
        TableIdentifier name = LakeTable.inDatabase(definition.identifier());
        LogicalPlan kept =
                state.catalog()
                        .getCachedTable(
                                new QualifiedTableName("spark_catalog", name.database().get(), name.table()));
        try {
            if (kept instanceof LogicalRelation && isOf((LogicalRelation) kept, definition)) {
                kept.refresh();
                return;
            }
        } catch (Exception error) {
            LOG.debug("{} can't be listed: {}", name, error.getMessage()); // a query will say so
        }
        state.catalog().invalidateCachedTable(name);
    }

    /** Whether a relation reads the directory that a table has now. */
    private static boolean isOf(LogicalRelation relation, CatalogTable definition) {
        return relation.catalogTable().isDefined()
                && relation.catalogTable().get().storage().locationUri().equals(definition.storage().locationUri());
    }

    private static void checkNotReplaced(CatalogTable definition) {
        if (isToBeReplaced()) {
            throw Errors.analysis(
                    definition.identifier().unquotedString()
                            + " is a " + (keyedTable(definition) == null ? "lake" : "keyed")
                            + " table: saveAsTable with the mode overwrite would drop it, and its key and"
                            + " timeline with it; use INSERT OVERWRITE or writeTo(...).overwrite, or drop the table first");
        }
    }

    /** Whether it is a Parquet table without a primary key, which may have a timeline. */
    static boolean isStreamed(CatalogTable definition) {
        return !definition.tableType().name().equals("VIEW")
                && isParquet(definition)
                && keyedTable(definition) == null
                && Metastore.of(SparkSession.active()) != null;
    }

    @Override
    public UnboundFunction loadFunction(Identifier name) throws NoSuchFunctionException {
        boolean isOurs = name.namespace().length == 0 && name.name().equals(PlaceFunction.NAME);
        return isOurs ? new PlaceFunction() : super.loadFunction(name);
    }

    /**
     * Whether {@code DataFrameWriter.saveAsTable} loads a table to drop it. No plan says so: Spark drops the table in its
     * session catalog at once. Before that it looks at what the table is, by {@code SparkSession.table}.
     */
    private static boolean isToBeReplaced() {
        StackTraceElement[] calls = Thread.currentThread().getStackTrace();
        for (int i = 1; i < calls.length; i++) {
            if ((calls[i].getMethodName().equals("saveAsTable") // Spark 3.5
                            || calls[i].getClassName().endsWith(".SaveAsV1TableCommand"))
                    && calls[i - 1].getClassName().endsWith(".SparkSession")
                    && calls[i - 1].getMethodName().equals("table")) {
                return true;
            }
        }
        return false;
    }

    /**
     * The primary key and what goes with it; null for all tables but Parquet tables of Spark's or Hive's with that
     * property. Other systems have properties of the same names: metastore/services/instant_rules/keyed_tables.py.
     */
    static KeyedTable keyedTable(CatalogTable table) {
        return isParquet(table)
                ? KeyedTable.of(Catalogs.properties(table), Arrays.asList(Catalogs.partitionColumns(table)))
                : null;
    }

    /** Whether it is a Parquet table of Spark's or Hive's, and no other system's. */
    static boolean isParquet(CatalogTable table) {
        Map<String, String> properties = Catalogs.properties(table);
        String provider = table.provider().isDefined() ? table.provider().get() : HIVE;
        return provider.equalsIgnoreCase(HIVE)
                ? table.storage().inputFormat().contains(HIVES_PARQUET)
                        && !properties.containsKey("storage_handler")
                        && !properties.containsKey("table_type")
                : provider.equalsIgnoreCase("parquet");
    }

    static TableIdentifier undecorated(TableIdentifier table) {
        return Relations.isDecorated(table) ? Relations.undecorated(table) : table;
    }
}
