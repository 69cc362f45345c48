package lake.metastore.spark;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.lang.reflect.UndeclaredThrowableException;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.security.PrivilegedExceptionAction;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedDeque;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStoreClient;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.SparkSession;
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
 * Calls the metastore's own methods, those named {@code lake_…}, over connections of Hive's client: they connect, log
 * in and encrypt as Spark's own calls do. Threads share it.
 *
 * <p>Structs are maps from the number of a field to its value, so that no generated classes are needed: numbers are
 * {@code Long}, {@code Integer} and so on, as in thrift_idl/lake_metastore.thrift; texts and binary values are
 * {@code byte[]} in answers.
 */
final class Metastore {
    private static final String URIS = "hive.metastore.uris";

    /** A call failed; the message says why. */
    abstract static class Failed extends RuntimeException {
        private static final long serialVersionUID = 1;

        private Failed(String message, Throwable cause) {
            super(message, cause);
        }
    }

    /** No answer came. */
    static final class NoAnswer extends Failed {
        private static final long serialVersionUID = 1;

        /** Whether the request left, so that the server may have done what it says. */
        final boolean wasSent;

        private NoAnswer(String message, boolean wasSent, Throwable cause) {
            super(message, cause);
            this.wasSent = wasSent;
        }
    }

    /** The metastore refused a request; the message is its own. */
    static final class Refused extends Failed {
        private static final long serialVersionUID = 1;

        /** The value of {@link #field} if the metastore doesn't know the method. */
        static final int NO_METHOD = -1;

        /** Which of the method's exceptions it is, by the number in its {@code throws}; 0 for another error. */
        final int field;
        /** Null, as its exception is, where the metastore has declared none. */
        final String method;
        private final Answer exception;

        Refused(String message, int field) {
            super(message, null);
            this.field = field;
            method = null;
            exception = null;
        }

        private Refused(String method, int field, Answer exception) {
            super(exception.text(1), null);
            this.field = field;
            this.method = method;
            this.exception = exception;
        }

