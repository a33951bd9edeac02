package peer;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ScheduledThreadPoolExecutor;
// MessageExtBrokerInner is in the first package since 5.0.0, in the second one before.
import org.apache.rocketmq.common.message.*;
import org.apache.rocketmq.store.*;
import org.apache.rocketmq.store.config.FlushDiskType;
import org.apache.rocketmq.store.config.MessageStoreConfig;

/**
 * A DefaultMessageStore that takes messages, as a store under test (docs/test-your-store.md). Its writes are recorded.
 *
 * <p>Arguments: directory, "sync" or "async", then pairs of a setting and its number.
 */
public final class Target {
    private static final long DISPATCH_NANOS = 10_000_000_000L;

    private final DefaultMessageStore store;
    private final boolean isSync;

    private Target(String[] arguments) throws Exception {
        isSync = arguments[1].equals("sync");
        MessageStoreConfig config = new MessageStoreConfig();
        for (int i = 2; i < arguments.length; i += 2) {
            Versions.configure(config, arguments[i], Long.parseLong(arguments[i + 1]));
        }
        config.setStorePathRootDir(arguments[0]);
        config.setStorePathCommitLog(arguments[0] + "/commitlog");
        config.setHaListenPort(0);
        config.setFlushDiskType(isSync ? FlushDiskType.SYNC_FLUSH : FlushDiskType.ASYNC_FLUSH);
        store = Versions.store(config);
        if (!store.load()) {
            throw new IOException("load() returned false");
        }
        store.start();
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "US-ASCII");
        System.setOut(System.err); // nothing but answers on standard output
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Target target = null;
        boolean isClosed = false;
        for (String line = in.readLine(); line != null && !isClosed; line = isClosed ? null : in.readLine()) {
            Map<String, Object> answer;
            try {
                Map<String, Object> request = Json.parse(line);
                target = target == null ? new Target(arguments) : target;
                answer = target.answer(request);
                isClosed = request.get("do").equals("close");
            } catch (Exception thrown) {
                thrown.printStackTrace();
                answer = Json.object("error", thrown.toString());
            }
            out.print(Json.text(answer) + "\n");
            out.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private Map<String, Object> answer(Map<String, Object> request) throws Exception {
        String topic = (String) request.get("topic");
        switch ((String) request.get("do")) {
            case "hello":
                return Json.object("tornpage", 1, "name", "RocketMQ", "promises",
                        Json.object("durable", isSync ? "put" : "flush", "kill", "put", "index", true));
            case "put":
                return put(topic, ((Long) request.get("queue")).intValue(), (String) request.get("body"),
                        (List<?>) request.get("keys"));
            case "get":
                return Json.object("body", text(store.lookMessageByOffset((Long) request.get("offset"))));
            case "read":
                return Json.object("body", read(topic, ((Long) request.get("queue")).intValue(),
                        (Long) request.get("number")));
            case "find":
                return Json.object("bodies", find(topic, (String) request.get("key")));
            case "flush":
                flush();
                return Json.object();
            case "close":
                ((ScheduledThreadPoolExecutor) Reflect.get(store, "scheduledExecutorService")).shutdownNow();
                store.shutdown();
                return Json.object();
            default:
                throw new IllegalArgumentException("unknown request");
        }
    }

    /** Flushes all that was appended. One call of CommitLog.flush flushes at most one file. */
    private void flush() throws IOException {
        long end = store.getMaxPhyOffset();
        long before = -1;
        for (long flushed = store.getCommitLog().flush(); flushed < end; flushed = store.getCommitLog().flush()) {
            if (flushed == before) {
                throw new IOException("the log is flushed up to " + flushed + " of " + end + " only");
            }
            before = flushed;
        }
    }

    private Map<String, Object> put(String topic, int queue, String body, List<?> keys) throws Exception {
        MessageExtBrokerInner message = new MessageExtBrokerInner();
        message.setTopic(topic);
        message.setQueueId(queue);
        message.setBody(Base64.getDecoder().decode(body));
        message.setBornTimestamp(System.currentTimeMillis());
        message.setBornHost(new InetSocketAddress("127.0.0.1", 1));
        message.setStoreHost(new InetSocketAddress("127.0.0.1", 2));
        if (keys != null && !keys.isEmpty()) {
            List<String> words = new ArrayList<>();
            keys.forEach(key -> words.add((String) key));
            message.setKeys(words);
        }
        message.setPropertiesString(MessageDecoder.messageProperties2String(message.getProperties()));
        PutMessageResult result = store.putMessage(message);
        if (!result.isOk()) {
            throw new IOException("a put answers " + result.getPutMessageStatus());
        }
        long began = System.nanoTime();
        while (store.dispatchBehindBytes() > 0) { // so that a read after the answer finds the message
            if (System.nanoTime() - began > DISPATCH_NANOS) {
                throw new IOException("dispatch stands still");
            }
            Thread.sleep(1);
        }
        return Json.object("offset", result.getAppendMessageResult().getWroteOffset(),
                "number", result.getAppendMessageResult().getLogicsOffset());
    }

    private String read(String topic, int queue, long number) {
        GetMessageResult pulled = store.getMessage("target", topic, queue, number, 1, null);
        if (pulled == null) {
            return null;
        }
        try {
            for (SelectMappedBufferResult each : pulled.getMessageMapedList()) {
                return text(MessageDecoder.decode(each.getByteBuffer(), true, false));
            }
            return null;
        } finally {
            pulled.release();
        }
    }

    private List<Object> find(String topic, String key) {
        TreeMap<Long, Object> found = new TreeMap<>();
        QueryMessageResult result = store.queryMessage(topic, key, 64, 0, Long.MAX_VALUE);
        if (result != null) {
            try {
                for (ByteBuffer view : result.getMessageBufferList()) {
                    MessageExt message = MessageDecoder.decode(view, true, false);
                    found.put(message.getCommitLogOffset(), text(message));
                }
            } finally {
                result.release();
            }
        }
        return new ArrayList<>(found.values());
    }

    private static String text(MessageExt message) {
        if (message == null) {
            return null;
        }
        return Base64.getEncoder().encodeToString(message.getBody() == null ? new byte[0] : message.getBody());
    }
}
