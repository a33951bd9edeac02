import java.io.File;
import java.util.TreeSet;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.GetMessageResult;
import org.apache.rocketmq.store.SelectMappedBufferResult;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/** Opens store directories with the message store of RocketMQ and reads each queue to its end. */
public class OpenStore {
    /** Arguments: per store the directory, the bytes of a log file, the bytes of a queue file. */
    public static void main(String[] arguments) throws Exception {
        for (int at = 0; at < arguments.length; at += 3) {
            System.out.println(read(arguments[at], Integer.parseInt(arguments[at + 1]), Integer.parseInt(arguments[at + 2])));
        }
        System.exit(0);
    }

    static String read(String directory, int logBytes, int queueBytes) throws Exception {
        MessageStoreConfig config = new MessageStoreConfig();
        config.setStorePathRootDir(directory);
        config.setStorePathCommitLog(directory + "/commitlog");
        config.setMappedFileSizeCommitLog(logBytes);
        config.setMappedFileSizeConsumeQueue(queueBytes);
        config.setMaxHashSlotNum(100);
        config.setMaxIndexNum(120);
        config.setHaListenPort(0);
        config.setDiskMaxUsedSpaceRatio(99);
        config.setFileReservedTime(1000000);
        BrokerStatsManager statistics = new BrokerStatsManager("test", false);
        DefaultMessageStore store = new DefaultMessageStore(config, statistics, (topic, queue, offset, tags, time, bits, properties) -> { }, new BrokerConfig());
        if (!store.load()) {
            return "load returned false";
        }
        store.start();
        while (store.dispatchBehindBytes() > 0) {
            Thread.sleep(1);
        }
        TreeSet<Long> found = new TreeSet<>();
        File[] topics = new File(directory, "consumequeue").listFiles();
        for (File topic : topics == null ? new File[0] : topics) {
            for (File queue : topic.listFiles()) {
                pull(store, topic.getName(), Integer.parseInt(queue.getName()), found);
            }
        }
        long end = store.getMaxPhyOffset();
        store.shutdown();
        StringBuilder said = new StringBuilder("end " + end + " found");
        for (long offset : found) {
            said.append(' ').append(offset);
        }
        return said.toString();
    }

    static void pull(DefaultMessageStore store, String topic, int queue, TreeSet<Long> found) {
        long offset = store.getMinOffsetInQueue(topic, queue);
        long end = store.getMaxOffsetInQueue(topic, queue);
        while (offset < end) {
            GetMessageResult result = store.getMessage("test", topic, queue, offset, 32, null);
            for (SelectMappedBufferResult each : result.getMessageMapedList()) {
                found.add(each.getStartOffset());
            }
            result.release();
            offset = Math.max(result.getNextBeginOffset(), offset + 1);
        }
    }
}
