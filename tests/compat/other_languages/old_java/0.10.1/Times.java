import java.util.Collections;
import java.util.Set;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;

/** Finds offsets by time, and the first and the last. */
final class Times implements Chapter {
    /** Ahead of all records written before, and no further than a broker allows. */
    private static final long AHEAD_MS = 600_000;

    @Override
    public void check(Broker broker) throws Exception {
        long laterMs = System.currentTimeMillis() + AHEAD_MS;
        RecordMetadata written;
        try (KafkaProducer<String, String> producer = broker.producer()) {
            written = producer.send(new ProducerRecord<>(broker.topic, 0, laterMs, "key", "later")).get();
        }
        Broker.expect("timestamp", laterMs, written.timestamp());
        try (KafkaConsumer<String, String> consumer = broker.consumer(broker.group())) {
            Set<TopicPartition> asked = Collections.singleton(broker.partition);
            Broker.expect("start", 0L, consumer.beginningOffsets(asked).get(broker.partition));
            Broker.expect("end", written.offset() + 1, consumer.endOffsets(asked).get(broker.partition));
            Broker.expect("first", 0L, offsetAt(consumer, broker.partition, 1));
            Broker.expect("later", written.offset(), offsetAt(consumer, broker.partition, laterMs));
        }
    }

    private static long offsetAt(KafkaConsumer<String, String> consumer, TopicPartition partition, long timestampMs) {
        return consumer.offsetsForTimes(Collections.singletonMap(partition, timestampMs)).get(partition).offset();
    }
}
