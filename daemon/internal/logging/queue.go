package logging

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"cnictl/daemon/api/logline"
)

// Bounds of the lines that wait for the disk. Of both a quarter is kept for warnings
// and errors.
const (
	maxQueuedLines = 4096
	maxQueuedBytes = 4 << 20
	flushTime      = 2 * time.Second // that Close waits for the disk
	keptBuffer     = 256 << 10       // larger ones are given back after a burst
)

// textLost is the message in place of lines that found no room, or that the disk
// refused; their number is in "count".
const textLost = "log lines lost"

// queue stands between those who log and a file: a disk that hangs, or a reader of
// stdout that does not read, must not hold up the daemon. One goroutine writes what has
// come meanwhile, in order and at once, so that a killed process loses no more than the
// lines of the last write. Lines without room are counted, and reported when there is room.
type queue struct {
	file  io.Writer
	close func() error // of file
	now   func() time.Time
	wake  chan struct{} // of capacity 1: there is something to do
	ended chan struct{} // closed when the goroutine has written all

	mu      sync.Mutex
	pending []byte // guarded by mu: whole lines
	waiting int    // guarded by mu: lines in pending
	lines   int    // guarded by mu: waiting or being written
	size    int    // guarded by mu: bytes of lines
	lost    int    // guarded by mu: lines, since the last that reported it
	closed  bool   // guarded by mu
}

// newQueue starts the goroutine; Close ends it.
func newQueue(file io.Writer, closeFile func() error) *queue {
	q := &queue{file: file, close: closeFile, now: time.Now, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	go q.run()
	return q
}

// add queues a line, or counts it as lost. It never waits for the disk.
func (q *queue) add(line []byte, level slog.Level) {
	most, mostBytes := maxQueuedLines, maxQueuedBytes
	if level < slog.LevelWarn {
		most, mostBytes = most/4*3, mostBytes/4*3
	}
	q.mu.Lock()
	switch {
	case q.closed:
	case q.lines >= most || q.size+len(line) > mostBytes:
		q.lost++
	default:
		q.pending = append(q.pending, line...)
		q.waiting++
		q.lines++
		q.size += len(line)
	}
	q.mu.Unlock()
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// run writes until the queue is closed and empty.
func (q *queue) run() {
	defer close(q.ended)
	var batch []byte
	for {
		q.mu.Lock()
		batch, q.pending = q.pending, batch[:0]
		lines, size, lost, closed := q.waiting, len(batch), q.lost, q.closed
		q.waiting, q.lost = 0, 0
		q.mu.Unlock()
		if lines == 0 && lost == 0 {
			if closed {
				return
			}
			<-q.wake
			continue
		}
		if lost > 0 {
			batch = logline.Append(batch, logline.Warn, q.now(), "", textLost)
			batch = logline.End(logline.AppendInt(batch, logline.KeyCount, int64(lost)))
		}
		n, err := q.file.Write(batch)
		q.mu.Lock()
		q.lines -= lines
		q.size -= size
		if err != nil {
			if q.lost += lost + bytes.Count(batch[n:], []byte{'\n'}); lost > 0 {
				q.lost-- // the line that reported the others is none of them
			}
		}
		q.mu.Unlock()
		if cap(batch) > keptBuffer {
			batch = nil
		}
		switch {
		case err != nil && closed:
			return
		case err != nil:
			<-q.wake // not again at once: nothing says that it would go better
		}
	}
}

// Close writes what waits, for flushTime at most, and closes the file. Lines that come
// later are dropped.
func (q *queue) Close() error {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.signal()
	timer := time.NewTimer(flushTime)
	defer timer.Stop()
	select {
	case <-q.ended:
		return q.close()
	case <-timer.C:
		q.mu.Lock()
		defer q.mu.Unlock()
		return fmt.Errorf("close log: %d lines not written: the disk or stream reader accepted no data for %v", q.lines+q.lost, flushTime)
	}
}
