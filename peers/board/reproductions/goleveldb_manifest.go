// Opens a goleveldb whose newest MANIFEST has lost its content. Each open writes a new manifest without a sync and then
// lets CURRENT name it, so a power loss may leave this. Exits with 1 if the database does not open.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/opt"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

func main() {
	directory, err := os.MkdirTemp("", "goleveldb-")
	must(err)
	defer os.RemoveAll(directory)
	database, err := leveldb.OpenFile(directory, nil)
	must(err)
	must(database.Put([]byte("key"), []byte("value"), &opt.WriteOptions{Sync: true}))
	must(database.Close())
	database, err = leveldb.OpenFile(directory, nil)
	must(err)
	must(database.Close())
	current, err := os.ReadFile(filepath.Join(directory, "CURRENT"))
	must(err)
	manifest := strings.TrimSpace(string(current))
	path := filepath.Join(directory, manifest)
	state, err := os.Stat(path)
	must(err)
	must(os.WriteFile(path, make([]byte, state.Size()), 0o644))
	database, err = leveldb.OpenFile(directory, nil)
	if err != nil {
		fmt.Printf("put with Sync, close, open, power loss that takes the content of %s: %v\n", manifest, err)
		os.Exit(1)
	}
	must(database.Close())
	fmt.Println("the database opens")
}
