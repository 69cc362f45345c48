package lake.metastore.spark;

import java.util.Locale;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.HintInfo;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ResolvedHint;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedHint;
import scala.Option;

/**
 * What a hint says about the tables below it: whether uncommitted partitions are seen.
 *
 * <p>As the content of a {@code ResolvedHint} it marks a single relation for which the nearest hint is known, but
 * that can't be acted on yet, or must not be changed by a hint further out. To Spark it is a hint without a strategy.
 */
final class Scope extends HintInfo {
    static final String HINT = "includeUnCommit";

    /** What a mark says that has no hint of its own any more. */
    static final Scope INCLUDING = new Scope(true, null);

    final boolean includesUncommitted;
    /** The hint that says so; null in marks. */
    private final UnresolvedHint hint;

    private Scope(boolean includesUncommitted, UnresolvedHint hint) {
        super(Option.empty());
        this.includesUncommitted = includesUncommitted;
        this.hint = hint;
    }

    static boolean isHint(LogicalPlan plan) {
        return plan instanceof UnresolvedHint && HINT.equalsIgnoreCase(((UnresolvedHint) plan).name());
    }

    /** What a hint says: {@code includeUnCommit} is {@code includeUnCommit(true)}. */
    static Scope of(UnresolvedHint hint) {
        // Parameters are expressions; before Spark 4 those of Dataset.hint are plain values.
        scala.collection.Iterator<?> parameters =
                ((scala.collection.Iterable<?>) hint.productElement(1)).iterator();
        if (!parameters.hasNext()) {
            return new Scope(true, hint);
        }
        Object value = parameters.next();
        if (value instanceof Literal) {
            value = ((Literal) value).value();
        }
        String text = String.valueOf(value).toLowerCase(Locale.ROOT);
        if (parameters.hasNext() || !(text.equals("true") || text.equals("false"))) {
            throw Errors.analysis("the hint " + HINT + " takes true or false");
        }
        return new Scope(text.equals("true"), hint);
    }

    /** The mark on a plan, null if it has none. */
    static Scope markOn(LogicalPlan plan) {
        if (plan instanceof ResolvedHint && ((ResolvedHint) plan).hints() instanceof Scope) {
            return (Scope) ((ResolvedHint) plan).hints();
        }
        return null;
    }

    LogicalPlan mark(LogicalPlan relation) {
        return new ResolvedHint(relation, new Scope(includesUncommitted, null));
    }

    /** The same hint above another plan, which Spark has not begun to analyze. */
    LogicalPlan above(LogicalPlan plan) {
        return hint.makeCopy(new Object[] {hint.productElement(0), hint.productElement(1), plan});
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Scope && ((Scope) other).includesUncommitted == includesUncommitted;
    }

    @Override
    public int hashCode() {
        return Boolean.hashCode(includesUncommitted);
    }

    @Override
    public String toString() {
        return HINT + "=" + includesUncommitted;
    }
}
