import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;

/** Records written and read outside groups and transactions. */
final class Records {
    static final Duration POLL = Duration.ofMillis(500);

    private Records() {}

    static void produce(Exchange exchange) throws Exception {
        try (Admin admin = Settings.admin(exchange)) {
            // A producer cannot be told to leave unknown topics alone: where the broker makes topics
            // on demand, it would have made this one. So the admin is asked first.
            Topics.described(admin, exchange.text("topic"));
        }
        Map<String, Object> settings = Map.of(
            "compression.type", exchange.text("codec"),
            "enable.idempotence", exchange.request.path("idempotent").asBoolean(),
            "max.request.size", exchange.request.path("request_bytes_max").asInt());
        try (Producer<byte[], byte[]> producer = Settings.producer(exchange, settings)) {
            ObjectNode line = Exchange.line();
            ArrayNode offsets = line.putArray("offsets");
            for (RecordMetadata sent : sent(producer, toSend(exchange))) {
                offsets.add(sent.offset());
            }
            exchange.answer(line);
        }
    }

    static void consume(Exchange exchange) throws Exception {
        Map<String, Object> settings = Map.of(
            "auto.offset.reset", "none",
            "isolation.level",
            exchange.request.path("committed_only").asBoolean() ? "read_committed" : "read_uncommitted",
            "fetch.max.wait.ms", exchange.request.path("wait_ms_max").asInt(),
            "max.partition.fetch.bytes", exchange.request.path("fetch_bytes_max").asInt());
        Consumer<byte[], byte[]> consumer = Settings.consumer(exchange, settings);
        Map<Integer, Long> starts = exchange.starts();
        String topic = exchange.text("topic");
        consumer.assign(starts.keySet().stream().map(number -> new TopicPartition(topic, number)).toList());
        starts.forEach((number, start) -> consumer.seek(new TopicPartition(topic, number), start));
        int missing = exchange.request.path("count").asInt();
        while (missing > 0) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
                exchange.answer(received(record));
                missing--;
            }
        }
        consumer.close(CloseOptions.timeout(Duration.ZERO)); // does not wait for the next fetch to be answered
    }

    /** The records of the request, for its topic. */
    static List<ProducerRecord<byte[], byte[]>> toSend(Exchange exchange) throws IOException {
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (JsonNode wish : exchange.request.path("records")) {
            List<Header> headers = new ArrayList<>();
            for (JsonNode header : wish.path("headers")) {
                headers.add(new RecordHeader(header.path("key").asText(), header.path("value").binaryValue()));
            }
            JsonNode stamp = wish.path("timestamp_ms");
            records.add(new ProducerRecord<>(
                exchange.text("topic"),
                wish.path("partition").asInt(),
                stamp.isNull() ? null : stamp.asLong(),
                wish.path("key").binaryValue(),
                wish.path("value").binaryValue(),
                headers));
        }
        return records;
    }

    /** Sends all at once and waits for all of them. */
    static List<RecordMetadata> sent(
        Producer<byte[], byte[]> producer, List<ProducerRecord<byte[], byte[]>> records) throws Exception {
        List<Future<RecordMetadata>> sending = records.stream().map(producer::send).toList();
        List<RecordMetadata> sent = new ArrayList<>();
        for (Future<RecordMetadata> one : sending) {
            sent.add(one.get());
        }
        return sent;
    }

    static ObjectNode received(ConsumerRecord<byte[], byte[]> record) {
        ObjectNode line = Exchange.line();
        line.put("partition", record.partition()).put("offset", record.offset());
        line.put("key", record.key()).put("value", record.value());
        line.put("timestamp_ms", record.timestamp());
        ArrayNode headers = line.putArray("headers");
        for (Header header : record.headers()) {
            headers.addObject().put("key", header.key()).put("value", header.value());
        }
        return line;
    }
}
