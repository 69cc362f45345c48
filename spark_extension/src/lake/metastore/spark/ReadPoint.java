package lake.metastore.spark;

/** As of what a table is read: the latest snapshot, a position, an instant, or a time. */
final class ReadPoint {
    static final ReadPoint LATEST = new ReadPoint(0, null);

    /** Instants have timestamps of at least so many digits; no position has. */
    private static final int TIMESTAMP_DIGITS = 14;

    /** Fields of the metastore's SnapshotRequest. An instant is named by its timestamp, or by the name of its savepoint. */
    private static final int INSTANT = 2, POSITION = 3;

    private final int field;
    private final Object value;

    private ReadPoint(int field, Object value) {
        this.field = field;
        this.value = value;
    }

    static ReadPoint version(String text) {
        String version = text.trim();
        if (version.isEmpty()) {
            throw Errors.analysis(
                    "'" + text + "' is no version: give a position of the timeline, the timestamp of an instant, or the name"
                            + " of a savepoint");
        }
        if (version.length() < TIMESTAMP_DIGITS && version.matches("[0-9]+")) {
            return new ReadPoint(POSITION, Long.valueOf(version));
        }
        return new ReadPoint(INSTANT, version);
    }

    /** {@code micros}: since 1970. */
    static ReadPoint time(long micros) {
        long millis = Math.floorDiv(micros, 1_000L);
        if (millis > System.currentTimeMillis()) {
            throw Errors.analysis("a time in the future can't be read: what will be there then isn't known");
        }
        return new ReadPoint(4, millis);
    }

    static ReadPoint position(long position) {
        return new ReadPoint(POSITION, position);
    }

    static ReadPoint moment(long moment) {
        return new ReadPoint(5, moment);
    }

    boolean isPosition() {
        return field == POSITION;
    }

    /** The position, of a point that is given as one. */
    long position() {
        return (Long) value;
    }

    boolean isLatest() {
        return field == 0;
    }

    Metastore.Struct addTo(Metastore.Struct request) {
        return field == 0 ? request : request.with(field, value);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof ReadPoint
                && ((ReadPoint) other).field == field
                && java.util.Objects.equals(((ReadPoint) other).value, value);
    }

    @Override
    public int hashCode() {
        return java.util.Objects.hash(field, value);
    }
}
