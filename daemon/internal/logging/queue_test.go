package logging

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// stuck is a file whose disk does not answer until released.
type stuck struct {
	letGo chan struct{}
	mu    sync.Mutex
	text  bytes.Buffer
	fails int // writes that fail before one succeeds
}

func (s *stuck) Write(p []byte) (int, error) {
	<-s.letGo
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails > 0 {
		s.fails--
		return 0, syscall.ENOSPC
	}
	return s.text.Write(p)
}

// row has the fields of a line that the tests check.
type row struct {
	Level, Msg string
	Count, N   int
}

func rowsOf(t *testing.T, text string) (rows []row) {
	t.Helper()
	for line := range strings.Lines(text) {
		var r row
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		rows = append(rows, r)
	}
	return rows
}

// account checks the order of lines, and returns how many arrived and how many are counted
// as lost.
func account(t *testing.T, rows []row) (came, lost int, byLevel map[string]int) {
	t.Helper()
	last := -1
	byLevel = map[string]int{}
	for _, r := range rows {
		if r.Msg == textLost {
			lost += r.Count
			continue
		}
		if r.N <= last {
			t.Fatalf("line %d comes after line %d", r.N, last)
		}
		last = r.N
		came++
		byLevel[r.Level]++
	}
	return came, lost, byLevel
}

// TestQueue_DiskHangs: logging does not block, lines without room are counted, warnings have
// more room, and once the disk answers all lines are accounted for.
func TestQueue_DiskHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := &stuck{letGo: make(chan struct{})}
		q := newQueue(disk, func() error { return nil })
		log := slog.New(newQueued(q, slog.LevelInfo))
		const total, warnings = 10_000, 500
		started := time.Now()
		for n := range total {
			log.Info("line", "n", n)
		}
		for n := range warnings {
			log.Warn("line", "n", total+n)
		}
		if took := time.Since(started); took != 0 {
			t.Errorf("who logs waited %v", took)
		}
		close(disk.letGo)
		synctest.Wait()
		came, lost, levels := account(t, rowsOf(t, disk.text.String()))
		if came+lost != total+warnings || levels["info"] != maxQueuedLines/4*3 || levels["warn"] != warnings {
			t.Errorf("%d came (%v), %d are counted as lost, of %d", came, levels, lost, total+warnings)
		}
		log.Info("line", "n", total+warnings)
		synctest.Wait() // lines arrive without a Close
		if again, _, _ := account(t, rowsOf(t, disk.text.String())); again != came+1 {
			t.Errorf("%d lines after one more", again-came)
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestQueue_Bytes: a few long lines are bounded too.
func TestQueue_Bytes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := &stuck{letGo: make(chan struct{})}
		q := newQueue(disk, func() error { return nil })
		log := slog.New(newQueued(q, slog.LevelInfo))
		long := strings.Repeat("x", 100<<10)
		for n := range 100 {
			log.Info("line", "n", n, "long", long)
		}
		for n := range 100 {
			log.Error("line", "n", 100+n, "long", long)
		}
		q.mu.Lock()
		if q.size > maxQueuedBytes || len(q.pending) > maxQueuedBytes {
			t.Errorf("%d bytes wait", q.size)
		}
		q.mu.Unlock()
		close(disk.letGo)
		if err := q.Close(); err != nil {
			t.Error(err)
		}
		came, lost, levels := account(t, rowsOf(t, disk.text.String()))
		if came+lost != 200 || levels["info"] > 31 || levels["error"] < 9 {
			t.Errorf("%v came, %d lost", levels, lost)
		}
	})
}

