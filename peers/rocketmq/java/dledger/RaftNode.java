package peer;

import io.openmessaging.storage.dledger.AppendFuture;
import io.openmessaging.storage.dledger.DLedgerConfig;
import io.openmessaging.storage.dledger.DLedgerServer;
import io.openmessaging.storage.dledger.MemberState;
import io.openmessaging.storage.dledger.entry.DLedgerEntry;
import io.openmessaging.storage.dledger.exception.DLedgerException;
import io.openmessaging.storage.dledger.protocol.AppendEntryRequest;
import io.openmessaging.storage.dledger.protocol.AppendEntryResponse;
import io.openmessaging.storage.dledger.protocol.DLedgerResponseCode;
import io.openmessaging.storage.dledger.store.file.DLedgerMmapFileStore;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.store.AppendMessageResult;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.GetMessageResult;
import org.apache.rocketmq.store.MessageExtBrokerInner;
import org.apache.rocketmq.store.PutMessageResult;
import org.apache.rocketmq.store.SelectMappedBufferResult;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.dledger.DLedgerCommitLog;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/**
 * A member of a DLedger group, driven by JSON lines: the library alone, the store on top of it, or the store without it.
 *
 * <p>A member starts with "open" (library), "open_store" or "open_plain_store", and ends with "close".
 */
public final class RaftNode {
    private static final long ANSWER_SECONDS = 20;

    private DLedgerServer server;
    private DefaultMessageStore store;

    public static void main(String[] arguments) throws Exception {
        Requests.serve(new RaftNode()::answer);
    }

    private Map<String, Object> answer(Map<String, Object> request) throws Exception {
        switch ((String) request.get("do")) {
            case "open":
                openLibrary(request);
                return state();
            case "open_store":
                openStore(request, true);
                return state();
            case "open_plain_store":
                openStore(request, false);
                return Json.object("max", store.getMaxPhyOffset());
            case "state":
                return state();
            case "append":
                return append((List<?>) request.get("bodies"));
            case "entries":
                return entries(number(request, "begin"), number(request, "end"));
            case "put":
                return put(request);
            case "read":
                return read(request);
            case "flush":
                files().flush();
                return Json.object();
            case "close":
                close();
                return Json.object();
            default:
                throw new IllegalArgumentException("unknown request " + request.get("do"));
        }
    }

    // ---- opening

    private void openLibrary(Map<String, Object> request) {
        DLedgerConfig config = new DLedgerConfig();
        config.setGroup("g");
        config.setSelfId((String) request.get("member"));
        config.setPeers((String) request.get("peers"));
        config.setStoreBaseDir((String) request.get("dir"));
        config.setMappedFileSizeForEntryData((int) number(request, "data_file_bytes"));
        config.setMappedFileSizeForEntryIndex((int) number(request, "index_file_bytes"));
        config.setEnableDiskForceClean(false);
        config.setDiskSpaceRatioToCheckExpired(1);
        server = new DLedgerServer(config);
        server.startup();
    }

    private void openStore(Map<String, Object> request, boolean isRaft) throws Exception {
        String root = (String) request.get("dir");
        MessageStoreConfig config = new MessageStoreConfig();
        config.setStorePathRootDir(root);
        config.setStorePathCommitLog(root + "/commitlog");
        config.setMappedFileSizeCommitLog((int) number(request, "data_file_bytes"));
        config.setMappedFileSizeConsumeQueue(20 * 200);
        config.setMaxHashSlotNum(100);
        config.setMaxIndexNum(400);
        config.setDiskMaxUsedSpaceRatio(95);
        config.setHaListenPort(0);
        if (isRaft) {
            config.setEnableDLegerCommitLog(true);
            config.setdLegerGroup("g");
            config.setdLegerSelfId((String) request.get("member"));
            config.setdLegerPeers((String) request.get("peers"));
        }
        store = new DefaultMessageStore(config, new BrokerStatsManager("peer", false),
            (topic, queue, offset, tag, time, bits, properties) -> { }, new BrokerConfig());
        if (!store.load()) {
            throw new IllegalStateException("the store does not load");
        }
        store.start();
        server = isRaft ? ((DLedgerCommitLog) store.getCommitLog()).getdLedgerServer() : null;
    }

    private void close() {
        if (store != null) {
            store.shutdown();
        } else {
            server.shutdown();
        }
        store = null;
        server = null;
    }

    // ---- what a member shows

