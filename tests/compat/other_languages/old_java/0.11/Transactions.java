import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** Commits and aborts transactions, with the offsets of a group, and is fenced. */
final class Transactions implements Chapter {
    /** How old and newer clients say that another producer has their transactional id. */
    private static final List<String> FENCED = Arrays.asList("ProducerFencedException", "InvalidProducerEpochException");

    @Override
    public void check(Broker broker) throws Exception {
        TopicPartition target = new TopicPartition(broker.topic, 1);
        String group = broker.topic + "-transactional-group";
        try (KafkaProducer<String, String> older = ready(broker)) {
            older.beginTransaction();
            older.send(record(target, "dropped")).get();
            older.abortTransaction();
            older.beginTransaction();
            older.send(record(target, "kept")).get();
            commit(older, broker.partition, group);
            Broker.expect("committed", Collections.singletonList("kept"), committed(broker, target));
            Broker.expect("offset in the transaction", 3L, position(broker, group));
            try (KafkaProducer<String, String> newer = ready(broker)) {
                String refusal = refusal(older, target);
                Broker.expect("fenced by " + refusal, true, FENCED.contains(refusal));
            }
        }
    }

    /** A producer that alone may begin a transaction. */
    private static KafkaProducer<String, String> ready(Broker broker) {
        KafkaProducer<String, String> producer = broker.producer("transactional.id", broker.topic);
        producer.initTransactions();
        return producer;
    }

    private static ProducerRecord<String, String> record(TopicPartition target, String value) {
        return new ProducerRecord<>(target.topic(), target.partition(), "key", value);
    }

    @SuppressWarnings("deprecation") // the only way to name the group that all these clients have
    private static void commit(KafkaProducer<String, String> producer, TopicPartition source, String group) {
        producer.sendOffsetsToTransaction(Collections.singletonMap(source, new OffsetAndMetadata(3)), group);
        producer.commitTransaction();
    }

    private static List<String> committed(Broker broker, TopicPartition target) throws Exception {
        try (KafkaConsumer<String, String> consumer = broker.consumer("none", "isolation.level", "read_committed")) {
            consumer.assign(Collections.singleton(target));
            consumer.seek(target, 0);
            return Broker.read(consumer, 1);
        }
    }

    private static long position(Broker broker, String group) {
        try (KafkaConsumer<String, String> consumer = broker.consumer(group)) {
            consumer.assign(Collections.singleton(broker.partition));
            return consumer.position(broker.partition);
        }
    }

    /** What a producer says that writes after another has taken its transactional id. */
    private static String refusal(KafkaProducer<String, String> replaced, TopicPartition target) throws Exception {
        try {
            replaced.beginTransaction();
            replaced.send(record(target, "too late")).get();
            return "nothing";
        } catch (ExecutionException refused) {
            return refused.getCause().getClass().getSimpleName();
        }
    }
}
