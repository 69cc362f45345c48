package lake.metastore.spark;

import java.time.ZoneId;
import java.util.Collections;
import java.util.Locale;
import java.util.Set;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.util.DateTimeUtils;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;

/**
 * A lake table as a stream, of {@code spark.readStream.table}: its rows as they are when the query starts, or what came since
 * a point of its timeline, then what comes.
 */
final class LakeStream implements SupportsRead, ScanBuilder, Scan {
    /** Options of the reader. */
    private static final String SINCE = "since";

    private static final String CHANGES = "changes";

    /** The table is read by its timeline, also if that has no instants yet and no property tells of it. */
    static final String TIMELINE = "timeline";

    private static final String FILTER = "filter";

    final LakeTable table;
    /** The point after which rows are read; null for all rows. */
    private final ReadPoint since;
    /** All net changes are read, not inserted and updated rows alone. */
    final boolean hasChanges;
    /** Those of each commit by itself. */
    final boolean isOfEachCommit;
    /** Which partitions are read, in Hive's grammar; null for all. */
    final String filter;

    private LakeStream(LakeTable table, CaseInsensitiveStringMap options) {
        for (String refused : new String[] {"versionAsOf", "timestampAsOf"}) {
            if (options.containsKey(refused)) {
                throw Errors.analysis(
                        table.name() + ": " + refused + " is of queries that end; a stream takes the option " + SINCE);
            }
        }
        this.table = options.getBoolean(Scope.HINT, false) ? table.includingUncommitted() : table;
        String changes = options.getOrDefault(CHANGES, "false").trim().toLowerCase(Locale.ROOT);
        isOfEachCommit = changes.equals("all");
        hasChanges = isOfEachCommit || changes.equals("true");
        if (!hasChanges && !changes.equals("false")) {
            throw Errors.analysis(table.name() + ": the option " + CHANGES + " is true, false or all, not " + changes);
        }
        if (hasChanges && table.keyed == null) {
            throw Errors.analysis(
                    table.name() + " has no primary-key among its properties: nobody can tell which rows changed");
        }
        filter = options.get(FILTER);
        since = options.containsKey(SINCE) ? point(options.get(SINCE)) : null;
        if (since != null && since.isPosition() && since.position() > table.lastPosition()) {
            throw Errors.analysis(
                    table.name() + " has no position " + since.position() + " yet: its last one is " + table.lastPosition());
        }
    }

    /**
     * The position after which a query without a checkpoint reads; 0 for all rows. A query that goes on doesn't need it: what
     * the option names may have been cleaned since.
     */
    long begin() {
        if (since == null) {
            return 0;
        }
        table.checkNotOfEarlierTable(since);
        return table.positionOf(since);
    }

    /** {@code options}: of the reader. */
    static LakeStream of(LakeTable table, CaseInsensitiveStringMap options) {
        try {
            return new LakeStream(table, options);
        } catch (Metastore.Failed failed) {
            throw Errors.analysis(failed.getMessage());
        }
    }

    /** A position, the timestamp of an instant, or a time. */
    private static ReadPoint point(String text) {
        if (text.trim().matches("[0-9]+")) {
            return ReadPoint.version(text);
        }
        String zone = Catalogs.state(SparkSession.active()).conf().sessionLocalTimeZone();
        Option<Object> micros = DateTimeUtils.stringToTimestamp(UTF8String.fromString(text.trim()), ZoneId.of(zone));
        if (micros.isEmpty()) {
            throw Errors.analysis(
                    "the option " + SINCE + " is '" + text + "': give a position of the timeline, the timestamp of an"
                            + " instant, or a time such as 2026-01-31 08:00:00");
        }
        return ReadPoint.time((Long) micros.get());
    }

    @Override
    public String name() {
        return table.name();
    }

    @Override
    public StructType schema() {
        return hasChanges ? ChangesTable.schema(table) : table.schema();
    }

    @Override
    public Set<TableCapability> capabilities() {
        return Collections.singleton(TableCapability.MICRO_BATCH_READ);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
        return this;
    }

    @Override
    public Scan build() {
        return this;
    }

    @Override
    public StructType readSchema() {
        return schema();
    }

    @Override
    public String description() {
        return "stream of " + table.name();
    }

    @Override
    public MicroBatchStream toMicroBatchStream(String checkpoint) {
        return new MicroBatches(this);
    }

    @Override
    public String toString() {
        return description();
    }
}
