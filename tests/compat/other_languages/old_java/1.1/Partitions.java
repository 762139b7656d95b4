import java.util.Collections;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.RecordsToDelete;

/** Adds partitions and deletes records. */
final class Partitions implements Chapter {
    @Override
    public void check(Broker broker) throws Exception {
        RecordsToDelete old = RecordsToDelete.beforeOffset(Broker.WRITTEN_BEFORE.size());
        try (AdminClient admin = AdminClient.create(broker.settings())) {
            admin.createPartitions(Collections.singletonMap(broker.topic, NewPartitions.increaseTo(4))).all().get();
            Broker.await("new partitions", () -> Topics.partitions(admin, broker.topic) == 4);
            long start = admin.deleteRecords(Collections.singletonMap(broker.partition, old))
                .lowWatermarks()
                .get(broker.partition)
                .get()
                .lowWatermark();
            Broker.expect("start", (long) Broker.WRITTEN_BEFORE.size(), start);
        }
    }
}
