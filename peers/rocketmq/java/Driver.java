package peer;

import java.io.Closeable;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import org.apache.rocketmq.common.MQVersion;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.store.CommitLog;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.GetMessageResult;
import org.apache.rocketmq.store.QueryMessageResult;
import org.apache.rocketmq.store.SelectMappedBufferResult;
import org.apache.rocketmq.store.config.MessageStoreConfig;

/**
 * One DefaultMessageStore at a time, driven by JSON lines: a request on standard input, its answer on standard output.
 *
 * <p>Mode "stock" starts and stops the store as a broker does. Mode "quick" makes the same calls without their sleeps: it
 * dispatches what the queues lack before start(), and interrupts the thread before shutdown(). Mode "light" constructs
 * and loads the store, dispatches what the queues lack in this thread, and never starts it. A light store answers reads
 * as a stock one does. Its close writes nothing, as after a kill of the process.
 */
public final class Driver {
    private static final int PULL = 32;
    private static final int HASHED_MAX = 4096;

    private DefaultMessageStore store;
    private String mode;
    private final MessageDigest digest;
    private final Map<Long, Hashed> hashed = new HashMap<>();

    private Driver() throws Exception {
        digest = MessageDigest.getInstance("SHA-256");
    }

    public static void main(String[] arguments) throws Exception {
        Requests.serve(new Driver()::answer);
    }

    private Map<String, Object> answer(Map<String, Object> request) throws Exception {
        String verb = (String) request.get("do");
        if (verb.equals("open")) {
            double before = Bench.processorSeconds();
            long began = System.nanoTime();
            Map<String, Object> opened = open(request);
            opened.put("seconds", (System.nanoTime() - began) / 1e9);
            opened.put("cpu", Bench.processorSeconds() - before);
            return opened;
        }
        if (verb.equals("recover")) {
            return recover(request);
        }
        if (store == null) {
            throw new IllegalStateException("no store is open");
        }
        switch (verb) {
            case "log":
                return Json.object("min", store.getMinPhyOffset(), "max", store.getMaxPhyOffset(),
                        "behind", store.dispatchBehindBytes());
            case "queues":
                return Json.object("queues", queues());
            case "read":
                return read((String) request.get("topic"), number(request, "queue"), number(request, "from"),
                        number(request, "count"));
            case "query":
                return Json.object("found", found((List<?>) request.get("keys"), number(request, "count")));
            case "everything":
                return everything((List<?>) request.get("keys"), number(request, "count"));
            case "fields":
                return Json.object("fields", fields((List<?>) request.get("offsets")));
            case "records":
                return Json.object("records",
                        Walk.records(store, (List<?>) request.get("known"), number(request, "fileBytes")));
            case "units":
                return Json.object("units", Walk.units(store));
            case "bench":
                return Bench.measure(store, request);
            case "clean":
                store.executeDeleteFilesManually();
                Reflect.call(store, "cleanFilesPeriodically");
                return Json.object("min", store.getMinPhyOffset());
            case "put":
                return Writes.put(store, request);
            case "batch":
                return Writes.batch(store, request);
            case "close":
                return close();
            default:
                throw new IllegalArgumentException("unknown request " + verb);
        }
    }

    private static int number(Map<String, Object> request, String name) {
        return ((Long) request.get(name)).intValue();
    }

    // ---- open and close

