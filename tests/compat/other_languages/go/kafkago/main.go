// segmentio/kafka-go behind the program protocol.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/compress"

	"ottla/otherlanguages/exchange"
)

// The names of the errors that the tests provoke, as the protocol has them.
var names = map[kafka.Error]string{
	kafka.OffsetOutOfRange:        "OFFSET_OUT_OF_RANGE",
	kafka.UnknownTopicOrPartition: "UNKNOWN_TOPIC_OR_PARTITION",
	kafka.MessageSizeTooLarge:     "MESSAGE_TOO_LARGE",
	kafka.InvalidTopic:            "INVALID_TOPIC_EXCEPTION",
	kafka.TopicAlreadyExists:      "TOPIC_ALREADY_EXISTS",
	kafka.InvalidPartitionNumber:  "INVALID_PARTITIONS",
	kafka.InvalidConfiguration:    "INVALID_CONFIG",
	kafka.NonEmptyGroup:           "NON_EMPTY_GROUP",
	kafka.GroupIdNotFound:         "GROUP_ID_NOT_FOUND",
}

func main() {
	exchange.Main(map[string]exchange.Command{
		"create_topic":      administer(createTopic),
		"list_topics":       administer(listTopics),
		"describe_topic":    administer(describeTopic),
		"add_partitions":    administer(addPartitions),
		"delete_topic":      administer(deleteTopic),
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
	}, nameOf)
}

func nameOf(err error) string {
	var several kafka.WriteErrors
	if errors.As(err, &several) {
		for _, one := range several {
			if one != nil {
				return nameOf(one)
			}
		}
	}
	var known kafka.Error
	if errors.As(err, &known) {
		return names[known]
	}
	return "unnamed"
}

func received(message kafka.Message) exchange.Record {
	stamp := message.Time.UnixMilli()
	headers := []exchange.Header{}
	for _, header := range message.Headers {
		headers = append(headers, exchange.Header{Key: header.Key, Value: header.Value})
	}
	return exchange.Record{
		Partition: int32(message.Partition), Offset: message.Offset, Key: message.Key,
		Value: message.Value, Headers: headers, TimestampMs: &stamp,
	}
}

func produce(call *exchange.Call) error {
	offsets := make([]int64, len(call.Records))
	writer := &kafka.Writer{
		Addr: kafka.TCP(call.Bootstrap), Topic: call.Topic, MaxAttempts: 2,
		RequiredAcks: kafka.RequireAll, BatchTimeout: 5 * time.Millisecond,
		BatchBytes: int64(call.RequestBytesMax), Compression: codec(call.Codec),
		Balancer: kafka.BalancerFunc(func(message kafka.Message, _ ...int) int {
			return int(call.Records[message.WriterData.(int)].Partition)
		}),
		Completion: func(messages []kafka.Message, _ error) {
			for _, message := range messages {
				offsets[message.WriterData.(int)] = message.Offset
			}
		},
	}
	messages := []kafka.Message{}
	for at, record := range call.Records {
		one := kafka.Message{Key: record.Key, Value: record.Value, WriterData: at}
		for _, header := range record.Headers {
			one.Headers = append(one.Headers, kafka.Header{Key: header.Key, Value: header.Value})
		}
		if record.TimestampMs != nil {
			one.Time = time.UnixMilli(*record.TimestampMs)
		}
		messages = append(messages, one)
	}
	err := writer.WriteMessages(context.Background(), messages...)
	if closed := writer.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	call.Answer(exchange.Answer{"offsets": offsets})
	return nil
}

func codec(name string) kafka.Compression {
	codecs := map[string]kafka.Compression{
		"gzip": compress.Gzip, "snappy": compress.Snappy, "lz4": compress.Lz4, "zstd": compress.Zstd,
	}
	return codecs[name]
}

func consume(call *exchange.Call) error {
	isolation := kafka.ReadUncommitted
	if call.CommittedOnly {
		isolation = kafka.ReadCommitted
	}
	records, problems := make(chan exchange.Record), make(chan error)
	for partition, start := range call.Starts {
		reader := kafka.NewReader(kafka.ReaderConfig{
			Brokers: []string{call.Bootstrap}, Topic: call.Topic, Partition: int(partition),
			MaxWait: time.Duration(call.WaitMsMax) * time.Millisecond, MaxBytes: int(call.FetchBytesMax),
			IsolationLevel: isolation, OffsetOutOfRangeError: true,
		})
		defer reader.Close()
		if err := reader.SetOffset(start); err != nil {
			return err
		}
		go func() {
			for {
				message, err := reader.ReadMessage(context.Background())
				if err != nil {
					problems <- err
					return
				}
				records <- received(message)
			}
		}()
	}
	return call.AnswerRecords(records, problems)
}

func member(call *exchange.Call) error {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{call.Bootstrap}, GroupID: call.Group, Topic: call.Topic,
		StartOffset: kafka.FirstOffset, HeartbeatInterval: exchange.HeartbeatInterval,
		MaxWait: 200 * time.Millisecond, JoinGroupBackoff: 100 * time.Millisecond,
		Dialer: &kafka.Dialer{ClientID: call.ClientID, Timeout: 10 * time.Second, DualStack: true},
	})
	defer reader.Close()
	for {
		message, err := reader.FetchMessage(call.Context)
		if call.Context.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if err := reader.CommitMessages(context.Background(), message); err != nil {
			return err
		}
		call.Answer(received(message))
	}
}

func administer(do func(*exchange.Call, context.Context, *kafka.Client) error) exchange.Command {
	return func(call *exchange.Call) error {
		transport := &kafka.Transport{ClientID: call.ClientID}
		defer transport.CloseIdleConnections()
		client := &kafka.Client{
			Addr: kafka.TCP(call.Bootstrap), Timeout: 10 * time.Second, Transport: transport,
		}
		return do(call, context.Background(), client)
	}
}
