// The store of key_value for tornpage: one JSON object a line on standard input, one answer a line on standard output.
// Replace the methods of store by calls into your library.
//
//	go build -o key_value key_value.go
//	tornpage explore target 'cmd:./key_value {dir}' --seconds 30
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
)

type change struct {
	Key   string  `json:"key"`
	Value *string `json:"value"` // base64; this store keeps it so. nil removes the key
}

type request struct {
	Do      string   `json:"do"`
	Key     string   `json:"key"`
	Value   *string  `json:"value"`
	Changes []change `json:"changes"`
	Dir     string   `json:"dir"`
}

type store struct {
	file   *os.File
	end    int64
	values map[string]string
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
		line := string(data[s.end : s.end+int64(length)])
		sum, rest, _ := strings.Cut(line, " ")
		if sum != checksum(rest) {
			break
		}
		s.apply(strings.Split(rest, " "))
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

// apply carries out a change: pairs of key and value, with "-" to remove the key.
func (s *store) apply(fields []string) {
	for n := 0; n+1 < len(fields); n += 2 {
		if fields[n+1] == "-" {
			delete(s.values, fields[n])
		} else {
			s.values[fields[n]] = fields[n+1]
		}
	}
}

// write appends a change to the file, syncs it, then carries it out in memory.
func (s *store) write(fields ...string) error {
	rest := strings.Join(fields, " ")
	line := checksum(rest) + " " + rest + "\n"
	if _, err := s.file.WriteAt([]byte(line), s.end); err != nil {
		return err
	}
	if err := s.file.Sync(); err != nil {
		return err
	}
	s.end += int64(len(line))
	s.apply(fields)
	return nil
}

// batch sets several keys, or removes those without a value. A crash leaves all changes or none.
func (s *store) batch(changes []change) error {
	var fields []string
	for _, each := range changes {
		value := "-"
		if each.Value != nil {
			value = *each.Value
		}
		fields = append(fields, each.Key, value)
	}
	return s.write(fields...)
}

// get returns the value of a key, nil without one.
func (s *store) get(key string) any {
	if value, there := s.values[key]; there {
		return value
	}
	return nil
}

// scan returns all pairs of key and value.
func (s *store) scan() [][2]string {
	pairs := [][2]string{}
	for key, value := range s.values {
		pairs = append(pairs, [2]string{key, value})
	}
	return pairs
}

func (s *store) answer(ask request) (any, error) {
	switch ask.Do {
	case "hello":
		// What your store promises. Only these promises are tested (docs/targets/shapes.md has the list).
		promises := map[string]any{"durable": "put", "kill": "put", "batch": "atomic"}
		hello := map[string]any{"tornpage": 1, "name": "key_value", "shape": "key-value", "promises": promises}
		hello["open"] = true  // after a close, "open" opens a store in another directory
		hello["ahead"] = true // a request may come before the answer to an earlier one
		return hello, nil
	case "put", "delete":
		return map[string]any{}, s.batch([]change{{ask.Key, ask.Value}})
	case "batch":
		return map[string]any{}, s.batch(ask.Changes)
	case "get":
		return map[string]any{"value": s.get(ask.Key)}, nil
	case "scan":
		return map[string]any{"pairs": s.scan()}, nil
	case "flush":
		return map[string]any{}, s.file.Sync()
	case "close":
		return map[string]any{}, s.file.Close()
	}
	return nil, fmt.Errorf("no request %q", ask.Do)
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
		var answer any
		err = json.Unmarshal(line, &ask)
		if err == nil && ask.Do == "open" {
			s, err = open(ask.Dir)
			ask.Do = "hello"
		}
		if err == nil {
			answer, err = s.answer(ask)
		}
		if err != nil {
			answer = map[string]any{"error": err.Error()}
		}
		said, _ := json.Marshal(answer)
		fmt.Println(string(said))
	}
}
