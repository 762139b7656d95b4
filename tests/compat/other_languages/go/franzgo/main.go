// franz-go (kgo and kadm) behind the program protocol.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"ottla/otherlanguages/exchange"
)

func main() {
	exchange.Main(map[string]exchange.Command{
		"create_topic":      administer(createTopic),
		"list_topics":       administer(listTopics),
		"describe_topic":    administer(describeTopic),
		"add_partitions":    administer(addPartitions),
		"delete_topic":      administer(deleteTopic),
		"delete_records":    administer(deleteRecords),
		"offset":            administer(offset),
		"list_groups":       administer(listGroups),
		"describe_group":    administer(describeGroup),
		"group_offsets":     administer(groupOffsets),
		"set_group_offsets": administer(setGroupOffsets),
		"delete_group":      administer(deleteGroup),
		"describe_configs":  administer(describeConfigs),
		"alter_configs":     administer(alterConfigs),
		"describe_cluster":  administer(describeCluster),
		"produce":           produce,
		"consume":           consume,
		"member":            member,
		"transaction":       transaction,
		"transform":         transform,
		"be_replaced":       beReplaced,
	}, nameOf)
}

func nameOf(err error) string {
	var known *kerr.Error
	if errors.As(err, &known) {
		return known.Message
	}
	return "unnamed"
}

func options(call *exchange.Call, more ...kgo.Opt) []kgo.Opt {
	return append([]kgo.Opt{
		kgo.SeedBrokers(call.Bootstrap),
		kgo.ClientID(call.ClientID),
		kgo.UnknownTopicRetries(1),
		kgo.MetadataMinAge(50 * time.Millisecond),
	}, more...)
}

func toSend(topic string, records []exchange.Record) []*kgo.Record {
	made := make([]*kgo.Record, 0, len(records))
	for _, record := range records {
		one := &kgo.Record{Topic: topic, Partition: record.Partition, Key: record.Key, Value: record.Value}
		for _, header := range record.Headers {
			one.Headers = append(one.Headers, kgo.RecordHeader{Key: header.Key, Value: header.Value})
		}
		if record.TimestampMs != nil {
			one.Timestamp = time.UnixMilli(*record.TimestampMs)
		}
		made = append(made, one)
	}
	return made
}

func received(record *kgo.Record) exchange.Record {
	stamp := record.Timestamp.UnixMilli()
	headers := []exchange.Header{}
	for _, header := range record.Headers {
		headers = append(headers, exchange.Header{Key: header.Key, Value: header.Value})
	}
	return exchange.Record{
		Partition: record.Partition, Offset: record.Offset, Key: record.Key, Value: record.Value,
		Headers: headers, TimestampMs: &stamp,
	}
}

func produce(call *exchange.Call) error {
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	more := []kgo.Opt{
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(codecs[call.Codec]),
		kgo.ProducerBatchMaxBytes(call.RequestBytesMax),
	}
	if !call.Idempotent {
		more = append(more, kgo.DisableIdempotentWrite())
	}
	client, err := kgo.NewClient(options(call, more...)...)
	if err != nil {
		return err
	}
	defer client.Close()
	records := toSend(call.Topic, call.Records)
	if err := client.ProduceSync(context.Background(), records...).FirstErr(); err != nil {
		return err
	}
	offsets := []int64{}
	for _, record := range records {
		offsets = append(offsets, record.Offset)
	}
	call.Answer(exchange.Answer{"offsets": offsets})
	return nil
}

func consume(call *exchange.Call) error {
	starts := map[int32]kgo.Offset{}
	for partition, start := range call.Starts {
		starts[partition] = kgo.NewOffset().At(start)
	}
	isolation := kgo.ReadUncommitted()
	if call.CommittedOnly {
		isolation = kgo.ReadCommitted()
	}
	client, err := kgo.NewClient(options(call,
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{call.Topic: starts}),
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchIsolationLevel(isolation),
		kgo.FetchMaxWait(time.Duration(call.WaitMsMax)*time.Millisecond),
		kgo.FetchMaxPartitionBytes(call.FetchBytesMax),
	)...)
	if err != nil {
		return err
	}
	defer client.Close()
	for count := 0; count < call.Count; {
		fetches := client.PollFetches(context.Background())
		if err := fetches.Err(); err != nil {
			return err
		}
		for _, record := range fetches.Records() {
			call.Answer(received(record))
			count++
		}
	}
	return nil
}

