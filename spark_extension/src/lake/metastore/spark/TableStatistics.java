package lake.metastore.spark;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogStatistics;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.ExternalCommandRunner;
import org.apache.spark.sql.execution.command.ExternalCommandExecutor;
import org.apache.spark.sql.internal.SessionState;
import scala.Option;
import scala.math.BigInt;

/**
 * ANALYZE of keyed tables. Spark counts rows as queries see them, but adds up the files in a table's directory: what was
 * published, or nothing. A session that takes this for the size of the rows broadcasts a large table.
 */
final class TableStatistics {
    private TableStatistics() {}

    /** Spark's own command, and after it the size of the files that queries read; null for other tables. */
    static LogicalPlan command(LogicalPlan plan) {
        TableIdentifier name = LakeTable.inDatabase((TableIdentifier) plan.productElement(0));
        if (LakeTable.ifKeyed(name) == null) {
            return null;
        }
        ExternalCommandRunner runner =
                (text, options) -> {
                    SparkSession session = SparkSession.active();
                    run(plan, session);
                    setSize(name, Catalogs.state(session));
                    return new String[0];
                };
        return new ExternalCommandExecutor(runner, "ANALYZE TABLE " + name.unquotedString(), Catalogs.noOptions());
    }

    /** Its result has another type in each line of Spark. */
    private static void run(LogicalPlan command, SparkSession session) {
        try {
            for (Method each : command.getClass().getMethods()) {
                if (each.getName().equals("run") && each.getParameterCount() == 1) {
                    each.invoke(command, session);
                    return;
                }
            }
            throw new NoSuchMethodException("run");
        } catch (InvocationTargetException error) {
            throw Errors.rethrow(error.getCause());
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    private static void setSize(TableIdentifier name, SessionState state) {
        try {
            LakeTable table = LakeTable.ifKeyed(name);
            Option<CatalogStatistics> found = state.catalog().getTableMetadata(name).stats();
            if (table == null || found.isEmpty()) {
                return; // it was dropped meanwhile
            }
            long size = table.snapshot().files.stream().mapToLong(each -> each.size).sum();
            CatalogStatistics known = found.get();
            CatalogStatistics sized = new CatalogStatistics(BigInt.apply(size), known.rowCount(), known.colStats());
            state.catalog().alterTableStats(name, Option.apply(sized));
        } catch (Exception error) {
            throw Errors.rethrow(error);
        }
    }
}
