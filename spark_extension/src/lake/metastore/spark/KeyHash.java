package lake.metastore.spark;

import java.nio.charset.StandardCharsets;
import java.util.zip.CRC32;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.unsafe.types.UTF8String;

/** The bucket of a key, as lake/tables/keyed/hashing.py has it: the CRC-32 of its text. */
final class KeyHash {
    private static final byte SEPARATOR = 0x1f;

    private final CRC32 hash = new CRC32();
    private boolean isFirst = true;

    /** The text of a value of a key's column; null for a type that no key has, and for null. */
    static byte[] text(Object value, DataType type) {
        if (value instanceof UTF8String && type instanceof StringType) {
            return ((UTF8String) value).getBytes();
        } else if (value instanceof byte[]) {
            return (byte[]) value;
        } else if (value instanceof Number || value instanceof Boolean) {
            // Dates are days and timestamps microseconds here, too. Keys have no other numbers.
            return String.valueOf(value).getBytes(StandardCharsets.US_ASCII);
        }
        return null;
    }

    /** The text of the key's next column. */
    KeyHash add(byte[] text) {
        if (!isFirst) {
            hash.update(SEPARATOR);
        }
        isFirst = false;
        hash.update(text, 0, text.length);
        return this;
    }

    int bucket(int buckets) {
        return (int) (hash.getValue() % buckets);
    }
}
