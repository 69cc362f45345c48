package lake.metastore.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.V1Table;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.Option;

/**
 * What lake/spark/keyed/extension.py calls. Requests and answers are JSON objects, as they are made there.
 *
 * <p>A request describes the table: it may be one of another metastore than the session's, and it is the one table that has
 * the id. Which position is read, and a lease on that, is the caller's business.
 */
public final class PythonReads {
    private PythonReads() {}

    /** The rows of a keyed table at a position. */
    public static Dataset<Row> rows(SparkSession session, String request) {
        JsonNode given = Json.parsed(request);
        return session.withActive(
                () -> {
                    LakeTable table = table(session, given);
                    table.decided();
                    LogicalPlan relation =
                            DataSourceV2Relation$.MODULE$.create(table, Option.empty(), Option.empty());
                    return Catalogs.dataset(session, relation);
                });
    }

    /** The changes of a keyed table up to its position. */
    public static Dataset<Row> changes(SparkSession session, String request) {
        JsonNode given = Json.parsed(request);
        return session.withActive(
                () -> {
                    LogicalPlan relation =
                            ChangesTable.relation(
                                    table(session, given),
                                    given.get("after").asLong(),
                                    given.get("position").asLong(),
                                    ChangesTable.Kind.valueOf(given.get("kind").asText()));
                    return Catalogs.dataset(session, relation);
                });
    }

    /**
     * The rows of a query in SQL, all of whose tables are read as of one moment or time, or the latest moment; null for
     * another statement.
     */
    public static Dataset<Row> query(SparkSession session, String request) {
        JsonNode given = Json.parsed(request);
        ReadPoint point =
                given.hasNonNull("moment")
                        ? ReadPoint.moment(given.get("moment").asLong())
                        : given.hasNonNull("micros") ? ReadPoint.time(given.get("micros").asLong()) : ReadPoint.LATEST;
        boolean includesUncommitted = given.get("uncommitted").asBoolean();
        return session.withActive(
                () -> QueryScope.rows(session, given.get("text").asText(), point, includesUncommitted));
    }

    /** Merges the files of a plan's buckets. Answers the new files. */
    public static String compact(SparkSession session, String request) {
        JsonNode given = Json.parsed(request);
        BucketWriter.Target target =
                new BucketWriter.Target(
                        given.get("instant").asText(), given.get("directory").asText(), given.get("path").asText(), null);
        Set<List<String>> planned = new HashSet<>();
        given.get("buckets").forEach(each -> planned.add(Json.texts(each)));
        List<WrittenFile> files =
                session.withActive(
                        () -> {
                            LakeTable table = table(session, given);
                            return Compaction.merged(session, table, table.decided(), target, planned);
                        });
        ArrayNode answer = Json.MAPPER.createArrayNode();
        files.forEach(each -> answer.add(each.json(Json.MAPPER)));
        return answer.toString();
    }

    /** By which of its exceptions the metastore has refused a call; null for another error. */
    public static String refusal(Throwable error) {
        if (!(error instanceof Metastore.Refused) || ((Metastore.Refused) error).method == null) {
            return null;
        }
        Metastore.Refused refused = (Metastore.Refused) error;
        ObjectNode answer = Json.MAPPER.createObjectNode();
        answer.put("method", refused.method);
        answer.put("field", refused.field);
        answer.set("values", Json.MAPPER.valueToTree(refused.values()));
        return answer.toString();
    }

    private static LakeTable table(SparkSession session, JsonNode given) {
        StructType columns = (StructType) DataType.fromJson(given.get("columns").toString());
        List<String> keys = Json.texts(given.get("keys"));
        Map<String, String> properties = Json.properties(given.get("properties"));
        TableIdentifier name =
                new TableIdentifier(given.get("table").asText(), Option.apply(given.get("database").asText()));
        Selection selection =
                new Selection(
                        Json.text(given, "filter"),
                        Json.texts(given.get("partitions")),
                        given.hasNonNull("groups") ? new HashSet<>(Json.texts(given.get("groups"))) : null,
                        given.path("base_files").asBoolean(),
                        true,
                        given.path("is_latest").asBoolean());
        return LakeTable.described(
                Metastore.at(session, given.get("uri").asText()),
                new V1Table(Catalogs.described(name, columns, keys, properties)),
                KeyedTable.of(properties, keys),
                given.get("id").asLong(),
                Json.text(given, "catalog"),
                given.get("position").asLong(),
                given.get("uncommitted").asBoolean() || Relations.isDecorated(name),
                selection);
    }
}
