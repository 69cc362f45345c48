package lake.metastore.spark;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.ExternalCommandRunner;
import org.apache.spark.sql.execution.command.ExternalCommandExecutor;
import org.apache.spark.sql.internal.SessionState;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Product;

/** Changes of keyed tables' definitions that Spark's own commands refuse for its tables, or would do to their harm. */
final class Definitions {
    private Definitions() {}

    /** A command instead of Spark's; null where Spark's does. {@code kind}: the name of the statement's class. */
    static LogicalPlan changed(LogicalPlan statement, String kind, LakeTable table) {
        switch (kind) {
            case "RenameColumn":
                String name = column((Product) statement.productElement(1), table);
                return command(table, renamed(table, name, (String) statement.productElement(2)));
            case "DropColumns":
                boolean ifExists = (Boolean) statement.productElement(2);
                return command(table, without(table, Plans.elements(statement.productElement(1)), ifExists));
            case "SetTableLocation":
                if (Plans.unwrapped(statement.productElement(1)) == null) {
                    checkLocation((String) statement.productElement(2), table);
                }
                return null;
            case "RepairTable":
                checkRepair((Boolean) statement.productElement(2), table);
                return null;
            default:
                return null;
        }
    }

    /** Refuses to drop partitions that have no directory: their rows are where instants put them. */
    private static void checkRepair(boolean dropsPartitions, LakeTable table) {
        if (dropsPartitions) {
            throw Errors.analysis(
                    table.name()
                            + " is a keyed table, whose partitions may have rows and no directory of their own, so MSCK REPAIR"
                            + " would drop rows: drop a partition by ALTER TABLE … DROP PARTITION");
        }
    }

    /** Refuses a directory without the files of the table's instants, whose rows would be gone. */
    private static void checkLocation(String location, LakeTable table) {
        Path instants = new Path(location, PendingInstant.INSTANTS.replace("/", ""));
        try {
            boolean isThere =
                    instants.getFileSystem(Catalogs.state(SparkSession.active()).newHadoopConf()).exists(instants);
            if (!isThere && table.position() > 0) {
                throw Errors.analysis(
                        location + " doesn't have the files of " + table.name()
                                + ": copy the table's directory there first, with .instants, and set the location then");
            }
        } catch (IOException error) {
            throw Errors.analysis(location + " can't be read: " + error.getMessage());
        }
    }

    private static StructType renamed(LakeTable table, String name, String other) {
        checkUnnamed(table, name);
        if (find(table.schema(), other) != null && !other.equalsIgnoreCase(name)) {
            throw Errors.analysis(table.name() + " has a column " + other + " already");
        }
        StructType found = new StructType();
        for (StructField each : table.definition.v1Table().dataSchema().fields()) {
            boolean isMeant = each.name().equalsIgnoreCase(name);
            found = found.add(isMeant ? new StructField(other, each.dataType(), each.nullable(), each.metadata()) : each);
        }
        return found;
    }

    /**
     * Refuses Spark's own command where it adds a column with a default to a table that has rows. Spark's reader would show
     * the default in these, and other readers nulls.
     */
    static void checkAdded(LogicalPlan command) {
        TableIdentifier name = (TableIdentifier) command.productElement(0);
        for (Object each : Plans.elements(command.productElement(1))) {
            StructField column = (StructField) each;
            boolean hasDefault = column.metadata().contains(LakeTable.DEFAULT);
            if (!hasDefault || column.metadata().getString(LakeTable.DEFAULT).trim().equalsIgnoreCase("NULL")) {
                continue;
            }
            LakeTable keyed = LakeTable.ifKeyed(name);
            PlainTable plain = keyed == null ? PlainTable.named(name) : null;
            LakeTable table = plain == null ? keyed : plain.lake;
            if (table != null && table.lastPosition() > 0) {
                String quoted = Catalogs.quoted(column.name())[0];
                throw Errors.analysis(
                        table.name() + " has rows, in which not all readers would see the default of a new column: ADD the column "
                                + quoted + " without it, then ALTER COLUMN " + quoted + " SET DEFAULT for rows to come, and UPDATE"
                                + " those that are there");
            }
        }
    }

    private static StructType without(LakeTable table, List<Object> columns, boolean ifExists) {
        Set<String> dropped = new HashSet<>();
        for (Object each : columns) {
            Product named = (Product) each;
            if (ifExists && find(table.schema(), last(named)) == null) {
                continue;
            }
            String name = column(named, table);
            checkUnnamed(table, name);
            dropped.add(name.toLowerCase(Locale.ROOT));
        }
        StructType found = new StructType();
        for (StructField each : table.definition.v1Table().dataSchema().fields()) {
            found = dropped.contains(each.name().toLowerCase(Locale.ROOT)) ? found : found.add(each);
        }
        return found;
    }

    /** The column that a statement names, whether Spark has resolved it yet or not. */
    private static String column(Product named, LakeTable table) {
        boolean isNested = Plans.elements(named.productElement(0)).size() != (named.productArity() == 1 ? 1 : 0);
        if (isNested) {
            throw Errors.analysis(table.name() + ": fields of structs can't be renamed or dropped, only columns");
        }
        StructField found = find(table.schema(), last(named));
        if (found == null) {
            throw Errors.analysis(table.name() + " has no column " + last(named));
        }
        return found.name();
    }

    private static String last(Product named) {
        if (named.productArity() > 1) {
            return ((StructField) named.productElement(1)).name();
        }
        List<Object> parts = Plans.elements(named.productElement(0));
        return String.valueOf(parts.get(parts.size() - 1));
    }

    private static StructField find(StructType columns, String name) {
        for (StructField each : columns.fields()) {
            if (each.name().equalsIgnoreCase(name)) {
                return each;
            }
        }
        return null;
    }

    /** Refuses columns that the table's properties name, by which its files were written. */
    private static void checkUnnamed(LakeTable table, String column) {
        List<String> named = new ArrayList<>(table.keyed.key);
        named.addAll(table.partitionColumns());
        named.addAll(table.keyed.sequence);
        named.addAll(table.keyed.groups.keySet());
        table.keyed.groups.values().forEach(named::addAll);
        named.addAll(table.keyed.aggregates.keySet());
        table.keyed.families.values().forEach(named::addAll);
        for (String option : new String[] {LakeWrite.EVENT_TIME, LakeWrite.SOURCE_COLUMN}) {
            named.add(table.properties().getOrDefault(LakeWrite.DEFAULTS + option, "").trim().toLowerCase(Locale.ROOT));
        }
        if (named.contains(column.toLowerCase(Locale.ROOT))) {
            throw Errors.analysis(
                    table.name() + ": the column " + column + " is named by the table's key, partitions or properties,"
                            + " so it keeps its name and stays");
        }
    }

    private static LogicalPlan command(LakeTable table, StructType columns) {
        TableIdentifier name = table.identifier();
        ExternalCommandRunner runner =
                (text, options) -> {
                    SessionState state = Catalogs.state(SparkSession.active());
                    state.catalog().externalCatalog().alterTableDataSchema(name.database().get(), name.table(), columns);
                    state.catalog().refreshTable(name);
                    return new String[0];
                };
        return new ExternalCommandExecutor(runner, "ALTER TABLE " + table.quotedName(), Catalogs.noOptions());
    }
}
