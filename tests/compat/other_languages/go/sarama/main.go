// IBM/sarama behind the program protocol.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/IBM/sarama"

	"ottla/otherlanguages/exchange"
)

const (
	rebalanceBackoff = 100 * time.Millisecond
	waitMax          = 100 * time.Millisecond
)

// The names of the errors that the tests provoke, as the protocol has them.
var names = map[sarama.KError]string{
	sarama.ErrOffsetOutOfRange:        "OFFSET_OUT_OF_RANGE",
	sarama.ErrUnknownTopicOrPartition: "UNKNOWN_TOPIC_OR_PARTITION",
	sarama.ErrMessageSizeTooLarge:     "MESSAGE_TOO_LARGE",
	sarama.ErrInvalidTopic:            "INVALID_TOPIC_EXCEPTION",
	sarama.ErrTopicAlreadyExists:      "TOPIC_ALREADY_EXISTS",
	sarama.ErrInvalidPartitions:       "INVALID_PARTITIONS",
	sarama.ErrInvalidConfig:           "INVALID_CONFIG",
	sarama.ErrInvalidProducerEpoch:    "INVALID_PRODUCER_EPOCH",
	sarama.ErrNonEmptyGroup:           "NON_EMPTY_GROUP",
	sarama.ErrGroupIDNotFound:         "GROUP_ID_NOT_FOUND",
}

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
	var several sarama.ProducerErrors
	if errors.As(err, &several) {
		err = several[0].Err
	}
	for known, name := range names {
		if errors.Is(err, known) {
			return name
		}
	}
	return "unnamed"
}

func settings(call *exchange.Call) *sarama.Config {
	config := sarama.NewConfig()
	if call.Release == "" {
		config.Version = sarama.MaxVersion
	} else if release, err := sarama.ParseKafkaVersion(call.Release); err == nil {
		config.Version = release
	} else {
		panic(err)
	}
	config.ClientID = call.ClientID
	config.Metadata.AllowAutoTopicCreation = false
	config.Metadata.Retry.Max = 1
	config.Producer.Return.Successes = true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Consumer.Return.Errors = true
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.MaxWaitTime = waitMax // a member leaves only between two fetches
	config.Consumer.Group.Heartbeat.Interval = exchange.HeartbeatInterval
	config.Consumer.Group.Rebalance.Retry.Backoff = rebalanceBackoff
	return config
}

func toSend(topic string, records []exchange.Record) []*sarama.ProducerMessage {
	made := make([]*sarama.ProducerMessage, 0, len(records))
	for _, record := range records {
		one := &sarama.ProducerMessage{Topic: topic, Partition: record.Partition}
		if record.Key != nil {
			one.Key = sarama.ByteEncoder(record.Key)
		}
		if record.Value != nil {
			one.Value = sarama.ByteEncoder(record.Value)
		}
		for _, header := range record.Headers {
			one.Headers = append(one.Headers, sarama.RecordHeader{Key: []byte(header.Key), Value: header.Value})
		}
		if record.TimestampMs != nil {
			one.Timestamp = time.UnixMilli(*record.TimestampMs)
		}
		made = append(made, one)
	}
	return made
}

func received(message *sarama.ConsumerMessage) exchange.Record {
	stamp := message.Timestamp.UnixMilli()
	headers := []exchange.Header{}
	for _, header := range message.Headers {
		headers = append(headers, exchange.Header{Key: string(header.Key), Value: header.Value})
	}
	return exchange.Record{
		Partition: message.Partition, Offset: message.Offset, Key: message.Key, Value: message.Value,
		Headers: headers, TimestampMs: &stamp,
	}
}

func produce(call *exchange.Call) error {
	codecs := map[string]sarama.CompressionCodec{
		"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
		"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
	}
	config := settings(call)
	config.Producer.Compression = codecs[call.Codec]
	config.Producer.MaxMessageBytes = int(call.RequestBytesMax)
	if call.Idempotent {
		config.Producer.Idempotent = true
		config.Net.MaxOpenRequests = 1
	}
	producer, err := sarama.NewSyncProducer([]string{call.Bootstrap}, config)
	if err != nil {
		return err
	}
	defer producer.Close()
	messages := toSend(call.Topic, call.Records)
	if err := producer.SendMessages(messages); err != nil {
		return err
	}
	offsets := []int64{}
	for _, message := range messages {
		offsets = append(offsets, message.Offset)
	}
	call.Answer(exchange.Answer{"offsets": offsets})
	return nil
}

