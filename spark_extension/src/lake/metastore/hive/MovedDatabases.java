package lake.metastore.hive;

import java.lang.reflect.InvocationTargetException;
import java.util.Collections;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.MetaStorePreEventListener;
import org.apache.hadoop.hive.metastore.api.Database;
import org.apache.hadoop.hive.metastore.api.MetaException;
import org.apache.hadoop.hive.metastore.api.NoSuchObjectException;
import org.apache.hadoop.hive.metastore.api.Partition;
import org.apache.hadoop.hive.metastore.api.Table;
import org.apache.hadoop.hive.metastore.events.PreAddPartitionEvent;
import org.apache.hadoop.hive.metastore.events.PreAlterPartitionEvent;
import org.apache.hadoop.hive.metastore.events.PreAlterTableEvent;
import org.apache.hadoop.hive.metastore.events.PreCreateTableEvent;
import org.apache.hadoop.hive.metastore.events.PreDropDatabaseEvent;
import org.apache.hadoop.hive.metastore.events.PreDropPartitionEvent;
import org.apache.hadoop.hive.metastore.events.PreDropTableEvent;
import org.apache.hadoop.hive.metastore.events.PreEventContext;
import org.apache.hadoop.hive.metastore.events.PreReadTableEvent;

/**
 * Refuses changes of databases that are moving from a Hive metastore to another one, and says where to go.
 *
 * <p>A parameter of the database says so, which {@code metastore migrate cut-over} sets and {@code roll-back} removes:
 * {@code lake.moving.to} refuses changes, {@code lake.moved.to} also to read tables, since writers ask for a table
 * before they write files. Databases themselves can always be read and altered, so none is closed for good.
 *
 * <p>One class for Hive 2.3 to 4: what differs between them is reached by reflection.
 */
public class MovedDatabases extends MetaStorePreEventListener {
    private static final String MOVING = "lake.moving.to";
    private static final String MOVED = "lake.moved.to";
    /** A parameter of Iceberg's tables whose pointers lead nowhere. */
    private static final String CLOSED = "lake.moved.metadata_location";

    public MovedDatabases(Configuration configuration) {
        super(configuration);
    }

    @Override
    public void onEvent(PreEventContext event) throws MetaException {
        // By name: Hive's versions number the types in different ways.
        switch (event.getEventType().name()) {
            case "READ_TABLE":
                check(event, ((PreReadTableEvent) event).getTable(), false);
                break;
            case "CREATE_TABLE":
                check(event, ((PreCreateTableEvent) event).getTable(), true);
                break;
            case "DROP_TABLE":
                check(event, ((PreDropTableEvent) event).getTable(), true);
                break;
            case "ALTER_TABLE":
                PreAlterTableEvent altered = (PreAlterTableEvent) event;
                if (isClosed(altered.getOldTable()) || !isClosed(altered.getNewTable())) {
                    check(event, altered.getOldTable(), true);
                    check(event, altered.getNewTable(), true); // a rename into the database
                } // else the cut-over closes one of Iceberg's tables
                break;
            case "ADD_PARTITION":
                check(event, ((PreAddPartitionEvent) event).getTable(), true);
                break;
            case "DROP_PARTITION":
                check(event, ((PreDropPartitionEvent) event).getTable(), true);
                break;
            case "ALTER_PARTITION":
                PreAlterPartitionEvent partition = (PreAlterPartitionEvent) event;
                check(event, catalog(partition.getNewPartition()), partition.getDbName(), true);
                break;
            case "DROP_DATABASE":
                Database dropped = ((PreDropDatabaseEvent) event).getDatabase();
                check(event, text(dropped, "getCatalogName"), dropped.getName(), true);
                break;
            case "CREATE_FUNCTION":
            case "DROP_FUNCTION": // Hive 2.3 asks nobody
                Object function = get(event, "getFunction");
                check(event, text(function, "getCatName"), text(function, "getDbName"), true);
                break;
            default:
        }
    }

    private void check(PreEventContext event, Table table, boolean changes) throws MetaException {
        if (table != null) { // one that isn't there: the metastore says so
            check(event, catalog(table), table.getDbName(), changes);
        }
    }

    private void check(PreEventContext event, String catalog, String database, boolean changes) throws MetaException {
        Map<String, String> parameters = parameters(event, catalog, database);
        String moved = parameters.getOrDefault(MOVED, "");
        if (!moved.isEmpty()) {
            throw new MetaException("database " + database + " has moved to " + moved + ": use it there");
        }
        String moving = parameters.getOrDefault(MOVING, "");
        if (changes && !moving.isEmpty()) {
            throw new MetaException("database " + database + " is moving and can't be changed here any more: try again in a"
                    + " minute, at " + moving);
        }
    }

    private static boolean isClosed(Table table) {
        return table != null && table.getParameters() != null && table.getParameters().containsKey(CLOSED);
    }

    /** Those of a database; none if there is no such database, as the metastore will say. */
    private Map<String, String> parameters(PreEventContext event, String catalog, String database) throws MetaException {
        Object handler = get(event, "getHandler");
        try {
            Database found = (Database) lookUp(handler, catalog == null ? ownCatalog() : catalog, database);
            return found.getParameters() == null ? Collections.emptyMap() : found.getParameters();
        } catch (InvocationTargetException error) {
            if (error.getCause() instanceof NoSuchObjectException) {
                return Collections.emptyMap();
            }
            throw unknown(database, error.getCause());
        } catch (ReflectiveOperationException error) {
            throw unknown(database, error);
        }
    }

    /** In the transaction of the request, and without an event of its own. */
    private static Object lookUp(Object handler, String catalog, String database) throws ReflectiveOperationException {
        String name = "get_database_core";
        try {
            return handler.getClass().getMethod(name, String.class, String.class).invoke(handler, catalog, database);
        } catch (NoSuchMethodException error) { // Hive 2.3 has no catalogs
            return handler.getClass().getMethod(name, String.class).invoke(handler, database);
        }
    }

    private String ownCatalog() {
        return getConf().get("metastore.catalog.default", "hive");
    }

    private static MetaException unknown(String database, Throwable why) {
        return new MetaException("can't look whether database " + database + " has moved: " + why);
    }

    private static String catalog(Table table) throws MetaException {
        return text(table, "getCatName");
    }

    private static String catalog(Partition partition) throws MetaException {
        return text(partition, "getCatName");
    }

    /** What a getter of some versions of Hive says; null where there is none. */
    private static String text(Object value, String getter) throws MetaException {
        return value == null ? null : (String) get(value, getter);
    }

    private static Object get(Object value, String getter) throws MetaException {
        try {
            return value.getClass().getMethod(getter).invoke(value);
        } catch (NoSuchMethodException error) {
            return null;
        } catch (ReflectiveOperationException error) {
            throw new MetaException(getter + " of " + value.getClass().getName() + ": " + error);
        }
    }
}
