package lake.metastore.spark;

import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Leases that keep cleans off the snapshots which an application reads. A query doesn't say when nobody needs its result any
 * more: what was read stays readable for some hours, at most as long as the application runs.
 *
 * <p>There is one lease for each table, on the oldest position that was read in these hours and on all later ones. A
 * thread renews them while there are any.
 */
final class ReaderLeases {
    /** For how many hours a snapshot is kept after it was read last; 0: not at all. */
    static final String HOURS = "spark.metastore.readerLeaseHours";

    private static final String DEFAULT_HOURS = "12";
    private static final int LEASE_SECONDS = 300;
    private static final int SNAPSHOT_GONE = 4;
    private static final Logger LOG = LoggerFactory.getLogger(ReaderLeases.class);

    private static final class Held {
        private static final long NOWHERE = Long.MAX_VALUE;

        /** A thread has its monitor while it calls the metastore for the lease. */
        private final Object calls = new Object();
        /** The table's reference when it was read last: it may have been renamed since. */
        private volatile Metastore.Struct table;
        private final String id = UUID.randomUUID().toString().replace("-", "");
        private final boolean onwards;
        /** The oldest position that was read, by the minute until which it is kept. */
        private final TreeMap<Long, Long> reads = new TreeMap<>();
        private long position = NOWHERE;
        /** What a stream reads next. */
        private long pinned = NOWHERE;

        private Held(Metastore.Struct table, boolean onwards) {
            this.table = table;
            this.onwards = onwards;
        }

        private synchronized boolean isTaken() {
            return position != NOWHERE;
        }

        private synchronized void taken(long from) {
            position = from;
        }

        /** Notes a read; false if the lease begins later. */
        private synchronized boolean read(long from, double hours) {
            if (from < position) {
                return false;
            }
            reads.merge(minute() + (long) Math.ceil(hours * 60), from, Math::min);
            return true;
        }

        /** Moves the lease on to the oldest position that is still needed, which is returned. */
        private synchronized long moveOn() {
            reads.headMap(minute()).clear();
            position = Math.min(pinned, reads.isEmpty() ? NOWHERE : Collections.min(reads.values()));
            return position;
        }

        /** False if the lease begins later. */
        private synchronized boolean pin(long next) {
            pinned = next;
            return position <= next;
        }

        private synchronized void drop() {
            pinned = NOWHERE;
            reads.clear();
            position = NOWHERE;
        }

        private static long minute() {
            return TimeUnit.NANOSECONDS.toMinutes(System.nanoTime());
        }
    }

    /** The lease of a stream on what it reads next and all later positions, as long as it runs. */
    final class Pin {
        private final List<Object> key;
        private final Held lease;

        private Pin(List<Object> key, Held lease) {
            this.key = key;
            this.lease = lease;
        }

        /** Keeps what came and went after {@code position} from now on. If some of it is gone, a changelog may have it. */
        void moveTo(long position) {
            synchronized (lease.calls) {
                held.put(key, lease);
                if (!lease.pin(position)) {
                    try {
                        take(lease, position);
                        lease.taken(position);
                    } catch (Metastore.Refused refused) {
                        if (refused.field != SNAPSHOT_GONE) {
                            throw refused;
                        }
                    }
                }
            }
            start();
        }

        void release() {
            synchronized (lease.calls) {
                boolean isTaken = lease.isTaken();
                lease.drop();
                held.remove(key);
                if (isTaken) {
                    try {
                        metastore.call("lake_release_lease", lease.table, lease.id);
                    } catch (Metastore.Failed failed) {
                        LOG.warn("a lease could not be released, it will end: {}", failed.getMessage());
                    }
                }
            }
        }
    }

    /** A lease for one stream. {@code table}: its reference. */
    Pin pin(Metastore.Struct table, long id) {
        Held lease = new Held(table, true);
        return new Pin(Arrays.asList(id, lease.id), lease);
    }

    private final Metastore metastore;
    private final SparkContext context;
    private final Map<List<Object>, Held> held = new ConcurrentHashMap<>();
    private Thread thread;

    ReaderLeases(Metastore metastore, SparkContext context) {
        this.metastore = metastore;
        this.context = context;
    }

    /** Keeps the snapshot of a table at a position. {@code hours}: as the setting says. Raises Refused if it is gone. */
    void keep(Metastore.Struct table, long id, long position, String hours) {
        double kept = hours(hours);
        if (kept == 0) {
            return;
        }
        try {
            keep(table, Arrays.asList(id, -1L), true, position, kept);
        } catch (Metastore.Refused refused) {
            if (refused.field != SNAPSHOT_GONE) {
                throw refused;
            }
            // Cleans left this snapshot alone, because of a savepoint say, but not all later ones.
            keep(table, Arrays.asList(id, position), false, position, kept);
        }
    }

    /** Keeps all that came and went after a position. If some of it is gone, a changelog may have it: nothing is kept. */
    void keepChanges(Metastore.Struct table, long id, long position, String hours) {
        double kept = hours(hours);
        try {
            if (kept != 0) {
                keep(table, Arrays.asList(id, -1L), true, position, kept);
            }
        } catch (Metastore.Refused refused) {
            if (refused.field != SNAPSHOT_GONE) {
                throw refused;
            }
        }
    }

    private void keep(Metastore.Struct table, List<Object> key, boolean onwards, long position, double hours) {
        Held lease = held.computeIfAbsent(key, missing -> new Held(table, onwards));
        lease.table = table;
        if (lease.read(position, hours)) {
            return;
        }
        synchronized (lease.calls) {
            if (!lease.read(position, hours)) {
                take(lease, position);
                lease.taken(position);
                lease.read(position, hours);
            }
        }
        start();
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
    }

    private synchronized void start() {
        if (thread == null) {
            thread = new Thread(this::renewAgainAndAgain, "renewal of readers' leases");
            thread.setDaemon(true);
            thread.start();
        }
    }

    private void renewAgainAndAgain() {
        do {
            try {
                TimeUnit.SECONDS.sleep(LEASE_SECONDS / 3);
            } catch (InterruptedException interrupted) {
                return;
            }
        } while (renewAll());
        metastore.disconnect();
    }

    /** Renews what is needed and releases the rest. False if no lease is left, so that the thread ends. */
    private boolean renewAll() {
        held.values().forEach(this::renew);
        synchronized (this) {
            if (held.values().stream().anyMatch(Held::isTaken)) {
                return true;
            }
            thread = null;
            return false;
        }
    }

    private void renew(Held lease) {
        synchronized (lease.calls) {
            if (!lease.isTaken()) {
                return;
            }
            if (context.isStopped()) {
                lease.drop();
            }
            long position = lease.moveOn();
            try {
                if (lease.isTaken()) {
                    take(lease, position);
                } else {
                    metastore.call("lake_release_lease", lease.table, lease.id);
                }
            } catch (Metastore.Refused refused) {
                LOG.warn("a lease was lost, and its snapshot may be gone: {}", refused.getMessage());
                lease.drop();
            } catch (RuntimeException error) {
                LOG.warn("a lease could not be renewed or released: {}", error.getMessage());
            }
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