func member(call *exchange.Call) error {
	more := []kgo.Opt{
		kgo.ConsumerGroup(call.Group), kgo.ConsumeTopics(call.Topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.HeartbeatInterval(exchange.HeartbeatInterval),
	}
	switch call.Balancer {
	case "cooperative-sticky":
		more = append(more, kgo.Balancers(kgo.CooperativeStickyBalancer()))
	case "broker":
		more = append(more, kgo.Balancers(kgo.RangeBalancer()), kgo.ServerSideBalancer())
	default:
		more = append(more, kgo.Balancers(kgo.RangeBalancer()))
	}
	client, err := kgo.NewClient(options(call, more...)...)
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		fetches := client.PollFetches(call.Context)
		if call.Context.Err() != nil {
			return nil
		}
		if err := fetches.Err(); err != nil {
			return err
		}
		records := fetches.Records()
		if err := client.CommitRecords(context.Background(), records...); err != nil {
			return err
		}
		for _, record := range records {
			call.Answer(received(record))
		}
	}
}

func ending(commit bool) kgo.TransactionEndTry {
	if commit {
		return kgo.TryCommit
	}
	return kgo.TryAbort
}

// inTransaction is a client that has begun a transaction.
func inTransaction(call *exchange.Call) (*kgo.Client, error) {
	client, err := kgo.NewClient(options(call,
		kgo.TransactionalID(call.TransactionalID),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)...)
	if err != nil {
		return nil, err
	}
	return client, client.BeginTransaction()
}

func transaction(call *exchange.Call) error {
	client, err := inTransaction(call)
	if err != nil {
		return err
	}
	defer client.Close()
	records := toSend(call.Topic, call.Records)
	if err := client.ProduceSync(context.Background(), records...).FirstErr(); err != nil {
		return err
	}
	return client.EndTransaction(context.Background(), ending(call.Commit))
}

func beReplaced(call *exchange.Call) error {
	records := toSend(call.Topic, call.Records)
	begin := func() (*kgo.Client, error) {
		client, err := inTransaction(call)
		if err != nil {
			return nil, err
		}
		return client, client.ProduceSync(context.Background(), records[0]).FirstErr()
	}
	older, err := begin()
	if err != nil {
		return err
	}
	newer, err := begin()
	if err != nil {
		return err
	}
	defer newer.Close()
	return older.ProduceSync(context.Background(), records[1]).FirstErr()
}

func transform(call *exchange.Call) error {
	session, err := kgo.NewGroupTransactSession(options(call,
		kgo.TransactionalID(call.TransactionalID),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ConsumerGroup(call.Group), kgo.ConsumeTopics(call.Source),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	)...)
	if err != nil {
		return err
	}
	defer session.Close()
	if err := session.Begin(); err != nil {
		return err
	}
	for count := 0; count < call.Count; {
		fetches := session.PollFetches(context.Background())
		if err := fetches.Err(); err != nil {
			return err
		}
		for _, record := range fetches.Records() {
			copied := &kgo.Record{Topic: call.Topic, Key: record.Key, Value: record.Value}
			if err := session.ProduceSync(context.Background(), copied).FirstErr(); err != nil {
				return err
			}
			count++
		}
	}
	committed, err := session.End(context.Background(), ending(call.Commit))
	if err == nil && committed != call.Commit {
		return errors.New("the transaction did not end as it should")
	}
	return err
}

func administer(do func(*exchange.Call, context.Context, *kadm.Client) error) exchange.Command {
	return func(call *exchange.Call) error {
		client, err := kgo.NewClient(options(call)...)
		if err != nil {
			return err
		}
		defer client.Close()
		return do(call, context.Background(), kadm.NewClient(client))
	}
}
