import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Callable;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.TopicPartition;

/** Where the broker is, the topic that a test has made there, and how the chapters speak with it. */
final class Broker {
    /** The values that a test has written to the topic before. */
    static final List<String> WRITTEN_BEFORE = Arrays.asList("before 0", "before 1", "before 2");

    /** How many records are written with each codec. */
    static final int COUNT = 100;

    private static final long WAIT_MS_MAX = 30_000;
    private static final long POLL_MS = 200;
    private static final String SERIALIZATION = "org.apache.kafka.common.serialization.String";

    final String topic;
    final TopicPartition partition;
    final String[] codecs;
    private final String bootstrap;

    Broker(String bootstrap, String topic, String[] codecs) {
        this.bootstrap = bootstrap;
        this.topic = topic;
        this.codecs = codecs;
        partition = new TopicPartition(topic, 0);
    }

    Properties settings(String... more) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        for (int at = 0; at < more.length; at += 2) {
            settings.put(more[at], more[at + 1]);
        }
        return settings;
    }

    KafkaProducer<String, String> producer(String... more) {
        Properties settings = settings(more);
        settings.put("acks", "all");
        settings.put("key.serializer", SERIALIZATION + "Serializer");
        settings.put("value.serializer", SERIALIZATION + "Serializer");
        return new KafkaProducer<>(settings);
    }

    KafkaConsumer<String, String> consumer(String group, String... more) {
        Properties settings = settings(more);
        settings.put("group.id", group);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("key.deserializer", SERIALIZATION + "Deserializer");
        settings.put("value.deserializer", SERIALIZATION + "Deserializer");
        return new KafkaConsumer<>(settings);
    }

    /** The group whose members read the topic. */
    String group() {
        return topic + "-group";
    }

    /** What its members have committed: what was there before and once each codec. */
    long committed() {
        return WRITTEN_BEFORE.size() + (long) COUNT * codecs.length;
    }

    /** The next values that come, at least as many as asked for. */
    @SuppressWarnings("deprecation") // the only poll that all these clients have
    static List<String> read(KafkaConsumer<String, String> consumer, int count) throws Exception {
        List<String> values = new ArrayList<>();
        await("the records", () -> {
            consumer.poll(POLL_MS).forEach(record -> values.add(record.value()));
            return values.size() >= count;
        });
        return values;
    }

    /** Returns when the condition holds. */
    static void await(String what, Callable<Boolean> condition) throws Exception {
        long deadlineMs = System.currentTimeMillis() + WAIT_MS_MAX;
        while (!condition.call()) {
            expect("in time: " + what, true, System.currentTimeMillis() < deadlineMs);
        }
    }

    static void expect(String what, Object wished, Object found) {
        if (!wished.equals(found)) {
            throw new IllegalStateException(what + ": " + found + " instead of " + wished);
        }
    }
}
