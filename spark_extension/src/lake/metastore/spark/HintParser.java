package lake.metastore.spark;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/**
 * A parser that also takes {@code includeUnCommit=true} for {@code includeUnCommit(true)}, which Spark's grammar of
 * hints has no place for.
 */
final class HintParser {
    private static final Pattern EQUALS =
            Pattern.compile("\\b(" + Scope.HINT + ")\\s*=\\s*(true|false)\\b", Pattern.CASE_INSENSITIVE);

    /** What a MERGE that becomes an INSERT has, too. */
    private static final Pattern INSERT = Pattern.compile("\\bINSERT\\b", Pattern.CASE_INSENSITIVE);

    private HintParser() {}

    static ParserInterface wrap(ParserInterface parser) {
        return ParserClass.like(parser, (method, arguments) -> called(parser, method, arguments));
    }

    private static Object called(ParserInterface parser, Method method, Object[] arguments) {
        if (arguments.length > 0 && arguments[0] instanceof String) {
            arguments[0] = rewrite((String) arguments[0]);
        }
        boolean isPlan = method.getName().startsWith("parsePlan");
        if (isPlan) {
            LogicalPlan call = Procedures.parsed((String) arguments[0], parser);
            if (call != null) {
                return call;
            }
            String history = MetadataTable.historyQuery((String) arguments[0], parser);
            arguments[0] = history == null ? arguments[0] : history;
        }
        try {
            Object parsed = method.invoke(parser, arguments);
            return isPlan && INSERT.matcher((String) arguments[0]).find()
                    ? Inserts.prepared((LogicalPlan) parsed, parser)
                    : parsed;
        } catch (InvocationTargetException error) {
            throw HintParser.<RuntimeException>as(error.getCause());
        } catch (IllegalAccessException error) {
            throw new IllegalStateException(error);
        }
    }

    /** Throws an exception that Java wants declared, and Scala doesn't. */
    @SuppressWarnings("unchecked")
    private static <E extends Throwable> E as(Throwable error) throws E {
        throw (E) error;
    }

    /** The statement with such hints in the form that Spark knows; strings and comments stay as they are. */
    static String rewrite(String statement) {
        if (!EQUALS.matcher(statement).find()) {
            return statement;
        }
        StringBuilder rewritten = new StringBuilder();
        int start = 0;
        while (start < statement.length()) {
            int end = tokenEnd(statement, start);
            String token = statement.substring(start, end);
            rewritten.append(token.startsWith("/*+") ? EQUALS.matcher(token).replaceAll("$1($2)") : token);
            start = end;
        }
        return rewritten.toString();
    }

    /** Where a quoted text or a comment ends that begins at {@code start}; any other character is by itself. */
    private static int tokenEnd(String text, int start) {
        char first = text.charAt(start);
        if (first == '\'' || first == '"' || first == '`') {
            return quotedEnd(text, start, first != '`' && !isRaw(text, start));
        }
        if (text.startsWith("--", start)) {
            return found(text, text.indexOf('\n', start), 1);
        }
        if (text.startsWith("/*", start)) {
            return found(text, text.indexOf("*/", start + 2), 2);
        }
        return start + 1;
    }

    private static int quotedEnd(String text, int start, boolean hasEscapes) {
        for (int i = start + 1; i < text.length(); i++) {
            if (hasEscapes && text.charAt(i) == '\\') {
                i++;
            } else if (text.charAt(i) == text.charAt(start)) {
                return i + 1;
            }
        }
        return text.length();
    }

    /** Whether a string is of the form r'…', in which a backslash stands for itself. */
    private static boolean isRaw(String text, int start) {
        return start > 0
                && Character.toLowerCase(text.charAt(start - 1)) == 'r'
                && (start == 1 || !Character.isLetterOrDigit(text.charAt(start - 2)));
    }

    private static int found(String text, int position, int length) {
        return position < 0 ? text.length() : position + length;
    }
}
