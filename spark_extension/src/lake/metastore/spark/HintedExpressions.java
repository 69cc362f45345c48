package lake.metastore.spark;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationDef;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationRef;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ResolvedHint;
import org.apache.spark.sql.catalyst.plans.logical.WithCTE;
import scala.collection.immutable.$colon$colon;
import scala.collection.immutable.Nil$;

/**
 * Common table expressions that are read under a hint: those readers get a copy, whose tables the hint holds for; the
 * others keep what they had.
 */
final class HintedExpressions {
    /** Distance from a common table expression's number to its copy's; Spark counts from 0. */
    private static final long COPIES = 1L << 62;

    private final WithCTE plan;
    private final UnaryOperator<LogicalPlan> hinted;
    private final Map<Long, CTERelationDef> definitions = new HashMap<>();
    private final Set<Long> read = new HashSet<>();
    private final Deque<Long> todo = new ArrayDeque<>();

    /** {@code hinted} makes the body of a copy out of that of a common table expression. */
    HintedExpressions(WithCTE plan, UnaryOperator<LogicalPlan> hinted) {
        this.plan = plan;
        this.hinted = hinted;
    }

    static boolean isHinted(LogicalPlan reference) {
        return ((CTERelationRef) reference).cteId() >= COPIES;
    }

    LogicalPlan result() {
        List<CTERelationDef> originals = new ArrayList<>();
        scala.collection.Iterator<?> iterator = ((scala.collection.Iterable<?>) plan.productElement(1)).iterator();
        while (iterator.hasNext()) {
            CTERelationDef definition = (CTERelationDef) iterator.next();
            originals.add(definition);
            definitions.put(definition.id(), definition);
        }
        retarget(plan.plan());
        originals.forEach(this::retarget);
        while (!todo.isEmpty()) {
            long id = todo.remove();
            if (!definitions.containsKey(id + COPIES)) {
                CTERelationDef copy = copy(definitions.get(id));
                definitions.put(copy.id(), copy);
                retarget(copy);
            }
        }
        return read.isEmpty() ? plan : rebuilt(originals);
    }

    private CTERelationDef copy(CTERelationDef definition) {
        Object[] elements = Plans.with(definition, 0, hinted.apply(definition.child()));
        elements[1] = definition.id() + COPIES;
        return (CTERelationDef) definition.makeCopy(elements);
    }

    /** A definition comes after those that it reads. */
    private LogicalPlan rebuilt(List<CTERelationDef> originals) {
        List<LogicalPlan> all = new ArrayList<>();
        for (CTERelationDef definition : originals) {
            all.add(retarget(definition));
            CTERelationDef copy = definitions.get(definition.id() + COPIES);
            if (copy != null && !originals.contains(copy)) {
                all.add(retarget(copy));
            }
        }
        Collections.reverse(all);
        scala.collection.immutable.List<LogicalPlan> list = emptyList();
        for (LogicalPlan definition : all) {
            list = new $colon$colon<>(definition, list);
        }
        return plan.makeCopy(new Object[] {retarget(plan.plan()), list});
    }

    @SuppressWarnings("unchecked")
    private static scala.collection.immutable.List<LogicalPlan> emptyList() {
        return (scala.collection.immutable.List<LogicalPlan>) (Object) Nil$.MODULE$;
    }

    /** The part with its marked readers reading copies; which these are is noted. */
    private LogicalPlan retarget(LogicalPlan part) {
        Scope mark = Scope.markOn(part);
        if (mark != null) {
            LogicalPlan relation = ((ResolvedHint) part).child();
            return mark.includesUncommitted && relation instanceof CTERelationRef
                    ? retarget((ResolvedHint) part, (CTERelationRef) relation)
                    : part;
        }
        return Plans.mapSubqueries(part.mapChildren(this::retarget), this::retarget);
    }

    private LogicalPlan retarget(ResolvedHint marked, CTERelationRef reference) {
        CTERelationDef definition = definitions.get(reference.cteId());
        if (definition == null || !definition.resolved()) {
            return marked; // it belongs further out, or is not known well enough yet
        }
        if (read.add(definition.id())) {
            todo.add(definition.id());
        }
        return reference.makeCopy(Plans.with(reference, 0, definition.id() + COPIES));
    }
}
