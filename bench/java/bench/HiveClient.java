package bench;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.List;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStoreClient;

/** Hive's own client; times its methods until they have returned, their result decoded. */
public final class HiveClient implements AutoCloseable {
    private final HiveMetaStoreClient client;
    private Object result;

    public HiveClient(String host, int port) throws Exception {
        var configuration = new HiveConf();
        configuration.set("hive.metastore.uris", "thrift://" + host + ":" + port);
        client = new HiveMetaStoreClient(configuration);
    }

    /** Calls the first method of this name that takes such arguments; nanoseconds. */
    public long time(String name, List<?> arguments) throws Throwable {
        for (Method method : HiveMetaStoreClient.class.getMethods()) {
            Object[] fitting = method.getName().equals(name) ? fit(method.getParameterTypes(), arguments) : null;
            if (fitting != null) {
                return time(method, fitting);
            }
        }
        throw new NoSuchMethodException(name + " that takes " + arguments.size() + " such arguments");
    }

    /** What the last call returned. */
    public Object result() {
        return result;
    }

    private long time(Method method, Object[] arguments) throws Throwable {
        result = null;
        try {
            long began = System.nanoTime();
            result = method.invoke(client, arguments);
            return System.nanoTime() - began;
        } catch (InvocationTargetException thrown) {
            throw thrown.getCause();
        }
    }

    /** Numbers come as int or long, whatever the method wants; null if the arguments don't fit. */
    private static Object[] fit(Class<?>[] types, List<?> arguments) {
        if (types.length != arguments.size()) {
            return null;
        }
        var fitting = new Object[types.length];
        for (int place = 0; place < types.length; place++) {
            Object value = arguments.get(place);
            if (value instanceof Number number && types[place].isPrimitive()) {
                if (types[place] == boolean.class) {
                    return null;
                }
                fitting[place] = types[place] == short.class ? (Object) number.shortValue()
                        : types[place] == int.class ? (Object) number.intValue() : (Object) number.longValue();
            } else if (value instanceof Boolean ? types[place] == boolean.class : types[place].isInstance(value)) {
                fitting[place] = value;
            } else {
                return null;
            }
        }
        return fitting;
    }

    @Override
    public void close() {
        client.close();
    }
}
