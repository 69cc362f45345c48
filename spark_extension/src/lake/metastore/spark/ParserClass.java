package lake.metastore.spark;

import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.commons.lang3.ClassUtils;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.codehaus.commons.compiler.CompileException;
import org.codehaus.janino.SimpleCompiler;

/**
 * Makes parsers that have all methods of another one, whatever Spark's version, or another extension, adds to them.
 *
 * <p>Java's own proxies would do, but for exceptions: they wrap those that a method doesn't declare, and Scala declares
 * few. So a class is compiled, by the compiler that Spark has for its generated code.
 */
public final class ParserClass {
    /** What each method of such a parser does. */
    public interface Calls {
        /** {@code method}: one of the other parser's interfaces. What is thrown reaches the parser's caller as it is. */
        Object call(Method method, Object[] arguments);
    }

    private static final String NAME = "LakeParser";

    private static final class Compiled {
        final Constructor<?> constructor;
        final Method[] methods;

        Compiled(Constructor<?> constructor, Method[] methods) {
            this.constructor = constructor;
            this.methods = methods;
        }
    }

    /** A session has its own parser; all of them have the same class. */
    private static final ClassValue<Compiled> COMPILED =
            new ClassValue<Compiled>() {
                @Override
                protected Compiled computeValue(Class<?> parser) {
                    return compiled(parser);
                }
            };

    private ParserClass() {}

    /** A parser with the public interfaces of the given one. */
    static ParserInterface like(ParserInterface parser, Calls calls) {
        Compiled made = COMPILED.get(parser.getClass());
        try {
            return (ParserInterface) made.constructor.newInstance(calls, made.methods);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException("no parser can be made", error);
        }
    }

    private static Compiled compiled(Class<?> parser) {
        Set<Class<?>> interfaces = interfaces(parser);
        Map<String, Method> found = new LinkedHashMap<>();
        for (Class<?> each : interfaces) {
            for (Method method : each.getMethods()) {
                if (!Modifier.isStatic(method.getModifiers()) && !method.isBridge()) {
                    found.merge(method.getName() + parameters(method), method, ParserClass::narrower);
                }
            }
        }
        List<Method> methods = new ArrayList<>(found.values());
        SimpleCompiler compiler = new SimpleCompiler();
        compiler.setParentClassLoader(new Loaders(ParserClass.class.getClassLoader(), parser.getClassLoader()));
        try {
            compiler.cook(source(interfaces, methods));
            Class<?> made = compiler.getClassLoader().loadClass(NAME);
            return new Compiled(made.getConstructors()[0], methods.toArray(new Method[0]));
        } catch (CompileException | ClassNotFoundException error) {
            throw new IllegalStateException("no parser can be made like " + parser.getName(), error);
        }
    }

    /** Of two declarations of a method the one that promises more of what it returns. */
    private static Method narrower(Method one, Method other) {
        return one.getReturnType().isAssignableFrom(other.getReturnType()) ? other : one;
    }

    private static String source(Set<Class<?>> interfaces, List<Method> methods) {
        String calls = Calls.class.getCanonicalName();
        String method = Method.class.getCanonicalName();
        String implemented = interfaces.stream().map(Class::getCanonicalName).collect(Collectors.joining(", "));
        StringBuilder text = new StringBuilder("public final class " + NAME + " implements " + implemented + " {\n");
        text.append("private final " + calls + " calls;\nprivate final " + method + "[] methods;\n");
        text.append("public " + NAME + "(" + calls + " calls, " + method + "[] methods) {\n");
        text.append("this.calls = calls;\nthis.methods = methods;\n}\n");
        for (int i = 0; i < methods.size(); i++) {
            text.append(body(methods.get(i), i));
        }
        return text.append("}\n").toString();
    }

    private static String body(Method method, int number) {
        Class<?> returned = method.getReturnType();
        StringBuilder given = new StringBuilder();
        for (int i = 0; i < method.getParameterCount(); i++) {
            given.append(i == 0 ? "" : ", ").append("a").append(i);
        }
        String call = "calls.call(methods[" + number + "], new Object[] {" + given + "})";
        String name = returned.getCanonicalName();
        String boxed = ClassUtils.primitiveToWrapper(returned).getCanonicalName();
        String whole = returned == void.class ? call : "return (" + boxed + ") " + call;
        return "public " + name + " " + method.getName() + parameters(method) + " {\n" + whole + ";\n}\n";
    }

    private static String parameters(Method method) {
        Class<?>[] types = method.getParameterTypes();
        StringBuilder text = new StringBuilder("(");
        for (int i = 0; i < types.length; i++) {
            text.append(i == 0 ? "" : ", ").append(types[i].getCanonicalName()).append(" a").append(i);
        }
        return text.append(")").toString();
    }

    private static Set<Class<?>> interfaces(Class<?> implementation) {
        Set<Class<?>> found = new LinkedHashSet<>();
        found.add(ParserInterface.class);
        for (Class<?> type = implementation; type != null; type = type.getSuperclass()) {
            for (Class<?> implemented : type.getInterfaces()) {
                if (Modifier.isPublic(implemented.getModifiers())) {
                    found.add(implemented);
                }
            }
        }
        return found;
    }

    /** Finds this extension's classes, and those of the parser, which may be another extension's. */
    private static final class Loaders extends ClassLoader {
        private final ClassLoader other;

        Loaders(ClassLoader own, ClassLoader other) {
            super(own);
            this.other = other;
        }

        @Override
        protected Class<?> findClass(String name) throws ClassNotFoundException {
            return other.loadClass(name);
        }
    }
}
