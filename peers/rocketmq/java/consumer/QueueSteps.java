package peer;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.rocketmq.client.impl.consumer.ProcessQueue;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Operations on one ProcessQueue. After each operation its answer and all fields are noted.
 *
 * <p>Times are ages in milliseconds, because the class reads the clock itself.
 */
final class QueueSteps {
    private final ProcessQueue queue = new ProcessQueue();
    private final TreeMap<Long, MessageExt> taken = new TreeMap<>();
    private QueueSteps() {
    }

    static Object run(List<?> operations) throws Exception {
        QueueSteps steps = new QueueSteps();
        List<Object> noted = new ArrayList<>();
        for (Object each : operations) {
            List<?> operation = (List<?>) each;
            Object answer;
            steps.queue.setLastConsumeTimestamp(0);
            try {
                answer = steps.step((String) operation.get(0), operation.subList(1, operation.size()));
            } catch (RuntimeException thrown) {
                answer = thrown.getClass().getSimpleName();
            }
            noted.add(List.of(answer, steps.state()));
        }
        return noted;
    }

    private Object step(String name, List<?> arguments) throws Exception {
        long now = System.currentTimeMillis();
        switch (name) {
            case "put":
                return queue.putMessage(messages((List<?>) arguments.get(0)));
            case "remove":
                return queue.removeMessage(messages((List<?>) arguments.get(0)));
            case "take":
                List<Object> offsets = new ArrayList<>();
                for (MessageExt message : queue.takeMessages(number(arguments, 0))) {
                    taken.put(message.getQueueOffset(), message);
                    offsets.add(message.getQueueOffset());
                }
                return offsets;
            case "commit":
                return queue.commit();
            case "rollback":
                queue.rollback();
                return true;
            case "again":
                List<MessageExt> again = new ArrayList<>();
                for (Object offset : (List<?>) arguments.get(0)) {
                    if (taken.containsKey((Long) offset)) {
                        again.add(taken.get((Long) offset));
                    }
                }
                queue.makeMessageToConsumeAgain(again);
                return true;
            case "drop":
                queue.setDropped((Boolean) arguments.get(0));
                return true;
            case "lock":
                queue.setLocked((Boolean) arguments.get(0));
                queue.setLastLockTimestamp(now - (Long) arguments.get(1));
                return queue.isLockExpired();
            case "pulled":
                queue.setLastPullTimestamp(now - (Long) arguments.get(0));
                return queue.isPullExpired();
            case "clear":
                queue.clear();
                taken.clear();
                return true;
            default:
                throw new IllegalArgumentException("unknown operation " + name);
        }
    }

    /** The messages of rows: offset, bytes of the body, and the queue's end as the broker states it, or -1. */
    private static List<MessageExt> messages(List<?> rows) {
        List<MessageExt> made = new ArrayList<>();
        for (Object each : rows) {
            List<?> row = (List<?>) each;
            MessageExt message = new MessageExt();
            message.setTopic("T");
            message.setQueueOffset((Long) row.get(0));
            message.setBody(new byte[number(row, 1)]);
            if ((Long) row.get(2) >= 0) {
                MessageAccessor.putProperty(message, MessageConst.PROPERTY_MAX_OFFSET, String.valueOf(row.get(2)));
            }
            made.add(message);
        }
        return made;
    }

    private static int number(List<?> row, int place) {
        return ((Long) row.get(place)).intValue();
    }

    private Map<String, Object> state() throws Exception {
        return Json.object(
                "msgTreeMap", new ArrayList<Object>(queue.getMsgTreeMap().keySet()),
                "consumingMsgOrderlyTreeMap", new ArrayList<Object>(
                        ((Map<?, ?>) Reflect.get(queue, "consumingMsgOrderlyTreeMap")).keySet()),
                "msgCount", queue.getMsgCount().get(),
                "msgSize", queue.getMsgSize().get(),
                "queueOffsetMax", Reflect.get(queue, "queueOffsetMax"),
                "consuming", Reflect.get(queue, "consuming"),
                "dropped", queue.isDropped(),
                "locked", queue.isLocked(),
                "msgAccCnt", queue.getMsgAccCnt(),
                "maxSpan", queue.getMaxSpan(),
                "hasTempMessage", queue.hasTempMessage(),
                "hasConsumed", queue.getLastConsumeTimestamp() > 0);
    }
}
