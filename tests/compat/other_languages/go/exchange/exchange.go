// Package exchange is the program protocol: one request as a line of JSON on stdin, answers as lines
// of JSON on stdout. It knows no Kafka client.
package exchange

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"
)

// What a timestamp stands for that is none.
const (
	Earliest = -2
	Latest   = -1
)

// HeartbeatInterval is short, so that members soon hear of each other.
const HeartbeatInterval = 300 * time.Millisecond

// Record is a record on its way in or out; null and empty keys and values stay distinct.
type Record struct {
	Partition   int32    `json:"partition"`
	Offset      int64    `json:"offset"`
	Key         []byte   `json:"key"`
	Value       []byte   `json:"value"`
	Headers     []Header `json:"headers"`
	TimestampMs *int64   `json:"timestamp_ms"`
}

// Header is one header of a record.
type Header struct {
	Key   string `json:"key"`
	Value []byte `json:"value"`
}

// Request holds the arguments of every command; each command reads those it knows.
type Request struct {
	ClientID        string            `json:"client_id"`
	Release         string            `json:"release"`
	Topic           string            `json:"topic"`
	Source          string            `json:"source"`
	Partitions      int32             `json:"partitions"`
	Partition       int32             `json:"partition"`
	Configs         map[string]string `json:"configs"`
	Names           []string          `json:"names"`
	Records         []Record          `json:"records"`
	Codec           string            `json:"codec"`
	Idempotent      bool              `json:"idempotent"`
	RequestBytesMax int32             `json:"request_bytes_max"`
	Starts          map[int32]int64   `json:"starts"`
	Count           int               `json:"count"`
	CommittedOnly   bool              `json:"committed_only"`
	WaitMsMax       int64             `json:"wait_ms_max"`
	FetchBytesMax   int32             `json:"fetch_bytes_max"`
	TimestampMs     int64             `json:"timestamp_ms"`
	TransactionalID string            `json:"transactional_id"`
	Commit          bool              `json:"commit"`
	Group           string            `json:"group"`
	Balancer        string            `json:"balancer"`
}

// Partition is what a client's metadata tells of a partition.
type Partition struct {
	Partition int32   `json:"partition"`
	Leader    int32   `json:"leader"`
	Replicas  []int32 `json:"replicas"`
	InSync    []int32 `json:"in_sync"`
}

// Broker is what a client's metadata tells of a broker.
type Broker struct {
	ID   int32  `json:"id"`
	Host string `json:"host"`
	Port int32  `json:"port"`
}

// BrokerAt is a broker at `host:port`.
func BrokerAt(id int32, address string) (Broker, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return Broker{}, err
	}
	number, err := strconv.ParseInt(port, 10, 32)
	return Broker{ID: id, Host: host, Port: int32(number)}, err
}

// Member is a member of a group as the client's admin describes it.
type Member struct {
	ClientID   string  `json:"client_id"`
	Partitions []int32 `json:"partitions"`
}

// Group is a described group.
type Group struct {
	State   string   `json:"state"`
	Members []Member `json:"members"`
}

// Answer is an answer of some named fields.
type Answer = map[string]any

// Call is one run of a command.
type Call struct {
	Request
	Bootstrap string
	// Context ends when stdin does: that is how a test tells a program to leave.
	Context context.Context

	lock sync.Mutex
	out  *json.Encoder
}

// Answer writes one line.
func (call *Call) Answer(line any) {
	call.lock.Lock()
	defer call.lock.Unlock()
	if err := call.out.Encode(line); err != nil {
		panic(err)
	}
}

// AnswerRecords writes as many records as were asked for, as they come.
func (call *Call) AnswerRecords(records <-chan Record, problems <-chan error) error {
	for range call.Count {
		select {
		case record := <-records:
			call.Answer(record)
		case problem := <-problems:
			return problem
		}
	}
	return nil
}

// Command does one thing with the client.
type Command func(call *Call) error

// Main runs the command named on the command line and ends the process.
func Main(commands map[string]Command, nameOf func(error) string) {
	if len(os.Args) != 3 || commands[os.Args[1]] == nil {
		fmt.Fprintf(os.Stderr, "usage: %s COMMAND BOOTSTRAP, not %q\n", os.Args[0], os.Args[1:])
		os.Exit(2)
	}
	input := bufio.NewReader(os.Stdin)
	line, err := input.ReadBytes('\n')
	if err != nil {
		fmt.Fprintln(os.Stderr, "no request:", err)
		os.Exit(2)
	}
	untilLeft, leave := context.WithCancel(context.Background())
	call := &Call{Bootstrap: os.Args[2], Context: untilLeft, out: json.NewEncoder(os.Stdout)}
	if err := json.Unmarshal(line, &call.Request); err != nil {
		fmt.Fprintln(os.Stderr, "bad request:", err)
		os.Exit(2)
	}
	go func() {
		_, _ = io.Copy(io.Discard, input)
		leave()
	}()
	if err := commands[os.Args[1]](call); err != nil {
		call.Answer(Answer{"error": nameOf(err), "message": err.Error()})
		os.Exit(1)
	}
}
