package lake.metastore.spark;

import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Where CREATE TABLE AS SELECT makes a keyed table, or another one with a timeline. It is the session's catalog under another name, since Spark writes
 * the files of new Parquet tables in its session catalog by itself, past a timeline.
 */
final class NewTables implements TableCatalog, FunctionCatalog {
    private final LakeCatalog catalog;

    NewTables(LakeCatalog catalog) {
        this.catalog = catalog;
    }

    @Override
    public void initialize(String name, CaseInsensitiveStringMap options) {}

    @Override
    public String name() {
        return "lake_keyed_tables";
    }

    @Override
    @SuppressWarnings("deprecation")
    public Table createTable(
            Identifier name, StructType schema, Transform[] partitions, Map<String, String> properties)
            throws TableAlreadyExistsException, NoSuchNamespaceException {
        catalog.createTable(name, schema, partitions, properties);
        try {
            return PlainTable.written(catalog.loadTable(name));
        } catch (NoSuchTableException error) {
            throw new IllegalStateException(name + " was dropped while it was made", error);
        } catch (RuntimeException error) {
            catalog.dropTable(name);
            throw error;
        }
    }

    @Override
    public Table loadTable(Identifier name) throws NoSuchTableException {
        return catalog.loadTable(name);
    }

    @Override
    public boolean tableExists(Identifier name) {
        return catalog.tableExists(name);
    }

    @Override
    public boolean dropTable(Identifier name) {
        return catalog.dropTable(name);
    }

    @Override
    public UnboundFunction loadFunction(Identifier name) throws NoSuchFunctionException {
        return catalog.loadFunction(name);
    }

    @Override
    public Identifier[] listTables(String[] namespace) {
        return new Identifier[0];
    }

    @Override
    public Identifier[] listFunctions(String[] namespace) {
        return new Identifier[0];
    }

    @Override
    public Table alterTable(Identifier name, TableChange... changes) {
        throw new UnsupportedOperationException("tables are altered in the session's catalog");
    }

    @Override
    public void renameTable(Identifier from, Identifier to) {
        throw new UnsupportedOperationException("tables are renamed in the session's catalog");
    }
}
