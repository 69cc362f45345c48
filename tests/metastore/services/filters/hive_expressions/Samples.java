import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collections;
import java.util.List;
import org.apache.hadoop.hive.common.type.HiveChar;
import org.apache.hadoop.hive.common.type.HiveDecimal;
import org.apache.hadoop.hive.common.type.HiveVarchar;
import org.apache.hadoop.hive.ql.exec.FunctionRegistry;
import org.apache.hadoop.hive.ql.exec.SerializationUtilities;
import org.apache.hadoop.hive.ql.plan.ExprNodeColumnDesc;
import org.apache.hadoop.hive.ql.plan.ExprNodeConstantDesc;
import org.apache.hadoop.hive.ql.plan.ExprNodeDesc;
import org.apache.hadoop.hive.ql.plan.ExprNodeGenericFuncDesc;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfoFactory;

/**
 * Writes partition expressions as Hive's planner serialises them, one per line: a name, base64, Hive's own text for it.
 *
 * <p>Made the files next to it, in the time zone America/Los_Angeles, with the hive-exec jar of each version, Hadoop's
 * client jars and what these need. Hive 3.1 wants Java 8; later Javas must open java.base's java.lang, java.util, java.net
 * and java.time. For Hive 2.3, whose users run it on Hadoop 2, Text was that of Hadoop 2.7, which has other fields.
 */
public class Samples {
  interface Expression {
    ExprNodeDesc make() throws Exception;
  }

  static ExprNodeDesc key(String name, String type) {
    return new ExprNodeColumnDesc(TypeInfoFactory.getPrimitiveTypeInfo(type), name, "t", true);
  }

  static ExprNodeDesc constant(String type, Object value) {
    return new ExprNodeConstantDesc(TypeInfoFactory.getPrimitiveTypeInfo(type), value);
  }

  static ExprNodeDesc text(String value) {
    return constant("string", value);
  }

  /** A date or timestamp in the class that this version of Hive has for it. */
  static ExprNodeDesc time(String type, String value) throws Exception {
    String simple = type.equals("date") ? "Date" : "Timestamp";
    Class<?> valueClass;
    try {
      valueClass = Class.forName("org.apache.hadoop.hive.common.type." + simple);
    } catch (ClassNotFoundException e) {
      valueClass = Class.forName("java.sql." + simple);
    }
    return constant(type, valueClass.getMethod("valueOf", String.class).invoke(null, value));
  }

  static ExprNodeDesc call(String function, ExprNodeDesc... parameters) throws Exception {
    return ExprNodeGenericFuncDesc.newInstance(
        FunctionRegistry.getFunctionInfo(function).getGenericUDF(), new ArrayList<>(Arrays.asList(parameters)));
  }

  static void write(String name, Expression expression) throws Exception {
    ExprNodeGenericFuncDesc made = (ExprNodeGenericFuncDesc) expression.make();
    Method serialise;
    try {
      serialise = SerializationUtilities.class.getMethod("serializeExpressionToKryo", ExprNodeGenericFuncDesc.class);
    } catch (NoSuchMethodException e) { // as from Hive 4
      serialise = SerializationUtilities.class.getMethod("serializeObjectWithTypeInformation", java.io.Serializable.class);
    }
    byte[] bytes = (byte[]) serialise.invoke(null, made);
    System.out.println(name + "\t" + Base64.getEncoder().encodeToString(bytes) + "\t" + made.getExprString());
  }

