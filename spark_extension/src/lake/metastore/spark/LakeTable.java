package lake.metastore.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.V1Table;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A keyed table, whose rows are those of a snapshot of its timeline. */
final class LakeTable implements SupportsRead {
    /** The files of a snapshot. */
    static final class Snapshot {
        final long position;
        final String location;
        final List<SnapshotFile> files;

        private Snapshot(long position, String location, List<SnapshotFile> files) {
            this.position = position;
            this.location = location;
            this.files = files;
        }
    }

    /** The files that one call of the metastore names, at most about. */
    private static final int PAGE = 20_000;

    private static final Logger LOG = LoggerFactory.getLogger(LakeTable.class);

    final KeyedTable keyed;
    final V1Table definition;
    private final Metastore metastore;
    private final long id;
    private final ReadPoint point;
    private final ReadMoment moment;
    private final boolean includesUncommitted;
    private final List<String> partitionColumns;

    private LakeTable(
            Metastore metastore,
            V1Table definition,
            KeyedTable keyed,
            long id,
            ReadPoint point,
            ReadMoment moment,
            boolean includesUncommitted) {
        this.metastore = metastore;
        this.definition = definition;
        this.keyed = keyed;
        this.id = id;
        this.point = point;
        this.moment = moment;
        this.includesUncommitted = includesUncommitted;
        this.partitionColumns = Arrays.asList(Catalogs.partitionColumns(definition.v1Table()));
    }

    /** The table that has the name now, to be read as of {@code point}. */
    static LakeTable latest(
            Metastore metastore, V1Table definition, KeyedTable keyed, ReadPoint point) {
        TableIdentifier name = definition.v1Table().identifier();
        boolean includesUncommitted = Relations.isDecorated(name);
        ReadMoment moment = point.isLatest() ? ReadMoment.ofStatement() : null;
        long id = 0;
        try {
            Metastore.Answer position =
                    (Metastore.Answer)
                            metastore.call("lake_timeline_position", reference(LakeCatalog.undecorated(name), 0));
            id = position.number(8, 0);
            if (moment != null) {
                moment.include(position.number(4, 0));
            }
        } catch (Metastore.Refused refused) {
            // Who may not read the table may still describe, alter or drop it: reads are refused when they begin.
            LOG.debug("the rows of {} can't be read: {}", name, refused.getMessage());
        } catch (Metastore.NoAnswer missing) {
            throw Errors.analysis(missing.getMessage());
        }
        return new LakeTable(metastore, definition, keyed, id, point, moment, includesUncommitted);
    }

    /** The same table, its uncommitted partitions visible. */
    LakeTable includingUncommitted() {
        return includesUncommitted
                ? this
                : new LakeTable(metastore, definition, keyed, id, point, moment, true);
    }

    /** Which table it is, as it is defined; equal for two loads of it. */
    Object identity() {
        return Arrays.asList(name(), id, includesUncommitted, definition.schema(), properties());
    }

    boolean isLatest() {
        return point.isLatest();
    }

    TableIdentifier identifier() {
        return LakeCatalog.undecorated(definition.v1Table().identifier());
    }

    /** The snapshot that is read; it is the same for all scans of a statement. No clean removes its files meanwhile. */
    Snapshot snapshot() {
        try {
            if (id == 0) {
                // Mostly a refusal, whose message is thrown here.
                metastore.call("lake_timeline_position", reference(identifier(), 0));
                throw Errors.analysis(name() + ": the metastore did not answer during the analysis; run the statement again");
            }
            Snapshot found = named();
            if (found.position > 0) {
                metastore.leases().keep(reference(identifier(), id), id, found.position, leaseHours());
            }
            return found;
        } catch (Metastore.Failed failed) {
            throw Errors.analysis(failed.getMessage());
        }
    }

    private static String leaseHours() {
        return Catalogs.state(SparkSession.active()).conf().getConfString(ReaderLeases.HOURS, null);
    }

