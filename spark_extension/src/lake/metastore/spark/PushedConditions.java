package lake.metastore.spark;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownFilters;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.internal.connector.SupportsPushDownCatalystFilters;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;

/**
 * What builds a read from the columns and conditions of a query. Spark evaluates all conditions again: files are only
 * skipped by them.
 */
abstract class PushedConditions {
    StructType required;

    PushedConditions(StructType required) {
        this.required = required;
    }

    /** Takes a condition as Spark 4 gives it. */
    abstract void take(Expression condition);

    /** Takes a condition as Spark 3.5 gives it. */
    abstract void take(Filter condition);

    abstract Scan build();

    /** The same for this version of Spark, which calls one of two interfaces. */
    ScanBuilder builder() {
        return SourceFilters.areGiven(SparkSession.active()) ? new BySourceFilters() : new ByExpressions();
    }

    private class Columns implements ScanBuilder, SupportsPushDownRequiredColumns {
        @Override
        public void pruneColumns(StructType columns) {
            required = columns;
        }

        @Override
        public Scan build() {
            return PushedConditions.this.build();
        }
    }

    private final class ByExpressions extends Columns implements SupportsPushDownCatalystFilters {
        /** Of Spark 3.5, which doesn't call it. */
        public scala.collection.Seq<Expression> pushFilters(scala.collection.Seq<Expression> filters) {
            return filters;
        }

        public scala.collection.immutable.Seq<Expression> pushFilters(
                scala.collection.immutable.Seq<Expression> filters) {
            Plans.elements(filters).forEach(each -> take((Expression) each));
            return filters;
        }

        @Override
        public org.apache.spark.sql.connector.expressions.filter.Predicate[] pushedFilters() {
            return new org.apache.spark.sql.connector.expressions.filter.Predicate[0];
        }
    }

    private final class BySourceFilters extends Columns implements SupportsPushDownFilters {
        @Override
        public Filter[] pushFilters(Filter[] filters) {
            for (Filter each : filters) {
                take(each);
            }
            return filters;
        }

        @Override
        public Filter[] pushedFilters() {
            return new Filter[0];
        }
    }
}
