package peer;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.rocketmq.common.UtilAll;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.SelectMappedBufferResult;

/** The records of the log and the units of the queues, as the store's own code reads them. */
final class Walk {
    private static final int BLANK = -875286124;
    private static final int RECORD = -626843481;
    private static final int HEAD_BYTES = 8;

    private Walk() {
    }

    /**
     * Return all records of the log in order: offset, size, and fields with the hash.
     *
     * <p>A walk that meets bytes that are no record goes on at the next of the given offsets.
     */
    static List<Object> records(DefaultMessageStore store, List<?> known, int fileBytes) {
        TreeSet<Long> places = new TreeSet<>();
        known.forEach(offset -> places.add((Long) offset));
        List<Object> found = new ArrayList<>();
        long at = store.getMinPhyOffset();
        while (at < store.getMaxPhyOffset()) {
            Object[] record = at < 0 ? null : record(store, at);
            if (record == null) {
                Long next = places.higher(at);
                if (next == null) {
                    break;
                }
                at = next;
            } else if (record[0] == null) {
                at += fileBytes - at % fileBytes;
            } else {
                found.add(List.of(record[0], record[1], record[2]));
                at += (Integer) record[1];
            }
        }
        return found;
    }

    /** Return offset, size and fields of a record; an array of null for a blank; null for anything else. */
    private static Object[] record(DefaultMessageStore store, long at) {
        SelectMappedBufferResult head = store.selectOneMessageByOffset(at, HEAD_BYTES);
        if (head == null) {
            return null;
        }
        int size;
        int magic;
        try {
            size = head.getByteBuffer().getInt();
            magic = head.getByteBuffer().getInt();
        } finally {
            head.release();
        }
        if (magic == BLANK) {
            return new Object[] {null};
        }
        SelectMappedBufferResult whole = magic == RECORD && size > HEAD_BYTES ? store.selectOneMessageByOffset(at, size)
                : null;
        if (whole == null) {
            return null;
        }
        try {
            ByteBuffer view = whole.getByteBuffer();
            byte[] bytes = new byte[view.remaining()];
            view.duplicate().get(bytes);
            MessageExt message = MessageDecoder.decode(ByteBuffer.wrap(bytes), true, false);
            if (message == null || message.getCommitLogOffset() != at) {
                return null;
            }
            byte[] body = message.getBody() == null ? new byte[0] : message.getBody();
            if (body.length > 0 && UtilAll.crc32(body) != message.getBodyCRC()) {
                return null;
            }
            return new Object[] {at, size, Json.object("sha256", Driver.sha256Of(bytes), "topic", message.getTopic(),
                    "queue", message.getQueueId(), "number", message.getQueueOffset(), "tags", message.getTags(),
                    "keys", message.getKeys(), "unique", message.getProperty("UNIQ_KEY"))};
        } finally {
            whole.release();
        }
    }

    /** Return the units of all queues: topic, queue, place, offset, size, code. */
    static List<Object> units(DefaultMessageStore store) throws Exception {
        List<Object> found = new ArrayList<>();
        for (Map.Entry<String, Map<Integer, Object>> ofTopic : Versions.queues(store).entrySet()) {
            for (Map.Entry<Integer, Object> queue : ofTopic.getValue().entrySet()) {
                long end = store.getMaxOffsetInQueue(ofTopic.getKey(), queue.getKey());
                for (long at = store.getMinOffsetInQueue(ofTopic.getKey(), queue.getKey()); at < end; at++) {
                    SelectMappedBufferResult unit =
                            (SelectMappedBufferResult) Reflect.call(queue.getValue(), "getIndexBuffer", at);
                    if (unit == null) {
                        continue;
                    }
                    try {
                        ByteBuffer view = unit.getByteBuffer();
                        found.add(List.of(ofTopic.getKey(), queue.getKey(), at, view.getLong(), view.getInt(),
                                view.getLong()));
                    } finally {
                        unit.release();
                    }
                }
            }
        }
        return found;
    }
}
