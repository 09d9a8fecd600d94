package tunnel

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"syscall"
	"testing"
)

// node serves an answer of a daemon's size, and returns its port.
func node(b *testing.B) uint16 {
	b.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "%02000d", 1)
	}))
	b.Cleanup(s.Close)
	return uint16(s.Listener.Addr().(*net.TCPAddr).Port)
}

func ask(b *testing.B, client *http.Client) {
	b.Helper()
	resp, err := client.Get("http://node/v1/enis")
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); n != 2000 || err != nil {
		b.Fatal(n, err)
	}
}

// spent returns the CPU time of the process in ms: the tunnel's and, here, the peer's.
func spent() (ms float64) {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it cannot fail here
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e6
}

// BenchmarkTunnel measures a request in a new tunnel, one in a kept tunnel, and the cost of
// keeping a tunnel. All figures include the peer's part.
func BenchmarkTunnel(b *testing.B) {
	for _, protocol := range protocols {
		client := func(b *testing.B, kept bool) *http.Client {
			d, port := newPeer(b, nil).dialer(b, Options{Protocol: protocol}), node(b)
			c := &http.Client{Transport: &http.Transport{
				DisableKeepAlives: !kept,
				DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return d.Dial(ctx, aPod, port) },
			}}
			b.Cleanup(c.CloseIdleConnections)
			ask(b, c)
			return c
		}
		for name, kept := range map[string]bool{"New": false, "Kept": true} {
			b.Run(name+"/"+protocol, func(b *testing.B) {
				c := client(b, kept)
				b.ReportAllocs()
				began := spent()
				for b.Loop() {
					ask(b, c)
				}
				b.ReportMetric((spent()-began)/float64(b.N), "cpu-ms/op")
			})
		}
		b.Run("Memory/"+protocol, func(b *testing.B) {
			d, port := newPeer(b, nil).dialer(b, Options{Protocol: protocol}), echo(b)
			inUse := func() float64 {
				var m runtime.MemStats
				runtime.GC()
				runtime.GC()
				runtime.ReadMemStats(&m)
				return float64(m.HeapInuse+m.StackInuse) / (1 << 10)
			}
			open := func() net.Conn {
				c, err := d.Dial(b.Context(), aPod, port)
				if err != nil {
					b.Fatal(err)
				}
				_, _ = c.Write([]byte("x"))
				if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
					b.Fatal(err)
				}
				return c
			}
			defer open().Close()
			before, routines, conns := inUse(), runtime.NumGoroutine(), 0
			for b.Loop() {
				defer open().Close()
				conns++
			}
			b.ReportMetric((inUse()-before)/float64(conns), "KiB/tunnel")
			b.ReportMetric(float64(runtime.NumGoroutine()-routines)/float64(conns), "goroutines/tunnel")
		})
	}
}
