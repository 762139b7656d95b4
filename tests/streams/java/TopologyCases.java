// Runs the same cases on Kafka Streams' own TopologyTestDriver.
//
// Each line of standard input is a JSON object with "topology" and "steps"; a step is
// {"topic", "key", "value", "timestamp"} or {"advance": milliseconds}. Each line of standard output
// is the list of records written, in order, by topic. All keys and values are strings. The
// topologies have the same names and meanings as in topologies.py.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.function.Consumer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

public class TopologyCases {
    static final Map<String, Consumer<StreamsBuilder>> ALL = new TreeMap<>();
    static final ObjectMapper JSON = new ObjectMapper();

    static Duration ms(long value) {
        return Duration.ofMillis(value);
    }

    static String join(String left, String right) {
        return left + "+" + right;
    }

    static String window(Windowed<String> key) {
        return key.key() + "@" + key.window().start() + "/" + key.window().end();
    }

    static void outWindows(KTable<Windowed<String>, ?> table) {
        table.toStream((key, value) -> window(key))
            .mapValues(value -> value == null ? null : value.toString())
            .to("out");
    }

    static void out(KTable<String, ?> table) {
        table.toStream().mapValues(value -> value == null ? null : value.toString()).to("out");
    }

    static KGroupedStream<String, String> grouped(StreamsBuilder builder) {
        return builder.stream("in", Consumed.with(Serdes.String(), Serdes.String())).groupByKey();
    }

    static Materialized<String, String, KeyValueStore<Bytes, byte[]>> kept(String name) {
        return Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as(name);
    }

    static final TimeWindows TUMBLING = TimeWindows.ofSizeAndGrace(ms(10), ms(5));
    static final TimeWindows HOPPING = TimeWindows.ofSizeAndGrace(ms(10), ms(3)).advanceBy(ms(4));
    static final SlidingWindows SLIDING = SlidingWindows.ofTimeDifferenceAndGrace(ms(10), ms(7));
    static final SessionWindows SESSION = SessionWindows.ofInactivityGapAndGrace(ms(5), ms(6));
    static final JoinWindows WITHIN = JoinWindows.ofTimeDifferenceAndGrace(ms(10), ms(4));
    static final JoinWindows AFTER = JoinWindows.ofTimeDifferenceAndGrace(ms(8), ms(2)).before(ms(0));

    static {
        stateless();
        aggregates();
        windows();
        tables();
        streamJoins();
        tableJoins();
        processors();
    }

    static void stateless() {
        ALL.put("filter", b -> b.<String, String>stream("in").filter((k, v) -> v != null && v.contains("a")).to("out"));
        ALL.put("filter_not", b -> b.<String, String>stream("in").filterNot((k, v) -> v != null && v.contains("a")).to("out"));
        ALL.put("map", b -> b.<String, String>stream("in").map((k, v) -> KeyValue.pair(v, k)).to("out"));
        ALL.put("map_values", b -> b.<String, String>stream("in").mapValues((k, v) -> k + "=" + v).to("out"));
        ALL.put("flat_map", b -> b.<String, String>stream("in")
            .flatMap((k, v) -> {
                List<KeyValue<String, String>> pairs = new ArrayList<>();
                if (v != null) for (String part : v.split("")) pairs.add(KeyValue.pair(part, k));
                return pairs;
            }).to("out"));
        ALL.put("flat_map_values", b -> b.<String, String>stream("in")
            .flatMapValues(v -> v == null ? List.<String>of() : Arrays.asList(v.split(""))).to("out"));
        ALL.put("select_key", b -> b.<String, String>stream("in").selectKey((k, v) -> v).to("out"));
        ALL.put("branch", b -> b.<String, String>stream("in").split()
            .branch((k, v) -> v != null && v.contains("a"), Branched.withConsumer(s -> s.to("out-a")))
            .branch((k, v) -> v != null && v.contains("b"), Branched.withConsumer(s -> s.to("out-b")))
            .defaultBranch(Branched.withConsumer(s -> s.to("out"))));
        ALL.put("merge", b -> b.<String, String>stream("left").merge(b.<String, String>stream("right").mapValues(v -> v + "!")).to("out"));
        ALL.put("repartition", b -> b.<String, String>stream("in").selectKey((k, v) -> v).repartition().to("out"));
    }