    @SuppressWarnings("unchecked")
    private Map<String, Object> open(Map<String, Object> request) throws Exception {
        if (store != null) {
            throw new IllegalStateException("a store is open");
        }
        String directory = (String) request.get("directory");
        mode = (String) request.get("mode");
        MessageStoreConfig config = new MessageStoreConfig();
        for (Map.Entry<String, Object> each : ((Map<String, Object>) request.get("settings")).entrySet()) {
            Versions.configure(config, each.getKey(), each.getValue());
        }
        config.setStorePathRootDir(directory);
        config.setStorePathCommitLog(directory + "/commitlog");
        config.setHaListenPort(0); // a free port: several stores follow each other in one process
        store = Versions.store(config);
        if (!store.load()) {
            letGo();
            return Json.object("loaded", false, "dispatched", false, "reason", "load() returned false");
        }
        if (!mode.equals("stock")) {
            long stuckAt = dispatch("end".equals(request.get("dispatch")));
            if (stuckAt >= 0) {
                return Json.object("loaded", true, "dispatched", false, "reason", "dispatch stands still at " + stuckAt);
            }
        }
        if (mode.equals("light")) {
            Reflect.set(store, "shutdown", false); // start() does this; without it every read answers null
        } else {
            store.start(); // its wait for dispatch has no end on some images; the caller has a time limit
        }
        return Json.object("loaded", true, "dispatched", true, "reason", "");
    }

    /** Dispatch from where the queues end, or from the end of the log, as start() does. Return -1, or the offset at which no progress is made. */
    private long dispatch(boolean fromTheEnd) throws Exception {
        CommitLog log = store.getCommitLog();
        Object service = Reflect.get(store, "reputMessageService");
        if (MQVersion.CURRENT_VERSION < MQVersion.Version.V4_5_0_SNAPSHOT.ordinal()) {
            Reflect.call(service, "setReputFromOffset", log.getMaxOffset()); // the recovery itself dispatches what is due
            return -1;
        }
        long from = log.getMinOffset();
        for (Map<Integer, Object> ofTopic : Versions.queues(store).values()) {
            for (Object queue : ofTopic.values()) {
                from = Math.max(from, (Long) Reflect.call(queue, "getMaxPhysicOffset"));
            }
        }
        from = fromTheEnd ? log.getMaxOffset() : Math.max(from, 0);
        Reflect.call(service, "setReputFromOffset", from);
        long before = -1;
        while (store.dispatchBehindBytes() > 0) {
            long now = (Long) Reflect.call(service, "getReputFromOffset");
            if (now == before) {
                return now;
            }
            before = now;
            Reflect.call(service, "doReput");
        }
        Reflect.call(store, "recoverTopicQueueTable");
        return -1;
    }

    private Map<String, Object> close() throws Exception {
        if (mode.equals("light")) {
            Reflect.set(store, "shutdown", true);
        } else if (mode.equals("quick")) {
            dropDelayedTasks();
            Thread.currentThread().interrupt(); // the sleep at the head of shutdown() ends at once, and is only logged
            store.shutdown();
            Thread.interrupted();
        } else {
            store.shutdown();
        }
        letGo();
        return Json.object("closed", true);
    }

    /** Drop the tasks of delayed delivery that lie in the future; shutdown() waits for them otherwise. */
    private void dropDelayedTasks() throws Exception {
        for (String name : new String[] {"deliverExecutorService", "handleExecutorService"}) {
            try {
                Object pool = Reflect.get(Reflect.get(store, "scheduleMessageService"), name);
                if (pool instanceof ScheduledThreadPoolExecutor) {
                    ((ScheduledThreadPoolExecutor) pool).setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
                }
            } catch (NoSuchFieldException absent) {
                continue; // this version has no such service or pool
            }
        }
    }

    private interface Step {
        void run() throws Exception;
    }

