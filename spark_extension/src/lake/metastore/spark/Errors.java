package lake.metastore.spark;

import org.apache.spark.QueryContext;
import org.apache.spark.sql.AnalysisException;
import scala.Option;
import scala.collection.immutable.Map$;

/** Spark's own exceptions, which Java takes for checked ones. */
final class Errors {
    /** Rows can't be written as they are; the message says why. Nothing of them is written. */
    static final class UnfitRows extends RuntimeException {
        private static final long serialVersionUID = 1;

        private UnfitRows(String message) {
            super(message);
        }
    }

    private Errors() {}

    /** The messages are those of the Python writer. */
    static RuntimeException unfitRows(String message) {
        return new UnfitRows(message);
    }

    /** An AnalysisException; it is thrown here, the declared result lets callers write {@code throw}. */
    static RuntimeException analysis(String message) {
        return rethrow(
                new AnalysisException(
                        message,
                        Option.empty(),
                        Option.empty(),
                        Option.empty(),
                        Option.empty(),
                        Map$.MODULE$.empty(),
                        new QueryContext[0]));
    }

    @SuppressWarnings("unchecked")
    static <E extends Throwable> RuntimeException rethrow(Throwable error) throws E {
        throw (E) error;
    }
}