    private DLedgerMmapFileStore files() {
        return (DLedgerMmapFileStore) server.getdLedgerStore();
    }

    private Map<String, Object> state() {
        MemberState member = server.getMemberState();
        DLedgerMmapFileStore files = files();
        Map<String, Object> shown = Json.object("role", member.getRole().name(), "term", member.currTerm(), "vote",
            member.currVoteFor(), "leader", member.getLeaderId(), "begin", files.getLedgerBeginIndex(), "end",
            files.getLedgerEndIndex(), "end_term", files.getLedgerEndTerm(), "committed", files.getCommittedIndex(),
            "written", files.getWritePos());
        if (store != null) {
            shown.put("max", store.getMaxPhyOffset());
            shown.put("queue_begin", store.getMinOffsetInQueue("T", 0));
            shown.put("queue_end", store.getMaxOffsetInQueue("T", 0));
            shown.put("dispatched", store.dispatchBehindBytes() <= 0);
            shown.put("divided", ((DLedgerCommitLog) store.getCommitLog()).getDividedCommitlogOffset());
        }
        return shown;
    }

    /** Return entries up to an end, or up to the end of the log if that is before it. */
    private Map<String, Object> entries(long begin, long end) {
        List<Object> found = new ArrayList<>();
        for (long index = begin; index < end; index++) {
            DLedgerEntry entry;
            try {
                entry = server.getdLedgerStore().get(index);
            } catch (DLedgerException thrown) {
                break;
            }
            found.add(Json.object("magic", (long) entry.getMagic(), "size", (long) entry.getSize(), "index",
                entry.getIndex(), "term", entry.getTerm(), "pos", entry.getPos(), "body",
                Base64.getEncoder().encodeToString(entry.getBody())));
        }
        return Json.object("entries", found);
    }

    private Map<String, Object> read(Map<String, Object> request) {
        List<Object> found = new ArrayList<>();
        GetMessageResult result = store.getMessage("g", (String) request.get("topic"), 0, number(request, "offset"),
            (int) number(request, "count"), null);
        for (SelectMappedBufferResult each : result.getMessageMapedList()) {
            ByteBuffer record = each.getByteBuffer();
            byte[] bytes = new byte[each.getSize()];
            record.get(bytes);
            found.add(Base64.getEncoder().encodeToString(bytes));
        }
        result.release();
        return Json.object("status", result.getStatus().name(), "records", found);
    }

    // ---- writing

    /** Append entries one after the other; each waits for its quorum. */
    private Map<String, Object> append(List<?> bodies) throws Exception {
        List<Object> answers = new ArrayList<>();
        for (Object body : bodies) {
            AppendEntryRequest request = new AppendEntryRequest();
            request.setGroup("g");
            request.setRemoteId(server.getMemberState().getSelfId());
            request.setBody(Base64.getDecoder().decode((String) body));
            CompletableFuture<AppendEntryResponse> future = server.handleAppend(request);
            AppendEntryResponse response = future.get(ANSWER_SECONDS, java.util.concurrent.TimeUnit.SECONDS);
            long position = future instanceof AppendFuture ? ((AppendFuture<?>) future).getPos() : response.getPos();
            answers.add(Json.object("code", DLedgerResponseCode.valueOf(response.getCode()).name(), "index",
                response.getIndex(), "term", response.getTerm(), "pos", position));
        }
        return Json.object("answers", answers);
    }

    private Map<String, Object> put(Map<String, Object> request) throws Exception {
        MessageExtBrokerInner message = new MessageExtBrokerInner();
        message.setTopic((String) request.get("topic"));
        message.setQueueId(0);
        message.setBody(Base64.getDecoder().decode((String) request.get("body")));
        message.setBornTimestamp(System.currentTimeMillis());
        message.setBornHost(new InetSocketAddress("127.0.0.1", 1));
        message.setStoreHost(new InetSocketAddress("127.0.0.1", 2));
        message.setPropertiesString("");
        long began = System.nanoTime();
        PutMessageResult result = store.putMessage(message);
        AppendMessageResult appended = result.getAppendMessageResult();
        return Json.object("status", result.getPutMessageStatus().name(), "ms", (System.nanoTime() - began) / 1000000,
            "offset", appended == null ? -1 : appended.getWroteOffset(), "queue_offset",
            appended == null ? -1 : appended.getLogicsOffset());
    }

    private static long number(Map<String, Object> request, String name) {
        return (Long) request.get(name);
    }
}