    private Snapshot named() {
        ReadPoint at = moment == null ? point : ReadPoint.moment(moment.fixed());
        List<SnapshotFile> files = new ArrayList<>();
        String after = null;
        while (true) {
            Metastore.Struct request =
                    at.addTo(new Metastore.Struct())
                            .with(1, reference(identifier(), id))
                            .with(8, includesUncommitted)
                            .with(10, PAGE)
                            .with(11, after);
            Metastore.Answer answer = (Metastore.Answer) metastore.call("lake_get_snapshot", request);
            for (Metastore.Answer file : answer.structs(2)) {
                files.add(new SnapshotFile(file));
            }
            after = answer.text(3);
            long position = answer.number(1, 0);
            if (after == null) {
                return new Snapshot(position, answer.text(4), files);
            }
            at = ReadPoint.position(position);
        }
    }

    /** All instants of its timeline. */
    List<Metastore.Answer> instants() {
        try {
            Object found =
                    metastore.call("lake_list_instants", new Metastore.Struct().with(1, reference(identifier(), id)));
            List<Metastore.Answer> instants = new ArrayList<>();
            for (Object each : (List<?>) found) {
                instants.add((Metastore.Answer) each);
            }
            return instants;
        } catch (Metastore.Failed failed) {
            throw Errors.analysis(failed.getMessage());
        }
    }

    private static Metastore.Struct reference(TableIdentifier name, long id) {
        return new Metastore.Struct()
                .with(2, name.database().get())
                .with(3, name.table())
                .with(4, id == 0 ? null : (Object) id);
    }

    @Override
    public String name() {
        return definition.name();
    }

    /**
     * The columns as they are stored: CHAR isn't padded and defaults aren't filled in, so that all readers see the same
     * rows.
     */
    @Override
    public StructType schema() {
        List<StructField> fields = new ArrayList<>();
        for (StructField each : definition.schema().fields()) {
            Metadata metadata = Metadata.empty();
            if (each.metadata().contains("comment")) {
                metadata =
                        new MetadataBuilder().putString("comment", each.metadata().getString("comment")).build();
            }
            fields.add(new StructField(each.name(), each.dataType(), true, metadata));
        }
        return new StructType(fields.toArray(new StructField[0]));
    }

    /** The columns of the files, in lower case as there. */
    StructType dataSchema() {
        List<StructField> fields = new ArrayList<>();
        for (StructField each : schema().fields()) {
            String name = each.name().toLowerCase(Locale.ROOT);
            if (!partitionColumns.contains(name)) {
                fields.add(new StructField(name, each.dataType(), true, Metadata.empty()));
            }
        }
        return new StructType(fields.toArray(new StructField[0]));
    }

    boolean isPartitionedBy(String column) {
        return partitionColumns.contains(column.toLowerCase(Locale.ROOT));
    }

    @Override
    public Transform[] partitioning() {
        return definition.partitioning();
    }

    @Override
    public Map<String, String> properties() {
        return new HashMap<>(definition.properties());
    }

    @Override
    public Set<TableCapability> capabilities() {
        return Collections.singleton(TableCapability.BATCH_READ);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
        LakeTable table = options.getBoolean(Scope.HINT, false) ? includingUncommitted() : this;
        return new LakeScan.Builder(point.isLatest() ? table.asOf(options) : table);
    }

    /** As the options of a DataFrame's reader say, which Spark 3.5 leaves to the table. */
    private LakeTable asOf(CaseInsensitiveStringMap options) {
        if (options.containsKey("timestampAsOf")) {
            throw Errors.analysis(
                    name() + ": the option timestampAsOf needs Spark 4; SELECT … TIMESTAMP AS OF does not");
        }
        return options.containsKey("versionAsOf") ? at(ReadPoint.version(options.get("versionAsOf"))) : this;
    }

    private LakeTable at(ReadPoint other) {
        return new LakeTable(metastore, definition, keyed, id, other, null, includesUncommitted);
    }

    @Override
    public String toString() {
        return name();
    }
}
