// Adapters of the board for stores in Go: `board STORE MODE DIRECTORY`.
//
// Each adapter keeps one log of records in a library. The program speaks the JSON lines protocol of tornpage
// (docs/test-your-store.md) on standard input and output.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// recordLog is what an adapter implements: an ordered log of texts in a directory.
type recordLog interface {
	// all returns every record of the store, oldest first.
	all() ([]string, error)
	// push stores record number n, counted from 0.
	push(n uint64, record string) error
	// flush makes earlier records durable.
	flush() error
	// close closes the store cleanly.
	close() error
}

// adapter opens a store in a directory. Its promises are those of the mode.
type adapter struct {
	open     func(directory, mode string) (recordLog, error)
	promises func(mode string) map[string]any
}

var adapters = map[string]adapter{
	"badger":    {openBadger, durableAfterPut},
	"bbolt":     {openBolt, durableAfterPut},
	"buntdb":    {openBunt, durableAfterPut},
	"dque":      {openDque, durableAfterPut},
	"etcd-wal":  {openEtcd, durableAfterPut},
	"goleveldb": {openGoLevel, durableAfterPut},
	"pebble":    {openPebble, durableAfterPut},
	"raft-wal":  {openRaftWAL, durableAfterPut},
	"tidwall":   {openTidwall, durableAfterPut},
}

func durableAfterPut(string) map[string]any { return promised("put", "put") }

func promised(durable, kill string) map[string]any {
	return map[string]any{
		"durable": durable, "kill": kill, "recovered": false, "offsets": false, "queues": true, "index": false,
	}
}

type request struct {
	Do     string `json:"do"`
	Topic  string `json:"topic"`
	Queue  int    `json:"queue"`
	Number int    `json:"number"`
	Body   string `json:"body"` // base64; stored in this form
	Dir    string `json:"dir"`
}

// queueStore keeps messages of queues as the records of a log.
type queueStore struct {
	log    recordLog
	queues map[string][]string
	count  uint64
}

func open(name, mode, directory string) (*queueStore, error) {
	log, err := adapters[name].open(directory, mode)
	if err != nil {
		return nil, err
	}
	records, err := log.all()
	if err != nil {
		return nil, err
	}
	store := &queueStore{log: log, queues: map[string][]string{}}
	for _, record := range records {
		store.remember(record)
	}
	return store, nil
}

func queueName(topic string, queue int) string { return fmt.Sprintf("%s %d", topic, queue) }

// remember adds a record to the tables and returns its number in its queue.
func (s *queueStore) remember(record string) int {
	queue, body := record, ""
	if cut := strings.LastIndexByte(record, ' '); cut >= 0 {
		queue, body = record[:cut], record[cut+1:]
	}
	s.queues[queue] = append(s.queues[queue], body)
	s.count++
	return len(s.queues[queue]) - 1
}

func (s *queueStore) answer(name, mode string, ask request) (any, error) {
	switch ask.Do {
	case "hello":
		hello := map[string]any{"tornpage": 1, "name": name, "promises": adapters[name].promises(mode)}
		hello["open"] = true  // after a close, "open" opens a store in another directory
		hello["ahead"] = true // a request may come before the answer to an earlier one
		return hello, nil
	case "put":
		record := queueName(ask.Topic, ask.Queue) + " " + ask.Body
		number := s.count
		if err := s.log.push(number, record); err != nil {
			return nil, err
		}
		return map[string]any{"offset": number, "number": s.remember(record)}, nil
	case "read":
		bodies := s.queues[queueName(ask.Topic, ask.Queue)]
		if ask.Number < len(bodies) {
			return map[string]any{"body": bodies[ask.Number]}, nil
		}
		return map[string]any{"body": nil}, nil
	case "flush":
		return map[string]any{}, s.log.flush()
	case "close":
		return map[string]any{}, s.log.close()
	}
	return nil, fmt.Errorf("no request %q", ask.Do)
}

func main() {
	if len(os.Args) != 4 || adapters[os.Args[1]].open == nil {
		fmt.Fprintln(os.Stderr, "usage: board STORE MODE DIRECTORY")
		os.Exit(2)
	}
	name, mode, directory := os.Args[1], os.Args[2], os.Args[3]
	store, err := open(name, mode, directory)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	requests := bufio.NewReader(os.Stdin)
	for {
		line, err := requests.ReadBytes('\n')
		if err != nil {
			return
		}
		var ask request
		var answer any
		err = json.Unmarshal(line, &ask)
		if err == nil && ask.Do == "open" {
			store, err = open(name, mode, ask.Dir)
			ask.Do = "hello"
		}
		if err == nil {
			answer, err = store.answer(name, mode, ask)
		}
		if err != nil {
			answer = map[string]any{"error": err.Error()}
		}
		encoded, _ := json.Marshal(answer)
		fmt.Println(string(encoded))
	}
}