func consume(call *exchange.Call) error {
	config := settings(call)
	config.Consumer.MaxWaitTime = time.Duration(call.WaitMsMax) * time.Millisecond
	config.Consumer.Fetch.Default = call.FetchBytesMax
	if call.CommittedOnly {
		config.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	consumer, err := sarama.NewConsumer([]string{call.Bootstrap}, config)
	if err != nil {
		return err
	}
	records, problems := make(chan exchange.Record), make(chan error)
	for partition, start := range call.Starts {
		from, err := consumer.ConsumePartition(call.Topic, partition, start)
		if err != nil {
			return err
		}
		go func() {
			for message := range from.Messages() {
				records <- received(message)
			}
		}()
		go func() {
			for problem := range from.Errors() {
				problems <- problem
			}
		}()
	}
	return call.AnswerRecords(records, problems)
}

// handler gives every message of a session to `take`, which may end the session.
type handler struct {
	take func(sarama.ConsumerGroupSession, *sarama.ConsumerMessage) error
}

func (handler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (own handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, isOpen := <-claim.Messages():
			if !isOpen {
				return nil
			}
			if err := own.take(session, message); err != nil {
				return err
			}
		case <-session.Context().Done():
			return nil
		}
	}
}

func member(call *exchange.Call) error {
	group, err := sarama.NewConsumerGroup([]string{call.Bootstrap}, call.Group, settings(call))
	if err != nil {
		return err
	}
	defer group.Close()
	commit := func(session sarama.ConsumerGroupSession, message *sarama.ConsumerMessage) error {
		session.MarkMessage(message, "")
		session.Commit()
		call.Answer(received(message))
		return nil
	}
	for call.Context.Err() == nil {
		if err := group.Consume(call.Context, []string{call.Topic}, handler{commit}); err != nil {
			return err
		}
	}
	return nil
}

// inTransaction is a producer that has begun a transaction.
func inTransaction(call *exchange.Call) (sarama.SyncProducer, error) {
	config := settings(call)
	config.Producer.Idempotent = true
	config.Producer.Transaction.ID = call.TransactionalID
	config.Net.MaxOpenRequests = 1
	producer, err := sarama.NewSyncProducer([]string{call.Bootstrap}, config)
	if err != nil {
		return nil, err
	}
	return producer, producer.BeginTxn()
}

func end(producer sarama.SyncProducer, commit bool) error {
	if commit {
		return producer.CommitTxn()
	}
	return producer.AbortTxn()
}

func transaction(call *exchange.Call) error {
	producer, err := inTransaction(call)
	if err != nil {
		return err
	}
	defer producer.Close()
	if err := producer.SendMessages(toSend(call.Topic, call.Records)); err != nil {
		return err
	}
	return end(producer, call.Commit)
}

func beReplaced(call *exchange.Call) error {
	messages := toSend(call.Topic, call.Records)
	begin := func() (sarama.SyncProducer, error) {
		producer, err := inTransaction(call)
		if err != nil {
			return nil, err
		}
		return producer, producer.SendMessages(messages[:1])
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
	return older.SendMessages(messages[1:])
}

func transform(call *exchange.Call) error {
	producer, err := inTransaction(call)
	if err != nil {
		return err
	}
	defer producer.Close()
	config := settings(call)
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	group, err := sarama.NewConsumerGroup([]string{call.Bootstrap}, call.Group, config)
	if err != nil {
		return err
	}
	defer group.Close()
	count, outcome := 0, make(chan error, 1)
	copyOne := func(session sarama.ConsumerGroupSession, message *sarama.ConsumerMessage) error {
		if count == call.Count {
			return nil
		}
		copied := &sarama.ProducerMessage{Topic: call.Topic, Value: sarama.ByteEncoder(message.Value)}
		_, _, err := producer.SendMessage(copied)
		if err == nil {
			err = producer.AddMessageToTxn(message, call.Group, nil)
		}
		count++
		if err == nil && count == call.Count {
			err = end(producer, call.Commit)
		}
		if err != nil || count == call.Count {
			outcome <- err
		}
		return err
	}
	go func() {
		if err := group.Consume(context.Background(), []string{call.Source}, handler{copyOne}); err != nil {
			outcome <- err
		}
	}()
	return <-outcome
}

func administer(do func(*exchange.Call, sarama.ClusterAdmin) error) exchange.Command {
	return func(call *exchange.Call) error {
		admin, err := sarama.NewClusterAdmin([]string{call.Bootstrap}, settings(call))
		if err != nil {
			return err
		}
		defer admin.Close()
		return do(call, admin)
	}
}
