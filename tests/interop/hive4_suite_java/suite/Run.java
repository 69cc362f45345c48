package suite;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.Request;
import org.junit.runner.manipulation.Filter;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;

/**
 * Runs one class of JUnit's and writes a line for each of its tests: outcome, name, and what the failure says, with tabs
 * between. Arguments: the class, the file to write, and, if wanted, how the name of the only test to run begins.
 */
public final class Run extends RunListener {
  private static final int TOLD = 2000;
  private final PrintWriter output;
  private String outcome;
  private String reason;

  private Run(PrintWriter output) {
    this.output = output;
  }

  public static void main(String[] arguments) throws IOException, ClassNotFoundException {
    try (PrintWriter output = new PrintWriter(arguments[1], StandardCharsets.UTF_8)) {
      JUnitCore junit = new JUnitCore();
      junit.addListener(new Run(output));
      Request request = Request.aClass(Class.forName(arguments[0]));
      junit.run(arguments.length > 2 ? request.filterWith(named(arguments[2])) : request);
    }
    // Threads of Hive's classes would keep the process.
    System.exit(0);
  }

  private static Filter named(String start) {
    return new Filter() {
      @Override
      public boolean shouldRun(Description description) {
        if (description.isTest()) {
          return description.getMethodName().startsWith(start);
        }
        return description.getChildren().stream().anyMatch(this::shouldRun);
      }

      @Override
      public String describe() {
        return "tests whose name starts with " + start;
      }
    };
  }

  @Override
  public void testStarted(Description description) {
    outcome = "passed";
    reason = "";
  }

  @Override
  public void testFailure(Failure failure) {
    outcome = "failed";
    String trace = failure.getTrace();
    reason = trace.substring(0, Math.min(trace.length(), TOLD));
    if (!failure.getDescription().isTest()) {
      // What prepares or ends the whole class.
      testFinished(failure.getDescription());
    }
  }

  @Override
  public void testAssumptionFailure(Failure failure) {
    outcome = "skipped";
    reason = String.valueOf(failure.getMessage());
  }

  @Override
  public void testIgnored(Description description) {
    outcome = "skipped";
    reason = "ignored by Hive";
    testFinished(description);
  }

  @Override
  public void testFinished(Description description) {
    String name = description.isTest() ? description.getMethodName() : "the class itself";
    String line = reason.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "").replace("\t", "    ");
    output.println(outcome + "\t" + name.replaceAll("\\[.*", "") + "\t" + line);
    output.flush();
  }
}
