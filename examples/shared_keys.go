// A key-value store for several goroutines: one sync serves all that wrote before it.
//
//	go build -o shared_keys shared_keys.go
//	tornpage explore target 'cmd:./shared_keys {dir}' --seconds 30
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

type request struct {
	Do    string            `json:"do"`
	Key   string            `json:"key"`
	Value *string           `json:"value"` // base64; this store keeps it so. nil removes the key
	Calls []json.RawMessage `json:"calls"`
}

type store struct {
	file    *os.File
	writing sync.Mutex // held while a change is appended
	end     int64
	values  map[string]string
	written int
	syncing sync.Mutex // held by the caller that syncs
	synced  int
}

// open opens the store in a directory, or recovers what a crash left there.
func open(directory string) (*store, error) {
	file, err := os.OpenFile(filepath.Join(directory, "log"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	s := &store{file: file, values: map[string]string{}}
	for {
		length := bytes.IndexByte(data[s.end:], '\n')
		if length < 0 {
			break
		}
		sum, change, _ := strings.Cut(string(data[s.end:s.end+int64(length)]), " ")
		if sum != checksum(change) {
			break
		}
		s.apply(change)
		s.end += int64(length) + 1
	}
	if err := file.Truncate(s.end); err != nil {
		return nil, err
	}
	if err := file.Sync(); err != nil {
		return nil, err
	}
	parent, err := os.Open(directory)
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	return s, parent.Sync() // the name of the file is durable too
}

func checksum(text string) string { return fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(text))) }

// apply carries out a change: a key with a value, or a key alone to remove it.
func (s *store) apply(change string) {
	key, value, hasValue := strings.Cut(change, " ")
	if hasValue {
		s.values[key] = value
	} else {
		delete(s.values, key)
	}
}

// write appends a change, carries it out in memory, and waits until it is durable.
func (s *store) write(change string) error {
	line := checksum(change) + " " + change + "\n"
	s.writing.Lock()
	_, err := s.file.WriteAt([]byte(line), s.end)
	s.end += int64(len(line))
	s.apply(change)
	s.written++
	number := s.written
	s.writing.Unlock()
	if err != nil {
		return err
	}
	s.syncing.Lock()
	defer s.syncing.Unlock()
	if s.synced >= number {
		return nil
	}
	s.writing.Lock()
	written := s.written
	s.writing.Unlock()
	if err := s.file.Sync(); err != nil {
		return err
	}
	s.synced = written
	return nil
}

func (s *store) answer(ask request) (map[string]any, error) {
	switch ask.Do {
	case "hello":
		// Up to four calls overlap. A put that has an answer survives a power loss.
		promises := map[string]any{"durable": "put", "kill": "put", "callers": 4}
		return map[string]any{"tornpage": 1, "name": "shared_keys", "shape": "key-value", "promises": promises}, nil
	case "put":
		return map[string]any{}, s.write(ask.Key + " " + *ask.Value)
	case "delete":
		return map[string]any{}, s.write(ask.Key)
	case "get":
		s.writing.Lock()
		defer s.writing.Unlock()
		if value, there := s.values[ask.Key]; there {
			return map[string]any{"value": value}, nil
		}
		return map[string]any{"value": nil}, nil
	case "scan":
		s.writing.Lock()
		defer s.writing.Unlock()
		pairs := [][2]string{}
		for key, value := range s.values {
			pairs = append(pairs, [2]string{key, value})
		}
		return map[string]any{"pairs": pairs}, nil
	case "flush":
		return map[string]any{}, s.file.Sync()
	case "close":
		return map[string]any{}, s.file.Close()
	}
	return nil, fmt.Errorf("no request %q", ask.Do)
}

var output sync.Mutex

// say writes an answer on a line of its own.
func say(answer map[string]any, err error) {
	if err != nil {
		answer = map[string]any{"error": err.Error()}
	}
	line, _ := json.Marshal(answer)
	output.Lock()
	defer output.Unlock()
	fmt.Println(string(line))
}

// together carries out calls at the same time. Each answer is written as soon as its call ends.
func (s *store) together(calls []json.RawMessage) {
	var running sync.WaitGroup
	for number, call := range calls {
		number, call := number, call
		running.Add(1)
		go func() {
			defer running.Done()
			var ask request
			err := json.Unmarshal(call, &ask)
			var answer map[string]any
			if err == nil {
				answer, err = s.answer(ask)
			}
			if err == nil {
				answer["call"] = number
			}
			say(answer, err)
		}()
	}
	running.Wait()
}

func main() {
	s, err := open(os.Args[1])
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
		if err := json.Unmarshal(line, &ask); err != nil {
			say(nil, err)
		} else if ask.Do == "together" {
			s.together(ask.Calls)
		} else {
			say(s.answer(ask))
		}
		if ask.Do == "close" {
			return
		}
	}
}
