import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;

/**
 * The program protocol: one request as a line of JSON on stdin, answers as lines of JSON on stdout.
 * Knows no Kafka client.
 */
final class Exchange {
    /** What a timestamp stands for that is none. */
    static final long EARLIEST = -2;

    static final long LATEST = -1;

    private static final ObjectMapper JSON = new ObjectMapper();

    final String bootstrap;
    final JsonNode request;
    private final BufferedReader input;
    private final PrintStream output = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    Exchange(String bootstrap) throws IOException {
        this.bootstrap = bootstrap;
        input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        request = JSON.readTree(input.readLine());
    }

    String text(String name) {
        return request.path(name).asText();
    }

    /** A map of texts, such as the configs of a topic. */
    Map<String, String> texts(String name) {
        Map<String, String> found = new TreeMap<>();
        request.path(name).properties().forEach(one -> found.put(one.getKey(), one.getValue().asText()));
        return found;
    }

    /** Offsets by partition. */
    Map<Integer, Long> starts() {
        Map<Integer, Long> found = new TreeMap<>();
        request.path("starts")
            .properties()
            .forEach(one -> found.put(Integer.valueOf(one.getKey()), one.getValue().asLong()));
        return found;
    }

    static ObjectNode line() {
        return JSON.createObjectNode();
    }

    /** Writes one line. */
    void answer(ObjectNode line) {
        output.println(line);
    }

    /** Calls `leave` when stdin ends: that is how a test tells a program to leave. */
    void whenInputEnds(Runnable leave) {
        Thread waiting = new Thread(() -> {
            try {
                while (input.read() >= 0) {
                    // nothing more is expected
                }
            } catch (IOException problem) {
                // an input that cannot be read has ended too
            }
            leave.run();
        });
        waiting.setDaemon(true);
        waiting.start();
    }
}
