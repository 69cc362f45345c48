package lake.metastore.spark;

import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.internal.config.ConfigEntry;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalog;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.internal.SessionState;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/** What differs between Spark's lines about sessions and their catalogs. */
final class Catalogs {
    private static final Pattern READER_SETTINGS =
            Pattern.compile(
                    "spark\\.sql\\.(parquet\\..*|legacy\\.parquet\\..*|caseSensitive"
                            + "|optimizer\\.nestedSchemaPruning\\.enabled)");

    private static final Class<?>[] TWO_OBJECTS = {Object.class, Object.class};

    private Catalogs() {}

    static SessionState state(SparkSession session) {
        // In Spark 4 sessions are of a subclass; in 4.0 it alone has a state.
        return (SessionState) call(session, "sessionState", new Class<?>[0]);
    }

    /** The session's own catalog. Its manager is a class in Spark 3.5, an interface in later versions. */
    static CatalogPlugin sessionCatalog(SparkSession session) {
        Object manager = call(state(session), "catalogManager", new Class<?>[0]);
        return (CatalogPlugin) call(manager, "v2SessionCatalog", new Class<?>[0]);
    }

    /**
     * Whether Spark looks a parsed name up in the session's own catalog: not if it is that of a temporary view, if another
     * catalog is the current one, or if the name's first part is that of a catalog.
     */
    static boolean isOwn(SparkSession session, TableIdentifier name) {
        Object manager = call(state(session), "catalogManager", new Class<?>[0]);
        CatalogPlugin current = (CatalogPlugin) call(manager, "currentCatalog", new Class<?>[0]);
        if (!current.name().equals(sessionCatalog(session).name())) {
            return false;
        }
        if (name.database().isEmpty()) {
            return !state(session).catalog().isTempView(name);
        }
        String database = name.database().get();
        return !(Boolean) call(manager, "isCatalogRegistered", new Class<?>[] {String.class}, database);
    }

    static scala.collection.Iterator<?> partitionNames(ExternalCatalog catalog, String database, String table) {
        Class<?>[] types = {String.class, String.class, Option.class};
        Object names = call(catalog, "listPartitionNames", types, database, table, Option.empty());
        return ((scala.collection.Iterable<?>) names).iterator();
    }

    static boolean hasPartitionColumns(CatalogTable table) {
        return partitionColumns(table).length > 0;
    }

    /** The names of the columns that partition a table, in lower case. */
    static String[] partitionColumns(CatalogTable table) {
        Object names = call(table, "partitionColumnNames", new Class<?>[0]);
        List<String> found = new ArrayList<>();
        for (Object name : Plans.elements(names)) {
            found.add(((String) name).toLowerCase(Locale.ROOT));
        }
        return found.toArray(new String[0]);
    }

    /**
     * A table as a catalog would describe it.
     *
     * @param columns those that partition it among them, by whose names {@code partitions} are
     */
    static CatalogTable described(
            TableIdentifier name, StructType columns, List<String> partitions, Map<String, String> properties) {
        scala.collection.immutable.Map<String, String> kept = noOptions();
        for (Map.Entry<String, String> each : properties.entrySet()) {
            kept = with(kept, each.getKey(), each.getValue());
        }
        Constructor<?> constructor = CatalogTable.class.getConstructors()[0];
        Object[] arguments = new Object[constructor.getParameterCount()];
        for (int i = 4; i < arguments.length; i++) {
            arguments[i] = call(CatalogTable.class, null, "apply$default$" + (i + 1), new Class<?>[0]);
        }
        arguments[0] = name;
        arguments[1] = CatalogTableType.EXTERNAL();
        arguments[2] = CatalogStorageFormat.empty();
        arguments[3] = columns;
        arguments[4] = Option.apply("parquet");
        arguments[5] = listOf(partitions);
        arguments[11] = kept;
        try {
            return (CatalogTable) constructor.newInstance(arguments);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException("this Spark describes tables otherwise", error);
        }
    }

