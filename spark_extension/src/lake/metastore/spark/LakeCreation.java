package lake.metastore.spark;

import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogUtils;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.V1Table;
import org.apache.spark.sql.execution.datasources.CreateTable;
import org.apache.spark.sql.internal.SessionState;

/**
 * CREATE TABLE AS SELECT of tables with a timeline, and saveAsTable into them, which Spark would run by writing files into the
 * table's directory.
 *
 * <p>Spark's own parser makes the nodes that replace Spark's, since their constructors differ from version to version.
 */
final class LakeCreation {
    private LakeCreation() {}

    /** The statement by which the table's timeline gets the rows; null if it has none. */
    static LogicalPlan rewritten(CreateTable create) {
        if (create.query().isEmpty()) {
            return null;
        }
        SessionState state = Catalogs.state(SparkSession.active());
        CatalogPlugin catalog = Catalogs.sessionCatalog(SparkSession.active());
        if (!(catalog instanceof LakeCatalog)) {
            return null;
        }
        CatalogTable definition = create.tableDesc();
        TableIdentifier table = definition.identifier();
        String database = table.database().isDefined() ? table.database().get() : state.catalog().getCurrentDatabase();
        Identifier name = Identifier.of(new String[] {database}, table.table());
        LogicalPlan query = create.query().get();
        if (!query.resolved()) {
            return null; // later
        }
        Table existing = PlainTable.written(existing((LakeCatalog) catalog, name));
        if (!(existing instanceof V1Table) && existing != null && create.mode() == SaveMode.Append) {
            if (definition.storage().properties().contains(LakeWrite.EVENT_TIME)) {
                throw Errors.analysis("saveAsTable takes no " + LakeWrite.EVENT_TIME + ": use writeTo(…).append()");
            }
            LogicalPlan insert = parsed("INSERT INTO " + quoted(database, table.table()) + " BY NAME SELECT 1");
            return insert.mapChildren(child -> query);
        }
        if (LakeCatalog.keyedTable(definition) == null && !isOnTimeline(definition)) {
            return null;
        }
        LogicalPlan made = parsed(text(definition, quoted(database, table.table()), create.mode()));
        LogicalPlan target = resolved(new NewTables((LakeCatalog) catalog), name);
        List<LogicalPlan> children = new ArrayList<>(Arrays.asList(target, inOrder(query, definition)));
        return made.mapChildren(child -> children.remove(0));
    }

    /** Whether a new Parquet table without a key has a timeline from its first rows on, by its properties. */
    private static boolean isOnTimeline(CatalogTable table) {
        boolean isSparks = table.provider().isDefined() && table.provider().get().equalsIgnoreCase("parquet");
        Map<String, String> properties = Catalogs.properties(table);
        return isSparks && LakeTable.isOnTimeline(properties);
    }

    /** The rows with the columns that partition the table last, as it will have them. */
    private static LogicalPlan inOrder(LogicalPlan query, CatalogTable table) {
        List<String> names = new ArrayList<>(Arrays.asList(query.schema().fieldNames()));
        for (String column : Catalogs.partitionColumns(table)) {
            for (String name : query.schema().fieldNames()) {
                if (name.equalsIgnoreCase(column)) {
                    names.remove(name);
                    names.add(name);
                }
            }
        }
        if (names.equals(Arrays.asList(query.schema().fieldNames()))) {
            return query;
        }
        String columns = String.join(", ", Catalogs.quoted(names.toArray(new String[0])));
        return Plans.withRelation(parsed("SELECT " + columns + " FROM lake_given_rows"), query);
    }

    private static Table existing(LakeCatalog catalog, Identifier name) {
        try {
            return catalog.tableExists(name) ? catalog.loadTable(name) : null;
        } catch (org.apache.spark.sql.catalyst.analysis.NoSuchTableException gone) {
            return null;
        }
    }

    private static LogicalPlan parsed(String text) {
        try {
            return Catalogs.state(SparkSession.active()).sqlParser().parsePlan(text);
        } catch (ParseException error) {
            throw Errors.rethrow(error);
        }
    }

    private static String text(CatalogTable table, String name, SaveMode mode) {
        StringBuilder text = new StringBuilder("CREATE TABLE ");
        text.append(mode == SaveMode.Ignore ? "IF NOT EXISTS " : "").append(name).append(" USING parquet");
        String[] partitions = Catalogs.partitionColumns(table);
        if (partitions.length > 0) {
            text.append(" PARTITIONED BY (").append(String.join(", ", Catalogs.quoted(partitions))).append(")");
        }
        if (table.bucketSpec().isDefined()) {
            throw Errors.analysis(name + ": a table with a timeline is not CLUSTERED BY columns; one with a primary-key has the property bucket");
        }
        if (table.comment().isDefined()) {
            text.append(" COMMENT ").append(literal(table.comment().get()));
        }
        if (table.storage().locationUri().isDefined()) {
            String location = CatalogUtils.URIToString(table.storage().locationUri().get());
            text.append(" LOCATION ").append(literal(location));
        }
        List<String> properties = new ArrayList<>();
        for (Map.Entry<String, String> each : new TreeMap<>(Catalogs.properties(table)).entrySet()) {
            properties.add(literal(each.getKey()) + " = " + literal(each.getValue()));
        }
        return text.append(" TBLPROPERTIES (").append(String.join(", ", properties)).append(") AS SELECT 1").toString();
    }

    private static String quoted(String... names) {
        return String.join(".", Catalogs.quoted(names));
    }

    private static String literal(String text) {
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'";
    }

    private static LogicalPlan resolved(CatalogPlugin catalog, Identifier name) {
        Constructor<?> constructor = ResolvedIdentifier.class.getConstructors()[0];
        try {
            return (LogicalPlan)
                    (constructor.getParameterCount() == 2
                            ? constructor.newInstance(catalog, name)
                            : constructor.newInstance(catalog, name, Plans.noneOf()));
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }
}
