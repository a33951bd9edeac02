// The store of entry_log for tornpage: one JSON object a line on standard input, one answer a line on standard output.
// Replace the methods of store by calls into your library.
//
//	go build -o entry_log entry_log.go
//	tornpage explore target 'cmd:./entry_log {dir}' --seconds 30
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
	"strconv"
	"strings"
)

type request struct {
	Do    string `json:"do"`
	Body  string `json:"body"` // base64; this store keeps it so
	Index int    `json:"index"`
	Dir   string `json:"dir"`
}

type store struct {
	file   *os.File
	end    int64
	first  int
	bodies []string // of the entries from first on
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
	s := &store{file: file, first: 1}
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

// apply carries out a change: append BODY, front INDEX or back INDEX.
func (s *store) apply(fields []string) {
	if fields[0] == "append" {
		s.bodies = append(s.bodies, strings.Join(fields[1:], ""))
		return
	}
	index, _ := strconv.Atoi(fields[1])
	if fields[0] == "front" {
		s.bodies = s.bodies[index-s.first:]
		s.first = index
	} else {
		s.bodies = s.bodies[:index-s.first+1]
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

// append appends an entry and returns its index.
func (s *store) append(body string) (int, error) {
	err := s.write("append", body)
	return s.first + len(s.bodies) - 1, err
}

// read returns the body of the entry at an index, nil without one.
func (s *store) read(index int) any {
	if index < s.first || index >= s.first+len(s.bodies) {
		return nil
	}
	return s.bodies[index-s.first]
}

// bounds returns the indexes of the first and the last entry, nil for an empty log.
func (s *store) bounds() (any, any) {
	if len(s.bodies) == 0 {
		return nil, nil
	}
	return s.first, s.first + len(s.bodies) - 1
}

func (s *store) answer(ask request) (any, error) {
	switch ask.Do {
	case "hello":
		// What your store promises. Only these promises are tested (docs/targets/shapes.md has the list).
		promises := map[string]any{"durable": "append", "kill": "append", "truncate": "both"}
		hello := map[string]any{"tornpage": 1, "name": "entry_log", "shape": "log", "promises": promises}
		hello["open"] = true  // after a close, "open" opens a store in another directory
		hello["ahead"] = true // a request may come before the answer to an earlier one
		return hello, nil
	case "append":
		index, err := s.append(ask.Body)
		return map[string]any{"index": index}, err
	case "read":
		return map[string]any{"body": s.read(ask.Index)}, nil
	case "bounds":
		first, last := s.bounds()
		return map[string]any{"first": first, "last": last}, nil
	case "truncate_front":
		return map[string]any{}, s.write("front", strconv.Itoa(ask.Index))
	case "truncate_back":
		return map[string]any{}, s.write("back", strconv.Itoa(ask.Index))
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
