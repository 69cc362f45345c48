package lake.metastore.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.DeltaWriteBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsDelta;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** An UPDATE, DELETE or MERGE of a keyed table: Spark finds the rows, which are deleted and inserted by their keys. */
final class RowChanges implements SupportsDelta {
    private LakeTable table;
    private final Command command;

    RowChanges(LakeTable table, Command command) {
        this.table = table;
        this.command = command;
    }

    /** Why rows of a table can't be deleted. */
    static String noDeletes(LakeTable table) {
        return table.name() + " takes no deletes, by its " + engine(table);
    }

    /** Refuses a statement that the table's merge engine would not obey. {@code kind}: the name of its class. */
    static void check(LogicalPlan statement, String kind, LakeTable table) {
        if (has(statement, kind, "Update") && !table.keyed.takesUpdates()) {
            throw Errors.analysis(noUpdates(table));
        }
        if (has(statement, kind, "Delete") && !table.keyed.takesDeletes()) {
            throw Errors.analysis(noDeletes(table));
        }
    }

    /** The same for Spark 4.1 and later, which rewrites statements before our rules see them. */
    static void check(Command command, LakeTable table) {
        if (command == Command.UPDATE && !table.keyed.takesUpdates()) {
            throw Errors.analysis(noUpdates(table));
        }
        if (command == Command.DELETE && !table.keyed.takesDeletes()) {
            throw Errors.analysis(noDeletes(table));
        }
    }

    private static String noUpdates(LakeTable table) {
        return table.name() + " can't be updated, by its " + engine(table)
                + ": INSERT the key and what is to be merged into its row";
    }

    private static String engine(LakeTable table) {
        return "merge-engine=" + table.keyed.engine + (table.keyed.ignoresDeletes ? " and ignore-delete=true" : "");
    }

    /** Whether a statement is of a kind, or a MERGE with such a clause. */
    private static boolean has(LogicalPlan statement, String kind, String action) {
        if (kind.startsWith(action)) {
            return true;
        }
        if (!kind.startsWith("Merge")) {
            return false;
        }
        for (int i = 0; i < statement.productArity(); i++) {
            for (Object clause : Plans.elements(statement.productElement(i))) {
                if (clause.getClass().getSimpleName().startsWith(action)) {
                    return true;
                }
            }
        }
        return false;
    }

    LakeTable table() {
        return table;
    }

    /** What the statement has read of the table. */
    void readAs(LakeTable read) {
        if (read != table) {
            table = table.readByItsWriter(read);
        }
    }

    @Override
    public Command command() {
        return command;
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
        return table.newScanBuilder(options);
    }

    @Override
    public DeltaWriteBuilder newWriteBuilder(LogicalWriteInfo info) {
        return new LakeWrite.Builder(table, info, command == Command.DELETE ? "delete" : "merge");
    }

    /** What a delete must say: the row's key and place, and the version that it deletes. */
    @Override
    public NamedReference[] rowId() {
        List<String> names = new ArrayList<>(table.keyed.key);
        names.addAll(table.partitionColumns());
        names.addAll(table.keyed.sequence);
        String[] quoted = Catalogs.quoted(table.spelled(names).toArray(new String[0]));
        return Arrays.stream(quoted).map(Expressions::column).toArray(NamedReference[]::new);
    }

    /** The new row may belong into another bucket. */
    @Override
    public boolean representUpdateAsDeleteAndInsert() {
        return true;
    }
}
