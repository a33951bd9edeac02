package peer;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.AllocateMessageQueueStrategy;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMachineRoomNearby;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragelyByCircle;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByConfig;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueByMachineRoom;
import org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueConsistentHash;
import org.apache.rocketmq.common.message.MessageQueue;

/** The allocation strategies. Queues and clients are sorted before, as a rebalance does. */
final class Allocations {
    private Allocations() {
    }

    /** Return the share of each client that asks, as places in "queues", or the class of what a strategy throws. */
    static Object shares(Map<String, Object> given) throws Exception {
        List<MessageQueue> queues = queues(given.get("queues"));
        List<MessageQueue> sortedQueues = new ArrayList<>(queues);
        List<String> sortedClients = texts(given.get("clients"));
        Collections.sort(sortedQueues);
        Collections.sort(sortedClients);
        AllocateMessageQueueStrategy strategy = strategy((String) given.get("strategy"), given);
        List<Object> shares = new ArrayList<>();
        for (String client : texts(given.get("ask"))) {
            List<Object> share = new ArrayList<>();
            try {
                for (MessageQueue queue : strategy.allocate("group", client, sortedQueues, sortedClients)) {
                    int place = queues.indexOf(queue);
                    share.add(place >= 0 ? (Object) (long) place : row(queue));
                }
            } catch (RuntimeException thrown) {
                shares.add(thrown.getClass().getSimpleName());
                continue;
            }
            shares.add(share);
        }
        return Json.object("name", strategy.getName(), "shares", shares);
    }

    static List<MessageQueue> queues(Object rows) {
        List<MessageQueue> queues = new ArrayList<>();
        for (Object each : (List<?>) rows) {
            List<?> row = (List<?>) each;
            queues.add(new MessageQueue((String) row.get(0), (String) row.get(1), ((Long) row.get(2)).intValue()));
        }
        return queues;
    }

    private static List<String> texts(Object values) {
        List<String> texts = new ArrayList<>();
        for (Object each : (List<?>) values) {
            texts.add((String) each);
        }
        return texts;
    }

    static List<Object> row(MessageQueue queue) {
        return List.of(queue.getTopic(), queue.getBrokerName(), (long) queue.getQueueId());
    }

    private static AllocateMessageQueueStrategy strategy(String name, Map<String, Object> given) {
        String nearby = "MACHINE_ROOM_NEARBY-";
        if (name.startsWith(nearby)) {
            return new AllocateMachineRoomNearby(strategy(name.substring(nearby.length()), given), new Rooms());
        }
        switch (name) {
            case "AVG":
                return new AllocateMessageQueueAveragely();
            case "AVG_BY_CIRCLE":
                return new AllocateMessageQueueAveragelyByCircle();
            case "CONSISTENT_HASH":
                return new AllocateMessageQueueConsistentHash(((Long) given.get("virtualNodes")).intValue());
            case "MACHINE_ROOM":
                AllocateMessageQueueByMachineRoom byRoom = new AllocateMessageQueueByMachineRoom();
                byRoom.setConsumeridcs(new HashSet<>(texts(given.get("rooms"))));
                return byRoom;
            case "CONFIG":
                AllocateMessageQueueByConfig listed = new AllocateMessageQueueByConfig();
                listed.setMessageQueueList(queues(given.get("listed")));
                return listed;
            default:
                throw new IllegalArgumentException("unknown strategy " + name);
        }
    }

    /** The room is the part of a name before the first @. */
    private static final class Rooms implements AllocateMachineRoomNearby.MachineRoomResolver {
        @Override
        public String brokerDeployIn(MessageQueue queue) {
            return consumerDeployIn(queue.getBrokerName());
        }

        @Override
        public String consumerDeployIn(String name) {
            int end = name.indexOf('@');
            return end < 0 ? name : name.substring(0, end);
        }
    }
}