  public static void main(String[] arguments) throws Exception {
    for (String operator : new String[] {"=", "<>", "<", "<=", ">", ">="}) {
      write("text " + operator, () -> call(operator, key("ds", "string"), text("2020-01-01")));
    }
    write("mirrored", () -> call("<", text("2020-01-01"), key("ds", "string")));
    write("no character", () -> call("=", key("ds", "string"), text("")));
    write("one character", () -> call("=", key("ds", "string"), text("x")));
    write("many characters", () -> call("=", key("ds", "string"), text(String.join("", Collections.nCopies(50, "long ")))));
    write("other characters", () -> call("=", key("ds", "string"), text("\u00fcn\u4e2d\ud83d\ude00'\"\\")));
    write("null", () -> call("=", key("ds", "string"), text(null)));
    write("varchar", () -> call("=", key("v", "varchar(9)"), constant("varchar(9)", new HiveVarchar("abc", 9))));
    write("char", () -> call("=", key("c", "char(5)"), constant("char(5)", new HiveChar("abc", 5))));
    write("tinyint", () -> call("=", key("n", "tinyint"), constant("tinyint", (byte) -7)));
    write("smallint", () -> call("=", key("n", "smallint"), constant("smallint", (short) -300)));
    write("int", () -> call("=", key("n", "int"), constant("int", -70000)));
    write("bigint", () -> call(">=", key("n", "bigint"), constant("bigint", Long.MIN_VALUE)));
    write("bigint and int", () -> call("<", key("n", "bigint"), constant("int", 5)));
    write("int and text", () -> call("=", key("n", "int"), text("5")));
    write("text and int", () -> call("=", key("ds", "string"), constant("int", 5)));
    write("float", () -> call("=", key("f", "float"), constant("float", 0.1f)));
    write("double", () -> call("=", key("f", "double"), constant("double", -5.25e30)));
    write("decimal", () -> call("=", key("f", "decimal(38,2)"), constant("decimal(38,2)",
        HiveDecimal.create("-123456789012345678901234567890123456.78"))));
    write("decimal and int", () -> call("=", key("f", "decimal(10,2)"), constant("int", 5)));
    write("boolean", () -> call("=", key("b", "boolean"), constant("boolean", true)));
    write("not boolean", () -> call("not", key("b", "boolean")));
    write("date", () -> call("=", key("d", "date"), time("date", "2020-02-29")));
    write("date and text", () -> call("=", key("d", "date"), text("2020-2-29")));
    write("timestamp", () -> call(">", key("t", "timestamp"), time("timestamp", "2020-02-29 12:34:56.789")));
    write("whole minute", () -> call(">", key("t", "timestamp"), time("timestamp", "2020-02-29 12:34:00")));
    write("timestamp and text", () -> call(">", key("t", "timestamp"), text("2020-02-29 12:34:56")));
    write("and", () -> call("and", call("=", key("ds", "string"), text("a")), call("=", key("n", "int"), constant("int", 7)),
        call("<>", key("ds", "string"), text("b"))));
    write("or", () -> call("or", call("=", key("ds", "string"), text("a")), call("=", key("n", "int"), constant("int", 7))));
    write("same key", () -> {
      ExprNodeDesc key = key("n", "int");
      return call("and", call(">", key, constant("int", 1)), call("<", key, constant("int", 9)));
    });
    write("not", () -> call("not", call("=", key("ds", "string"), text("a"))));
    write("in", () -> call("in", key("ds", "string"), text("a"), text("b"), text("c")));
    write("in numbers", () -> call("in", key("n", "int"), constant("int", 1), constant("int", 2)));
    write("in dates", () -> call("in", key("d", "date"), time("date", "2020-01-01"), time("date", "2020-07-01")));
    write("in structs", () -> call("in", call("struct", key("ds", "string"), key("n", "int")),
        call("struct", text("a"), constant("int", 1)), call("struct", text("b"), constant("int", 2))));
    write("in constant structs", () -> call("in", call("struct", key("ds", "string"), key("n", "int")),
        new ExprNodeConstantDesc(call("struct", text("a"), constant("int", 1)).getTypeInfo(), new ArrayList<Object>(Arrays.asList("a", 1)))));
    write("between", () -> call("between", constant("boolean", false), key("n", "int"), constant("int", 1), constant("int", 5)));
    write("between texts", () -> call("between", constant("boolean", false), key("v", "varchar(9)"), text("a"), text("b")));
    write("not between", () -> call("between", constant("boolean", true), key("ds", "string"), text("a"), text("b")));
    write("between dates", () -> call("between", constant("boolean", false), key("d", "date"),
        time("date", "2020-01-01"), time("date", "2020-07-01")));
    write("is null", () -> call("isnull", key("n", "int")));
    write("is not null", () -> call("isnotnull", key("ds", "string")));
    write("null or equal", () -> call("<=>", key("n", "int"), constant("int", 1)));
    write("like", () -> call("like", key("ds", "string"), text("a\\%b\\c_%")));
    write("cast to date", () -> call(">=", call("date", key("ds", "string")), time("date", "2020-01-01")));
    write("to_date", () -> call("=", call("to_date", key("ds", "string")), call("date", text("2020-01-01"))));
    write("cast to double", () -> call("=", call("double", key("ds", "string")), call("double", constant("int", 5))));
    write("cast to bigint", () -> call("=", call("bigint", key("n", "int")), constant("bigint", 5L)));
    write("cast to timestamp", () -> call("=", key("t", "timestamp"), call("timestamp", text("2020-01-01 10:00:00"))));
    write("narrowed", () -> call("=", call("int", key("n", "bigint")), constant("int", 5)));
    write("text as int", () -> call("=", call("int", key("ds", "string")), constant("int", 5)));
    write("function", () -> call("=", call("substr", key("ds", "string"), constant("int", 1), constant("int", 4)), text("2020")));
    write("function and key", () -> call("and", call("=", call("upper", key("ds", "string")), text("A")),
        call("=", key("n", "int"), constant("int", 7))));
    write("function or key", () -> call("or", call("=", call("upper", key("ds", "string")), text("A")),
        call("=", key("n", "int"), constant("int", 7))));
    write("not function and key", () -> call("not", call("and", call("=", call("upper", key("ds", "string")), text("A")),
        call("=", key("n", "int"), constant("int", 7)))));
    write("two keys", () -> call("=", key("ds", "string"), key("v", "varchar(9)")));
    write("strange function", () -> call("rlike", key("ds", "string"), text("2020.*")));
    write("fixed list", () -> ExprNodeGenericFuncDesc.newInstance(
        FunctionRegistry.getFunctionInfo("=").getGenericUDF(), Arrays.asList(key("ds", "string"), text("a"))));
    write("unused function", () -> new ExprNodeGenericFuncDesc(TypeInfoFactory.booleanTypeInfo,
        FunctionRegistry.getFunctionInfo("=").getGenericUDF(), new ArrayList<>(Arrays.asList(key("ds", "string"), text("a")))));
    write("hundred numbers", () -> {
      List<ExprNodeDesc> parameters = new ArrayList<>(Collections.singletonList(key("n", "int")));
      for (int i = 0; i < 100; i++) {
        parameters.add(constant("int", i));
      }
      return call("in", parameters.toArray(new ExprNodeDesc[0]));
    });
  }
}
