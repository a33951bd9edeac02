package peer;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** The parts of the consumer's library that run without a broker, driven by JSON lines. */
public final class ConsumerDriver {
    private ConsumerDriver() {
    }

    public static void main(String[] arguments) throws Exception {
        Requests.serve(ConsumerDriver::answer);
    }

    private static Map<String, Object> answer(Map<String, Object> request) throws Exception {
        List<Object> answers = new ArrayList<>();
        for (Object each : (List<?>) request.get("cases")) {
            answers.add(answerOf((String) request.get("do"), asMap(each)));
        }
        return Json.object("answers", answers);
    }

    private static Object answerOf(String verb, Map<String, Object> given) throws Exception {
        switch (verb) {
            case "allocate":
                return Allocations.shares(given);
            case "process_queue":
                return QueueSteps.run((List<?>) given.get("operations"));
            case "local_offsets":
                return LocalOffsets.written(given);
            default:
                throw new IllegalArgumentException("unknown request " + verb);
        }
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> asMap(Object value) {
        return (Map<String, Object>) value;
    }
}
