package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"
	raftwal "github.com/hashicorp/raft-wal"
	"github.com/joncrlsn/dque"
	"github.com/tidwall/wal"
	etcdwal "go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// ---- hashicorp/raft-wal ---------------------------------------------------------------------------------------------

type raftLog struct{ wal *raftwal.WAL }

func openRaftWAL(directory, _ string) (recordLog, error) {
	opened, err := raftwal.Open(directory, raftwal.WithSegmentSize(64<<10))
	if err != nil {
		return nil, err
	}
	return raftLog{opened}, nil
}

func (l raftLog) all() (records []string, err error) {
	first, err := l.wal.FirstIndex()
	if err != nil || first == 0 {
		return nil, err
	}
	last, err := l.wal.LastIndex()
	for index := first; err == nil && index <= last; index++ {
		var entry raft.Log
		err = l.wal.GetLog(index, &entry)
		records = append(records, string(entry.Data))
	}
	return records, err
}

func (l raftLog) push(n uint64, record string) error {
	return l.wal.StoreLog(&raft.Log{Index: n + 1, Term: 1, Data: []byte(record)})
}

func (l raftLog) flush() error { return nil }
func (l raftLog) close() error { return l.wal.Close() }

// ---- the write-ahead log of etcd ------------------------------------------------------------------------------------

type etcdLog struct {
	wal     *etcdwal.WAL
	records []string
}

func openEtcd(directory, _ string) (recordLog, error) {
	place, logger := filepath.Join(directory, "wal"), zap.NewNop()
	etcdwal.SegmentSizeBytes = 64 << 10
	if !etcdwal.Exist(place) {
		created, err := etcdwal.Create(logger, place, []byte("board"))
		if err != nil {
			return nil, err
		}
		return &etcdLog{wal: created}, nil
	}
	opened, records, err := readEtcd(logger, place)
	if errors.Is(err, io.ErrUnexpectedEOF) && etcdwal.Repair(logger, place) {
		opened, records, err = readEtcd(logger, place) // etcd opens a torn log in this way too
	}
	if err != nil {
		return nil, err
	}
	return &etcdLog{opened, records}, nil
}

func readEtcd(logger *zap.Logger, place string) (*etcdwal.WAL, []string, error) {
	opened, err := etcdwal.Open(logger, place, &walpb.Snapshot{})
	if err != nil {
		return nil, nil, err
	}
	_, _, entries, err := opened.ReadAll()
	if err != nil {
		opened.Close()
		return nil, nil, err
	}
	var records []string
	for _, entry := range entries {
		records = append(records, string(entry.Data))
	}
	return opened, records, nil
}

func (l *etcdLog) all() ([]string, error) { return l.records, nil }

func (l *etcdLog) push(n uint64, record string) error {
	state := &raftpb.HardState{Term: new(uint64(1)), Vote: new(uint64(1)), Commit: new(n + 1)}
	entry := &raftpb.Entry{Term: new(uint64(1)), Index: new(n + 1), Data: []byte(record)}
	return l.wal.Save(state, []*raftpb.Entry{entry})
}

func (l *etcdLog) flush() error { return l.wal.Sync() }
func (l *etcdLog) close() error { return l.wal.Close() }

// ---- tidwall/wal ----------------------------------------------------------------------------------------------------

type tidwallLog struct{ log *wal.Log }

func openTidwall(directory, _ string) (recordLog, error) {
	opened, err := wal.Open(directory, &wal.Options{SegmentSize: 64 << 10})
	if err != nil {
		return nil, err
	}
	return tidwallLog{opened}, nil
}

func (l tidwallLog) all() (records []string, err error) {
	first, err := l.log.FirstIndex()
	if err != nil || first == 0 {
		return nil, err
	}
	last, err := l.log.LastIndex()
	for index := first; err == nil && index <= last; index++ {
		var data []byte
		data, err = l.log.Read(index)
		records = append(records, string(data))
	}
	return records, err
}

func (l tidwallLog) push(n uint64, record string) error { return l.log.Write(n+1, []byte(record)) }
func (l tidwallLog) flush() error                       { return l.log.Sync() }
func (l tidwallLog) close() error                       { return l.log.Close() }

// ---- dque -----------------------------------------------------------------------------------------------------------

type queueItem struct{ Record string }

type dqueLog struct {
	queue   *dque.DQue
	records []string
}

// openDque lists a queue by draining a copy of it, since reading an item removes it.
func openDque(directory, _ string) (recordLog, error) {
	build := func() any { return &queueItem{} }
	records, err := drained(directory, build)
	if err != nil {
		return nil, err
	}
	queue, err := dque.NewOrOpen("queue", directory, 50, build)
	if err != nil {
		return nil, err
	}
	return &dqueLog{queue, records}, nil
}

func drained(directory string, build func() any) ([]string, error) {
	place := filepath.Join(directory, "queue")
	if _, err := os.Stat(place); err != nil {
		return nil, nil
	}
	work, err := os.MkdirTemp("", "board-dque-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	if err := os.CopyFS(filepath.Join(work, "queue"), os.DirFS(place)); err != nil {
		return nil, err
	}
	queue, err := dque.NewOrOpen("queue", work, 50, build)
	if err != nil {
		return nil, err
	}
	defer queue.Close()
	var records []string
	for {
		item, err := queue.Dequeue()
		if err == dque.ErrEmpty {
			return records, nil
		}
		if err != nil {
			return nil, err
		}
		records = append(records, item.(*queueItem).Record)
	}
}

func (l *dqueLog) all() ([]string, error)             { return l.records, nil }
func (l *dqueLog) push(_ uint64, record string) error { return l.queue.Enqueue(&queueItem{record}) }
func (l *dqueLog) flush() error                       { return nil }
func (l *dqueLog) close() error                       { return l.queue.Close() }
