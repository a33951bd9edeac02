package peer;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.MessageExtBrokerInner;
import org.apache.rocketmq.store.PutMessageResult;
import org.apache.rocketmq.store.config.BrokerRole;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/** A store with replication, driven by lines on standard input. Arguments are name=value. */
public class HaPeer {
    private static final List<CompletableFuture<PutMessageResult>> OPEN = new ArrayList<>();

    public static void main(String[] arguments) throws Exception {
        Map<String, String> given = new HashMap<>();
        for (String each : arguments) {
            int at = each.indexOf('=');
            given.put(each.substring(0, at), each.substring(at + 1));
        }
        BrokerRole role = BrokerRole.valueOf(given.get("role"));
        DefaultMessageStore store = open(given, role);
        store.start();
        if (given.containsKey("master")) {
            store.updateHaMasterAddress(given.get("master"));
        }
        System.out.println("ready");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(answer(store, line.split(" ")));
            System.out.flush();
            if (line.equals("close")) {
                System.exit(0);
            }
        }
    }

    private static DefaultMessageStore open(Map<String, String> given, BrokerRole role) throws Exception {
        MessageStoreConfig config = new MessageStoreConfig();
        String root = given.get("root");
        config.setStorePathRootDir(root);
        config.setStorePathCommitLog(root + "/commitlog");
        config.setMappedFileSizeCommitLog(Integer.parseInt(given.getOrDefault("file", "16384")));
        config.setMappedFileSizeConsumeQueue(20 * 200);
        config.setMaxHashSlotNum(100);
        config.setMaxIndexNum(400);
        config.setBrokerRole(role);
        config.setHaListenPort(Integer.parseInt(given.get("port")));
        config.setDiskMaxUsedSpaceRatio(95);
        config.setFlushIntervalCommitLog(Integer.parseInt(given.getOrDefault("flush", "500")));
        config.setFlushCommitLogThoroughInterval(Integer.parseInt(given.getOrDefault("thorough", "10000")));
        config.setHaSendHeartbeatInterval(Integer.parseInt(given.getOrDefault("heartbeat", "5000")));
        config.setHaHousekeepingInterval(Integer.parseInt(given.getOrDefault("housekeeping", "20000")));
        config.setHaTransferBatchSize(Integer.parseInt(given.getOrDefault("batch", "32768")));
        BrokerConfig broker = new BrokerConfig();
        broker.setBrokerId(role == BrokerRole.SLAVE ? 1 : 0);
        DefaultMessageStore store = new DefaultMessageStore(
            config, new BrokerStatsManager("peer", false), (topic, queue, offset, tag, time, bits, properties) -> { }, broker);
        if (!store.load()) {
            throw new IllegalStateException("the store does not load");
        }
        return store;
    }

    private static String answer(DefaultMessageStore store, String[] words) throws Exception {
        switch (words[0]) {
            case "put":
                return puts(store, Integer.parseInt(words[1]), Integer.parseInt(words[2]), words[3].charAt(0));
            case "put_async":
                OPEN.add(store.asyncPutMessage(message(Integer.parseInt(words[1]), 'a')));
                return "ok";
            case "put_delayed":
                MessageExtBrokerInner delayed = message(Integer.parseInt(words[1]), 'a');
                delayed.setDelayTimeLevel(Integer.parseInt(words[2]));
                delayed.setPropertiesString(MessageDecoder.messageProperties2String(delayed.getProperties()));
                OPEN.add(store.asyncPutMessage(delayed));
                return "ok";
            case "state":
                return "min=" + store.getMinPhyOffset() + " max=" + store.getMaxPhyOffset()
                    + " flushed=" + (store.getMaxPhyOffset() - store.getCommitLog().remainHowManyDataToFlush())
                    + " connections=" + store.getHaService().getConnectionCount().get()
                    + " acknowledged=" + store.getHaService().getPush2SlaveMaxOffset().get()
                    + " behind=" + store.dispatchBehindBytes()
                    + " queue=" + store.getMaxOffsetInQueue("T", 0);
            case "master":
                store.updateHaMasterAddress(words[1]);
                return "ok";
            case "delete_first":
                store.getCommitLog().deleteExpiredFile(0, 0, 0, true);
                return "ok";
            case "close":
                store.shutdown();
                long answered = OPEN.stream().filter(CompletableFuture::isDone).count();
                return "answered=" + answered + " asked=" + OPEN.size();
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private static String puts(DefaultMessageStore store, int count, int size, char fill) {
        Map<String, Integer> statuses = new TreeMap<>();
        long begun = System.nanoTime();
        for (int number = 0; number < count; number++) {
            statuses.merge(store.putMessage(message(size, fill)).getPutMessageStatus().name(), 1, Integer::sum);
        }
        StringBuilder told = new StringBuilder("ms=" + (System.nanoTime() - begun) / 1000000);
        statuses.forEach((status, times) -> told.append(" ").append(status).append("=").append(times));
        return told.toString();
    }

    private static MessageExtBrokerInner message(int size, char fill) {
        byte[] body = new byte[size];
        java.util.Arrays.fill(body, (byte) fill);
        MessageExtBrokerInner message = new MessageExtBrokerInner();
        message.setTopic("T");
        message.setQueueId(0);
        message.setBody(body);
        message.setBornTimestamp(System.currentTimeMillis());
        message.setBornHost(new InetSocketAddress("127.0.0.1", 1));
        message.setStoreHost(new InetSocketAddress("127.0.0.1", 2));
        message.setPropertiesString("");
        return message;
    }
}
