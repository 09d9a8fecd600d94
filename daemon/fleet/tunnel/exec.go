package tunnel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/httpstream"
	channels "k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"

	"cnictl/daemon/api/introspect"
)

// Exec runs a program in a container and returns a stream to its standard input and output.
// Closing the stream ends its input.
func (d *Dialer) Exec(ctx context.Context, pod Pod, container string, argv []string) (net.Conn, error) {
	to := addr{pod, "exec " + strings.Join(argv, " ")}
	q := url.Values{"container": {container}, "command": argv, "stdin": {"true"}, "stdout": {"true"}, "stderr": {"true"}}
	var conn net.Conn
	err := d.negotiate(ctx, pod, "exec", q, func(protocol string, u *url.URL) (err error) {
		if protocol == ProtocolSPDY {
			conn, err = d.execSPDY(ctx, u, to)
		} else {
			conn, err = d.execWebSocket(ctx, u, to)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// execWebSocket wraps the transport to limit and report the upgrade: client-go's executor
// connects by itself and reports nothing before the program ends.
func (d *Dialer) execWebSocket(ctx context.Context, u *url.URL, to addr) (net.Conn, error) {
	made := make(chan error, 1)
	cfg := rest.CopyConfig(d.front.config)
	cfg.Wrap(func(under http.RoundTripper) http.RoundTripper {
		return tripper(func(req *http.Request) (*http.Response, error) {
			resp, err := d.front.shake(ctx, req, under)
			made <- err
			return resp, err
		})
	})
	executor, err := remotecommand.NewWebSocketExecutor(cfg, http.MethodGet, u.String())
	if err != nil {
		return nil, err
	}
	p, ended := execute(ctx, executor, to)
	select {
	case err = <-made:
	case err = <-ended: // no request was made, for lack of credentials; or it is over already
		select {
		case err = <-made:
		default:
		}
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// execSPDY gives the executor an existing connection.
func (d *Dialer) execSPDY(ctx context.Context, u *url.URL, to addr) (net.Conn, error) {
	s, protocol, err := d.front.spdy(ctx, u, channels.StreamProtocolV5Name, channels.StreamProtocolV4Name)
	if err != nil {
		return nil, err
	}
	h := handed{s, protocol}
	executor, err := remotecommand.NewSPDYExecutorForTransports(h, h, http.MethodPost, u)
	if err != nil {
		s.Close()
		return nil, err
	}
	p, _ := execute(ctx, executor, to)
	return p, nil
}

// handed supplies an existing connection instead of making one.
type handed struct {
	session  *session
	protocol string
}

func (h handed) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusSwitchingProtocols, Request: req, Body: http.NoBody,
		Header: http.Header{httpstream.HeaderProtocolVersion: {h.protocol}},
	}, nil
}

func (h handed) NewConnection(*http.Response) (httpstream.Connection, error) { return h.session, nil }

// execute runs the program connected to a pipe, which ends with the program. Closing the pipe
// ends the program's input; after linger, the program is abandoned. The delay has a second
// reason: if its context ends before it has begun to read, client-go's executor leaks
// goroutines.
func execute(ctx context.Context, e remotecommand.Executor, to addr) (*pipe, <-chan error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // ends with the connection
	p, ended := newPipe(to, func() { time.AfterFunc(linger, cancel) }), make(chan error, 1)
	go func() {
		defer cancel()
		var stderr limited
		err := e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: endless{p.far}, Stdout: endless{p.far}, Stderr: &stderr})
		ended <- err
		p.finish(explainExec(err, stderr.String()))
	}()
	return p, ended
}

// endless is the far end of a pipe. After a close it returns no error, which client-go would
// log.
type endless struct{ net.Conn }

func (e endless) Read(b []byte) (int, error) {
	n, err := e.Conn.Read(b)
	if errors.Is(err, io.ErrClosedPipe) {
		err = io.EOF
	}
	return n, err
}

func (e endless) Write(b []byte) (int, error) {
	n, err := e.Conn.Write(b)
	if errors.Is(err, io.ErrClosedPipe) {
		return len(b), nil
	}
	return n, err
}

// explainExec returns why a program ended, from client-go's error and the program's stderr; nil
// if it succeeded.
func explainExec(err error, stderr string) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	e := &Error{Reason: introspect.ReasonTransport, Err: fmt.Errorf("the program in the container: %s", brief(text))}
	switch {
	case containsAny(text, "executable file not found", "no such file or directory"):
		e.Reason, e.Err = introspect.ReasonOff, fmt.Errorf("the daemon's image has no program for this: %s", brief(text))
	case stderr != "":
		e.Err = fmt.Errorf("the program in the container: %s (%s)", brief(stderr), brief(text))
		switch {
		case strings.Contains(stderr, "connection refused"):
			e.Reason = introspect.ReasonRefused
		case containsAny(stderr, "no such file", "no such socket"):
			e.Reason = introspect.ReasonNoSocket
		}
	}
	return e
}

// limited keeps the beginning of what is written to it.
type limited struct {
	mu   sync.Mutex // guards text
	text []byte
}

func (l *limited) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p[:min(len(p), maxComplaint-len(l.text))]...)
	return len(p), nil
}

func (l *limited) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}
