import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;

/** Writes with every codec, reads as a member of a group, commits and resumes. */
final class Records implements Chapter {
    @Override
    public void check(Broker broker) throws Exception {
        try (KafkaConsumer<String, String> member = member(broker)) {
            int before = Broker.WRITTEN_BEFORE.size();
            Broker.expect("what was there", Broker.WRITTEN_BEFORE, Broker.read(member, before));
            for (String codec : broker.codecs) {
                List<String> sent = write(broker, codec);
                Broker.expect("values in " + codec, sent, Broker.read(member, Broker.COUNT));
            }
            commit(broker, member);
        }
        List<String> sent = write(broker, "none");
        try (KafkaConsumer<String, String> member = member(broker)) {
            Broker.expect("what was not committed", sent, Broker.read(member, Broker.COUNT));
        }
    }

    private static KafkaConsumer<String, String> member(Broker broker) {
        KafkaConsumer<String, String> consumer = broker.consumer(broker.group());
        consumer.subscribe(Collections.singletonList(broker.topic));
        return consumer;
    }

    private static List<String> write(Broker broker, String codec) throws Exception {
        List<String> values = new ArrayList<>();
        List<Future<RecordMetadata>> sending = new ArrayList<>();
        try (KafkaProducer<String, String> producer = broker.producer("compression.type", codec)) {
            for (int number = 0; number < Broker.COUNT; number++) {
                values.add(codec + " " + number);
                sending.add(producer.send(new ProducerRecord<>(broker.topic, 0, "key", codec + " " + number)));
            }
            long first = sending.get(0).get().offset();
            for (int number = 0; number < Broker.COUNT; number++) {
                Broker.expect("offset in " + codec, first + number, sending.get(number).get().offset());
            }
        }
        return values;
    }

    @SuppressWarnings("deprecation") // the only way to ask that all these clients have
    private static void commit(Broker broker, KafkaConsumer<String, String> member) {
        member.commitSync();
        Broker.expect("position", broker.committed(), member.position(broker.partition));
        Broker.expect("committed", broker.committed(), member.committed(broker.partition).offset());
        Broker.expect("listed", true, member.listTopics().containsKey(broker.topic));
    }
}
