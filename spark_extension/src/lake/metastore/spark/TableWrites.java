package lake.metastore.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.distributions.Distributions;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.SortDirection;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.execution.CommandExecutionMode$;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * Writes DataFrames into instants that Python programs have begun, which they complete by themselves: {@code
 * lake.spark.write} and what is made of it. Requests and answers are JSON, see lake/spark/jvm_writer.py.
 */
public final class TableWrites {
    private TableWrites() {}

    /**
     * Writes rows into the buckets of a keyed table.
     *
     * @param rows an analysed plan of the table's columns, in lower case and in their types, and the marks of a feed
     * @return the files, and counts; or as {@code unfit} why the rows can't be written
     */
    public static String keyed(SparkSession session, LogicalPlan rows, String request) {
        JsonNode given = Json.parsed(request);
        List<String> partitions = Json.texts(given.get("partition_columns"));
        Map<String, String> properties = Json.properties(given.get("properties"));
        KeyedTable keyed = KeyedTable.of(properties, partitions);
        BucketWriter.Definition definition =
                new BucketWriter.Definition(
                        given.get("name").asText(), keyed, ColumnNames.of(properties), columns(given.get("columns")));
        JsonNode instant = given.get("instant");
        BucketWriter.Wanted wanted = new BucketWriter.Wanted(given.get("replaces").asBoolean(), false, false, "replace");
        Set<String> updated = given.hasNonNull("updated") ? new LinkedHashSet<>(Json.texts(given.get("updated"))) : null;
        GivenTable table =
                new GivenTable(
                        definition.name,
                        rows.schema(),
                        Distributions.clustered(new Expression[] {PlaceFunction.of(keyed, partitions)}),
                        new SortOrder[] {
                            Expressions.sort(PlaceFunction.of(keyed, partitions), SortDirection.ASCENDING)
                        },
                        columns ->
                                new KeyedWriters(
                                        keyed,
                                        partitions,
                                        BucketWriter.of(
                                                session,
                                                definition,
                                                snapshot(given.get("snapshot")),
                                                target(instant, given),
                                                wanted,
                                                updated),
                                        columns),
                        LakeRowWriter.Written::ofBuckets);
        return written(session, rows, table, instant);
    }

    /**
     * Writes rows as files of a table without a primary key.
     *
     * @param rows an analysed plan of the columns of files, and of the texts of those that partition the table
     * @return as {@link #keyed}
     */
    public static String plain(SparkSession session, LogicalPlan rows, String request) {
        JsonNode given = Json.parsed(request);
        JsonNode instant = given.get("instant");
        List<String> partitions = Json.texts(given.get("partition_columns"));
        Map<String, String> options = Json.properties(given.get("options"));
        StructType stored = columns(given.get("columns"));
        GivenTable table =
                new GivenTable(
                        given.get("name").asText(),
                        rows.schema(),
                        Distributions.unspecified(),
                        PlainWrite.order(partitions),
                        columns ->
                                new PlainWrite.TaskWriters(
                                        PlainRowWriter.Files.given(
                                                session, target(instant, given), partitions, stored, columns, options)),
                        PlainWrite::collected);
        return written(session, rows, table, instant);
    }

    private static String written(SparkSession session, LogicalPlan rows, GivenTable table, JsonNode instant)
            {
        LogicalPlan append =
                StreamRules.PlanRule.byName(
                        DataSourceV2Relation$.MODULE$.create(
                                table, Option.apply(new GivenTable.Functions()), Option.empty()),
                        rows);
        ObjectNode answer = Json.MAPPER.createObjectNode();
        try {
            Catalogs.state(session)
                    .executePlan(append, CommandExecutionMode$.MODULE$.ALL())
                    .commandExecuted();
        } catch (Throwable error) {
            Throwable cause = cause(error);
            if (cause instanceof Errors.UnfitRows) {
                return answer.put("unfit", cause.getMessage()).toString();
            }
            throw Errors.rethrow(cause);
        }
        LakeRowWriter.Written written = table.written();
        Set<String> kept = new HashSet<>();
        written.files.forEach(file -> kept.add(file.path));
        PendingInstant.removeOthers(
                Catalogs.state(session).newHadoopConf(), instant.get("directory").asText(), kept);
        ArrayNode files = answer.putArray("files");
        written.files.forEach(file -> files.add(file.json(Json.MAPPER)));
        answer.put("rows", written.rows);
        answer.set("rows_of", Json.MAPPER.valueToTree(written.rowsOf));
        answer.set("read_groups", Json.MAPPER.valueToTree(written.readGroups));
        Long least = written.leastEventTimes.get(SourceTimes.UNNAMED);
        answer.put("least_event_time", least);
        return answer.toString();
    }

    /** What made a write fail: rows that don't fit if it was that, else what Spark says without "writing job aborted". */
    private static Throwable cause(Throwable error) {
        for (Throwable each = error; each != null; each = each.getCause()) {
            if (each instanceof Errors.UnfitRows) {
                return each;
            }
        }
        boolean isWrapped = String.valueOf(error.getMessage()).toLowerCase(java.util.Locale.ROOT).contains("writing job aborted");
        return isWrapped && error.getCause() != null ? error.getCause() : error;
    }

    private static BucketWriter.Target target(JsonNode instant, JsonNode given) {
        return new BucketWriter.Target(
                instant.get("timestamp").asText(),
                instant.get("directory").asText(),
                instant.get("path").asText(),
                Json.text(given, "event_time"));
    }

    private static LakeTable.Snapshot snapshot(JsonNode given) {
        List<SnapshotFile> files = new ArrayList<>();
        given.get("files").forEach(each -> files.add(new SnapshotFile(each)));
        return new LakeTable.Snapshot(given.get("position").asLong(), given.get("location").asText(), files);
    }

    private static StructType columns(JsonNode given) {
        return ((StructType) DataType.fromJson(given.asText())).asNullable();
    }

    /** Makes the writers of tasks. */
    private static final class KeyedWriters implements DataWriterFactory, Serializable {
        private static final long serialVersionUID = 1;

        private final KeyedTable table;
        private final List<String> partitionColumns;
        private final BucketWriter writer;
        private final LakeRowWriter.Columns columns;

        private KeyedWriters(
                KeyedTable table, List<String> partitionColumns, BucketWriter writer, StructType rows) {
            this.table = table;
            this.partitionColumns = partitionColumns;
            this.writer = writer;
            // The lengths of texts are checked already: the definition needs no marks of CHAR and VARCHAR.
            columns = new LakeRowWriter.Columns(rows, writer.batchSchema(), partitionColumns, rows, true);
        }

        @Override
        public DataWriter<InternalRow> createWriter(int partition, long task) {
            return new LakeRowWriter(table, partitionColumns, writer, columns, columns);
        }
    }
}
