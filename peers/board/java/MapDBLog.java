package board;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.mapdb.BTreeMap;
import org.mapdb.DB;
import org.mapdb.DBMaker;
import org.mapdb.Serializer;

/** MapDB with transactions: one tree, a commit for each record. */
final class MapDBLog implements Board.RecordLog {
    private final DB database;
    private final BTreeMap<Integer, String> map;

    MapDBLog(Path directory) {
        database = DBMaker.fileDB(directory.resolve("log.mapdb").toFile()).transactionEnable().make();
        map = database.treeMap("records", Serializer.INTEGER, Serializer.STRING).createOrOpen();
    }

    @Override
    public List<String> all() {
        return new ArrayList<>(map.getValues());
    }

    @Override
    public void push(int n, String record) {
        map.put(n, record);
        flush();
    }

    @Override
    public void flush() {
        database.commit();
    }

    @Override
    public void close() {
        database.close();
    }
}