        /** The texts and numbers of the exception, by their fields. */
        Map<Short, Object> values() {
            Map<Short, Object> found = new HashMap<>();
            exception.fields.forEach(
                    (number, value) -> {
                        if (value instanceof byte[] || value instanceof Number) {
                            found.put(number, value instanceof Number ? value : Answer.asText(value));
                        }
                    });
            return found;
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

        boolean has(int number) {
            return fields.containsKey((short) number);
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

        /** Whether a flag is set. */
        boolean flag(int number) {
            return Boolean.TRUE.equals(fields.get((short) number));
        }

        /** A text; null if the field is unset. */
        String text(int number) {
            return asText(fields.get((short) number));
        }

        /** A struct in it; null if the field is unset. */
        Answer struct(int number) {
            return (Answer) fields.get((short) number);
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

    /** A connection of Hive's client, for one call at a time. */
    private static final class Connection {
        private final TServiceClient client;
        private int sequence;

        private Connection(HiveConf settings) throws TException {
            HiveMetaStoreClient opened = new HiveMetaStoreClient(settings);
            try {
                Field field = HiveMetaStoreClient.class.getDeclaredField("client");
                field.setAccessible(true);
                client = (TServiceClient) field.get(opened);
            } catch (ReflectiveOperationException error) {
                throw new IllegalStateException("this Hive client keeps its connection elsewhere", error);
            }
        }

        private Object call(String method, Object... parameters) throws TException {
            TProtocol out = client.getOutputProtocol();
            int number = ++sequence;
            out.writeMessageBegin(new TMessage(method, TMessageType.CALL, number));
            Struct arguments = new Struct();
            for (int i = 0; i < parameters.length; i++) {
                arguments.with(i + 1, parameters[i]);
            }
            write(out, arguments);
            out.writeMessageEnd();
            out.getTransport().flush();
            return answer(method, number, client.getInputProtocol());
        }

        private void close() {
            client.getInputProtocol().getTransport().close();
        }
    }

    /** Connections are kept when they aren't used, up to this number. */
    private static final int MOST_IDLE = 4;

    /** By application, settings and user. */
    private static final Map<List<Object>, Metastore> OPEN = new HashMap<>();

    private final HiveConf settings;
    private final SparkContext context;
    private final ReaderLeases leases;
    /** No call waits for a connection that another one uses: a server may be slow to answer, or hang. */
    private final Deque<Connection> idle = new ConcurrentLinkedDeque<>();
    /** As whom connections are opened, by threads of the extension, too. */
    private volatile UserGroupInformation user;

    private Metastore(Configuration configuration, SparkContext context) {
        this.settings = new HiveConf(configuration, HiveConf.class);
        this.context = context;
        this.leases = new ReaderLeases(this, context);
    }

    /**
     * The metastore of a session. Sessions of an application share it if they have the same settings of the metastore and
     * the same user. Null if the session names no metastore server.
     */
    static Metastore of(SparkSession session) {
        return shared(session, Catalogs.state(session).newHadoopConf());
    }

    /** A metastore by its URI, or several with commas, with the other settings of a session. */
    static Metastore at(SparkSession session, String uri) {
        Configuration configuration = Catalogs.state(session).newHadoopConf();
        configuration.set(URIS, uri);
        return shared(session, configuration);
    }

    private static Metastore shared(SparkSession session, Configuration configuration) {
        if (configuration.getTrimmed(URIS, "").isEmpty()) {
            return null;
        }
        UserGroupInformation user;
        try {
            user = UserGroupInformation.getCurrentUser();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        List<Object> key =
                Arrays.asList(
                        session.sparkContext(),
                        new HashMap<>(configuration.getPropsWithPrefix("hive.metastore.")),
                        user.toString());
        synchronized (OPEN) {
            OPEN.values().removeIf(Metastore::isOver);
            Metastore found =
                    OPEN.computeIfAbsent(key, missing -> new Metastore(configuration, session.sparkContext()));
            found.user = user; // its tickets or tokens may be newer
            return found;
        }
    }

    private boolean isOver() {
        if (context.isStopped()) {
            disconnect();
        }
        return context.isStopped();
    }

    /** The leases on what the sessions have read. */
    ReaderLeases leases() {
        return leases;
    }

    /**
     * What a method answers to its parameters, structs or plain values: an {@code Answer}, a list, or a plain value. Raises
     * Refused and NoAnswer.
     *
     * <p>The method must only read, or change nothing when it is called twice: a request is repeated if the connection
     * turns out to be closed.
     */
    Object call(String method, Object... parameters) {
        Connection kept = idle.poll();
        if (kept != null) {
            try {
                return answer(kept, method, parameters);
            } catch (NoAnswer lost) {
                if (isTimeout(lost)) {
                    throw lost;
                }
                disconnect(); // the server was restarted, or has closed idle connections
            }
        }
        return answer(connected(method), method, parameters);
    }

    /** The same for methods that must not be called twice: a request is never repeated once it may have been sent. */
    Object callOnce(String method, Object... parameters) {
        Connection kept = idle.poll();
        if (kept != null) {
            try {
                kept.call("getName"); // shows whether the connection is closed
            } catch (TException | Refused closed) {
                kept.close();
                disconnect();
                kept = null;
            }
        }
        return answer(kept == null ? connected(method) : kept, method, parameters);
    }

    private Object answer(Connection connection, String method, Object... parameters) {
        boolean isUsable = false;
        try {
            Object found = connection.call(method, parameters);
            isUsable = true;
            return found;
        } catch (Refused refused) {
            isUsable = true;
            throw refused;
        } catch (TException error) {
            throw noAnswer(method, true, error);
        } finally {
            if (isUsable && idle.size() < MOST_IDLE) {
                idle.push(connection);
            } else {
                connection.close();
            }
        }
    }

    private Connection connected(String method) {
        try {
            return user.doAs((PrivilegedExceptionAction<Connection>) () -> new Connection(settings));
        } catch (IOException | UndeclaredThrowableException error) {
            throw noAnswer(method, false, error.getCause() == null ? error : error.getCause());
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw noAnswer(method, false, error);
        }
    }

    private NoAnswer noAnswer(String method, boolean wasSent, Throwable error) {
        // Hive's client puts traces into messages, and names of exceptions; Thrift says nothing of the end of a stream.
        String text = error.getMessage() == null ? "the connection was closed" : error.getMessage();
        String cause = text.split("\n", 2)[0].replaceAll("[\\w.]+Exception: ", "").trim();
        String message =
                "the metastore at " + settings.get(URIS) + " did not answer " + method + " (" + cause
                        + "): look whether it runs, and whether spark.hadoop." + URIS + " names it";
        return new NoAnswer(message, wasSent, error);
    }

    private static boolean isTimeout(Throwable error) {
        for (Throwable each = error; each != null; each = each.getCause()) {
            if (each instanceof SocketTimeoutException) {
                return true;
            }
        }
        return false;
    }

    /** Closes the connections that no call uses. */
    void disconnect() {
        for (Connection each = idle.poll(); each != null; each = idle.poll()) {
            each.close();
        }
    }

    private static Object answer(String method, int number, TProtocol in) throws TException {
        TMessage message = in.readMessageBegin();
        Answer result = readStruct(in);
        in.readMessageEnd();
        if (message.type == TMessageType.EXCEPTION) {
            if (result.number(2, 0) == TApplicationException.UNKNOWN_METHOD) {
                throw new Refused("the metastore has no method " + method + ": it is another or an older server", Refused.NO_METHOD);
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
            throw new Refused(method, error.getKey(), (Answer) error.getValue());
        }
        return null; // a method without a result
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
