// Opens a buntdb file whose last command was cut by a power loss: once without its end, once with zeros for its end.
// The Update of that command was not answered. Exits with 1 if the database does not open.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tidwall/buntdb"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

func main() {
	directory, err := os.MkdirTemp("", "buntdb-")
	must(err)
	defer os.RemoveAll(directory)
	path := filepath.Join(directory, "data.db")
	database, err := buntdb.Open(path)
	must(err)
	for _, key := range []string{"a", "b"} {
		must(database.Update(func(tx *buntdb.Tx) error {
			_, _, err := tx.Set(key, "0123456789", nil)
			return err
		}))
	}
	must(database.Close())
	whole, err := os.ReadFile(path)
	must(err)
	cut := bytes.LastIndex(whole, []byte("0123456789")) + 4
	zeros := append(append([]byte{}, whole[:cut]...), make([]byte, len(whole)-cut)...)
	must(os.WriteFile(path, whole[:cut], 0o644))
	short, shortErr := buntdb.Open(path)
	if shortErr == nil {
		must(short.Close())
	}
	must(os.WriteFile(path, zeros, 0o644))
	filled, zeroErr := buntdb.Open(path)
	if zeroErr == nil {
		must(filled.Close())
	}
	fmt.Printf("the end of the second command cut: error %v; its end as zeros: error %v\n", shortErr, zeroErr)
	if shortErr != nil || zeroErr != nil {
		os.Exit(1)
	}
}
