package lake.metastore.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.AppendData;
import org.apache.spark.sql.catalyst.plans.logical.AppendData$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import org.apache.spark.sql.catalyst.streaming.WriteToStream;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.execution.datasources.DataSource;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation$;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;
import scala.Tuple2;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** Streams that read and write lake tables by their names: what Spark plans for them, and what is refused. */
final class StreamRules {
    private static final Logger LOG = LoggerFactory.getLogger(StreamRules.class);

    /** Where a plan has its relation, and a relation its columns. */
    private static final int TABLE = 2;

    private static final int OUTPUT = 4;

    /** The file in a checkpoint that says into which table its query writes, as lake/spark/streams/writing.py has it. */
    private static final String CHECKPOINT_MARK = "lake-table.json";

    /** Where Spark's sink of files has its log. */
    private static final String SINK_LOG = "_spark_metadata";

    /** How Spark shows its sink of files. */
    private static final Pattern FILES = Pattern.compile("FileSink\\[(.*)]");

    private StreamRules() {}

    /**
     * Removes the log of Spark's sink of files as it is made, empty. Where it stays, Spark's readers of the directory find
     * no file.
     */
    private static void removeLog(WriteToStream query) {
        Matcher path = FILES.matcher(query.sink().toString());
        if (!path.matches()) {
            return;
        }
        Path log = new Path(path.group(1), SINK_LOG);
        try {
            FileSystem files = log.getFileSystem(Catalogs.state(SparkSession.active()).newHadoopConf());
            if (files.exists(log) && files.listStatus(log).length == 0) {
                files.delete(log, false);
            }
        } catch (IOException error) {
            LOG.warn("{} has to be removed, or Spark finds no file beside it: {}", log, error.getMessage());
        }
    }

    /** Reads lake tables by their timelines, and gives rows that are written the columns of the table. */
    static final class PlanRule extends Rule<LogicalPlan> {
        @Override
        public LogicalPlan apply(LogicalPlan plan) {
            if (plan.getClass().getSimpleName().equals("WriteToMicroBatchDataSource")) {
                return assigned(plan);
            }
            LogicalPlan found = read(plan, true);
            return found instanceof WriteToStream ? intoTimeline((WriteToStream) found) : found;
        }

        /**
         * A query into a table of the session's catalog. Where a thread has no active session, as those that Python starts,
         * Spark looks the table up in its own catalog, and would write files past the timeline.
         */
        private static LogicalPlan intoTimeline(WriteToStream query) {
            CatalogPlugin catalog = Catalogs.sessionCatalog(SparkSession.active());
            boolean isSparks = query.catalogTable().isDefined() && StreamedTable.lakeOf(query.sink()) == null;
            if (!isSparks || !(catalog instanceof LakeCatalog)) {
                return query;
            }
            Identifier name = PlainTable.identifier(query.catalogTable().get().identifier());
            Table table;
            try {
                table = ((LakeCatalog) catalog).loadTable(name);
            } catch (NoSuchTableException gone) {
                throw Errors.rethrow(gone);
            }
            boolean isLake = StreamedTable.lakeOf(table) != null;
            if (!isLake || !table.capabilities().contains(TableCapability.STREAMING_WRITE)) {
                return query;
            }
            Object[] elements = new Object[query.productArity()];
            for (int i = 0; i < elements.length; i++) {
                elements[i] = query.productElement(i) == query.sink() ? table : query.productElement(i);
            }
            removeLog(query);
            // Before the last one, Spark's table.
            elements[elements.length - 2] = Option.apply(new Tuple2<>((TableCatalog) catalog, name));
            return query.makeCopy(elements);
        }

        /** {@code isAlone}: no query has chosen among the relation's columns. */
        private static LogicalPlan read(LogicalPlan plan, boolean isAlone) {
            if (plan instanceof StreamingRelationV2) {
                Table table = ((StreamingRelationV2) plan).table();
                return table instanceof LakeTable
                        ? ofTable((StreamingRelationV2) plan, (LakeTable) table, isAlone)
                        : plan;
            }
            if (plan.getClass().getSimpleName().equals("StreamingRelation")
                    && plan.productElement(0) instanceof DataSource) {
                return ofDirectory(plan, (DataSource) plan.productElement(0));
            }
            boolean isChosen = plan instanceof Project || plan instanceof Aggregate;
            return (LogicalPlan) plan.mapChildren(child -> read(child, isAlone && !isChosen));
        }

