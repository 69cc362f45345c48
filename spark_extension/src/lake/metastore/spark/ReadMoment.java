package lake.metastore.spark;

import java.lang.ref.WeakReference;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext;

/**
 * The moment as of which a statement reads its tables: the last completion of any of them when the statement was
 * analysed. So tables that were written together are seen together. Behind a front of several metastores there is one for
 * the tables of each, since none knows the moments of another.
 */
final class ReadMoment {
    /** The one of the statement that a thread analyses. */
    private static final ThreadLocal<Statement> LATEST = new ThreadLocal<>();

    /** Above these bits a front puts the number of the metastore that has given a table its id. */
    private static final int BITS_OF_ID = 48;

    private long moment;
    private boolean isFixed;

    /** The moments of a statement, by the numbers of metastores, and the object that Spark has for its analysis. */
    private static final class Statement {
        private final WeakReference<Object> analysis;
        private final Map<Long, ReadMoment> moments = new HashMap<>();

        private Statement(Object analysis) {
            this.analysis = new WeakReference<>(analysis);
        }

        private boolean isRead() {
            return moments.values().stream().anyMatch(ReadMoment::isFixed);
        }
    }

    /**
     * That of the statement which is being analysed, as long as nothing has been read, for one more table.
     *
     * @param table the table's id, 0 if it isn't known
     * @param moment of the table's last completion
     */
    static ReadMoment ofStatement(long table, long moment) {
        Object analysis = AnalysisContext.get().relationCache();
        Statement statement = LATEST.get();
        if (statement == null || statement.analysis.get() != analysis || statement.isRead()) {
            statement = new Statement(analysis);
            LATEST.set(statement);
        }
        ReadMoment found = statement.moments.computeIfAbsent(table >>> BITS_OF_ID, number -> new ReadMoment());
        found.include(moment);
        return found;
    }

    private synchronized void include(long moment) {
        this.moment = Math.max(this.moment, moment);
    }

    /** The moment, which does not change any more. */
    synchronized long fixed() {
        isFixed = true;
        return moment;
    }

    /** Whether it is earlier than another one of the same metastore. */
    boolean isBefore(ReadMoment other) {
        return value() < other.value();
    }

    private synchronized long value() {
        return moment;
    }

    private synchronized boolean isFixed() {
        return isFixed;
    }
}
