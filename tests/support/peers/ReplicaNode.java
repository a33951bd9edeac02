import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.MessageExtBrokerInner;
import org.apache.rocketmq.store.config.BrokerRole;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/** A store of RocketMQ with replication, driven by lines on standard input: put COUNT BYTES, state, close. */
public class ReplicaNode {
    public static void main(String[] arguments) throws Exception {
        String root = arguments[0];
        BrokerRole role = BrokerRole.valueOf(arguments[1]);
        MessageStoreConfig config = new MessageStoreConfig();
        config.setStorePathRootDir(root);
        config.setStorePathCommitLog(root + "/commitlog");
        config.setMappedFileSizeCommitLog(Integer.parseInt(arguments[2]));
        config.setMappedFileSizeConsumeQueue(20 * 200);
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

    private static Map<String, Integer> puts(DefaultMessageStore store, int count, int size) {
        Map<String, Integer> statuses = new TreeMap<>();
        for (int number = 0; number < count; number++) {
            MessageExtBrokerInner message = new MessageExtBrokerInner();
            message.setTopic("T");
            message.setQueueId(0);
            message.setBody(new byte[size]);
            message.setBornTimestamp(System.currentTimeMillis());
            message.setBornHost(new InetSocketAddress("127.0.0.1", 1));
            message.setStoreHost(new InetSocketAddress("127.0.0.1", 2));
            message.setPropertiesString("");
            statuses.merge(store.putMessage(message).getPutMessageStatus().name(), 1, Integer::sum);
        }
        return statuses;
    }
}