        private static LogicalPlan ofTable(StreamingRelationV2 relation, LakeTable table, boolean isAlone) {
            LakeStream stream = LakeStream.of(table, relation.extraOptions());
            Object[] elements = Plans.with(relation, TABLE, stream);
            if (stream.hasChanges) {
                if (!isAlone) {
                    throw Errors.analysis(
                            "changes of " + table.name() + " as a stream have columns of their own: read them by"
                                    + " spark.readStream.option(\"changes\", …).table(…), and select from that");
                }
                elements[OUTPUT] = columns(stream);
            }
            return relation.makeCopy(elements);
        }

        private static Object columns(LakeStream stream) {
            return DataSourceV2Relation$.MODULE$.create(stream, Option.empty(), Option.empty()).productElement(1);
        }

        /** Spark's stream of the files in a table's directory; it stays that for tables without a timeline. */
        private static LogicalPlan ofDirectory(LogicalPlan relation, DataSource source) {
            Option<CatalogTable> definition = source.catalogTable();
            if (definition.isEmpty() || !LakeCatalog.isStreamed(definition.get())) {
                return relation;
            }
            LakeTable table = StreamedTable.lake(definition.get());
            Map<String, String> options = new HashMap<>();
            scala.collection.Iterator<Tuple2<String, String>> given = source.options().iterator();
            while (given.hasNext()) {
                Tuple2<String, String> each = given.next();
                options.put(each._1(), each._2());
            }
            CaseInsensitiveStringMap map = new CaseInsensitiveStringMap(options);
            if (!map.getBoolean(LakeStream.TIMELINE, false) && !table.isStreamedByTimeline()) {
                return relation;
            }
            LakeStream stream = LakeStream.of(table, map);
            Object named = relation.productArity() > 3 ? relation.productElement(3) : null;
            return streaming(stream, map, relation.productElement(2), named);
        }

        /** {@code named}: what Spark 4.2 and later call the source; null elsewhere. */
        private static LogicalPlan streaming(
                LakeStream stream, CaseInsensitiveStringMap options, Object output, Object named) {
            Object[] elements = {
                Option.empty(), stream.name(), stream, options, output, Option.empty(), Option.empty(), Option.empty(), named
            };
            for (Constructor<?> constructor : StreamingRelationV2.class.getConstructors()) {
                try {
                    return (LogicalPlan)
                            constructor.newInstance(Arrays.copyOf(elements, constructor.getParameterCount()));
                } catch (InvocationTargetException error) {
                    throw Errors.rethrow(error.getCause());
                } catch (ReflectiveOperationException error) {
                    throw new IllegalStateException(error);
                }
            }
            throw new IllegalStateException("this Spark makes streams in another way than those that are known");
        }

        /** Assigns the rows of a micro-batch to the table's columns by their names, as an INSERT does. */
        private static LogicalPlan assigned(LogicalPlan write) {
            Object relation = Plans.unwrapped(write.productElement(0));
            LakeTable table = StreamedTable.lakeOf(relation);
            LogicalPlan query = Plans.children(write).get(0);
            if (table == null || !query.resolved() || fits(query.schema(), table.schema())) {
                return write;
            }
            LogicalPlan insert = byName(DataSourceV2Relation$.MODULE$.create(table, Option.empty(), Option.empty()), query);
            LogicalPlan analysed = Catalogs.state(SparkSession.active()).analyzer().execute(insert);
            LogicalPlan rows = analysed instanceof AppendData ? ((AppendData) analysed).query() : query;
            if (!fits(rows.schema(), table.schema())) {
                throw Errors.analysis(
                        "the rows of the stream have not the columns of " + table.name() + ": " + query.schema().simpleString()
                                + " instead of " + table.schema().simpleString());
            }
            return (LogicalPlan) write.mapChildren(child -> rows);
        }

        private static boolean fits(StructType given, StructType wanted) {
            if (given.size() != wanted.size()) {
                return false;
            }
            for (int i = 0; i < given.size(); i++) {
                StructField one = given.apply(i);
                StructField other = wanted.apply(i);
                if (!one.name().equals(other.name())
                        || !one.dataType().asNullable().equals(other.dataType().asNullable())
                        || (one.nullable() && !other.nullable())) {
                    return false;
                }
            }
            return true;
        }

