package board;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.h2.mvstore.MVMap;
import org.h2.mvstore.MVStore;

/** H2's MVStore: one map, a commit and a sync for each record. The first open commits too, as a schema version would be. */
final class MVStoreLog implements Board.RecordLog {
    private final MVStore store;
    private final MVMap<Integer, String> map;

    MVStoreLog(Path directory) {
        store = new MVStore.Builder().fileName(directory.resolve("log.mv").toString()).autoCommitDisabled().open();
        map = store.openMap("records");
        MVMap<String, String> settings = store.openMap("settings");
        if (settings.isEmpty()) {
            settings.put("created", "yes");
            flush();
        }
    }

    @Override
    public List<String> all() {
        return new ArrayList<>(map.values());
    }

    @Override
    public void push(int n, String record) {
        map.put(n, record);
        flush();
    }

    @Override
    public void flush() {
        store.commit();
        store.sync();
    }

    @Override
    public void close() {
        store.close();
    }
}
