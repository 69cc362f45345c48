package lake.metastore.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Under which names the files of a table have its columns, as lake/protocol/formats/column_ids.py says. */
final class ColumnNames {
    static final String PROPERTY = "column-ids";
    private static final long NOW = Long.MAX_VALUE;

    /** Each is a list: id, name, and after and up to which position files have it; null is to this day. */
    private final List<JsonNode> names = new ArrayList<>();

    private final Map<Long, Map<String, String>> known = new HashMap<>();

    private ColumnNames() {}

    /** Columns with their names in lower case, all of which may be null. */
    static StructType lower(StructType columns) {
        List<StructField> found = new ArrayList<>();
        for (StructField each : columns.fields()) {
            // Nested fields that are not needed may have been left out of the type.
            found.add(new StructField(each.name().toLowerCase(Locale.ROOT), each.dataType(), true, each.metadata()));
        }
        return new StructType(found.toArray(new StructField[0]));
    }

    static ColumnNames of(Map<String, String> properties) {
        ColumnNames found = new ColumnNames();
        String text = properties.get(PROPERTY);
        try {
            if (text != null) {
                new ObjectMapper().readTree(text).forEach(found.names::add);
            }
        } catch (IOException error) {
            throw Errors.analysis(PROPERTY + " has another form than this version knows: install a later one");
        }
        return found;
    }

    /**
     * The names of columns in files that completed at a position, by today's, as far as they differ. Null is the name of
     * those that the files don't have while they may have another column of that name.
     */
    Map<String, String> inFile(long position) {
        return known.computeIfAbsent(position, this::differing);
    }

    /** The ids of today's columns. {@code columns}: the data columns, whose ids are their places if no other are kept. */
    Map<String, Integer> ids(StructType columns) {
        Map<String, Integer> found = new HashMap<>();
        if (names.isEmpty()) {
            for (int i = 0; i < columns.size(); i++) {
                found.put(columns.apply(i).name(), i + 1);
            }
        }
        byId(NOW).forEach((id, name) -> found.put(name, id));
        return found;
    }

    /** A number that grows whenever columns are added, renamed or dropped. */
    long version(StructType columns) {
        long given = names.stream().filter(each -> !each.get(3).isNull()).count();
        return names.isEmpty() ? columns.size() : names.size() + given;
    }

    private Map<String, String> differing(long position) {
        Map<String, String> found = new HashMap<>();
        Set<String> former = new HashSet<>();
        names.stream().filter(each -> !each.get(3).isNull()).forEach(each -> former.add(each.get(1).asText()));
        if (!former.isEmpty()) {
            Map<Integer, String> then = byId(position);
            byId(NOW).forEach((id, name) -> found.put(name, then.get(id)));
            // What no file has under its name needs no other one.
            found.entrySet()
                    .removeIf(
                            each ->
                                    each.getKey().equals(each.getValue())
                                            || (each.getValue() == null && !former.contains(each.getKey())));
        }
        return found;
    }

    private Map<Integer, String> byId(long position) {
        Map<Integer, String> found = new HashMap<>();
        for (JsonNode each : names) {
            if (each.get(2).asLong() < position && (each.get(3).isNull() || position <= each.get(3).asLong())) {
                found.put(each.get(0).asInt(), each.get(1).asText());
            }
        }
        return found;
    }

    /** Columns under the names of a file. Those that it doesn't have get names that no file has. */
    static StructType in(Map<String, String> file, StructType columns) {
        StructType found = new StructType();
        for (StructField each : columns.fields()) {
            String name = file.getOrDefault(each.name(), each.name());
            String stored = name == null ? "_metastore_absent_" + found.size() : name;
            found = found.add(new StructField(stored, each.dataType(), true, each.metadata()));
        }
        return found;
    }

    /** A type whose fields have no metadata, such as the ids that Parquet's files have. */
    static DataType withoutIds(DataType type) {
        if (type instanceof StructType) {
            StructType found = new StructType();
            for (StructField each : ((StructType) type).fields()) {
                found = found.add(each.name(), withoutIds(each.dataType()), each.nullable());
            }
            return found;
        } else if (type instanceof ArrayType) {
            return new ArrayType(withoutIds(((ArrayType) type).elementType()), ((ArrayType) type).containsNull());
        } else if (type instanceof MapType) {
            MapType map = (MapType) type;
            return new MapType(withoutIds(map.keyType()), withoutIds(map.valueType()), map.valueContainsNull());
        }
        return type;
    }
}
