package listen

import (
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"
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
	// MaxScrapes are answered at once, others get 503: a scrape of a full node holds a few
	// hundred kilobytes.
	MaxScrapes = 4
)

// HTTP returns a server of small answers to requests without a body, with the package's
// bounds. Serve it on a listener from [Limited].
func HTTP(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, MaxHeaderBytes: MaxHeaderBytes,
		ReadHeaderTimeout: Timeout, ReadTimeout: Timeout, WriteTimeout: Timeout, IdleTimeout: Timeout,
	}
}

// Limited returns a listener that has at most [MaxConnections] open at once.
func Limited(l net.Listener) net.Listener { return netutil.LimitListener(l, MaxConnections) }
