// Opens a tidwall/wal log that has zeros after its last entry, as a power loss in an unanswered Write may leave it.
// Exits with 1 if the log then has entries that were never written.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/tidwall/wal"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

func main() {
	directory, err := os.MkdirTemp("", "tidwall-")
	must(err)
	defer os.RemoveAll(directory)
	log, err := wal.Open(directory, nil)
	must(err)
	must(log.Write(1, []byte("one")))
	must(log.Close())
	segment := filepath.Join(directory, "00000000000000000001")
	state, err := os.Stat(segment)
	must(err)
	must(os.Truncate(segment, state.Size()+5))
	log, err = wal.Open(directory, nil)
	if err != nil {
		fmt.Printf("5 zero bytes after the log: it does not open: %v\n", err)
		os.Exit(1)
	}
	last, err := log.LastIndex()
	must(err)
	fmt.Printf("5 zero bytes after entry 1: the log opens without an error and has %d entries\n", last)
	if last != 1 {
		os.Exit(1)
	}
}
