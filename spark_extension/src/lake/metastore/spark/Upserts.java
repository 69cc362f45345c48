package lake.metastore.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.util.CharVarcharUtils;
import org.apache.spark.sql.types.AtomicType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.Product;

/**
 * A MERGE that gives each row of its source to the row of its key, or inserts it: {@code ON} the whole key, {@code WHEN
 * MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *}. The writer does that for each key by itself, so such a statement
 * becomes an INSERT, and reads no row of the table to join it with the source.
 *
 * <p>It is told as it is parsed: later, Spark 4.1 and newer have rewritten it before our rules see it.
 */
final class Upserts {
    /** The name that the source's rows have in the INSERT. */
    private static final String MERGED = "lake_merged_rows";

    /** Types of which two values are equal where they are the same. */
    private static final Set<DataType> EXACT =
            new HashSet<>(
                    Arrays.asList(
                            DataTypes.BooleanType,
                            DataTypes.ByteType,
                            DataTypes.ShortType,
                            DataTypes.IntegerType,
                            DataTypes.LongType,
                            DataTypes.StringType,
                            DataTypes.BinaryType,
                            DataTypes.DateType,
                            DataTypes.TimestampType,
                            DataTypes.TimestampNTZType));

    private Upserts() {}

    /** The INSERT for a parsed MERGE; the MERGE itself if it needs more than the keys. */
    static LogicalPlan prepared(LogicalPlan merge, ParserInterface parser) {
        LogicalPlan source = (LogicalPlan) merge.productElement(1);
        boolean isWhole =
                isOne(merge.productElement(3), "UpdateStarAction")
                        && isOne(merge.productElement(4), "InsertStarAction")
                        && Plans.elements(merge.productElement(5)).isEmpty()
                        && (merge.productArity() < 7 || merge.productElement(6).equals(false));
        LogicalPlan relation = relation(merge.productElement(0));
        LakeTable table = isWhole && isStrict() ? Inserts.keyed(relation) : null;
        if (table == null || !table.keyed.takesUpdates()) {
            return merge;
        }
        Set<String> key = new HashSet<>(table.keyed.key);
        if (!table.keyed.isTableWide) {
            key.addAll(table.keyed.partitionColumns);
        }
        String target = name((LogicalPlan) merge.productElement(0));
        if (!key.equals(equated((Expression) merge.productElement(2), target, name(source)))
                || !hasColumns(source, table, key)) {
            return merge;
        }
        String columns = String.join(", ", Catalogs.quoted(table.schema().fieldNames()));
        String rows = "SELECT " + columns + " FROM lake_given_rows AS " + MERGED;
        try {
            String name = String.join(".", Catalogs.quoted(Inserts.texts(relation.productElement(0)).toArray(new String[0])));
            LogicalPlan insert = parser.parsePlan("INSERT INTO " + name + " SELECT 1");
            LogicalPlan query = Plans.withRelation(parser.parsePlan(rows), source);
            return insert.mapChildren(child -> query);
        } catch (ParseException error) {
            throw Errors.rethrow(error);
        }
    }

    /** Whether the rows of an INSERT are those of such a MERGE. */
    static boolean isUpsert(LogicalPlan query) {
        return Inserts.isOf(query, MERGED);
    }

    /** Whether values are assigned by the rules of ANSI or stricter ones, which an INSERT of such tables needs. */
    private static boolean isStrict() {
        String policy = SparkSession.active().conf().get("spark.sql.storeAssignmentPolicy", "ANSI");
        return !policy.equalsIgnoreCase("LEGACY");
    }

    /** Whether there is one clause, without a condition. */
    private static boolean isOne(Object clauses, String kind) {
        List<Object> found = Plans.elements(clauses);
        return found.size() == 1
                && found.get(0).getClass().getSimpleName().equals(kind)
                && ((Product) found.get(0)).productElement(0).equals(Option.empty());
    }

    private static LogicalPlan relation(Object plan) {
        return plan instanceof SubqueryAlias ? ((SubqueryAlias) plan).child() : (LogicalPlan) plan;
    }

    /** By what a condition names the columns of a relation, in lower case; empty where that isn't one word. */
    private static String name(LogicalPlan plan) {
        if (plan instanceof SubqueryAlias) {
            return ((SubqueryAlias) plan).alias().toLowerCase(Locale.ROOT);
        }
        if (!(plan instanceof UnresolvedRelation)) {
            return "";
        }
        List<Object> parts = Plans.elements(plan.productElement(0));
        return ((String) parts.get(parts.size() - 1)).toLowerCase(Locale.ROOT);
    }

    /** The columns that are the same on both sides, by a condition that says nothing else; null if it does. */
    private static Set<String> equated(Expression condition, String target, String source) {
        Set<String> found = new HashSet<>();
        List<Expression> left = new ArrayList<>();
        left.add(condition);
        while (!left.isEmpty()) {
            Expression each = left.remove(left.size() - 1);
            if (each instanceof And) {
                left.add(((And) each).left());
                left.add(((And) each).right());
                continue;
            }
            if (!(each instanceof EqualTo)) {
                return null;
            }
            String[] one = parts(((EqualTo) each).left());
            String[] other = parts(((EqualTo) each).right());
            boolean isOfBoth =
                    one != null
                            && other != null
                            && !target.equals(source)
                            && one[1].equals(other[1])
                            && new HashSet<>(Arrays.asList(target, source))
                                    .equals(new HashSet<>(Arrays.asList(one[0], other[0])));
            if (!isOfBoth) {
                return null;
            }
            found.add(one[1]);
        }
        return found;
    }

    /** The name of a relation and that of its column, in lower case; null for any other expression. */
    private static String[] parts(Expression expression) {
        if (!(expression instanceof UnresolvedAttribute)) {
            return null;
        }
        List<Object> parts = Plans.elements(((UnresolvedAttribute) expression).productElement(0));
        return parts.size() == 2
                ? parts.stream().map(each -> ((String) each).toLowerCase(Locale.ROOT)).toArray(String[]::new)
                : null;
    }

    /**
     * Whether the source has each of the table's columns once, those of the key with the same type, so that the values which
     * are compared are those which are written. Columns with parts have the same types, too: an INSERT takes parts by their
     * places, a MERGE by their names.
     */
    private static boolean hasColumns(LogicalPlan source, LakeTable table, Set<String> key) {
        StructType given = schema(source);
        if (given == null) {
            return false;
        }
        for (StructField column : table.definition.v1Table().schema().fields()) {
            StructField found = null;
            for (StructField each : given.fields()) {
                if (each.name().equalsIgnoreCase(column.name())) {
                    if (found != null) {
                        return false;
                    }
                    found = each;
                }
            }
            boolean isKey = key.contains(column.name().toLowerCase(Locale.ROOT));
            boolean isSame = found != null && found.dataType().equals(column.dataType());
            boolean isExact = EXACT.contains(column.dataType()) || column.dataType() instanceof DecimalType;
            boolean hasLength = CharVarcharUtils.getRawType(column.metadata()).isDefined();
            boolean isFit = isKey ? isSame && isExact && !hasLength : isSame || column.dataType() instanceof AtomicType;
            if (found == null || !isFit) {
                return false;
            }
        }
        return true;
    }

    /** The columns of a parsed query; null if Spark can't tell them yet. */
    private static StructType schema(LogicalPlan query) {
        LogicalPlan analysed;
        try {
            analysed = Catalogs.state(SparkSession.active()).analyzer().execute(query);
        } catch (Exception error) {
            return null; // as the statement itself will say
        }
        return analysed.resolved() ? analysed.schema() : null;
    }
}
