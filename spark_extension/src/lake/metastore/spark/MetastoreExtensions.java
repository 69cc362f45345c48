package lake.metastore.spark;

import org.apache.spark.sql.SparkSessionExtensions;
import scala.Function1;
import scala.runtime.BoxedUnit;

/**
 * What a Spark session gets with {@code spark.sql.extensions=lake.metastore.spark.MetastoreExtensions}: the hint
 * {@code includeUnCommit}, the function {@code lake_changes}, and reads of tables whose partitions Spark lists by itself
 * limited to ready partitions.
 *
 * <p>One jar serves Scala 2.12 (Spark 3.5) and 2.13 (Spark 4). What differs between them is not linked to: a method
 * that has {@code Seq} in its signature is reached through Scala's generic access to case classes, and constructors
 * through reflection.
 */
public final class MetastoreExtensions implements Function1<SparkSessionExtensions, BoxedUnit> {
    @Override
    public BoxedUnit apply(SparkSessionExtensions extensions) {
        extensions.injectParser(
                (session, parser) -> {
                    makeCatalogReachable();
                    return HintParser.wrap(parser);
                });
        ChangesTable.register(extensions);
        extensions.injectResolutionRule(session -> new StreamRules.PlanRule());
        extensions.injectResolutionRule(session -> new PlainStatements.ReadRule());
        extensions.injectResolutionRule(session -> new LakeRelations.CommandRule());
        extensions.injectResolutionRule(session -> new QueryScope.RelationRule());
        extensions.injectResolutionRule(session -> new CharComparisons());
        extensions.injectResolutionRule(session -> new LayerPlans.HandleRule());
        extensions.injectResolutionRule(session -> new ScopeRule(new Relations(session)));
        extensions.injectPostHocResolutionRule(session -> new ReadyRule(new Relations(session)));
        extensions.injectCheckRule(session -> new WriteCheck());
        extensions.injectCheckRule(session -> new LakeRelations.DirectoryCheck());
        extensions.injectCheckRule(session -> new PlainStatements.MomentCheck());
        extensions.injectCheckRule(session -> new StreamRules.StartCheck());
        return BoxedUnit.UNIT;
    }

    /**
     * Lets this thread find the catalog's class. Spark looks for it in the thread's class loader when a session first
     * needs it; Hive's part of the JDBC server, when it opens a session in a database, has put a loader there that does
     * not know the jar.
     */
    private static void makeCatalogReachable() {
        Thread thread = Thread.currentThread();
        try {
            Class.forName(LakeCatalog.class.getName(), false, thread.getContextClassLoader());
        } catch (ClassNotFoundException unknown) {
            thread.setContextClassLoader(LakeCatalog.class.getClassLoader());
        }
    }
}