    /** Free threads, descriptors and mappings of the store. Nothing is written: the checkpoint is not flushed. */
    private void letGo() {
        DefaultMessageStore closing = store;
        store = null;
        Step[] steps = {
            () -> Reflect.call(Reflect.get(closing, "allocateMappedFileService"), "shutdown"),
            () -> ((ExecutorService) Reflect.get(closing, "scheduledExecutorService")).shutdownNow(),
            () -> ((ExecutorService) Reflect.get(closing, "diskCheckScheduledExecutorService")).shutdownNow(),
            () -> ((Closeable) Reflect.get(closing, "lockFile")).close(),
            () -> ((Closeable) Reflect.get(Reflect.get(closing, "storeCheckpoint"), "fileChannel")).close(),
            () -> ((Closeable) Reflect.get(Reflect.get(closing, "storeCheckpoint"), "randomAccessFile")).close(),
            () -> ((Closeable) Reflect.get(Reflect.get(Reflect.get(closing, "haService"), "haClient"), "selector"))
                    .close(),
            () -> Reflect.call(Reflect.get(closing.getCommitLog(), "mappedFileQueue"), "shutdown", 0L),
            () -> {
                for (Map<Integer, Object> ofTopic : Versions.queues(closing).values()) {
                    for (Object queue : ofTopic.values()) {
                        Reflect.call(Reflect.get(queue, "mappedFileQueue"), "shutdown", 0L);
                    }
                }
            },
            () -> {
                Object index = Reflect.get(closing, "indexService");
                for (Object file : (Iterable<?>) Reflect.get(index, "indexFileList")) {
                    Reflect.call(Reflect.get(file, "mappedFile"), "shutdown", 0L);
                }
            },
        };
        for (Step step : steps) {
            try {
                step.run();
            } catch (Exception thrown) {
                System.err.println("at close: " + thrown); // this version has no such part, or it is closed already
            }
        }
    }

    // ---- reads

    private List<Object> queues() throws Exception {
        TreeMap<String, Object> found = new TreeMap<>();
        for (Map.Entry<String, Map<Integer, Object>> ofTopic : Versions.queues(store).entrySet()) {
            String topic = ofTopic.getKey();
            for (Integer queue : ofTopic.getValue().keySet()) {
                found.put(String.format("%s/%010d", topic, queue), Json.object("topic", topic, "queue", queue,
                        "min", store.getMinOffsetInQueue(topic, queue),
                        "max", store.getMaxOffsetInQueue(topic, queue)));
            }
        }
        return new ArrayList<>(found.values());
    }

    /** Answer all reads at once: bounds of the log, every place of every queue, and records by key. */
    private Map<String, Object> everything(List<?> keys, int count) throws Exception {
        List<Object> queues = queues();
        List<Object> read = new ArrayList<>();
        for (Object each : queues) {
            Map<?, ?> queue = (Map<?, ?>) each;
            long from = (Long) queue.get("min");
            long end = (Long) queue.get("max");
            read.add(read((String) queue.get("topic"), (Integer) queue.get("queue"), from,
                    (int) Math.max(0, Math.min(Integer.MAX_VALUE, end - from))));
        }
        return Json.object("log", Json.object("min", store.getMinPhyOffset(), "max", store.getMaxPhyOffset(),
                "behind", store.dispatchBehindBytes()), "queues", queues, "read", read,
                "found", keys.isEmpty() ? keys : found(keys, count));
    }

    /**
     * Recover a directory several times, with a close that this mode makes after each.
     *
     * <p>Each recovery answers with the bounds of the log, all places of all queues and the records by key, as lists. A
     * recovery that answers as the one before it is only marked so. The first one that fails is the last one.
     */
    private Map<String, Object> recover(Map<String, Object> request) {
        List<Object> told = new ArrayList<>();
        String before = "";
        for (int left = number(request, "times"); left > 0; left--) {
            String verb = "open";
            try {
                Map<String, Object> answer = open(request);
                boolean isReadable = (Boolean) answer.get("dispatched");
                if ((Boolean) answer.get("loaded")) {
                    verb = "read";
                    answer.put("log", bounds());
                    if (isReadable) {
                        compact(answer, (List<?>) request.get("keys"), number(request, "count"));
                    }
                    verb = "close";
                    close();
                }
                String text = Json.text(answer);
                told.add(text.equals(before) ? Json.object("same", true) : answer);
                before = text;
                if (!isReadable) {
                    break;
                }
            } catch (Exception thrown) {
                thrown.printStackTrace();
                told.add(Json.object("failed", verb, "reason", thrown.toString()));
                break;
            }
        }
        return Json.object("recoveries", told);
    }

    private List<Object> bounds() throws Exception {
        return List.of(store.getMinPhyOffset(), store.getMaxPhyOffset(), store.dispatchBehindBytes());
    }

