package lake.metastore.spark;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Requests of Python programs, and answers to them. */
final class Json {
    static final ObjectMapper MAPPER = new ObjectMapper();

    private Json() {}

    static JsonNode parsed(String request) {
        try {
            return MAPPER.readTree(request);
        } catch (JsonProcessingException error) {
            throw new IllegalArgumentException(error);
        }
    }

    /** The text of a field; null for null, and where it isn't there. */
    static String text(JsonNode given, String name) {
        return given.hasNonNull(name) ? given.get(name).asText() : null;
    }

    /** The texts of an array; null for null. */
    static List<String> texts(JsonNode array) {
        if (array == null || array.isNull()) {
            return null;
        }
        List<String> found = new ArrayList<>();
        array.forEach(each -> found.add(each.asText()));
        return found;
    }

    /** The texts of an object's fields, by their names. */
    static Map<String, String> properties(JsonNode object) {
        Map<String, String> found = new HashMap<>();
        object.fields().forEachRemaining(each -> found.put(each.getKey(), each.getValue().asText()));
        return found;
    }
}
