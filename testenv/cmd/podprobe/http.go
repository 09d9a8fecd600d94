package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// askWithin bounds one request, so that a missing peer leads to an answer too.
const askWithin = 3 * time.Second

// sendWithin bounds a transfer.
const sendWithin = 2 * time.Minute

func serveHTTP(l net.Listener) error {
	var failing atomic.Bool
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if failing.Load() {
			http.Error(w, "failing, as requested by /fail", http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("GET /fail", func(http.ResponseWriter, *http.Request) { failing.Store(true) })
	mux.HandleFunc("GET /source", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.RemoteAddr) })
	mux.HandleFunc("GET /ask", answer(func(r *http.Request) (string, error) {
		return askLine(r.FormValue("network"), r.FormValue("to"))
	}))
	mux.HandleFunc("GET /get", answer(func(r *http.Request) (string, error) { return getSource(r.FormValue("to")) }))
	mux.HandleFunc("GET /send", answer(func(r *http.Request) (string, error) {
		return send(r.FormValue("to"), r.FormValue("bytes"))
	}))
	mux.HandleFunc("GET /talk", talk)
	server := http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	return server.Serve(l)
}

// answer turns a function that may fail into a handler.
func answer(f func(*http.Request) (string, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text, err := f(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		fmt.Fprint(w, text)
	}
}

// talkEvery is short compared to the interruptions that a test must notice.
const talkEvery = 50 * time.Millisecond

// talk keeps one connection to a line server and forwards each answer as it arrives, until
// the request or the connection ends.
func talk(w http.ResponseWriter, r *http.Request) {
	c, err := net.DialTimeout("tcp", r.FormValue("to"), askWithin)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer c.Close()
	stop := context.AfterFunc(r.Context(), func() { c.Close() })
	defer stop()
	out := http.NewResponseController(w)
	tick := time.NewTicker(talkEvery)
	defer tick.Stop()
	for lines := bufio.NewReader(c); ; <-tick.C {
		_, err := fmt.Fprintln(c, "hello")
		var line string
		if err == nil {
			line, err = lines.ReadString('\n')
		}
		if err == nil {
			_, err = io.WriteString(w, line)
		}
		if err == nil {
			err = out.Flush()
		}
		if err != nil {
			return // the client sees the end
		}
	}
}

func askLine(network, to string) (string, error) {
	c, err := net.DialTimeout(network, to, askWithin)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(askWithin)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintln(c, "hello"); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	return strings.TrimSpace(line), err
}

// getSource opens a new connection, because a Service chooses the endpoint per connection.
func getSource(to string) (string, error) {
	client := http.Client{Timeout: askWithin, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + to + "/source")
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	return string(body), err
}

// send sends to a sink and waits until the sink confirms that it has received everything.
func send(to, bytes string) (string, error) {
	n, err := strconv.ParseInt(bytes, 10, 64)
	if err != nil || n <= 0 || n > 1<<30 {
		return "", fmt.Errorf("send %q bytes: not a number from 1 to 2^30", bytes)
	}
	c, err := net.DialTimeout("tcp", to, askWithin)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(sendWithin)); err != nil {
		return "", err
	}
	began := time.Now()
	if _, err := io.CopyN(c, zeros{}, n); err != nil {
		return "", err
	}
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return "", errors.New("not a TCP connection")
	}
	if err := tcp.CloseWrite(); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(line) != strconv.FormatInt(n, 10) {
		return "", fmt.Errorf("the sink got %q of %d bytes", line, n)
	}
	return strconv.FormatInt(time.Since(began).Milliseconds(), 10), nil
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }
