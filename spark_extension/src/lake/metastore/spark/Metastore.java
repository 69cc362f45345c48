package lake.metastore.spark;

import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStoreClient;
import org.apache.thrift.TApplicationException;
import org.apache.thrift.TException;
import org.apache.thrift.TServiceClient;
import org.apache.thrift.protocol.TField;
import org.apache.thrift.protocol.TList;
import org.apache.thrift.protocol.TMap;
import org.apache.thrift.protocol.TMessage;
import org.apache.thrift.protocol.TMessageType;
import org.apache.thrift.protocol.TProtocol;
import org.apache.thrift.protocol.TStruct;
import org.apache.thrift.protocol.TType;
import org.apache.thrift.transport.TTransportException;

/**
 * Calls the metastore's own methods, those named {@code lake_…}, over a connection of Hive's client: it connects, logs
 * in and encrypts as Spark's own calls do.
 *
 * <p>Structs are maps from the number of a field to its value, so that no generated classes are needed: numbers are
 * {@code Long}, {@code Integer} and so on, as in thrift_idl/lake_metastore.thrift; texts and binary values are
 * {@code byte[]} in answers.
 */
final class Metastore {
    /** The metastore refused a request; the message is its own. */
    static final class Refused extends RuntimeException {
        private static final long serialVersionUID = 1;

        /** Which of the method's exceptions it is, by the number in its {@code throws}; 0 for another error. */
        final int field;

        Refused(String message, int field) {
            super(message);
            this.field = field;
        }
    }

    /** A request's struct. A null value leaves the field unset. */
    static final class Struct {
        private final Map<Short, Object> fields = new HashMap<>();

        Struct with(int number, Object value) {
            if (value != null) {
                fields.put((short) number, value);
            }
            return this;
        }
    }

    /** An answer's struct. */
    static final class Answer {
        private final Map<Short, Object> fields;

        private Answer(Map<Short, Object> fields) {
            this.fields = fields;
        }

        boolean has(int number) {
            return fields.containsKey((short) number);
        }

        /** A whole number; {@code missing} if the field is unset. */
        long number(int number, long missing) {
            Object value = fields.get((short) number);
            return value == null ? missing : ((Number) value).longValue();
        }

        /** A text; null if the field is unset. */
        String text(int number) {
            return asText(fields.get((short) number));
        }

        /** The structs of a list; empty if the field is unset. */
        List<Answer> structs(int number) {
            List<Answer> found = new ArrayList<>();
            for (Object each : list(number)) {
                found.add((Answer) each);
            }
            return found;
        }

        /** The texts of a list; null if the field is unset. */
        List<String> texts(int number) {
            if (!has(number)) {
                return null;
            }
            List<String> found = new ArrayList<>();
            for (Object each : list(number)) {
                found.add(asText(each));
            }
            return found;
        }

        private List<?> list(int number) {
            Object value = fields.get((short) number);
            return value == null ? new ArrayList<>() : (List<?>) value;
        }

        private static String asText(Object value) {
            return value == null ? null : new String((byte[]) value, StandardCharsets.UTF_8);
        }
    }

    private final HiveConf settings;
    private HiveMetaStoreClient client;
    private int sequence;

    Metastore(Configuration configuration) {
        settings = new HiveConf(configuration, HiveConf.class);
    }

    /** Whether the session names a metastore server at all. */
    static boolean isNamed(Configuration configuration) {
        return !configuration.getTrimmed("hive.metastore.uris", "").isEmpty();
    }

    /** What a method answers to its parameters, structs or plain values: an {@code Answer}, a list, or a plain value. */
    synchronized Object call(String method, Object... parameters) {
        try {
            return tryCall(method, parameters);
        } catch (TTransportException lost) {
            disconnect(); // the server was restarted, or has closed an idle connection
        } catch (TException error) {
            disconnect();
            throw failed(method, error);
        }
        try {
            return tryCall(method, parameters);
        } catch (TException error) {
            disconnect();
            throw failed(method, error);
        }
    }

    private static RuntimeException failed(String method, TException error) {
        return new IllegalStateException("the metastore did not answer " + method + ": " + error.getMessage(), error);
    }

    synchronized void disconnect() {
        if (client != null) {
            client.close();
            client = null;
        }
    }

    private Object tryCall(String method, Object... parameters) throws TException {
        TProtocol out = connected().getOutputProtocol();
        int number = ++sequence;
        out.writeMessageBegin(new TMessage(method, TMessageType.CALL, number));
        Struct arguments = new Struct();
        for (int i = 0; i < parameters.length; i++) {
            arguments.with(i + 1, parameters[i]);
        }
        write(out, arguments);
        out.writeMessageEnd();
        out.getTransport().flush();
        return answer(method, number, connected().getInputProtocol());
    }

    private static Object answer(String method, int number, TProtocol in) throws TException {
        TMessage message = in.readMessageBegin();
        Answer result = readStruct(in);
        in.readMessageEnd();
        if (message.type == TMessageType.EXCEPTION) {
            if (result.number(2, 0) == TApplicationException.UNKNOWN_METHOD) {
                throw new Refused("the metastore has no method " + method + ": it is another or an older server", 0);
            }
            throw new Refused(result.text(1), 0);
        }
        if (message.seqid != number || !message.name.equals(method)) {
            throw new TTransportException("an answer to another request arrived");
        }
        if (result.has(0)) {
            return result.fields.get((short) 0);
        }
        for (Map.Entry<Short, Object> error : result.fields.entrySet()) {
            throw new Refused(((Answer) error.getValue()).text(1), error.getKey());
        }
        return null; // a method without a result
    }

    private TServiceClient connected() throws TException {
        if (client == null) {
            client = new HiveMetaStoreClient(settings);
        }
        try {
            Field field = HiveMetaStoreClient.class.getDeclaredField("client");
            field.setAccessible(true);
            return (TServiceClient) field.get(client);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException("this Hive client keeps its connection elsewhere", error);
        }
    }

    private static void write(TProtocol out, Struct struct) throws TException {
        out.writeStructBegin(new TStruct(""));
        for (Map.Entry<Short, Object> each : struct.fields.entrySet()) {
            out.writeFieldBegin(new TField("", typeOf(each.getValue()), each.getKey()));
            writeValue(out, each.getValue());
            out.writeFieldEnd();
        }
        out.writeFieldStop();
        out.writeStructEnd();
    }

    private static void writeValue(TProtocol out, Object value) throws TException {
        if (value instanceof Struct) {
            write(out, (Struct) value);
        } else if (value instanceof String) {
            out.writeString((String) value);
        } else if (value instanceof byte[]) {
            out.writeBinary(ByteBuffer.wrap((byte[]) value));
        } else if (value instanceof Long) {
            out.writeI64((Long) value);
        } else if (value instanceof Integer) {
            out.writeI32((Integer) value);
        } else if (value instanceof List) {
            List<?> list = (List<?>) value;
            out.writeListBegin(new TList(elementType(list), list.size()));
            for (Object each : list) {
                writeValue(out, each);
            }
            out.writeListEnd();
        } else if (value instanceof Map) {
            Map<?, ?> map = (Map<?, ?>) value;
            out.writeMapBegin(new TMap(TType.STRING, elementType(map.values()), map.size()));
            for (Map.Entry<?, ?> each : map.entrySet()) {
                writeValue(out, each.getKey());
                writeValue(out, each.getValue());
            }
            out.writeMapEnd();
        } else {
            out.writeBool((Boolean) value);
        }
    }

    /** That of the first. Of the lists that may be empty, all are of structs. */
    private static byte elementType(Collection<?> values) {
        return values.isEmpty() ? TType.STRUCT : typeOf(values.iterator().next());
    }

    private static byte typeOf(Object value) {
        if (value instanceof Struct) {
            return TType.STRUCT;
        } else if (value instanceof String || value instanceof byte[]) {
            return TType.STRING;
        } else if (value instanceof Long) {
            return TType.I64;
        } else if (value instanceof Integer) {
            return TType.I32;
        } else if (value instanceof Boolean) {
            return TType.BOOL;
        } else if (value instanceof List) {
            return TType.LIST;
        } else if (value instanceof Map) {
            return TType.MAP;
        }
        throw new IllegalArgumentException("no field has the type " + value.getClass());
    }

    private static Answer readStruct(TProtocol in) throws TException {
        Map<Short, Object> fields = new HashMap<>();
        in.readStructBegin();
        for (TField field = in.readFieldBegin(); field.type != TType.STOP; field = in.readFieldBegin()) {
            fields.put(field.id, read(in, field.type));
            in.readFieldEnd();
        }
        in.readStructEnd();
        return new Answer(fields);
    }

    private static Object read(TProtocol in, byte type) throws TException {
        switch (type) {
            case TType.BOOL:
                return in.readBool();
            case TType.BYTE:
                return in.readByte();
            case TType.DOUBLE:
                return in.readDouble();
            case TType.I16:
                return in.readI16();
            case TType.I32:
                return in.readI32();
            case TType.I64:
                return in.readI64();
            case TType.STRING:
                ByteBuffer bytes = in.readBinary();
                byte[] found = new byte[bytes.remaining()];
                bytes.get(found);
                return found;
            case TType.STRUCT:
                return readStruct(in);
            case TType.LIST:
                return readList(in, in.readListBegin());
            case TType.SET:
                org.apache.thrift.protocol.TSet set = in.readSetBegin();
                return readList(in, new TList(set.elemType, set.size));
            case TType.MAP:
                return readMap(in);
            default:
                throw new TException("no value has the type " + type);
        }
    }

    private static List<Object> readList(TProtocol in, TList list) throws TException {
        List<Object> found = new ArrayList<>();
        for (int i = 0; i < list.size; i++) {
            found.add(read(in, list.elemType));
        }
        return found;
    }

    private static Map<Object, Object> readMap(TProtocol in) throws TException {
        Map<Object, Object> found = new HashMap<>();
        TMap map = in.readMapBegin();
        for (int i = 0; i < map.size; i++) {
            Object key = read(in, map.keyType);
            found.put(key, read(in, map.valueType));
        }
        return found;
    }
}