    static scala.collection.immutable.List<Object> listOf(List<?> elements) {
        scala.collection.immutable.List<Object> found = scala.collection.immutable.List$.MODULE$.empty();
        for (int i = elements.size() - 1; i >= 0; i--) {
            found = new scala.collection.immutable.$colon$colon<>(elements.get(i), found);
        }
        return found;
    }

    /** The rows of a plan, which is analysed. Datasets of sessions with a JVM are of another class in Spark 4. */
    static Dataset<Row> dataset(SparkSession session, LogicalPlan plan) {
        Class<?> type = Dataset.class;
        try {
            type = Class.forName("org.apache.spark.sql.classic.Dataset");
        } catch (ClassNotFoundException older) {
            // Spark 3.5
        }
        for (Method each : type.getMethods()) {
            Class<?>[] types = each.getParameterTypes();
            if (each.getName().equals("ofRows") && types.length == 2 && types[1] == LogicalPlan.class) {
                return rows(call(type, null, "ofRows", types, session, plan));
            }
        }
        throw new IllegalStateException("this Spark makes DataFrames otherwise");
    }

    @SuppressWarnings("unchecked")
    private static Dataset<Row> rows(Object dataset) {
        return (Dataset<Row>) dataset;
    }

    /** The analysed plan of rows. */
    static LogicalPlan analysed(Dataset<Row> rows) {
        return ((QueryExecution) call(rows, "queryExecution", new Class<?>[0])).analyzed();
    }

    /** Names as SQL takes them, whatever is in them. */
    static String[] quoted(String... names) {
        String[] found = new String[names.length];
        for (int i = 0; i < names.length; i++) {
            found[i] = "`" + names[i].replace("`", "``") + "`";
        }
        return found;
    }

    static Map<String, String> properties(CatalogTable table) {
        Map<String, String> found = new HashMap<>();
        scala.collection.Iterator<scala.Tuple2<String, String>> iterator = table.properties().iterator();
        while (iterator.hasNext()) {
            scala.Tuple2<String, String> each = iterator.next();
            found.put(each._1(), each._2());
        }
        return found;
    }

    static scala.collection.immutable.Map<String, String> noOptions() {
        return scala.collection.immutable.Map$.MODULE$.empty();
    }

    static scala.collection.immutable.Map<String, Object> noConstants() {
        return scala.collection.immutable.Map$.MODULE$.empty();
    }

    /** A map with one entry more; the method's result has other types from one of Scala's lines to the next. */
    @SuppressWarnings("unchecked")
    static scala.collection.immutable.Map<String, String> with(
            scala.collection.immutable.Map<String, String> options, String key, String value) {
        return (scala.collection.immutable.Map<String, String>)
                call(scala.collection.immutable.Map.class, options, "updated", TWO_OBJECTS, key, value);
    }

    /** How many bytes of files a task reads, as Spark decides it for its own tables. */
    static long maxSplitBytes(SparkSession session, long total) {
        SQLConf conf = state(session).conf();
        long each = total / Math.max(1, session.sparkContext().defaultParallelism());
        return Math.max(1, Math.min(conf.filesMaxPartitionBytes(), Math.max(conf.filesOpenCostInBytes(), each)));
    }

    /** Copies what Spark's Parquet reader takes from the configuration, with Spark's defaults for what is not set. */
    static void setParquetSettings(Configuration hadoop, SQLConf conf) {
        for (ConfigEntry<?> entry : SQLConf$.MODULE$.getConfigEntries()) {
            if (READER_SETTINGS.matcher(entry.key()).matches()) {
                try {
                    hadoop.set(entry.key(), conf.getConfString(entry.key()));
                } catch (NoSuchElementException undefined) {
                    continue; // it has no default
                }
            }
        }
    }

    private static Object call(Object target, String name, Class<?>[] types, Object... arguments) {
        return call(target.getClass(), target, name, types, arguments);
    }

    private static Object call(Class<?> type, Object target, String name, Class<?>[] types, Object... arguments) {
        try {
            return type.getMethod(name, types).invoke(target, arguments);
        } catch (InvocationTargetException error) {
            throw Errors.rethrow(error.getCause());
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }
}
