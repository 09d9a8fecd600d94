package listen

import (
	"net"
	"net/http"
	"syscall"
	"time"

	"golang.org/x/net/netutil"
	"golang.org/x/sys/unix"
)

// Bounds of the HTTP servers. Any pod of a node reaches the metrics, and what a server holds
// is charged to the node's most important pods.
const (
	// MaxConnections are open at once, on each server; others wait in the kernel's queue. A
	// connection lasts at most [Timeout] without a complete request.
	MaxConnections = 64
	// MaxHeaderBytes is about ten times what Prometheus and cnictl send; net/http adds 4 KiB.
	MaxHeaderBytes = 16 << 10
	// Timeout of reading a request, writing an answer, and waiting for the next request:
	// upstream's.
	Timeout = 5 * time.Second
	// MaxScrapes are answered at once: a scrape of a full node holds a few hundred kilobytes.
	MaxScrapes = 4
	// scrapeSlot is the least time that a scrape counts as one of them, so that ten begin in a
	// second: it costs the server milliseconds, and the client next to nothing.
	scrapeSlot = 400 * time.Millisecond
	// scrapeWait is how long others wait before they get 503. It is less than Timeout, so that the
	// answer still comes, and not nothing, so that asking again at once is not free.
	scrapeWait = 3 * time.Second
)

// HTTP returns a server of small answers to requests without a body, with the package's
// bounds. Serve it on a listener from [Limited].
func HTTP(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, MaxHeaderBytes: MaxHeaderBytes,
		ReadHeaderTimeout: Timeout, ReadTimeout: Timeout, WriteTimeout: Timeout, IdleTimeout: Timeout,
	}
}

// Limited returns a listener that has at most [MaxConnections] open at once, and as many in the
// kernel's queue. What their clients send is in the kernel's memory, which no limit of the server
// bounds: with the queue of 4,096 that Go asks for, it is hundreds of megabytes.
func Limited(l net.Listener) net.Listener {
	if socket, ok := l.(syscall.Conn); ok {
		if raw, err := socket.SyscallConn(); err == nil {
			// If it fails, the queue stays as it is.
			_ = raw.Control(func(fd uintptr) { _ = unix.Listen(int(fd), MaxConnections) })
		}
	}
	return netutil.LimitListener(l, MaxConnections)
}

// Scrapes bounds how many requests the handler of metrics answers at once, and in a second.
func Scrapes(handler http.Handler) http.Handler {
	slots := make(chan struct{}, MaxScrapes)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		wait := time.NewTimer(scrapeWait)
		defer wait.Stop()
		select {
		case slots <- struct{}{}:
		case <-wait.C:
			http.Error(w, "too many scrapes at once; try again later", http.StatusServiceUnavailable)
			return
		case <-r.Context().Done():
			return
		}
		began := time.Now()
		defer func() { time.AfterFunc(scrapeSlot-time.Since(began), func() { <-slots }) }()
		handler.ServeHTTP(w, r)
	})
}