    static void aggregates() {
        ALL.put("count", b -> out(grouped(b).count()));
        ALL.put("count_regrouped", b -> out(b.<String, String>stream("in").groupBy((k, v) -> v).count()));
        ALL.put("reduce", b -> out(grouped(b).reduce((one, other) -> one + other)));
        ALL.put("aggregate", b -> out(grouped(b).aggregate(() -> "", (k, v, result) -> result + v)));
        ALL.put("aggregate_to_nothing", b -> out(grouped(b)
            .aggregate(() -> "", (k, v, result) -> v.equals("c") ? null : result + v)));
        ALL.put("cogroup", b -> out(b.<String, String>stream("left").groupByKey()
            .cogroup((String k, String v, String result) -> result + v)
            .cogroup(b.<String, String>stream("right").groupByKey(), (k, v, result) -> v + result)
            .aggregate(() -> "|")));
        ALL.put("cogroup_windowed", b -> outWindows(b.<String, String>stream("left").groupByKey()
            .cogroup((String k, String v, String result) -> result + v)
            .cogroup(b.<String, String>stream("right").groupByKey(), (k, v, result) -> v + result)
            .windowedBy(TUMBLING)
            .aggregate(() -> "|")));
    }

    static void windows() {
        EmitStrategy close = EmitStrategy.onWindowClose();
        ALL.put("tumbling_count", b -> outWindows(grouped(b).windowedBy(TUMBLING).count()));
        ALL.put("tumbling_reduce", b -> outWindows(grouped(b).windowedBy(TUMBLING).reduce((one, other) -> one + other)));
        ALL.put("tumbling_close", b -> outWindows(grouped(b).windowedBy(TUMBLING).emitStrategy(close).count()));
        ALL.put("hopping", b -> outWindows(grouped(b).windowedBy(HOPPING).aggregate(() -> "", (k, v, r) -> r + v)));
        ALL.put("hopping_close", b -> outWindows(grouped(b).windowedBy(HOPPING).emitStrategy(close).aggregate(() -> "", (k, v, r) -> r + v)));
        ALL.put("sliding", b -> outWindows(grouped(b).windowedBy(SLIDING).aggregate(() -> "", (k, v, r) -> r + v)));
        ALL.put("sliding_close", b -> outWindows(grouped(b).windowedBy(SLIDING).emitStrategy(close).aggregate(() -> "", (k, v, r) -> r + v)));
        ALL.put("session", b -> outWindows(grouped(b).windowedBy(SESSION)
            .aggregate(() -> "", (k, v, r) -> r + v, (k, one, other) -> one + other)));
        ALL.put("session_count", b -> outWindows(grouped(b).windowedBy(SESSION).count()));
        ALL.put("session_reduce", b -> outWindows(grouped(b).windowedBy(SESSION).reduce((one, other) -> one + other)));
        ALL.put("session_close", b -> outWindows(grouped(b).windowedBy(SESSION).emitStrategy(close).count()));
        ALL.put("suppress_tumbling", b -> outWindows(grouped(b).windowedBy(TUMBLING).count()
            .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()))));
        ALL.put("suppress_session", b -> outWindows(grouped(b).windowedBy(SESSION).count()
            .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()))));
        ALL.put("suppress_time", b -> out(grouped(b).reduce((one, other) -> one + other)
            .suppress(Suppressed.untilTimeLimit(ms(8), Suppressed.BufferConfig.unbounded()))));
        ALL.put("suppress_records", b -> out(grouped(b).count()
            .suppress(Suppressed.untilTimeLimit(ms(100), Suppressed.BufferConfig.maxRecords(2)))));
        ALL.put("windowed_regrouped", b -> out(grouped(b).windowedBy(TUMBLING).count()
            .groupBy((k, v) -> KeyValue.pair(k.key(), v.toString()))
            .aggregate(() -> "", (k, v, r) -> r + "+" + v, (k, v, r) -> r + "-" + v)));
    }

    static void tables() {
        ALL.put("table", b -> out(b.<String, String>table("in")));
        ALL.put("table_kept", b -> out(b.<String, String>table("in", kept("kept"))));
        ALL.put("table_filter", b -> out(b.<String, String>table("in").filter((k, v) -> v.contains("a"))));
        ALL.put("table_filter_kept", b -> out(b.<String, String>table("in", kept("kept")).filterNot((k, v) -> v.contains("a"))));
        ALL.put("table_filter_stored", b -> out(b.<String, String>table("in").filter((k, v) -> v.contains("a"), kept("stored"))));
        ALL.put("table_map_values", b -> out(b.<String, String>table("in").mapValues(v -> v + "!")));
        ALL.put("to_table", b -> out(b.<String, String>stream("in").selectKey((k, v) -> v == null ? k : v).toTable()));
        ALL.put("table_count", b -> out(b.<String, String>table("in").groupBy((k, v) -> KeyValue.pair(v, k)).count()));
        ALL.put("table_reduce", b -> out(b.<String, String>table("in")
            .groupBy((k, v) -> KeyValue.pair(v.substring(0, 1), v))
            .reduce((result, v) -> result + "+" + v, (result, v) -> result + "-" + v)));
        ALL.put("table_aggregate", b -> out(b.<String, String>table("in")
            .groupBy((k, v) -> KeyValue.pair(v.substring(0, 1), k))
            .aggregate(() -> "", (k, v, r) -> r + "+" + v, (k, v, r) -> r + "-" + v)));
        ALL.put("table_filter_count", b -> out(b.<String, String>table("in").filter((k, v) -> !v.contains("c"))
            .mapValues(v -> v + v).groupBy((k, v) -> KeyValue.pair(v, k)).count()));
        ALL.put("count_of_counts", b -> out(grouped(b).count()
            .groupBy((k, v) -> KeyValue.pair(v.toString(), k)).count()));
    }

    static void streamJoins() {
        ALL.put("stream_join", b -> b.<String, String>stream("left")
            .join(b.<String, String>stream("right"), TopologyCases::join, WITHIN).to("out"));
        ALL.put("stream_left_join", b -> b.<String, String>stream("left")
            .leftJoin(b.<String, String>stream("right"), TopologyCases::join, WITHIN).to("out"));
        ALL.put("stream_outer_join", b -> b.<String, String>stream("left")
            .outerJoin(b.<String, String>stream("right"), TopologyCases::join, WITHIN).to("out"));
        ALL.put("stream_outer_join_after", b -> b.<String, String>stream("left")
            .outerJoin(b.<String, String>stream("right"), TopologyCases::join, AFTER).to("out"));
        ALL.put("stream_join_after", b -> b.<String, String>stream("left")
            .join(b.<String, String>stream("right"), TopologyCases::join, AFTER).to("out"));
        ALL.put("stream_join_rekeyed", b -> b.<String, String>stream("left").selectKey((k, v) -> v)
            .join(b.<String, String>stream("right").selectKey((k, v) -> v), TopologyCases::join, WITHIN).to("out"));
        ALL.put("stream_left_join_rekeyed", b -> b.<String, String>stream("left").selectKey((k, v) -> v)
            .leftJoin(b.<String, String>stream("right"), TopologyCases::join, WITHIN).to("out"));
        ALL.put("stream_table_join", b -> b.<String, String>stream("left")
            .join(b.<String, String>table("right"), TopologyCases::join).to("out"));
        ALL.put("stream_table_left_join", b -> b.<String, String>stream("left")
            .leftJoin(b.<String, String>table("right"), TopologyCases::join).to("out"));
        ALL.put("stream_filtered_table_join", b -> b.<String, String>stream("left")
            .join(b.<String, String>table("right").filter((k, v) -> v.contains("a")).mapValues(v -> v + "!"),
                TopologyCases::join).to("out"));
        ALL.put("stream_global_join", b -> b.<String, String>stream("left")
            .join(b.<String, String>globalTable("right"), (k, v) -> v, TopologyCases::join).to("out"));
        ALL.put("stream_global_left_join", b -> b.<String, String>stream("left")
            .leftJoin(b.<String, String>globalTable("right"), (k, v) -> v, TopologyCases::join).to("out"));
    }

    static void tableJoins() {
        ALL.put("table_join", b -> out(b.<String, String>table("left").join(b.<String, String>table("right"), TopologyCases::join)));
        ALL.put("table_left_join", b -> out(b.<String, String>table("left").leftJoin(b.<String, String>table("right"), TopologyCases::join)));
        ALL.put("table_outer_join", b -> out(b.<String, String>table("left").outerJoin(b.<String, String>table("right"), TopologyCases::join)));
        ALL.put("table_join_stored", b -> out(b.<String, String>table("left")
            .join(b.<String, String>table("right"), TopologyCases::join, kept("joined"))));
        ALL.put("table_join_filtered", b -> out(b.<String, String>table("left")
            .leftJoin(b.<String, String>table("right").filter((k, v) -> v.contains("a")), TopologyCases::join)
            .filter((k, v) -> !v.contains("c"))));
        ALL.put("table_join_count", b -> out(b.<String, String>table("left")
            .outerJoin(b.<String, String>table("right"), TopologyCases::join)
            .groupBy((k, v) -> KeyValue.pair(v, k)).count()));
        ALL.put("table_left_join_count", b -> out(b.<String, String>table("left")
            .leftJoin(b.<String, String>table("right"), TopologyCases::join)
            .groupBy((k, v) -> KeyValue.pair(v, k)).count()));
        ALL.put("table_join_twice", b -> {
            KTable<String, String> right = b.table("right");
            out(b.<String, String>table("left").leftJoin(right, TopologyCases::join)
                .outerJoin(right.mapValues(v -> v + "!"), TopologyCases::join));
        });
        ALL.put("count_join_table", b -> out(b.<String, String>stream("left").groupByKey().count()
            .mapValues(v -> v.toString()).leftJoin(b.<String, String>table("right"), TopologyCases::join)));
        ALL.put("windowed_join", b -> {
            KTable<Windowed<String>, Long> left = b.<String, String>stream("left").groupByKey().windowedBy(TUMBLING).count();
            KTable<Windowed<String>, Long> right = b.<String, String>stream("right").groupByKey().windowedBy(TUMBLING).count();
            outWindows(left.outerJoin(right, (one, other) -> one + "+" + other));
        });
        ALL.put("table_self_join", b -> {
            KTable<String, String> rows = b.table("in");
            out(rows.join(rows, TopologyCases::join));
        });
        ALL.put("foreign_join", b -> out(b.<String, String>table("left")
            .join(b.<String, String>table("right"), v -> v.substring(0, 1), TopologyCases::join)));
        ALL.put("foreign_left_join", b -> out(b.<String, String>table("left")
            .leftJoin(b.<String, String>table("right"), v -> v.substring(0, 1), TopologyCases::join)));
        ALL.put("foreign_join_null_keys", b -> out(b.<String, String>table("left")
            .join(b.<String, String>table("right"), v -> v.startsWith("c") ? null : v.substring(0, 1), TopologyCases::join)));
        ALL.put("foreign_left_join_null_keys", b -> out(b.<String, String>table("left")
            .leftJoin(b.<String, String>table("right"), v -> v.startsWith("c") ? null : v.substring(0, 1), TopologyCases::join)));
        ALL.put("suppressed_join", b -> out(b.table("left", Consumed.with(Serdes.String(), Serdes.String()))
            .suppress(Suppressed.untilTimeLimit(ms(8), Suppressed.BufferConfig.unbounded()))
            .leftJoin(b.<String, String>table("right"), TopologyCases::join)));
    }

    static class Timed implements Processor<String, String, String, String> {
        private ProcessorContext<String, String> context;
        private KeyValueStore<String, String> store;

        @Override
        public void init(ProcessorContext<String, String> context) {
            this.context = context;
            store = context.getStateStore("seen");
            context.schedule(ms(10), PunctuationType.STREAM_TIME, now -> tell("stream", now));
            context.schedule(ms(20), PunctuationType.WALL_CLOCK_TIME, now -> tell("wall", now));
        }

        private void tell(String kind, long now) {
            StringBuilder all = new StringBuilder();
            try (var rows = store.all()) {
                rows.forEachRemaining(row -> all.append(row.key).append("=").append(row.value).append(";"));
            }
            context.forward(new Record<>(kind, all.toString(), now));
        }

        @Override
        public void process(Record<String, String> record) {
            if (record.key() == null) return;
            store.put(record.key(), record.value());
            context.forward(record.withValue(record.value() + "'"));
        }
    }

    static void processors() {
        ALL.put("process", b -> {
            b.addStateStore(Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore("seen"), Serdes.String(), Serdes.String()));
            b.<String, String>stream("in").process(Timed::new, "seen").to("out");
        });
    }

    static Properties settings() {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "cases");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "nowhere:1");
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.String().getClass().getName());
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.String().getClass().getName());
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, System.getProperty("state.dir"));
        settings.put("dsl.store.suppliers.class", System.getProperty("stores", "org.apache.kafka.streams.state.BuiltInDslStoreSuppliers$RocksDBDslStoreSuppliers"));
        settings.put("__emit.interval.ms.kstreams.outer.join.spurious.results.fix__", 0L);
        settings.put("__emit.interval.ms.kstreams.windowed.aggregation__", 0L);
        return settings;
    }

    static JsonNode run(JsonNode one) {
        StreamsBuilder builder = new StreamsBuilder();
        ALL.get(one.get("topology").asText()).accept(builder);
        ObjectNode outputs = JSON.createObjectNode();
        try (TopologyTestDriver driver = new TopologyTestDriver(builder.build(), settings(), Instant.ofEpochMilli(0))) {
            var text = new StringSerializer();
            for (JsonNode step : one.get("steps")) {
                if (step.has("advance")) {
                    driver.advanceWallClockTime(ms(step.get("advance").asLong()));
                } else {
                    driver.createInputTopic(step.get("topic").asText(), text, text)
                        .pipeInput(step.get("key").asText(null), step.get("value").asText(null), step.get("timestamp").asLong());
                }
            }
            for (String topic : List.of("out", "out-a", "out-b")) {
                if (!driver.producedTopicNames().contains(topic)) continue;
                ArrayNode records = outputs.putArray(topic);
                var reader = driver.createOutputTopic(topic, new StringDeserializer(), new StringDeserializer());
                while (!reader.isEmpty()) {
                    var record = reader.readRecord();
                    records.addArray().add(record.key()).add(record.value()).add(record.timestamp());
                }
            }
        }
        return outputs;
    }

    public static void main(String[] arguments) throws Exception {
        var results = System.out;
        System.setOut(System.err); // what logs say must not get between the results
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode result;
            try {
                result = run(JSON.readTree(line));
            } catch (Exception error) {
                result = JSON.createObjectNode().put("error", error.toString() + " / " + error.getCause());
            }
            results.println(JSON.writeValueAsString(result));
        }
    }
}
