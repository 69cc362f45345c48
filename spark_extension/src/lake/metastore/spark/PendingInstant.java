package lake.metastore.spark;

import java.io.IOException;
import java.util.Collections;
import java.util.ConcurrentModificationException;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * An instant that a statement writes. A thread tells the metastore that its writer lives, until it is completed or
 * aborted. If the driver dies, the metastore aborts it.
 */
final class PendingInstant {
    private static final int HEARTBEAT_SECONDS = 20;
    private static final int TRIES = 5;
    private static final int CONFLICT = 4;
    /** Separates a table's directory from those of its instants. */
    static final String INSTANTS = "/.instants/";
    private static final Logger LOG = LoggerFactory.getLogger(PendingInstant.class);

    final String timestamp;
    /** Where its files go: a URI that is not encoded. */
    final String directory;
    /** The same, relative to the table's location. */
    final String path;
    /** What its writer has read. */
    final long readPosition;

    private final Metastore metastore;
    private final Metastore.Struct table;
    private final String name;
    private final String action;
    private final int attempt;
    private volatile boolean isOver;
    private Thread heartbeats;

    private PendingInstant(
            Metastore metastore, Metastore.Struct table, String name, String action, Metastore.Answer begun) {
        this.metastore = metastore;
        this.table = table;
        this.name = name;
        this.action = action;
        timestamp = begun.text(1);
        readPosition = begun.number(11, 0);
        directory = begun.text(15);
        path = directory.substring(directory.lastIndexOf(INSTANTS) + 1);
        attempt = (int) begun.number(16, 0);
    }

    /**
     * Begins an instant.
     *
     * @param table the reference of the table
     * @param name of the table, for messages
     * @param readPosition what the rows were made from; null for the table as it is now
     */
    static PendingInstant begin(
            Metastore metastore, Metastore.Struct table, String name, String action, Long readPosition) {
        try {
            Metastore.Answer begun =
                    (Metastore.Answer)
                            metastore.callOnce(
                                    "lake_begin_instant",
                                    new Metastore.Struct()
                                            .with(1, table)
                                            .with(2, action)
                                            .with(4, "inflight")
                                            .with(6, readPosition)
                                            .with(8, true));
            PendingInstant found = new PendingInstant(metastore, table, name, action, begun);
            found.sendHeartbeats();
            return found;
        } catch (Metastore.Failed failed) {
            throw Errors.analysis(failed.getMessage());
        }
    }

    /**
     * Makes the plan of a table service and takes it up. {@code request}: a BeginInstantRequest without table and action.
     */
    static PendingInstant takeUp(
            Metastore metastore, Metastore.Struct table, String name, String action, Metastore.Struct request) {
        Metastore.Answer planned =
                (Metastore.Answer)
                        metastore.callOnce("lake_begin_instant", request.with(1, table).with(2, action).with(4, "requested"));
        Metastore.Struct transition =
                new Metastore.Struct()
                        .with(1, table)
                        .with(2, planned.text(1))
                        .with(3, action)
                        .with(4, "inflight")
                        .with(6, UUID.randomUUID().toString().replace("-", ""))
                        .with(8, true);
        try {
            Metastore.Answer taken = (Metastore.Answer) metastore.call("lake_transition_instant", transition);
            PendingInstant found = new PendingInstant(metastore, table, name, action, taken);
            found.sendHeartbeats();
            return found;
        } catch (Metastore.Refused refused) {
            throw new Metastore.Refused(
                    "the plan " + planned.text(1) + " was taken up by another process, which runs it: " + refused.getMessage(),
                    refused.field);
        }
    }

    private void sendHeartbeats() {
        heartbeats = new Thread(this::heartbeats, "heartbeats of " + name + " " + timestamp);
        heartbeats.setDaemon(true);
        heartbeats.start();
    }

