package lake.metastore.spark;

import java.lang.ref.WeakReference;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext;

/**
 * The moment as of which a statement reads its tables: the last completion of any of them when the statement was
 * analysed. So tables that were written together are seen together.
 */
final class ReadMoment {
    /** The one of the statement that a thread analyses, by an object that Spark has for each analysis. */
    private static final ThreadLocal<ReadMoment> LATEST = new ThreadLocal<>();

    private final WeakReference<Object> statement;
    private long moment;
    private boolean isFixed;

    private ReadMoment(Object statement) {
        this.statement = new WeakReference<>(statement);
    }

    /** That of the statement which is being analysed, as long as nothing has been read. */
    static ReadMoment ofStatement() {
        Object statement = AnalysisContext.get().relationCache();
        ReadMoment latest = LATEST.get();
        if (latest == null || latest.statement.get() != statement || latest.isFixed()) {
            latest = new ReadMoment(statement);
            LATEST.set(latest);
        }
        return latest;
    }

    /** One more table, whose last completion was at {@code moment}. */
    synchronized void include(long moment) {
        this.moment = Math.max(this.moment, moment);
    }

    /** The moment, which does not change any more. */
    synchronized long fixed() {
        isFixed = true;
        return moment;
    }

    /** Whether it is earlier than another. */
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
