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

// Bounds of the lines that wait for the disk. A quarter of each is reserved for warnings
// and errors.
const (
	maxQueuedLines = 4096
	maxQueuedBytes = 4 << 20
	flushTime      = 2 * time.Second // how long Close waits for the disk
	keptBuffer     = 256 << 10       // larger ones are freed after a burst
)

// textLost replaces lines that did not fit in the queue or that the disk refused; "count"
// is their number.
const textLost = "log lines lost"

// queue decouples logging from the file: a hanging disk, or a stalled reader of stdout,
// must not hold up the daemon. One goroutine writes all pending lines, in order and without
// delay, so that a killed process loses at most the lines of the last write. Lines that do
// not fit are counted, and reported once there is room.
type queue struct {
	file  io.Writer
	close func() error // of file
	now   func() time.Time
	wake  chan struct{} // of capacity 1; signals work to do
	ended chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	pending []byte // guarded by mu: whole lines
	waiting int    // guarded by mu: lines in pending
	lines   int    // guarded by mu: waiting or being written
	size    int    // guarded by mu: bytes of lines
	lost    int    // guarded by mu: lines lost since the last report
	closed  bool   // guarded by mu
}

// newQueue starts the queue's goroutine, which Close ends.
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
	default: // a wake-up is already pending
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
				q.lost-- // do not count the line that reports the loss
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
			<-q.wake // an immediate retry would probably fail too
		}
	}
}

// Close writes the pending lines, for at most flushTime, and closes the file. Later lines
// are dropped.
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
