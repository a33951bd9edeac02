package peer;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** The protocol of a driver: a request is a line of JSON on standard input, its answer one on standard output. */
final class Requests {
    /** Answers one request. What it throws becomes an answer with "error". */
    interface Answering {
        Map<String, Object> answer(Map<String, Object> request) throws Exception;
    }

    private Requests() {
    }

    /** Answer requests until standard input ends, then end the process. */
    static void serve(Answering answering) throws Exception {
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "US-ASCII");
        System.setOut(System.err); // nothing but answers on standard output
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Map<String, Object> answer;
            try {
                answer = answering.answer(Json.parse(line));
            } catch (Exception thrown) {
                thrown.printStackTrace();
                answer = Json.object("error", thrown.toString());
            }
            out.print(Json.text(answer) + "\n");
            out.flush();
        }
        Runtime.getRuntime().halt(0);
    }
}
