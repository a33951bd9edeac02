package peer;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Semaphore;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.MessageExtBrokerInner;
import org.apache.rocketmq.store.config.BrokerRole;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/**
 * A store of RocketMQ with replication, driven by lines on standard input.
 *
 * <p>Arguments: directory, role, bytes of a log file, port, and the master's address for a slave. Lines:
 * put COUNT BYTES; load COUNT BYTES OUTSTANDING, with asynchronous puts; state; await END; close.
 */
public class ReplicaNode {
    public static void main(String[] arguments) throws Exception {
        String root = arguments[0];
        BrokerRole role = BrokerRole.valueOf(arguments[1]);
        int fileBytes = Integer.parseInt(arguments[2]);
        boolean isSmall = fileBytes < 1 << 20;
        MessageStoreConfig config = new MessageStoreConfig();
        config.setStorePathRootDir(root);
        config.setStorePathCommitLog(root + "/commitlog");
        config.setMappedFileSizeCommitLog(fileBytes);
        config.setMappedFileSizeConsumeQueue(isSmall ? 20 * 200 : 20 * 300000);
        config.setMaxHashSlotNum(100);
        config.setMaxIndexNum(400);
        config.setBrokerRole(role);
        config.setHaListenPort(Integer.parseInt(arguments[3]));
        config.setDiskMaxUsedSpaceRatio(95);
        BrokerConfig broker = new BrokerConfig();
        broker.setBrokerId(role == BrokerRole.SLAVE ? 1 : 0);
        DefaultMessageStore store = new DefaultMessageStore(
            config, new BrokerStatsManager("peer", false), (topic, queue, offset, tag, time, bits, properties) -> { }, broker);
        if (!store.load()) {
            throw new IllegalStateException("the store does not load");
        }
        store.start();
        if (arguments.length > 4) {
            store.updateHaMasterAddress(arguments[4]);
        }
        System.out.println("ready");
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("put")) {
                System.out.println("put " + puts(store, Integer.parseInt(words[1]), Integer.parseInt(words[2])));
            } else if (words[0].equals("load")) {
                System.out.println("load " + load(store, Integer.parseInt(words[1]), Integer.parseInt(words[2]),
                    Integer.parseInt(words[3])));
            } else if (words[0].equals("await")) {
                while (store.getMaxPhyOffset() < Long.parseLong(words[1])) {
                    Thread.sleep(1);
                }
                System.out.println("await " + store.getMaxPhyOffset());
            } else if (words[0].equals("state")) {
                System.out.println("state " + store.getMaxPhyOffset() + " " + store.getMaxOffsetInQueue("T", 0)
                    + " " + store.dispatchBehindBytes());
            } else {
                store.shutdown();
                System.out.println("closed");
                System.exit(0);
            }
        }
    }

    private static MessageExtBrokerInner message(int size) {
        MessageExtBrokerInner message = new MessageExtBrokerInner();
        message.setTopic("T");
        message.setQueueId(0);
        message.setBody(new byte[size]);
        message.setBornTimestamp(System.currentTimeMillis());
        message.setBornHost(new InetSocketAddress("127.0.0.1", 1));
        message.setStoreHost(new InetSocketAddress("127.0.0.1", 2));
        message.setPropertiesString("");
        return message;
    }

    private static Map<String, Integer> puts(DefaultMessageStore store, int count, int size) {
        Map<String, Integer> statuses = new TreeMap<>();
        for (int number = 0; number < count; number++) {
            statuses.merge(store.putMessage(message(size)).getPutMessageStatus().name(), 1, Integer::sum);
        }
        return statuses;
    }

    /** Puts with a number of answers outstanding; returns the milliseconds, the end of the log and the statuses. */
    private static String load(DefaultMessageStore store, int count, int size, int outstanding) throws Exception {
        Map<String, Integer> statuses = new TreeMap<>();
        Semaphore free = new Semaphore(outstanding);
        long began = System.nanoTime();
        for (int number = 0; number < count; number++) {
            free.acquire();
            store.asyncPutMessage(message(size)).whenComplete((result, error) -> {
                synchronized (statuses) {
                    statuses.merge(error == null ? result.getPutMessageStatus().name() : "ERROR", 1, Integer::sum);
                }
                free.release();
            });
        }
        free.acquire(outstanding);
        return (System.nanoTime() - began) / 1000 + " " + store.getMaxPhyOffset() + " " + statuses;
    }
}