    /** Add all answers to reads. */
    private void compact(Map<String, Object> answer, List<?> keys, int count) throws Exception {
        List<Object> queues = new ArrayList<>();
        for (Object each : queues()) {
            Map<?, ?> queue = (Map<?, ?>) each;
            String topic = (String) queue.get("topic");
            int id = (Integer) queue.get("queue");
            long from = (Long) queue.get("min");
            long end = (Long) queue.get("max");
            List<Object> messages = new ArrayList<>();
            List<Object> gaps = new ArrayList<>();
            for (long at = from; at < end;) {
                GetMessageResult pulled = pull(topic, id, at, (int) Math.min(PULL, end - at));
                try {
                    long place = at;
                    for (SelectMappedBufferResult message : pulled.getMessageMapedList()) {
                        List<Object> row = new ArrayList<>(4);
                        row.add(place++);
                        addRecord(row, message.getByteBuffer());
                        messages.add(row);
                    }
                    if (pulled.getMessageMapedList().isEmpty()) {
                        gaps.add(List.of(at, String.valueOf(pulled.getStatus())));
                    }
                    at = Math.max(at + 1, pulled.getNextBeginOffset());
                } finally {
                    pulled.release();
                }
            }
            queues.add(List.of(topic, id, from, end, messages, gaps));
        }
        answer.put("queues", queues);
        List<Object> found = new ArrayList<>();
        for (Object key : keys) {
            List<?> pair = (List<?>) key; // topic and key
            List<Object> rows = new ArrayList<>();
            QueryMessageResult result =
                    store.queryMessage((String) pair.get(0), (String) pair.get(1), count, 0, Long.MAX_VALUE);
            if (result != null) {
                try {
                    for (ByteBuffer view : result.getMessageBufferList()) {
                        List<Object> row = new ArrayList<>(3);
                        addRecord(row, view);
                        rows.add(row);
                    }
                } finally {
                    result.release();
                }
            }
            found.add(rows);
        }
        answer.put("found", found);
    }

    /** Add physical offset, size and hash of a record. */
    private void addRecord(List<Object> row, ByteBuffer view) {
        int size = view.remaining();
        long offset = size < 36 ? -1 : view.getLong(view.position() + 28);
        Hashed known = hashed.get(offset);
        if (known == null || !known.bytes.equals(view)) {
            byte[] record = bytes(view);
            known = new Hashed(ByteBuffer.wrap(record), sha256(record));
            if (hashed.size() > HASHED_MAX) {
                hashed.clear();
            }
            hashed.put(offset, known);
        }
        row.add(offset);
        row.add(size);
        row.add(known.sha256);
    }

    /** A record and its hash. Many images of one history have equal records. */
    private static final class Hashed {
        private final ByteBuffer bytes;
        private final String sha256;

        private Hashed(ByteBuffer bytes, String sha256) {
            this.bytes = bytes;
            this.sha256 = sha256;
        }
    }

    private GetMessageResult pull(String topic, int queue, long at, int most) throws Exception {
        GetMessageResult pulled = store.getMessage("peer", topic, queue, at, most, null);
        if (pulled == null) {
            throw new IllegalStateException("a pull answers null");
        }
        return pulled;
    }

