package peer;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Method;
import java.net.InetSocketAddress;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
// MessageExtBrokerInner and MessageExtBatch are in the first package since 5.0.0, in the second one before.
import org.apache.rocketmq.common.message.*;
import org.apache.rocketmq.store.*;

/** Stretches of work on an open stock store: number of messages, seconds, and seconds of processor time of the JVM. */
final class Bench {
    private static final InetSocketAddress HOST = new InetSocketAddress("127.0.0.1", 10911);
    private static final String TOPIC = "TopicBench";
    private static final int QUEUES = 4;
    private static final int BATCH = 32;
    private static final int PULL = 32;
    private static final int KEYS_SEED = 0;

    private Bench() {
    }

    /** Processor time of this process in seconds, with all its threads. */
    static double processorSeconds() {
        java.lang.management.OperatingSystemMXBean bean = ManagementFactory.getOperatingSystemMXBean();
        return ((com.sun.management.OperatingSystemMXBean) bean).getProcessCpuTime() / 1e9;
    }

    static Map<String, Object> measure(DefaultMessageStore store, Map<String, Object> request) throws Exception {
        int count = number(request, "count");
        byte[] body = new byte[number(request, "bytes")];
        new Random(body.length).nextBytes(body);
        switch ((String) request.get("what")) {
            case "put":
                return put(store, count, body);
            case "batch":
                return batch(store, count, body);
            case "sync":
                return sync(store, count, body, number(request, "window"));
            case "pull":
                return pull(store, count, number(request, "passes"), Boolean.TRUE.equals(request.get("decoded")));
            case "query":
                return query(store, count, number(request, "passes"));
            default:
                throw new IllegalArgumentException("unknown measurement");
        }
    }

    private static int number(Map<String, Object> request, String name) {
        return ((Long) request.get(name)).intValue();
    }

    private static Map<String, Object> result(long count, long began, double before) {
        double seconds = (System.nanoTime() - began) / 1e9;
        return Json.object("count", count, "seconds", seconds, "cpu", processorSeconds() - before);
    }

    private static MessageExtBrokerInner message(byte[] body, int queue, String properties) {
        MessageExtBrokerInner message = new MessageExtBrokerInner();
        message.setTopic(TOPIC);
        message.setQueueId(queue);
        message.setBody(body);
        message.setBornTimestamp(System.currentTimeMillis());
        message.setBornHost(HOST);
        message.setStoreHost(HOST);
        if (!properties.isEmpty()) {
            MessageAccessor.setProperties(message, MessageDecoder.string2messageProperties(properties));
        }
        message.setPropertiesString(properties);
        return message;
    }

    private static void require(PutMessageResult result) throws IOException {
        if (result.getPutMessageStatus() != PutMessageStatus.PUT_OK) {
            throw new IOException("a put answers " + result.getPutMessageStatus());
        }
    }

    private static void dispatched(DefaultMessageStore store) throws InterruptedException {
        while (store.dispatchBehindBytes() > 0) {
            Thread.sleep(1);
        }
    }

    private static Map<String, Object> put(DefaultMessageStore store, int count, byte[] body) throws Exception {
        MessageExtBrokerInner[] messages = new MessageExtBrokerInner[count];
        for (int i = 0; i < count; i++) {
            messages[i] = message(body, i % QUEUES, String.format("UNIQ_KEY\u0001%032X\u0002KEYS\u0001order-%d", i, i));
        }
        double before = processorSeconds();
        long began = System.nanoTime();
        for (MessageExtBrokerInner each : messages) {
            require(store.putMessage(each));
        }
        dispatched(store);
        return result(count, began, before);
    }

    private static Map<String, Object> batch(DefaultMessageStore store, int count, byte[] body) throws Exception {
        List<Message> members = new ArrayList<>();
        for (int i = 0; i < BATCH; i++) {
            members.add(new Message(TOPIC, "TagA", "k", body));
        }
        byte[] encoded = MessageDecoder.encodeMessages(members);
        MessageExtBatch[] batches = new MessageExtBatch[count / BATCH];
        for (int i = 0; i < batches.length; i++) {
            MessageExtBatch batch = new MessageExtBatch();
            batch.setTopic(TOPIC);
            batch.setBody(encoded);
            batch.setBornTimestamp(1);
            batch.setBornHost(HOST);
            batch.setStoreHost(HOST);
            MessageAccessor.setProperties(batch, new HashMap<>(Map.of("WAIT", "true")));
            batches[i] = batch;
        }
        double before = processorSeconds();
        long began = System.nanoTime();
        for (MessageExtBatch each : batches) {
            require(store.putMessages(each));
        }
        dispatched(store);
        return result((long) batches.length * BATCH, began, before);
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> sync(DefaultMessageStore store, int count, byte[] body, int window)
            throws Exception {
        double before = processorSeconds();
        long began = System.nanoTime();
        Method asynchronous = window == 1 ? null
                : store.getClass().getMethod("asyncPutMessage", MessageExtBrokerInner.class); // none before 4.7.0
        ArrayDeque<CompletableFuture<PutMessageResult>> waiting = new ArrayDeque<>();
        for (int i = 0; i < count; i++) {
            if (window == 1) {
                require(store.putMessage(message(body, 0, "")));
                continue;
            }
            if (waiting.size() == window) {
                require(waiting.poll().get());
            }
            waiting.add((CompletableFuture<PutMessageResult>) asynchronous.invoke(store, message(body, 0, "")));
        }
        while (!waiting.isEmpty()) {
            require(waiting.poll().get());
        }
        return result(count, began, before);
    }

    private static Map<String, Object> pull(DefaultMessageStore store, int count, int passes, boolean decoded)
            throws Exception {
        long pulled = 0;
        double before = processorSeconds();
        long began = System.nanoTime();
        for (int pass = 0; pass < passes; pass++) {
            for (int queue = 0; queue < QUEUES; queue++) {
                long at = 0;
                while (true) {
                    GetMessageResult answer = store.getMessage("bench", TOPIC, queue, at, PULL, null);
                    if (answer.getStatus() != GetMessageStatus.FOUND) {
                        answer.release();
                        break;
                    }
                    if (decoded) {
                        for (SelectMappedBufferResult each : answer.getMessageMapedList()) {
                            MessageExt message = MessageDecoder.decode(each.getByteBuffer(), true, false);
                            pulled += message.getBody().length > 0 ? 1 : 0;
                        }
                    } else {
                        pulled += answer.getMessageCount();
                    }
                    at = answer.getNextBeginOffset();
                    answer.release();
                }
            }
        }
        Map<String, Object> result = result((long) count * passes, began, before);
        if (pulled != (long) count * passes) {
            throw new IOException("pulls returned " + pulled + " messages");
        }
        return result;
    }

    private static Map<String, Object> query(DefaultMessageStore store, int count, int passes) throws Exception {
        List<String> keys = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            keys.add(String.format("%032X", i));
        }
        Collections.shuffle(keys, new Random(KEYS_SEED));
        long found = 0;
        double before = processorSeconds();
        long began = System.nanoTime();
        for (int pass = 0; pass < passes; pass++) {
            for (String key : keys) {
                QueryMessageResult answer = store.queryMessage(TOPIC, key, PULL, 0, Long.MAX_VALUE);
                found += answer.getMessageBufferList().size();
                answer.release();
            }
        }
        Map<String, Object> result = result((long) count * passes, began, before);
        if (found != (long) count * passes) {
            throw new IOException("queries found " + found + " messages");
        }
        return result;
    }
}
