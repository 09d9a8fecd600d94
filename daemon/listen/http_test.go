package listen

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// TestHTTP_Bounds sends endless headers on many connections, as any pod of a node can to the
// metrics. Without a bound the server keeps a megabyte of each.
func TestHTTP_Bounds(t *testing.T) {
	l := loopback(t)
	server := HTTP(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "fine") }))
	var all sync.WaitGroup
	all.Go(func() { _ = server.Serve(Limited(l)) })
	defer func() { _ = server.Close(); all.Wait() }()

	const connections = 3 * MaxConnections
	request := append([]byte("GET /metrics HTTP/1.1\r\nHost: x\r\nX-Long: "), bytes.Repeat([]byte{'x'}, 900<<10)...)
	before := heap()
	var attack sync.WaitGroup
	open := make(chan net.Conn, connections)
	for range connections {
		attack.Go(func() {
			conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = conn.Write(request) // the server may close it
			open <- conn
		})
	}
	attack.Wait()
	close(open)
	if held := heap() - before; held > MaxConnections*(MaxHeaderBytes+64<<10) {
		t.Errorf("%d unfinished requests: the server holds %d KiB", connections, held>>10)
	}
	for conn := range open {
		_ = conn.Close()
	}
	resp, err := http.Get("http://" + l.Addr().String() + "/metrics") //nolint:noctx // ends with the server
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "fine" {
		t.Errorf("afterwards: %q, %v", body, err)
	}
}

// loopback listens on a free port.
func loopback(t *testing.T) net.Listener {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// heap returns the bytes of live objects.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestLimited(t *testing.T) {
	t.Parallel()
	l := loopback(t)
	limited := Limited(l)
	defer limited.Close()
	var first net.Conn
	for range MaxConnections + 1 {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	for range MaxConnections {
		conn, err := limited.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		first = conn
	}
	accepted := make(chan net.Conn)
	go func() {
		conn, _ := limited.Accept()
		accepted <- conn
	}()
	select {
	case <-accepted:
		t.Fatal("one connection too many is accepted")
	default:
	}
	_ = first.Close()
	if conn := <-accepted; conn == nil {
		t.Error("a connection that was waiting is not accepted after another has ended")
	} else {
		_ = conn.Close()
	}
}

// TestLimited_Queue: the kernel accepts few connections that the server has not.
func TestLimited_Queue(t *testing.T) {
	t.Parallel()
	l := loopback(t)
	limited := Limited(l)
	defer limited.Close()
	raw, err := l.(*net.TCPListener).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var info *unix.TCPInfo
	var infoErr error
	err = raw.Control(func(fd uintptr) { info, infoErr = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
	if err != nil || infoErr != nil {
		t.Fatal(err, infoErr)
	}
	if info.Sacked != MaxConnections { // of a listener, its queue
		t.Errorf("the kernel queues %d connections, want %d", info.Sacked, MaxConnections)
	}
}

// TestScrapes: clients that scrape without end get ten scrapes a second, and some of them 503.
func TestScrapes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var running, most, served, refused atomic.Int64
		handler := Scrapes(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			most.Store(max(most.Load(), running.Add(1)))
			<-time.After(3 * time.Millisecond)
			running.Add(-1)
			served.Add(1)
		}))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var all sync.WaitGroup
		for range MaxConnections {
			all.Go(func() {
				for ctx.Err() == nil {
					w := httptest.NewRecorder()
					if handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", nil)); w.Code == http.StatusServiceUnavailable {
						refused.Add(1)
					}
				}
			})
		}
		all.Wait()
		if n := served.Load(); n < 96 || n > 104 || most.Load() > MaxScrapes {
			t.Errorf("%d scrapes in 10 s, %d at once", n, most.Load())
		}
		if n := refused.Load(); n == 0 || n > 3*MaxConnections {
			t.Errorf("%d scrapes were refused", n)
		}
		synctest.Wait()
		<-time.After(time.Second)
		w, began := httptest.NewRecorder(), time.Now()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
		if took := time.Since(began); w.Code != http.StatusOK || took > 10*time.Millisecond {
			t.Errorf("afterwards a scrape has status %d after %v", w.Code, took)
		}
	})
}