func TestQueue_Close(t *testing.T) {
	t.Parallel()
	t.Run("writes all", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "ipamd.log")
		log, closer, err := Open(Options{Path: path, Level: "info"})
		if err != nil {
			t.Fatal(err)
		}
		for n := range 1000 {
			log.Info("line", "n", n)
		}
		log.Log(t.Context(), LevelFatal, "gave up", "n", 1000)
		if err := closer.Close(); err != nil {
			t.Fatal(err)
		}
		log.Info("too late")
		if err := closer.Close(); err != nil {
			t.Errorf("again: %v", err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if came, lost, levels := account(t, rowsOf(t, string(text))); came != 1001 || lost != 0 || levels["fatal"] != 1 {
			t.Errorf("%d came (%v), %d lost", came, levels, lost)
		}
	})
	t.Run("gives up", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			disk := &stuck{letGo: make(chan struct{})}
			q := newQueue(disk, func() error {
				t.Error("a file in use is closed")
				return nil
			})
			log := slog.New(newQueued(q, slog.LevelInfo))
			for n := range 3 {
				log.Info("line", "n", n)
			}
			started := time.Now()
			err := q.Close()
			if took := time.Since(started); took != flushTime || err == nil || !strings.Contains(err.Error(), "3 lines not written") {
				t.Errorf("after %v: %v", took, err)
			}
			close(disk.letGo)
			<-q.ended
		})
	})
}

// TestQueue_DiskFull: lines that the disk refused are counted and reported later.
func TestQueue_DiskFull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		disk := &stuck{letGo: make(chan struct{}), fails: 3}
		close(disk.letGo)
		q := newQueue(disk, func() error { return nil })
		log := slog.New(newQueued(q, slog.LevelInfo))
		for n := range 5 {
			log.Info("line", "n", n)
			synctest.Wait()
		}
		if came, lost, _ := account(t, rowsOf(t, disk.text.String())); came+lost != 5 || lost == 0 {
			t.Errorf("%d came, %d lost:\n%s", came, lost, disk.text.String())
		}
		disk.fails = 1
		log.Info("line", "n", 5)
		synctest.Wait() // it does not try forever
		if err := q.Close(); err != nil {
			t.Error(err)
		}
		if came, lost, _ := account(t, rowsOf(t, disk.text.String())); came+lost != 6 {
			t.Errorf("%d came, %d lost:\n%s", came, lost, disk.text.String())
		}
	})
}

// TestOpen_ReaderHangs fills a real file that accepts nothing more: a pipe that nobody
// reads, named as /dev/stdout is.
func TestOpen_ReaderHangs(t *testing.T) {
	t.Parallel()
	reader, pipe, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	log, closer, err := Open(Options{Path: fmt.Sprintf("/proc/self/fd/%d", pipe.Fd()), Level: "info"})
	if err != nil {
		t.Fatal(err)
	}
	const total = 20_000
	var writers sync.WaitGroup
	var mu sync.Mutex
	next := 0
	for range 4 {
		writers.Go(func() {
			for range total / 4 {
				mu.Lock()
				log.Info("address assigned", "n", next)
				next++
				mu.Unlock()
			}
		})
	}
	writers.Wait() // without a reader
	closed := make(chan error, 1)
	go func() {
		closed <- closer.Close()
		_, _ = fmt.Fprintln(pipe, "end")
	}()
	var text bytes.Buffer
	buf := make([]byte, 64<<10)
	for !bytes.HasSuffix(text.Bytes(), []byte("\nend\n")) {
		n, err := reader.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(buf[:n])
	}
	if err := errors.Join(<-closed, pipe.Close(), reader.Close()); err != nil {
		t.Error(err)
	}
	came, lost, _ := account(t, rowsOf(t, strings.TrimSuffix(text.String(), "end\n")))
	if came+lost != total || lost == 0 {
		t.Errorf("%d came, %d lost, of %d", came, lost, total)
	}
}

// BenchmarkLog measures what a line costs the caller, written directly and through the
// queue.
func BenchmarkLog(b *testing.B) {
	for _, direct := range []bool{true, false} {
		name := map[bool]string{true: "direct", false: "queued"}[direct]
		b.Run(name, func(b *testing.B) {
			file, closer, err := open(filepath.Join(b.TempDir(), "ipamd.log"))
			if err != nil {
				b.Fatal(err)
			}
			handler := NewHandler(file, slog.LevelInfo)
			var end io.Closer = closer
			if !direct {
				q := newQueue(file, closer.Close)
				handler, end = newQueued(q, slog.LevelInfo), q
			}
			log := slog.New(handler)
			b.ReportAllocs()
			for b.Loop() {
				log.Info("address assigned", slog.String("ip", "10.0.0.1"), slog.String("pod", "web-0"), slog.Int("network_card", 0))
			}
			b.StopTimer()
			if err := end.Close(); err != nil {
				b.Error(err)
			}
		})
	}
}
