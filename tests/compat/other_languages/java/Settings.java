import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Makes the parts of the client, which keep their defaults but for what a request asks. */
final class Settings {
    private static final String ANSWER_MS_MAX = "30000";

    private Settings() {}

    static Admin admin(Exchange exchange) {
        Map<String, Object> settings = shared(exchange);
        settings.put("default.api.timeout.ms", ANSWER_MS_MAX);
        return Admin.create(settings);
    }

    static Producer<byte[], byte[]> producer(Exchange exchange, Map<String, Object> more) {
        Map<String, Object> settings = shared(exchange);
        settings.put("max.block.ms", ANSWER_MS_MAX);
        settings.put("delivery.timeout.ms", ANSWER_MS_MAX);
        settings.put("request.timeout.ms", "20000"); // within the time for a delivery
        settings.putAll(more);
        return new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }

    static Consumer<byte[], byte[]> consumer(Exchange exchange, Map<String, Object> more) {
        Map<String, Object> settings = shared(exchange);
        settings.put("allow.auto.create.topics", "false");
        settings.put("enable.auto.commit", "false");
        settings.putAll(more);
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static Map<String, Object> shared(Exchange exchange) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", exchange.bootstrap);
        settings.put("client.id", exchange.text("client_id"));
        return settings;
    }
}
