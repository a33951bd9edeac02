package peer;

import java.net.InetSocketAddress;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
// MessageExtBrokerInner and MessageExtBatch are in the first package since 5.0.0, in the second one before.
import org.apache.rocketmq.common.message.*;
import org.apache.rocketmq.common.TopicFilterType;
import org.apache.rocketmq.store.*;

/** Puts of single messages and of batches. */
final class Writes {
    private static final InetSocketAddress BORN = new InetSocketAddress("127.0.0.1", 10910);
    private static final InetSocketAddress STORED = new InetSocketAddress("127.0.0.1", 10911);

    private Writes() {
    }

    /** Put the message of a request: topic, queue, properties as text, body in base 64. */
    static Map<String, Object> put(DefaultMessageStore store, Map<String, Object> request) throws Exception {
        MessageExtBrokerInner message = new MessageExtBrokerInner();
        fill(message, request);
        message.setPropertiesString((String) request.get("properties"));
        String tags = message.getTags();
        message.setTagsCode(tags == null ? 0
                : MessageExtBrokerInner.tagsString2tagsCode(TopicFilterType.SINGLE_TAG, tags));
        return answer(store.putMessage(message));
    }

    /** Put a batch, whose body holds its encoded members. */
    static Map<String, Object> batch(DefaultMessageStore store, Map<String, Object> request) throws Exception {
        MessageExtBatch batch = new MessageExtBatch();
        fill(batch, request);
        return answer(store.putMessages(batch));
    }

    private static void fill(MessageExt message, Map<String, Object> request) {
        Long flag = (Long) request.get("flag");
        Long born = (Long) request.get("born");
        message.setTopic((String) request.get("topic"));
        message.setQueueId(((Long) request.get("queue")).intValue());
        message.setBody(Base64.getDecoder().decode((String) request.get("body")));
        message.setFlag(flag == null ? 0 : flag.intValue());
        message.setBornTimestamp(born == null ? System.currentTimeMillis() : born);
        message.setBornHost(BORN);
        message.setStoreHost(STORED);
        MessageAccessor.setProperties(message,
                new HashMap<>(MessageDecoder.string2messageProperties((String) request.get("properties"))));
    }

    private static Map<String, Object> answer(PutMessageResult result) {
        Map<String, Object> answer = Json.object("status", String.valueOf(result.getPutMessageStatus()));
        AppendMessageResult append = result.getAppendMessageResult();
        if (append != null) {
            answer.put("offset", append.getWroteOffset());
            answer.put("size", append.getWroteBytes());
            answer.put("number", append.getLogicsOffset());
        }
        return answer;
    }
}
