package lake.metastore.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.IntPredicate;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.util.CharVarcharUtils;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsRowLevelOperations;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TruncatableTable;
import org.apache.spark.sql.connector.catalog.V1Table;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.CharType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Option;

/**
 * A table whose rows are those of a snapshot of its timeline. A write of it is an instant there. Spark's statements see keyed
 * tables so. A table without a primary key is one for its streams alone: see {@link StreamedTable}.
 */
final class LakeTable
        implements SupportsRead, SupportsWrite, SupportsRowLevelOperations, TruncatableTable {
    /** The files of a snapshot. */
    static final class Snapshot {
        final long position;
        final String location;
        final List<SnapshotFile> files;

        Snapshot(long position, String location, List<SnapshotFile> files) {
            this.position = position;
            this.location = location;
            this.files = files;
        }

        /** The same snapshot, of which only some files are of interest. */
        Snapshot only(Predicate<SnapshotFile> isWanted) {
            return new Snapshot(position, location, files.stream().filter(isWanted).collect(Collectors.toList()));
        }
    }

    /** The files that one call of the metastore names, at most about. */
    private static final int PAGE = 20_000;

    /** The exception of calls, by its number. */
    private static final int NO_SUCH_OBJECT = 1, INVALID_OPERATION = 2;

    /** Instants of a page; more than can have one timestamp. */
    private static final int INSTANTS = 1_000;

    /** Who makes partitions ready. */
    private static final String COMMIT_MODE = "partition.commit.mode";

    /** Of columns: the default of inserts. */
    static final String DEFAULT = "CURRENT_DEFAULT";

    /** What is kept of the metadata of columns. */
    private static final String[] KEPT_METADATA = {"comment", DEFAULT};

    private static final Logger LOG = LoggerFactory.getLogger(LakeTable.class);

    /** Null for a table without a primary key. */
    final KeyedTable keyed;
    final V1Table definition;
    private final Metastore metastore;
    private final long id;
    private final ReadPoint point;
    private final ReadMoment moment;
    private final boolean includesUncommitted;
    /** The statement that writes the table has read it, too. */
    private final boolean isReadByItsWriter;
    private final List<String> partitionColumns;
    private String overwritten;
    /** A MERGE writes it whose rows are those of its source. */
    private boolean isMerged;
    /** The catalog of the metastore that it is in; null for Hive's default. */
    private String catalog;
    private Selection selection = Selection.ALL;
    /** The query that it is loaded for, null for a statement of SQL's. */
    private QueryScope scope;
    /** What a program or such a query reads; null until that is decided. */
    private volatile Snapshot decided;

    private LakeTable(
            Metastore metastore,
            V1Table definition,
            KeyedTable keyed,
            long id,
            ReadPoint point,
            ReadMoment moment,
            boolean includesUncommitted,
            boolean isReadByItsWriter) {
        this.metastore = metastore;
        this.definition = definition;
        this.keyed = keyed;
        this.id = id;
        this.point = point;
        this.moment = moment;
        this.includesUncommitted = includesUncommitted;
        this.isReadByItsWriter = isReadByItsWriter;
        this.partitionColumns = Arrays.asList(Catalogs.partitionColumns(definition.v1Table()));
    }

    /** Which table has a name, and as of which moment a statement reads it. */
    static final class Origin {
        private final ReadPoint point;
        private final ReadMoment moment;
        private final long id;

        private Origin(ReadPoint point, ReadMoment moment, long id) {
            this.point = point;
            this.moment = moment;
            this.id = id;
        }
    }

    /** The table that has the name now, to be read as of {@code point}. */
    static Origin find(Metastore metastore, TableIdentifier name, ReadPoint point) {
        // Who may not read the table may still describe, alter or drop it: reads are refused when they begin.
        Metastore.Answer position = timelineOf(metastore, name, refused -> true);
        long id = position == null ? 0 : position.number(8, 0);
        long completed = position == null ? 0 : position.number(4, 0);
        checkNotOfEarlierTable(metastore, name, point);
        return new Origin(point, point.isLatest() ? ReadMoment.ofStatement(id, completed) : null, id);
    }

    /** Whether a table has completed instants. False for one that the metastore doesn't know. Raises an AnalysisException. */
    static boolean hasInstants(Metastore metastore, TableIdentifier name) {
        // Of one that isn't there, Spark says it.
        Metastore.Answer position = timelineOf(metastore, name, refused -> refused == NO_SUCH_OBJECT);
        return position != null && position.number(1, 0) > 0;
    }

    /** Raises an AnalysisException for a position, as somebody names it, that an earlier table of this one's name had. */
    void checkNotOfEarlierTable(ReadPoint named) {
        checkNotOfEarlierTable(metastore, identifier(), named);
    }

    /** Asked by the table's id, the metastore would say what the table had then: nothing. */
    private static void checkNotOfEarlierTable(Metastore metastore, TableIdentifier name, ReadPoint point) {
        if (point.isPosition() && point.position() != 0) {
            Metastore.Struct request =
                    point.addTo(new Metastore.Struct())
                            .with(1, reference(LakeCatalog.undecorated(name), 0))
                            .with(6, new ArrayList<String>());
            // All else is said when it is read.
            asked(metastore, "lake_get_snapshot", request, name, refused -> refused != INVALID_OPERATION);
        }
    }

    private static Metastore.Answer timelineOf(Metastore metastore, TableIdentifier name, IntPredicate isPassedOver) {
        return asked(
                metastore, "lake_timeline_position", reference(LakeCatalog.undecorated(name), 0), name, isPassedOver);
    }

    /**
     * What the metastore answers about the table that has a name; null if it refuses by an exception whose number {@code
     * isPassedOver}. Raises an AnalysisException for the others, and if there is no answer.
     */
    private static Metastore.Answer asked(
            Metastore metastore, String call, Metastore.Struct request, TableIdentifier name, IntPredicate isPassedOver) {
        try {
            return (Metastore.Answer) metastore.call(call, request);
        } catch (Metastore.Refused refused) {
            if (!isPassedOver.test(refused.field)) {
                throw Errors.analysis(refused.getMessage());
            }
            LOG.debug("{} of {} is refused: {}", call, name, refused.getMessage());
            return null;
        } catch (Metastore.NoAnswer missing) {
            throw Errors.analysis(missing.getMessage());
        }
    }

    /** {@code definition}: loaded later than {@code origin}, so that it knows the columns of all files of that moment. */
    static LakeTable of(Metastore metastore, V1Table definition, KeyedTable keyed, Origin origin) {
        boolean includesUncommitted = Relations.isDecorated(definition.v1Table().identifier());
        return new LakeTable(
                metastore, definition, keyed, origin.id, origin.point, origin.moment, includesUncommitted, false);
    }

    /** A table as a program describes it, at a position. {@code catalog}: as of {@link #reference}; null for the default. */
    static LakeTable described(
            Metastore metastore, V1Table definition, KeyedTable keyed, long id, String catalog, long position,
            boolean includesUncommitted, Selection selection) {
        ReadPoint point = ReadPoint.position(position);
        LakeTable found = new LakeTable(metastore, definition, keyed, id, point, null, includesUncommitted, false);
        found.catalog = catalog;
        found.selection = selection;
        return found;
    }

    /** The same table, its uncommitted partitions visible. */
    LakeTable includingUncommitted() {
        return includesUncommitted
                ? this
                : new LakeTable(metastore, definition, keyed, id, point, moment, true, isReadByItsWriter)
                        .readLike(this);
    }

    /** The same table, loaded for a query. */
    LakeTable in(QueryScope query) {
        LakeTable found =
                new LakeTable(metastore, definition, keyed, id, point, moment, includesUncommitted, isReadByItsWriter)
                        .readLike(this);
        found.scope = query;
        return found;
    }

    boolean isIn(QueryScope query) {
        return scope == query;
    }

    private LakeTable readLike(LakeTable other) {
        catalog = other.catalog;
        selection = other.selection;
        scope = other.scope;
        return this;
    }

    /** The same table, written by a statement that has read it as {@code read}: a change since is a conflict. */
    LakeTable readByItsWriter(LakeTable read) {
        LakeTable found =
                new LakeTable(metastore, definition, keyed, id, point, read.moment, includesUncommitted, true);
        found.overwritten = overwritten;
        found.isMerged = isMerged;
        return found;
    }

    boolean isReadByItsWriter() {
        return isReadByItsWriter;
    }

    /** The same table, of which a statement overwrites a partition, also without rows. */
    LakeTable overwriting(String partition) {
        LakeTable found =
                new LakeTable(metastore, definition, keyed, id, point, moment, includesUncommitted, isReadByItsWriter);
        found.overwritten = partition;
        return found;
    }

    /** The same table, into which a statement merges rows by their keys, see {@link Upserts}. */
    LakeTable merged() {
        LakeTable found =
                new LakeTable(metastore, definition, keyed, id, point, moment, includesUncommitted, isReadByItsWriter);
        found.isMerged = true;
        return found;
    }

    boolean isMerged() {
        return isMerged;
    }

    /** The partition that the statement names which overwrites it; null for none. */
    String overwritten() {
        return overwritten;
    }

    boolean isReadBefore(LakeTable other) {
        return moment != null && other.moment != null && moment.isBefore(other.moment);
    }

    /** Refuses to write it under a name or as of a position that is for reading, or without what its changelog needs. */
    void checkWritable() {
        TableIdentifier named = definition.v1Table().identifier();
        if (Relations.isDecorated(named)) {
            throw Errors.analysis(
                    named.unquotedString() + " can only be read: write to " + identifier().unquotedString() + " instead");
        }
        if (!point.isLatest()) {
            throw Errors.analysis(name() + " can only be written as it is now, not as of an earlier position");
        }
        if (keyed != null && keyed.changelogProducer.equals("input")) {
            throw Errors.analysis(
                    name() + ": changelog-producer=input needs the pre-images of rows, which SQL does not bring:"
                            + " use lake.spark.write(rows, table, operation=\"merge\"), or set changelog-producer=lookup");
        }
    }

    /** Whether it is the same table of the metastore. */
    boolean isSame(LakeTable other) {
        return id != 0 && id == other.id;
    }

    /** Which table it is, as it is defined; equal for two loads of it. */
    Object identity() {
        return Arrays.asList(
                name(), metastore, catalog, id, includesUncommitted, selection, definition.schema(), properties());
    }

    boolean isLatest() {
        return point.isLatest();
    }

    /** Whether all of its files are placed by the number of buckets that its definition says. */
    boolean hasBucketsOfDefinition() {
        return isLatest() || selection.hasBucketsOfDefinition;
    }

    /** Whether its reader keeps cleans off its files by a lease of its own. */
    boolean isPinned() {
        return selection.isPinned;
    }

    /** The columns that partition it, in lower case. */
    List<String> partitionColumns() {
        return partitionColumns;
    }

    /** Columns in lower case as its definition spells them, which a session may tell apart. */
    List<String> spelled(List<String> columns) {
        Map<String, String> names = new HashMap<>();
        for (String name : definition.v1Table().schema().fieldNames()) {
            names.put(name.toLowerCase(Locale.ROOT), name);
        }
        return columns.stream().map(name -> names.getOrDefault(name, name)).collect(Collectors.toList());
    }

    TableIdentifier identifier() {
        return LakeCatalog.undecorated(definition.v1Table().identifier());
    }

    /** The snapshot that is read; it is the same for all scans of a statement. No clean removes its files meanwhile. */
    Snapshot snapshot() {
        try {
            return decided();
        } catch (Metastore.Failed failed) {
            throw Errors.analysis(failed.getMessage());
        }
    }

    /** The same. A program, or a query of its own, has it from then on, without further calls. Raises Failed. */
    Snapshot decided() {
        if (decided != null) {
            return decided;
        }
        checkKnown();
        Snapshot found = filesAt(readAt(), includesUncommitted);
        if (found.position > 0 && !isPinned()) {
            metastore.leases().keep(reference(), id, found.position, leaseHours());
        }
        if (isPinned() || scope != null) {
            decided = found;
        }
        return found;
    }

    /** Begins an instant that writes the table, in the definition that this object has. */
    PendingInstant begin(String action) {
        checkKnown();
        Long position = isReadByItsWriter ? Long.valueOf(position()) : null;
        return PendingInstant.begin(metastore, reference(), name(), action, position);
    }

    /** The position that is read. */
    long position() {
        try {
            checkKnown();
            return page(readAt(), null, includesUncommitted, 1, null).number(1, 0);
        } catch (Metastore.Failed failed) {
            throw Errors.analysis(failed.getMessage());
        }
    }

    /** The first position whose snapshot no clean has touched. */
    long oldestReadable() {
        return call("lake_timeline_position", reference()).number(3, 0);
    }

    /** The position of a point of its timeline. */
    long positionOf(ReadPoint other) {
        return other.isPosition() ? other.position() : at(other).position();
    }

    /** What the completions after one position up to another changed, and its files at both where that tells. */
    static final class Changed {
        /** The changes are all in files of changelogs. */
        final boolean isOfChangelogs;
        final String location;
        /** By completion, in their order, as InstantChanges of the metastore. */
        final List<Metastore.Answer> changes;

        private Changed(boolean isOfChangelogs, String location, List<Metastore.Answer> changes) {
            this.isOfChangelogs = isOfChangelogs;
            this.location = location;
            this.changes = changes;
        }
    }

    /**
     * What changed after one position up to another, with files of changelogs if {@code wantsChangelogs} and all of the
     * range has some. Raises Refused if files of it have been cleaned; the message names the oldest readable position.
     */
    Changed changes(long after, long upTo, boolean wantsChangelogs) {
        checkKnown();
        List<Metastore.Answer> found = new ArrayList<>();
        long position = after;
        Boolean isOfChangelogs = null;
        Metastore.Answer answer;
        do {
            answer =
                    call(
                            "lake_read_changes",
                            new Metastore.Struct()
                                    .with(1, reference())
                                    .with(2, position)
                                    .with(3, upTo)
                                    .with(5, selection.filter)
                                    .with(6, includesUncommitted)
                                    .with(8, isOfChangelogs == null ? wantsChangelogs : isOfChangelogs));
            if (isOfChangelogs != null && isOfChangelogs != answer.flag(4)) {
                return changes(after, upTo, wantsChangelogs); // a clean has removed changelogs since the first page
            }
            isOfChangelogs = answer.flag(4);
            found.addAll(answer.structs(1));
            position = answer.number(2, upTo);
        } while (position < upTo);
        return new Changed(isOfChangelogs, answer.text(3), found);
    }

    /** The files of some partitions at a position. Raises Refused if it can't be read any more. */
    List<SnapshotFile> filesAt(long position, List<String> partitions) {
        return partitions.isEmpty()
                ? new ArrayList<>()
                : filesAt(ReadPoint.position(position), includesUncommitted, partitions).files;
    }

    /** Keeps cleans off all that came and went after a position, as far as it is still there. */
    void keepChanges(long position) {
        metastore.leases().keepChanges(reference(), id, position, leaseHours());
    }

    /** All files at a position, those of uncommitted partitions among them. */
    Snapshot snapshotToChange(long position) {
        try {
            return filesAt(ReadPoint.position(position), true);
        } catch (Metastore.Failed failed) {
            throw Errors.analysis(failed.getMessage());
        }
    }

    /** All files that it has now, those of uncommitted partitions among them. */
    Snapshot latest() {
        return filesAt(ReadPoint.LATEST, true);
    }

    /** Makes the plan of a table service and takes it up. {@code request}: a BeginInstantRequest without table and action. */
    PendingInstant takeUp(String action, Metastore.Struct request) {
        return PendingInstant.takeUp(metastore, reference(), name(), action, request);
    }

    private void checkKnown() {
        if (keyed != null) {
            keyed.checkUnderstood(name());
        }
        if (id == 0) {
            // Mostly a refusal, whose message is thrown here.
            metastore.call("lake_timeline_position", reference(identifier(), 0));
            throw Errors.analysis(name() + ": the metastore did not answer during the analysis; run the statement again");
        }
    }

    private static String leaseHours() {
        return Catalogs.state(SparkSession.active()).conf().getConfString(ReaderLeases.HOURS, null);
    }

    private ReadPoint readAt() {
        return moment == null ? point : ReadPoint.moment(moment.fixed());
    }

    /** A part of a snapshot, of about {@code files} files. */
    private Metastore.Answer page(
            ReadPoint at, List<String> partitions, boolean includesUncommitted, int files, String after) {
        List<String> wanted = partitions == null ? selection.partitions : partitions;
        return call(
                "lake_get_snapshot",
                at.addTo(new Metastore.Struct())
                        .with(1, reference())
                        .with(6, wanted)
                        .with(7, wanted == null ? selection.filter : null)
                        .with(8, includesUncommitted)
                        .with(9, selection.isOfBaseFiles ? Boolean.TRUE : null)
                        .with(10, files)
                        .with(11, after));
    }

    private Snapshot filesAt(ReadPoint at, boolean includesUncommitted) {
        return filesAt(at, includesUncommitted, null);
    }

    /** {@code partitions}: null for all. */
    private Snapshot filesAt(ReadPoint at, boolean includesUncommitted, List<String> partitions) {
        List<SnapshotFile> files = new ArrayList<>();
        String after = null;
        while (true) {
            Metastore.Answer answer = page(at, partitions, includesUncommitted, PAGE, after);
            for (SnapshotFile each : SnapshotFile.of(answer.structs(2))) {
                if (keyed != null) {
                    each.checkUnderstood();
                }
                if (selection.has(each)) {
                    files.add(each);
                }
            }
            after = answer.text(3);
            long position = answer.number(1, 0);
            if (after == null) {
                return new Snapshot(position, answer.text(4), files);
            }
            at = ReadPoint.position(position);
        }
    }

    /** The completed instants of some actions, null for all, the archived and undone ones too. */
    List<Metastore.Answer> completed(String... actions) {
        return pagesOf(
                new Metastore.Struct()
                        .with(1, reference())
                        .with(2, actions == null ? null : Arrays.asList(actions))
                        .with(3, Collections.singletonList("completed"))
                        .with(8, true));
    }

    /** All instants of its timeline that aren't archived. */
    List<Metastore.Answer> instants() {
        try {
            return pagesOf(new Metastore.Struct().with(1, reference()));
        } catch (Metastore.Failed failed) {
            throw Errors.analysis(failed.getMessage());
        }
    }

    /** All instants that a ListInstantsRequest asks for: the metastore answers with a bounded number at once. */
    private List<Metastore.Answer> pagesOf(Metastore.Struct request) {
        List<Metastore.Answer> found = new ArrayList<>();
        String after = null;
        while (true) {
            List<Metastore.Answer> page = list("lake_list_instants", request.with(4, after).with(6, INSTANTS));
            if (page.size() < INSTANTS) {
                found.addAll(page);
                return found;
            }
            // The last timestamp may go on in the next page, which begins with it.
            String last = page.get(page.size() - 1).text(1);
            page.removeIf(each -> each.text(1).equals(last));
            found.addAll(page);
            after = page.get(page.size() - 1).text(1);
        }
    }

    /** A table by its name, of the current database if it names none. */
    static LakeTable named(String name) {
        try {
            LakeTable found = ifKeyed(Catalogs.state(SparkSession.active()).sqlParser().parseTableIdentifier(name));
            if (found != null) {
                return found;
            }
        } catch (ParseException error) {
            throw Errors.rethrow(error);
        }
        throw Errors.analysis(name + " is no keyed table of this session");
    }

    /** A name with its database, by default the current one. */
    static TableIdentifier inDatabase(TableIdentifier name) {
        return name.database().isDefined()
                ? name
                : new TableIdentifier(
                        name.table(),
                        Option.apply(Catalogs.state(SparkSession.active()).catalog().getCurrentDatabase()),
                        Option.empty());
    }

    /** A table by its name; null if there is none, or it is no keyed one. */
    static LakeTable ifKeyed(TableIdentifier name) {
        SparkSession session = SparkSession.active();
        CatalogPlugin catalog = Catalogs.sessionCatalog(session);
        if (!(catalog instanceof LakeCatalog)) {
            return null;
        }
        try {
            String database = inDatabase(name).database().get();
            Table table = ((LakeCatalog) catalog).loadTable(Identifier.of(new String[] {database}, name.table()));
            return table instanceof LakeTable && ((LakeTable) table).keyed != null ? (LakeTable) table : null;
        } catch (NoSuchTableException missing) {
            return null;
        }
    }

    /** Its name as SQL takes it. */
    String quotedName() {
        return String.join(".", Catalogs.quoted(identifier().database().get(), identifier().table()));
    }

    /** What names this table in requests. */
    Metastore.Struct reference() {
        checkKnown();
        return reference(identifier(), id).with(1, catalog);
    }

    Metastore.Answer call(String method, Object... parameters) {
        return (Metastore.Answer) metastore.call(method, parameters);
    }

    List<Metastore.Answer> list(String method, Object... parameters) {
        List<Metastore.Answer> found = new ArrayList<>();
        for (Object each : (List<?>) metastore.call(method, parameters)) {
            found.add((Metastore.Answer) each);
        }
        return found;
    }

    /** Makes an instant that writes no files. Answers its timestamp. */
    Map<String, Object> change(String action, Metastore.Struct completion) {
        PendingInstant instant = begin(action);
        try {
            instant.complete(completion);
        } finally {
            instant.abort(); // unless it is complete
        }
        return Collections.singletonMap("instant", instant.timestamp);
    }

    static Metastore.Struct reference(TableIdentifier name, long id) {
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
     * The columns as they are stored: CHAR isn't padded and files don't get defaults that are younger, so that all readers
     * see the same rows. Of a table without a primary key, a query reads what Spark's own reader would.
     */
    @Override
    public StructType schema() {
        if (keyed == null && scope != null) {
            return definition.schema();
        }
        List<StructField> fields = new ArrayList<>();
        for (StructField each : definition.schema().fields()) {
            MetadataBuilder metadata = new MetadataBuilder();
            for (String key : KEPT_METADATA) {
                if (each.metadata().contains(key)) {
                    metadata.putString(key, each.metadata().getString(key));
                }
            }
            String name = each.name().toLowerCase(Locale.ROOT);
            boolean isNullable =
                    keyed == null
                            || (!keyed.key.contains(name)
                                    && !keyed.sequence.contains(name)
                                    && !partitionColumns.contains(name));
            fields.add(new StructField(each.name(), each.dataType(), isNullable, metadata.build()));
        }
        return new StructType(fields.toArray(new StructField[0]));
    }

    /** The length of a CHAR column, whose values are filled up to it; 0 for other columns. */
    int charLength(String column) {
        for (StructField each : definition.v1Table().schema().fields()) {
            if (each.name().equalsIgnoreCase(column)) {
                return charLength(each.metadata());
            }
        }
        return 0;
    }

    /** The same, by the metadata of a column of any table. */
    static int charLength(Metadata column) {
        Option<DataType> raw = CharVarcharUtils.getRawType(column);
        return raw.isDefined() && raw.get() instanceof CharType ? ((CharType) raw.get()).length() : 0;
    }

    /** The columns of the files, as they are named there: those of keyed tables in lower case. */
    StructType dataSchema() {
        List<StructField> fields = new ArrayList<>();
        for (StructField each : schema().fields()) {
            String name = each.name().toLowerCase(Locale.ROOT);
            if (!partitionColumns.contains(name)) {
                fields.add(
                        new StructField(keyed == null ? each.name() : name, each.dataType(), true, Metadata.empty()));
            }
        }
        return new StructType(fields.toArray(new StructField[0]));
    }

    /** Under which names files have its columns. */
    ColumnNames columnNames() {
        return ColumnNames.of(properties());
    }

    /** How rows are placed and merged, and which columns they have: a completion is refused if that has changed. */
    Map<String, String> layout() {
        Map<String, String> found = keyed.layout();
        found.put(ColumnNames.PROPERTY, String.valueOf(columnNames().version(dataSchema())));
        return found;
    }

    /** Whether its partitions turn ready later than they are added. */
    boolean makesReadyLater() {
        String mode = properties().getOrDefault(COMMIT_MODE, "none").trim();
        return !partitionColumns.isEmpty() && !mode.equalsIgnoreCase("none");
    }

    /** Whether properties are those of a table with a timeline. */
    static boolean isOnTimeline(Map<String, String> properties) {
        return properties.keySet().stream().anyMatch(name -> name.startsWith("timeline."));
    }

    /** Whether it has instants, or properties that only a table with a timeline has. */
    boolean isOnTimeline() {
        return isOnTimeline(properties()) || lastPosition() > 0;
    }

    /** Whether streams go by its timeline: also by one that begins with them, where partitions become ready later. */
    boolean isStreamedByTimeline() {
        return makesReadyLater() || isOnTimeline();
    }

    /** The position of its last completion, whatever this object reads. Raises Refused if another table has the name. */
    long lastPosition() {
        return call("lake_timeline_position", reference()).number(1, 0);
    }

    long tableId() {
        return id;
    }

    /** The same table as of a position, which the caller keeps. {@code filter}: which partitions are read, in Hive's grammar; null for all. */
    LakeTable readAt(long position, String filter) {
        LakeTable found = at(ReadPoint.position(position));
        found.selection = Selection.pinned(filter);
        return found;
    }

    /** When the last known instant up to a position was complete, in microseconds since 1970. */
    long completedAt(long position) {
        List<Metastore.Answer> found = new ArrayList<>();
        try {
            changes(position - 1, position, false).changes.forEach(each -> found.add(each.struct(1)));
        } catch (Metastore.Refused gone) {
            // what was before it has been cleaned
        }
        if (found.isEmpty()) { // that, or the instant was one that can be deleted, such as a clean or a savepoint
            found.addAll(completed((String[]) null));
        }
        Metastore.Answer latest = null;
        for (Metastore.Answer each : found) {
            long at = each.number(8, 0);
            if (at <= position && (latest == null || at > latest.number(8, 0))) {
                latest = each;
            }
        }
        if (latest == null) {
            throw Errors.analysis(name() + " doesn't know any more when its position " + position + " was complete");
        }
        return latest.number(5, 0) * 1_000;
    }

    /** All partitions, those that are uncommitted and those that files of no snapshot lie in among them. */
    Set<String> allPartitions() {
        Metastore.Struct request = new Metastore.Struct().with(1, reference()).with(3, true);
        Set<String> found = new TreeSet<>();
        call("lake_list_partitions", request).structs(1).forEach(each -> found.add(each.text(1)));
        return found;
    }

    /** A lease that moves on with a stream. */
    ReaderLeases.Pin pin() {
        return metastore.leases().pin(reference(), id);
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
        return EnumSet.of(
                TableCapability.BATCH_READ,
                TableCapability.BATCH_WRITE,
                TableCapability.STREAMING_WRITE,
                TableCapability.MICRO_BATCH_READ,
                TableCapability.TRUNCATE,
                TableCapability.OVERWRITE_BY_FILTER,
                TableCapability.OVERWRITE_DYNAMIC);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
        LakeTable table = options.getBoolean(Scope.HINT, false) ? includingUncommitted() : this;
        return LakeScan.of(point.isLatest() ? table.asOf(options) : table);
    }

    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
        checkWritable();
        return new LakeWrite.Builder(this, info, isMerged ? "merge" : "upsert");
    }

    @Override
    public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
        checkWritable();
        RowChanges.check(info.command(), this);
        return () -> new RowChanges(isReadByItsWriter ? this : readByItsWriter(this), info.command());
    }

    /** DELETE without a condition, and TRUNCATE. */
    @Override
    public boolean truncateTable() {
        checkWritable();
        if (!keyed.takesDeletes()) {
            throw Errors.analysis(RowChanges.noDeletes(this));
        }
        LakeWrite.truncate(this);
        return true;
    }

    /** As the options of a DataFrame's reader say, which Spark 3.5 leaves to the table. */
    private LakeTable asOf(CaseInsensitiveStringMap options) {
        if (options.containsKey("timestampAsOf")) {
            throw Errors.analysis(
                    name() + ": the option timestampAsOf needs Spark 4; SELECT … TIMESTAMP AS OF does not");
        }
        if (!options.containsKey("versionAsOf")) {
            return this;
        }
        ReadPoint wanted = ReadPoint.version(options.get("versionAsOf"));
        checkNotOfEarlierTable(wanted);
        return at(wanted);
    }

    private LakeTable at(ReadPoint other) {
        return new LakeTable(metastore, definition, keyed, id, other, null, includesUncommitted, false).readLike(this);
    }

    @Override
    public String toString() {
        return name();
    }
}