    private void heartbeats() {
        while (true) {
            try {
                TimeUnit.SECONDS.sleep(HEARTBEAT_SECONDS);
            } catch (InterruptedException interrupted) {
                return;
            }
            if (isOver) {
                return;
            }
            try {
                metastore.call("lake_heartbeat_instant", table, timestamp, action, attempt);
            } catch (Metastore.Refused refused) {
                if (!isOver) {
                    LOG.warn("the instant {} of {} was aborted: {}", timestamp, name, refused.getMessage());
                }
                return; // its completion is refused
            } catch (RuntimeException error) {
                LOG.warn("no heartbeat of {} {}: {}", name, timestamp, error.getMessage());
            }
        }
    }

    /**
     * Completes it. A request whose answer was lost is repeated: the metastore knows it again. A batch that is part of the
     * table already is aborted there. The answer may say that partitions are ready already ({@code alreadyReady}): then
     * nothing has changed, and it can be completed otherwise.
     *
     * @param completion a CompleteInstantRequest without the table, timestamp, action and attempt
     */
    Metastore.Answer complete(Metastore.Struct completion) {
        Metastore.Struct request =
                completion.with(1, table).with(2, timestamp).with(3, action).with(20, attempt == 0 ? null : (Object) attempt);
        for (int number = 1; ; number++) {
            try {
                List<?> answers =
                        (List<?>) metastore.call("lake_complete_instants", Collections.singletonList(request));
                Metastore.Answer answer = (Metastore.Answer) answers.get(0);
                List<String> ready = answer.texts(6);
                if (ready == null || ready.isEmpty()) {
                    end();
                }
                return answer;
            } catch (Metastore.Refused refused) {
                if (refused.field == CONFLICT) {
                    throw new ConcurrentModificationException(
                            refused.getMessage() + "; nothing was written: run the statement again");
                }
                throw Errors.analysis(refused.getMessage());
            } catch (RuntimeException error) {
                if (number == TRIES) {
                    end();
                    throw new IllegalStateException(
                            "whether " + timestamp + " of " + name + " was completed is not known, its files are kept: "
                                    + error.getMessage(),
                            error);
                }
                pause(1L << (number - 1));
            }
        }
    }

    private static void pause(long seconds) {
        try {
            TimeUnit.SECONDS.sleep(seconds);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** Aborts it unless it is completed, or may be: the metastore removes its files. */
    void abort() {
        if (isOver) {
            return;
        }
        end();
        try {
            metastore.call("lake_delete_instant", table, timestamp, action);
        } catch (RuntimeException error) {
            LOG.warn("{} of {} could not be aborted, the metastore will: {}", timestamp, name, error.getMessage());
        }
    }

    /** Stops the heartbeats. */
    private void end() {
        isOver = true;
        heartbeats.interrupt();
    }

    /**
     * Removes what tasks that died or were overtaken left in its directory. The metastore, which is told of the others,
     * never would.
     *
     * @param kept the paths of files, relative to the table
     */
    void removeOthers(Configuration configuration, Set<String> kept) {
        removeOthers(configuration, directory, kept);
    }

    /** The same for an instant of a program's. {@code directory}: as of {@link #directory}. */
    static void removeOthers(Configuration configuration, String directory, Set<String> kept) {
        try {
            Path root = new Path(directory);
            FileSystem storage = root.getFileSystem(configuration);
            if (!storage.exists(root)) {
                return;
            }
            RemoteIterator<LocatedFileStatus> files = storage.listFiles(root, true);
            while (files.hasNext()) {
                Path file = files.next().getPath();
                String text = file.toString();
                String relative = text.substring(text.lastIndexOf(INSTANTS) + 1);
                if (text.endsWith(".parquet") && !kept.contains(relative)) {
                    storage.delete(file, false);
                }
            }
        } catch (IOException error) {
            LOG.warn("can't clear up {}: {}", directory, error.getMessage()); // it takes room, and nobody reads it
        }
    }

    /** Removes a directory in its own. If the driver dies before, these files are orphans. */
    void remove(Configuration configuration, String name) {
        try {
            Path path = new Path(directory, name);
            path.getFileSystem(configuration).delete(path, true);
        } catch (IOException error) {
            LOG.warn("can't clear up {}: {}", directory, error.getMessage());
        }
    }
}
