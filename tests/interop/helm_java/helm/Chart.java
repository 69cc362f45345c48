package helm;

import com.marcnuri.helm.Helm;
import com.marcnuri.helm.LintResult;
import java.nio.file.Path;

/** `template CHART VALUES NAMESPACE KUBERNETES`, `lint CHART` or `package CHART DIRECTORY`. Prints what Helm says. */
public final class Chart {
    public static void main(String[] args) {
        Helm helm = new Helm(Path.of(args[1]));
        switch (args[0]) {
            case "template" -> System.out.print(helm.template()
                    .withName("metastore")
                    .withValuesFile(Path.of(args[2]))
                    .withNamespace(args[3])
                    .withKubeVersion(args[4])
                    .call());
            case "lint" -> {
                LintResult found = helm.lint().strict().call();
                found.getMessages().forEach(System.out::println);
                System.exit(found.isFailed() ? 1 : 0);
            }
            case "package" -> helm.packageIt().withDestination(Path.of(args[2])).call();
            default -> throw new IllegalArgumentException(args[0]);
        }
    }
}
