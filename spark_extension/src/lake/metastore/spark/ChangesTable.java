package lake.metastore.spark;

import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.function.Predicate;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation$;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.Function1;
import scala.Option;
import scala.Tuple3;

/**
 * The changes of a keyed table between two points of its timeline, which {@code lake_changes('db.t', from, to)} and {@code
 * lake.spark.read(..., incremental=...)} give: the table's columns, {@code _change_type}, {@code _commit_version} and {@code
 * _commit_timestamp}.
 */
final class ChangesTable implements SupportsRead {
    private static final String FUNCTION = "lake_changes";
    static final String VERSION = "_commit_version";
    static final String TIMESTAMP = "_commit_timestamp";

    /** What is told of changes. */
    enum Kind {
        /** Inserted and updated rows, without columns of their own. */
        ROWS,
        /** Net changes. */
        NET,
        /** The changes of each commit by itself. */
        EACH
    }

    final LakeTable table;
    private final ReadPoint after;
    /** Null for the moment of the statement. */
    private final ReadPoint upTo;
    private final Kind kind;
    /** What has been found out already; null to find it out for each query, of the partitions that it needs. */
    private List<ChangedRange> known;

    private ChangesTable(LakeTable table, ReadPoint after, ReadPoint upTo, Kind kind) {
        this.table = table;
        this.after = after;
        this.upTo = upTo;
        this.kind = kind;
    }

    /**
     * The changes of a table that a program describes, which are found out at once. Raises Refused if files of them have been
     * cleaned.
     */
    static LogicalPlan relation(LakeTable table, long after, long upTo, Kind kind) {
        ChangesTable found = new ChangesTable(table, ReadPoint.position(after), ReadPoint.position(upTo), kind);
        found.known = found.ranges(new long[] {after, upTo}, partition -> true);
        return relation(found);
    }

    @SuppressWarnings({"unchecked", "rawtypes"}) // the function's parameter is another Seq in each of Scala's lines
    static void register(SparkSessionExtensions extensions) {
        Function1 builder =
                arguments -> {
                    try {
                        return relation(Plans.elements(arguments));
                    } catch (Exception error) {
                        // Spark adds the place in the statement to an AnalysisException. PySpark 4 then fails to show those
                        // that have no error condition of Spark's.
                        throw error instanceof AnalysisException
                                ? new IllegalArgumentException(error.getMessage())
                                : Errors.rethrow(error);
                    }
                };
        ExpressionInfo about = new ExpressionInfo(ChangesTable.class.getName(), FUNCTION);
        extensions.injectTableFunction(new Tuple3(new FunctionIdentifier(FUNCTION), about, builder));
    }

    private static LogicalPlan relation(List<Object> arguments) {
        if (arguments.size() < 2 || arguments.size() > 3) {
            throw Errors.analysis(
                    FUNCTION + " takes a table's name, the position after which changes are read, and perhaps the"
                            + " last position: " + FUNCTION + "('db.t', 7, 9)");
        }
        Object name = value(arguments.get(0));
        if (name == null) {
            throw Errors.analysis(FUNCTION + ": the first argument is the name of a table, such as 'db.t'");
        }
        LakeTable table = LakeTable.named(name.toString());
        ReadPoint after = point(arguments.get(1));
        if (after == null) {
            throw Errors.analysis(FUNCTION + ": the second argument is the position after which changes are read, 0 for all");
        }
        ReadPoint upTo = arguments.size() == 3 ? point(arguments.get(2)) : null;
        table.checkNotOfEarlierTable(after);
        if (upTo != null) {
            table.checkNotOfEarlierTable(upTo);
        }
        return relation(new ChangesTable(table, after, upTo, Kind.NET));
    }

    private static LogicalPlan relation(ChangesTable changes) {
        return DataSourceV2Relation$.MODULE$.create(changes, Option.empty(), Option.empty());
    }

    private static Object value(Object argument) {
        Expression expression = (Expression) argument;
        if (!expression.foldable()) {
            throw Errors.analysis(FUNCTION + ": " + expression.sql() + " is no constant");
        }
        return expression.eval(null);
    }

    /** A point of the timeline, as VERSION AS OF and TIMESTAMP AS OF take it; null for NULL. */
    private static ReadPoint point(Object argument) {
        Object value = value(argument);
        Object type = ((Expression) argument).dataType();
        if (value == null) {
            return null;
        } else if (type instanceof IntegralType || type instanceof StringType) {
            return ReadPoint.version(value.toString());
        } else if (type instanceof TimestampType) {
            return ReadPoint.time((Long) value);
        }
        throw Errors.analysis(
                FUNCTION + ": " + ((Expression) argument).sql() + " is no position, timestamp of an instant or TIMESTAMP");
    }

    /** A relation of changes, those of uncommitted partitions among them; null for another relation. */
    static LogicalPlan includingUncommitted(LogicalPlan relation) {
        if (!isChanges(relation)) {
            return null;
        }
        ChangesTable changes = (ChangesTable) ((DataSourceV2Relation) relation).table();
        LakeTable including = changes.table.includingUncommitted();
        if (including == changes.table) {
            return relation;
        }
        ChangesTable all = new ChangesTable(including, changes.after, changes.upTo, changes.kind);
        return relation.makeCopy(Plans.with((DataSourceV2Relation) relation, 0, all));
    }

    static boolean isChanges(LogicalPlan relation) {
        return relation instanceof DataSourceV2Relation
                && ((DataSourceV2Relation) relation).table() instanceof ChangesTable;
    }

    /** The positions after which and up to which changes are read. Raises Failed. */
    long[] ends() {
        return new long[] {table.positionOf(after), upTo == null ? table.position() : table.positionOf(upTo)};
    }

    /** What happened in some partitions. {@code ends}: as of {@link #ends}. Raises Failed. */
    List<ChangedRange> ranges(long[] ends, Predicate<String> isWanted) {
        if (known != null) {
            return known;
        }
        if (ends[0] > ends[1]) {
            throw Errors.analysis(
                    table.name() + ": position " + ends[0] + " is not before position " + ends[1] + ", the end of the range");
        }
        if (!table.isPinned()) {
            table.keepChanges(ends[0]);
        }
        return kind == Kind.EACH
                ? ChangedRange.ofEachCommit(table, ends[0], ends[1], isWanted)
                : Collections.singletonList(ChangedRange.of(table, ends[0], ends[1], isWanted));
    }

    @Override
    public String name() {
        return FUNCTION + " of " + table.name();
    }

    @Override
    public StructType schema() {
        return kind == Kind.ROWS ? table.schema() : schema(table);
    }

    /** The columns of a table's changes. */
    static StructType schema(LakeTable table) {
        for (String column : table.schema().fieldNames()) {
            if (Arrays.asList(Changes.CHANGE_TYPE, VERSION, TIMESTAMP).contains(column.toLowerCase(Locale.ROOT))) {
                throw Errors.analysis(
                        table.name() + " has a column " + column + ", which its changes have, too: rename it to read these");
            }
        }
        return table.schema()
                .add(Changes.CHANGE_TYPE, DataTypes.StringType, false)
                .add(VERSION, DataTypes.LongType, false)
                .add(TIMESTAMP, DataTypes.TimestampType, false);
    }

    @Override
    public Set<TableCapability> capabilities() {
        return Collections.singleton(TableCapability.BATCH_READ);
    }

    Kind kind() {
        return kind;
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
        return ChangesScan.of(this);
    }
}
