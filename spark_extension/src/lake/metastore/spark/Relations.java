package lake.metastore.spark;

import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.time.ZoneId;
import java.util.Arrays;
import java.util.Locale;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.HiveTableRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.CatalogFileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SessionState;
import scala.Option;

/**
 * Relations of tables under their decorated names.
 *
 * <p>{@code t@includeuncommit} is to the metastore the table {@code t} with its uncommitted partitions visible. The
 * name is put into the relation after Spark has resolved it: columns, aliases and qualifiers stay what they are.
 */
final class Relations {
    private static final String DECORATION = "@includeuncommit";

    private final SparkSession session;

    Relations(SparkSession session) {
        this.session = session;
    }

    static boolean isDecorated(TableIdentifier table) {
        return table.table().toLowerCase(Locale.ROOT).endsWith(DECORATION);
    }

    static TableIdentifier decorated(TableIdentifier table) {
        return new TableIdentifier(table.table() + DECORATION, table.database(), table.catalog());
    }

    static TableIdentifier undecorated(TableIdentifier table) {
        String name = table.table();
        return new TableIdentifier(
                name.substring(0, name.length() - DECORATION.length()), table.database(), table.catalog());
    }

    /** A relation that sees uncommitted partitions; the same one if it isn't of a table that can have such. */
    LogicalPlan decorated(LogicalPlan relation) {
        if (relation instanceof HiveTableRelation) {
            return decoratedHive((HiveTableRelation) relation);
        }
        if (relation instanceof LogicalRelation) {
            return decoratedSource((LogicalRelation) relation);
        }
        if (LakeRelations.table(relation) != null) {
            return LakeRelations.includingUncommitted(relation);
        }
        LogicalPlan changes = ChangesTable.includingUncommitted(relation);
        return changes == null ? relation : changes;
    }

    private LogicalPlan decoratedHive(HiveTableRelation relation) {
        CatalogTable table = relation.tableMeta();
        if (!isPartitioned(table) || isDecorated(table.identifier())) {
            return relation;
        }
        CatalogTable decorated = decorated(table);
        // Spark keeps a relation, and with it a listing of files, for each table that it reads as Parquet or ORC.
        // What an uncommitted partition holds changes: it is listed anew.
        Catalogs.state(session).catalog().invalidateCachedTable(decorated.identifier());
        return relation.makeCopy(Plans.with(relation, 0, decorated));
    }

    private LogicalPlan decoratedSource(LogicalRelation relation) {
        Option<CatalogTable> table = relation.catalogTable();
        if (table.isEmpty() || !isPartitioned(table.get()) || isDecorated(table.get().identifier())) {
            return relation;
        }
        CatalogTable decorated = decorated(table.get());
        if (isListedByCatalog(relation) || isToBeListedByCatalog(relation)) {
            return fromCatalog(relation, decorated);
        }
        Object[] elements = Plans.with(relation, 2, Option.apply(decorated));
        return relation.makeCopy(elements);
    }

    /** A relation without a hint, which sees ready partitions only however they are found. */
    LogicalPlan limited(LogicalRelation relation) {
        Option<CatalogTable> table = relation.catalogTable();
        if (table.isEmpty()
                || isListedByCatalog(relation)
                || !isPartitioned(table.get())
                || isDecorated(table.get().identifier())) {
            return relation;
        }
        if (isToBeListedByCatalog(relation)) {
            return fromCatalog(relation, table.get());
        }
        SessionState state = Catalogs.state(session);
        ZoneId zone = ZoneId.of(state.conf().sessionLocalTimeZone());
        return new ReadyPartitions(state.catalog().externalCatalog(), table.get().identifier(), relation, zone)
                .limited();
    }

    private static boolean isListedByCatalog(LogicalRelation relation) {
        return relation.relation() instanceof HadoopFsRelation
                && ((HadoopFsRelation) relation.relation()).location() instanceof CatalogFileIndex;
    }

    /** Spark lists the directories of such a table only if spark.sql.hive.manageFilesourcePartitions is off. */
    private static boolean isToBeListedByCatalog(LogicalRelation relation) {
        return relation.relation() instanceof HadoopFsRelation
                && ((HadoopFsRelation) relation.relation()).location() instanceof InMemoryFileIndex
                && relation.catalogTable().get().tracksPartitionsInCatalog();
    }

    /** A relation whose partitions come from the metastore, those of {@code table}; its files are listed anew. */
    private LogicalPlan fromCatalog(LogicalRelation relation, CatalogTable table) {
        HadoopFsRelation source = (HadoopFsRelation) relation.relation();
        long size = source.location().sizeInBytes();
        Object[] elements = Plans.with(source, 0, construct(CatalogFileIndex.class, session, table, size));
        // Its constructor has a second list of parameters: the session.
        Object[] sourceArguments = Arrays.copyOf(elements, elements.length + 1);
        sourceArguments[elements.length] = session;
        Object[] arguments = Plans.with(relation, 0, construct(HadoopFsRelation.class, sourceArguments));
        arguments[2] = Option.apply(table);
        return relation.makeCopy(arguments);
    }

    private static boolean isPartitioned(CatalogTable table) {
        return Catalogs.hasPartitionColumns(table);
    }

    private static CatalogTable decorated(CatalogTable table) {
        return construct(CatalogTable.class, Plans.with(table, 0, decorated(table.identifier())));
    }

    private static <T> T construct(Class<T> type, Object... arguments) {
        for (Constructor<?> constructor : type.getConstructors()) {
            if (constructor.getParameterCount() == arguments.length) {
                try {
                    return type.cast(constructor.newInstance(arguments));
                } catch (InvocationTargetException error) {
                    throw Errors.rethrow(error.getCause());
                } catch (ReflectiveOperationException error) {
                    throw new IllegalStateException(error);
                }
            }
        }
        throw new IllegalStateException(type + " has no constructor of " + arguments.length + " parameters");
    }
}