    /** Read `count` places of a queue: the messages found, and the places at which a pull found none. */
    private Map<String, Object> read(String topic, int queue, long from, int count) throws Exception {
        List<Object> messages = new ArrayList<>();
        List<Object> gaps = new ArrayList<>();
        long at = from;
        long oneByOneUntil = from;
        while (at < from + count) {
            int most = at < oneByOneUntil ? 1 : (int) Math.min(PULL, from + count - at);
            GetMessageResult pulled = pull(topic, queue, at, most);
            try {
                List<?> places = Versions.places(pulled);
                int index = 0;
                int served = pulled.getMessageMapedList().size();
                if (places == null && most > 1 && served > 0 && pulled.getNextBeginOffset() - at != served) {
                    oneByOneUntil = at + most; // the pull passed places without a message and does not state which
                    continue;
                }
                if (places == null && most == 1 && served == 1) {
                    index = (int) (pulled.getNextBeginOffset() - 1 - at);
                }
                for (SelectMappedBufferResult each : pulled.getMessageMapedList()) {
                    long place = places == null ? at + index : (Long) places.get(index);
                    messages.add(message(place, each.getByteBuffer()));
                    index++;
                }
                if (pulled.getMessageMapedList().isEmpty()) {
                    gaps.add(List.of(at, String.valueOf(pulled.getStatus())));
                }
                at = Math.max(at + 1, pulled.getNextBeginOffset());
            } finally {
                pulled.release();
            }
        }
        return Json.object("messages", messages, "gaps", gaps);
    }

    private Map<String, Object> message(long place, ByteBuffer view) {
        byte[] record = bytes(view);
        Map<String, Object> told = Json.object("place", place, "offset", physicalOffset(record), "size", record.length,
                "record", sha256(record));
        MessageExt decoded = MessageDecoder.decode(ByteBuffer.wrap(record), true, false);
        told.put("body", decoded == null ? null : sha256(decoded.getBody() == null ? new byte[0] : decoded.getBody()));
        told.put("tags", decoded == null ? null : decoded.getTags());
        told.put("number", decoded == null ? null : decoded.getQueueOffset());
        return told;
    }

    private List<Object> found(List<?> keys, int count) {
        List<Object> answers = new ArrayList<>();
        for (Object key : keys) {
            List<?> pair = (List<?>) key; // topic and key
            answers.add(query((String) pair.get(0), (String) pair.get(1), count));
        }
        return answers;
    }

    private List<Object> query(String topic, String key, int count) {
        List<Object> found = new ArrayList<>();
        QueryMessageResult result = store.queryMessage(topic, key, count, 0, Long.MAX_VALUE);
        if (result != null) {
            try {
                for (ByteBuffer view : result.getMessageBufferList()) {
                    byte[] record = bytes(view);
                    found.add(List.of(physicalOffset(record), record.length, sha256(record)));
                }
            } finally {
                result.release();
            }
        }
        return found;
    }

    /** Return the decoded fields of the records at some physical offsets; null for one that is not decoded. */
    private List<Object> fields(List<?> offsets) {
        List<Object> all = new ArrayList<>();
        for (Object offset : offsets) {
            MessageExt message = store.lookMessageByOffset((Long) offset);
            all.add(message == null ? null : Json.object("topic", message.getTopic(), "queue", message.getQueueId(),
                    "flag", message.getFlag(), "sysFlag", message.getSysFlag(), "born", message.getBornTimestamp(),
                    "stored", message.getStoreTimestamp(), "crc", message.getBodyCRC(),
                    "reconsumed", message.getReconsumeTimes(), "prepared", message.getPreparedTransactionOffset(),
                    "properties", message.getProperties() == null ? Map.of() : new TreeMap<>(message.getProperties())));
        }
        return all;
    }

    private static byte[] bytes(ByteBuffer view) {
        byte[] copy = new byte[view.remaining()];
        view.duplicate().get(copy);
        return copy;
    }

    private static long physicalOffset(byte[] record) {
        return record.length < 36 ? -1 : ByteBuffer.wrap(record).getLong(28);
    }

    static String sha256Of(byte[] bytes) {
        try {
            return text(MessageDigest.getInstance("SHA-256").digest(bytes));
        } catch (NoSuchAlgorithmException missing) {
            throw new IllegalStateException(missing);
        }
    }

    private String sha256(byte[] bytes) {
        return text(digest.digest(bytes));
    }

    private static String text(byte[] hash) {
        StringBuilder text = new StringBuilder(64);
        for (byte each : hash) {
            text.append(Character.forDigit(each >> 4 & 15, 16)).append(Character.forDigit(each & 15, 16));
        }
        return text.toString();
    }
}
