package main

import (
	"encoding/binary"
	"errors"
	"path/filepath"

	"github.com/cockroachdb/pebble"
	"github.com/dgraph-io/badger/v4"
	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/opt"
	"github.com/tidwall/buntdb"
	"go.etcd.io/bbolt"
)

// key returns the key of record number n. Keys sort by number.
func key(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// ---- bbolt ----------------------------------------------------------------------------------------------------------

type boltLog struct{ db *bbolt.DB }

var boltBucket = []byte("log")

func openBolt(directory, _ string) (recordLog, error) {
	db, err := bbolt.Open(filepath.Join(directory, "log.db"), 0o644, nil)
	if err != nil {
		return nil, err
	}
	return boltLog{db}, nil
}

func (l boltLog) all() (records []string, err error) {
	err = l.db.View(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket(boltBucket)
		if bucket == nil {
			return nil
		}
		return bucket.ForEach(func(_, value []byte) error {
			records = append(records, string(value))
			return nil
		})
	})
	return records, err
}

func (l boltLog) push(n uint64, record string) error {
	return l.db.Update(func(tx *bbolt.Tx) error {
		bucket, err := tx.CreateBucketIfNotExists(boltBucket)
		if err != nil {
			return err
		}
		return bucket.Put(key(n), []byte(record))
	})
}

func (l boltLog) flush() error { return l.db.Sync() }
func (l boltLog) close() error { return l.db.Close() }

// ---- Pebble ---------------------------------------------------------------------------------------------------------

type silent struct{}

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}
func (silent) Fatalf(format string, arguments ...any) {
	pebble.DefaultLogger.Fatalf(format, arguments...)
}

type pebbleLog struct{ db *pebble.DB }

func openPebble(directory, _ string) (recordLog, error) {
	db, err := pebble.Open(directory, &pebble.Options{Logger: silent{}, MemTableSize: 64 << 10})
	if err != nil {
		return nil, err
	}
	return pebbleLog{db}, nil
}

func (l pebbleLog) all() (records []string, err error) {
	iterator, err := l.db.NewIter(nil)
	if err != nil {
		return nil, err
	}
	for valid := iterator.First(); valid; valid = iterator.Next() {
		records = append(records, string(iterator.Value()))
	}
	return records, iterator.Close()
}

func (l pebbleLog) push(n uint64, record string) error {
	return l.db.Set(key(n), []byte(record), pebble.Sync)
}
func (l pebbleLog) flush() error { return l.db.LogData(nil, pebble.Sync) }
func (l pebbleLog) close() error { return l.db.Close() }

// ---- badger ---------------------------------------------------------------------------------------------------------

type badgerLog struct{ db *badger.DB }

func openBadger(directory, _ string) (recordLog, error) {
	options := badger.DefaultOptions(directory).WithSyncWrites(true).WithLogger(nil).
		WithMemTableSize(1 << 20).WithValueLogFileSize(1 << 20).WithNumCompactors(2).WithValueThreshold(64 << 10)
	db, err := badger.Open(options)
	if err != nil {
		return nil, err
	}
	return badgerLog{db}, nil
}

func (l badgerLog) all() (records []string, err error) {
	err = l.db.View(func(tx *badger.Txn) error {
		iterator := tx.NewIterator(badger.DefaultIteratorOptions)
		defer iterator.Close()
		for iterator.Rewind(); iterator.Valid(); iterator.Next() {
			value, err := iterator.Item().ValueCopy(nil)
			if err != nil {
				return err
			}
			records = append(records, string(value))
		}
		return nil
	})
	return records, err
}

func (l badgerLog) push(n uint64, record string) error {
	return l.db.Update(func(tx *badger.Txn) error { return tx.Set(key(n), []byte(record)) })
}

func (l badgerLog) flush() error { return l.db.Sync() }
func (l badgerLog) close() error { return l.db.Close() }

// ---- goleveldb ------------------------------------------------------------------------------------------------------

type levelLog struct{ db *leveldb.DB }

func openGoLevel(directory, _ string) (recordLog, error) {
	db, err := leveldb.OpenFile(directory, &opt.Options{WriteBuffer: 64 << 10})
	if err != nil {
		return nil, err
	}
	return levelLog{db}, nil
}

func (l levelLog) all() (records []string, err error) {
	iterator := l.db.NewIterator(nil, nil)
	defer iterator.Release()
	for iterator.Next() {
		records = append(records, string(iterator.Value()))
	}
	return records, iterator.Error()
}

func (l levelLog) push(n uint64, record string) error {
	return l.db.Put(key(n), []byte(record), &opt.WriteOptions{Sync: true})
}

func (l levelLog) flush() error { return nil }
func (l levelLog) close() error { return l.db.Close() }

// ---- buntdb ---------------------------------------------------------------------------------------------------------

type buntLog struct{ db *buntdb.DB }

func openBunt(directory, _ string) (recordLog, error) {
	db, err := buntdb.Open(filepath.Join(directory, "data.db"))
	if err != nil {
		return nil, err
	}
	var config buntdb.Config
	if err := db.ReadConfig(&config); err != nil {
		return nil, err
	}
	config.SyncPolicy = buntdb.Always
	return buntLog{db}, errors.Join(db.SetConfig(config))
}

func (l buntLog) all() (records []string, err error) {
	err = l.db.View(func(tx *buntdb.Tx) error {
		return tx.Ascend("", func(_, value string) bool {
			records = append(records, value)
			return true
		})
	})
	return records, err
}

func (l buntLog) push(n uint64, record string) error {
	return l.db.Update(func(tx *buntdb.Tx) error {
		_, _, err := tx.Set(string(key(n)), record, nil)
		return err
	})
}

func (l buntLog) flush() error { return nil }
func (l buntLog) close() error { return l.db.Close() }
