package lake.metastore.spark;

import java.lang.reflect.InvocationTargetException;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalog;
import org.apache.spark.sql.internal.SessionState;
import scala.Option;

/** What differs between Spark's lines about sessions and their catalogs. */
final class Catalogs {
    private Catalogs() {}

    static SessionState state(SparkSession session) {
        // In Spark 4 sessions are of a subclass; in 4.0 it alone has a state.
        return (SessionState) call(session, "sessionState", new Class<?>[0]);
    }

    static scala.collection.Iterator<?> partitionNames(ExternalCatalog catalog, String database, String table) {
        Class<?>[] types = {String.class, String.class, Option.class};
        Object names = call(catalog, "listPartitionNames", types, database, table, Option.empty());
        return ((scala.collection.Iterable<?>) names).iterator();
    }

    static boolean hasPartitionColumns(CatalogTable table) {
        Object names = call(table, "partitionColumnNames", new Class<?>[0]);
        return ((scala.collection.Iterable<?>) names).iterator().hasNext();
    }

    private static Object call(Object target, String name, Class<?>[] types, Object... arguments) {
        try {
            return target.getClass().getMethod(name, types).invoke(target, arguments);
        } catch (InvocationTargetException error) {
            throw Errors.rethrow(error.getCause());
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }
}