        /** The statement that appends rows to a table by the names of columns. */
        static LogicalPlan byName(DataSourceV2Relation table, LogicalPlan query) {
            // Spark 4.2 has one parameter more: whether the table gets further columns.
            Object[] arguments = {table, query, Catalogs.noOptions(), false};
            for (Method method : AppendData$.class.getMethods()) {
                if (method.getName().equals("byName")) {
                    try {
                        return (LogicalPlan)
                                method.invoke(
                                        AppendData$.MODULE$, Arrays.copyOf(arguments, method.getParameterCount()));
                    } catch (InvocationTargetException error) {
                        throw Errors.rethrow(error.getCause());
                    } catch (ReflectiveOperationException error) {
                        throw new IllegalStateException(error);
                    }
                }
            }
            throw new IllegalStateException("this Spark assigns columns in another way than those that are known");
        }
    }

    /** Refuses queries that would write past a timeline, or into another table than the one of their checkpoint. */
    static final class StartCheck extends AbstractFunction1<LogicalPlan, BoxedUnit> {
        @Override
        public BoxedUnit apply(LogicalPlan plan) {
            Plans.forEach(
                    plan,
                    node -> {
                        if (node instanceof WriteToStream) {
                            check((WriteToStream) node);
                        }
                    });
            return BoxedUnit.UNIT;
        }

        private static void check(WriteToStream query) {
            LakeTable table = StreamedTable.lakeOf(query.sink());
            if (table == null) {
                checkForeign(query);
                return;
            }
            table.checkWritable();
            if (table.keyed == null && query.outputMode().toString().equals("Update")) {
                throw Errors.analysis(
                        table.name() + " has no primary-key, by which rows are updated: use the output mode append or complete");
            }
            try {
                table.lastPosition(); // raises a refusal if another table has the name by now
                if (!query.deleteCheckpointOnStop()) {
                    mark(table, query.resolvedCheckpointLocation());
                }
            } catch (Metastore.Failed failed) {
                throw Errors.analysis(failed.getMessage());
            }
        }

        /** Spark's own sinks: a stream into a directory writes past the timeline of the table that lies there. */
        private static void checkForeign(WriteToStream query) {
            try {
                checkDirectory(query);
            } catch (Throwable refused) {
                removeLog(query);
                throw Errors.rethrow(refused);
            }
        }

        private static void checkDirectory(WriteToStream query) {
            Option<CatalogTable> table = query.catalogTable();
            boolean isKeyed = table.isDefined() && LakeCatalog.keyedTable(table.get()) != null;
            boolean isLake = table.isDefined() && LakeCatalog.isStreamed(table.get());
            if (isKeyed || (isLake && StreamedTable.lake(table.get()).isStreamedByTimeline())) {
                throw Errors.analysis(
                        table.get().identifier().unquotedString()
                                + " is a " + (isKeyed ? "keyed" : "lake") + " table, which this session can't read or write: set"
                                + " spark.sql.catalog.spark_catalog=" + LakeCatalog.class.getName());
            }
            Matcher path = FILES.matcher(query.sink().toString());
            if (path.matches()) {
                LakeRelations.DirectoryCheck.checkPath(new Path(path.group(1)));
            }
        }

        /** Writes down whose checkpoint it is. Refuses that of a query into another table. */
        private static void mark(LakeTable table, String checkpoint) {
            Path path = new Path(checkpoint, CHECKPOINT_MARK);
            try {
                FileSystem files = path.getFileSystem(Catalogs.state(SparkSession.active()).newHadoopConf());
                long known = files.exists(path) ? marked(files, path) : 0;
                if (known != 0 && known != table.tableId()) {
                    throw Errors.analysis(
                            "the checkpoint " + checkpoint + " is of a query into another table (id " + known + ") than "
                                    + table.identifier().unquotedString() + " is now (id " + table.tableId() + "): that one was"
                                    + " dropped or renamed. Start the query with a new checkpoint, so that it writes all of"
                                    + " its rows into the table that is there now");
                }
                if (known == 0) {
                    ObjectNode mark = new ObjectMapper().createObjectNode();
                    mark.put("table", table.tableId()).put("name", table.identifier().unquotedString());
                    try (OutputStream output = files.create(path, true)) {
                        output.write(mark.toString().getBytes("UTF-8"));
                    }
                }
            } catch (IOException error) {
                throw new IllegalStateException("the checkpoint " + checkpoint + " can't be read or written: " + error, error);
            }
        }

        /** The table of a checkpoint; 0 if a process died while it wrote that down. */
        private static long marked(FileSystem files, Path path) throws IOException {
            try (InputStream input = files.open(path)) {
                JsonNode found = new ObjectMapper().readTree(input);
                return found == null ? 0 : found.path("table").asLong(0);
            } catch (com.fasterxml.jackson.core.JsonProcessingException torn) {
                return 0;
            }
        }
    }
}
