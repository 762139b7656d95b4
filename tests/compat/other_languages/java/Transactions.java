import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** Transactions, alone, with the offsets of a group, and taken over by another producer. */
final class Transactions {
    private Transactions() {}

    static void transact(Exchange exchange) throws Exception {
        try (Producer<byte[], byte[]> producer = begun(exchange)) {
            Records.sent(producer, Records.toSend(exchange));
            end(exchange, producer);
        }
    }

    static void transform(Exchange exchange) throws Exception {
        Map<String, Object> membership = Map.of(
            "group.id", exchange.text("group"),
            "auto.offset.reset", "earliest",
            "isolation.level", "read_committed");
        try (Consumer<byte[], byte[]> consumer = Settings.consumer(exchange, membership);
            Producer<byte[], byte[]> producer = begun(exchange)) {
            consumer.subscribe(List.of(exchange.text("source")));
            List<ProducerRecord<byte[], byte[]>> copies = new ArrayList<>();
            Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
            while (copies.size() < exchange.request.path("count").asInt()) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Records.POLL)) {
                    copies.add(new ProducerRecord<>(exchange.text("topic"), 0, record.key(), record.value()));
                    TopicPartition partition = new TopicPartition(record.topic(), record.partition());
                    next.put(partition, new OffsetAndMetadata(record.offset() + 1));
                }
            }
            Records.sent(producer, copies);
            producer.sendOffsetsToTransaction(next, consumer.groupMetadata());
            end(exchange, producer);
        }
    }

    static void beReplaced(Exchange exchange) throws Exception {
        List<ProducerRecord<byte[], byte[]>> records = Records.toSend(exchange);
        Producer<byte[], byte[]> older = begun(exchange);
        older.send(records.get(0)).get();
        try (Producer<byte[], byte[]> newer = begun(exchange)) {
            newer.send(records.get(0)).get();
            older.send(records.get(1)).get();
        } finally {
            older.close(Duration.ZERO);
        }
    }

    /** A producer that has begun a transaction. */
    private static Producer<byte[], byte[]> begun(Exchange exchange) {
        Map<String, Object> settings = Map.of("transactional.id", exchange.text("transactional_id"));
        Producer<byte[], byte[]> producer = Settings.producer(exchange, settings);
        producer.initTransactions();
        producer.beginTransaction();
        return producer;
    }

    private static void end(Exchange exchange, Producer<byte[], byte[]> producer) {
        if (exchange.request.path("commit").asBoolean()) {
            producer.commitTransaction();
        } else {
            producer.abortTransaction();
        }
    }
}
