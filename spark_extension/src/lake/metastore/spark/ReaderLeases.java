package lake.metastore.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Leases that keep cleans off the snapshots which a session reads. A query doesn't say when nobody needs its result any
 * more: what was read stays readable for some hours, at most as long as the application runs.
 *
 * <p>There is one lease for each table, on the oldest position that was read in these hours and on all later ones. A
 * thread renews them.
 */
final class ReaderLeases {
    /** For how many hours a snapshot is kept after it was read last; 0: not at all. */
    static final String HOURS = "spark.metastore.readerLeaseHours";

    private static final String DEFAULT_HOURS = "12";
    private static final int LEASE_SECONDS = 300;
    private static final int SNAPSHOT_GONE = 4;
    private static final Logger LOG = LoggerFactory.getLogger(ReaderLeases.class);

    private static final class Held {
        private final Metastore.Struct table;
        private final String id = UUID.randomUUID().toString().replace("-", "");
        private final boolean onwards;
        /** By minute, the oldest position that was read in it. */
        private final TreeMap<Long, Long> reads = new TreeMap<>();
        private long position;

        private Held(Metastore.Struct table, boolean onwards, long position) {
            this.table = table;
            this.onwards = onwards;
            this.position = position;
        }
    }

    private final Metastore metastore;
    private final SparkContext context;
    private final Map<List<Object>, Held> held = new HashMap<>();
    private Thread thread;

    ReaderLeases(Metastore metastore, SparkContext context) {
        this.metastore = metastore;
        this.context = context;
    }

    /** Keeps the snapshot of a table at a position. {@code hours}: as the setting says. Raises Refused if it is gone. */
    synchronized void keep(Metastore.Struct table, long id, long position, String hours) {
        double kept = hours(hours);
        if (kept == 0) {
            return;
        }
        try {
            keep(table, java.util.Arrays.asList(id, -1L), true, position, kept);
        } catch (Metastore.Refused refused) {
            if (refused.field != SNAPSHOT_GONE) {
                throw refused;
            }
            // Cleans left this snapshot alone, because of a savepoint say, but not all later ones.
            keep(table, java.util.Arrays.asList(id, position), false, position, kept);
        }
    }

    private void keep(Metastore.Struct table, List<Object> key, boolean onwards, long position, double hours) {
        Held found = held.get(key);
        if (found == null || position < found.position) {
            found = found == null ? new Held(table, onwards, position) : found;
            take(found, position);
            held.put(key, found);
            start(hours);
        }
        found.reads.merge(TimeUnit.NANOSECONDS.toMinutes(System.nanoTime()), position, Math::min);
    }

    private void take(Held lease, long position) {
        metastore.call(
                "lake_lease_snapshot",
                new Metastore.Struct()
                        .with(1, lease.table)
                        .with(2, lease.id)
                        .with(3, position)
                        .with(4, LEASE_SECONDS)
                        .with(5, "Spark " + context.appName() + " " + context.applicationId())
                        .with(6, lease.onwards));
        lease.position = position;
    }

    private void start(double hours) {
        if (thread == null) {
            thread = new Thread(() -> renewAll(hours), "renewal of readers' leases");
            thread.setDaemon(true);
            thread.start();
        }
    }

    private void renewAll(double hours) {
        while (true) {
            try {
                TimeUnit.SECONDS.sleep(LEASE_SECONDS / 3);
            } catch (InterruptedException interrupted) {
                return;
            }
            synchronized (this) {
                for (Map.Entry<List<Object>, Held> each : new ArrayList<>(held.entrySet())) {
                    if (context.isStopped() || !renew(each.getValue(), hours)) {
                        held.remove(each.getKey());
                        release(each.getValue());
                    }
                }
                if (context.isStopped()) {
                    metastore.disconnect();
                    return;
                }
            }
        }
    }

    /** Whether the lease is still needed; it moves on to the oldest position that is. */
    private boolean renew(Held lease, double hours) {
        long oldest = TimeUnit.NANOSECONDS.toMinutes(System.nanoTime()) - (long) Math.ceil(hours * 60);
        lease.reads.headMap(oldest).clear();
        if (lease.reads.isEmpty()) {
            return false;
        }
        try {
            take(lease, java.util.Collections.min(lease.reads.values()));
        } catch (Metastore.Refused refused) {
            LOG.warn("a lease was lost, and its snapshot may be gone: {}", refused.getMessage());
            return false;
        } catch (RuntimeException error) {
            LOG.warn("a lease could not be renewed: {}", error.getMessage());
        }
        return true;
    }

    private void release(Held lease) {
        try {
            metastore.call("lake_release_lease", lease.table, lease.id);
        } catch (RuntimeException error) {
            LOG.warn("a lease could not be released, it expires: {}", error.getMessage());
        }
    }

    private static double hours(String text) {
        double hours = -1;
        try {
            hours = Double.parseDouble(text == null ? DEFAULT_HOURS : text);
        } catch (NumberFormatException error) {
            // said below
        }
        if (!(hours >= 0 && hours <= 8_760)) {
            throw Errors.analysis(HOURS + " is '" + text + "': expected a number of hours from 0 on");
        }
        return hours;
    }
}
