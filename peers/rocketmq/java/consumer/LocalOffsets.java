package peer;

import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.store.LocalFileOffsetStore;
import org.apache.rocketmq.client.consumer.store.ReadOffsetType;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;
import org.apache.rocketmq.common.message.MessageQueue;

/** The local offset store: the file it writes, and what it reads of a file. */
final class LocalOffsets {
    private static MQClientInstance client;
    private static int groups;

    private LocalOffsets() {
    }

    /**
     * Store the offsets of "rows" in order (topic, broker, queue, offset), each row with "increaseOnly".
     *
     * <p>With "file" or "backup" these texts are there before, and are loaded. Return the text and the offsets of the
     * file afterwards, and what a second store reads of it.
     */
    static Object written(Map<String, Object> given) throws Exception {
        if (client == null) {
            client = new MQClientInstance(new ClientConfig(), 0, "client");
        }
        String group = "group" + groups++;
        File file = new File(LocalFileOffsetStore.LOCAL_OFFSET_STORE_DIR + "/client/" + group + "/offsets.json");
        file.getParentFile().mkdirs();
        put(file, (String) given.get("file"));
        put(new File(file + ".bak"), (String) given.get("backup"));
        LocalFileOffsetStore store = new LocalFileOffsetStore(client, group);
        try {
            store.load();
        } catch (Exception thrown) {
            return Json.object("error", thrown.getClass().getSimpleName());
        }
        HashSet<MessageQueue> queues = new HashSet<>(Allocations.queues(given.get("queues")));
        for (Object each : (List<?>) given.get("rows")) {
            List<?> row = (List<?>) each;
            MessageQueue queue = Allocations.queues(List.of(row)).get(0);
            store.updateOffset(queue, (Long) row.get(3), (Boolean) row.get(4));
        }
        store.persistAll(queues);
        LocalFileOffsetStore again = new LocalFileOffsetStore(client, group);
        again.load();
        List<Object> read = new ArrayList<>();
        for (MessageQueue queue : Allocations.queues(given.get("queues"))) {
            read.add(again.readOffset(queue, ReadOffsetType.READ_FROM_STORE));
        }
        return Json.object("file", text(file), "backup", text(new File(file + ".bak")), "read", read);
    }

    private static void put(File file, String text) throws Exception {
        if (text != null) {
            Files.write(file.toPath(), text.getBytes(StandardCharsets.UTF_8));
        }
    }

    private static String text(File file) throws Exception {
        return file.exists() ? new String(Files.readAllBytes(file.toPath()), StandardCharsets.UTF_8) : null;
    }
}
