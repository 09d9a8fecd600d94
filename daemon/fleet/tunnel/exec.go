package tunnel

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"strings"

	"cnictl/daemon/api/introspect"
)

// Channels of an exec in a WebSocket: the first byte of each message.
const (
	channelIn  = 0
	channelOut = 1
	channelErr = 2
	channelEnd = 3 // a Status, when the program has ended
)

// maxMessage bounds a message of an exec; the API server's have up to 32 KiB.
const maxMessage = 1 << 20

// Exec runs a program in a container, with its standard input and output as the stream.
// Closing the stream ends its input.
func (d *Dialer) Exec(ctx context.Context, pod Pod, container string, argv []string) (net.Conn, error) {
	up, err := d.negotiate(ctx, pod, upgradePlan{
		resource:    "exec",
		query:       url.Values{"container": {container}, "command": argv, "stdin": {"true"}, "stdout": {"true"}, "stderr": {"true"}},
		inWebSocket: []string{"v5.channel.k8s.io", "v4.channel.k8s.io"},
		inSPDY:      []string{"v4.channel.k8s.io"},
	})
	if err != nil {
		return nil, err
	}
	to := addr{pod, "exec " + strings.Join(argv, " ")}
	if up.web != nil {
		return execChannels(up.web, to), nil
	}
	return execStreams(ctx, up.plain, to)
}

// execChannels is an exec whose streams are marked by the first byte of messages.
func execChannels(w *wsWire, to addr) net.Conn {
	s := makeSession(w, w.conn)
	out, errs, end := newHalf(channelOut), newHalf(channelErr), newHalf(channelEnd)
	s.streams = map[uint32]*half{channelOut: out, channelErr: errs, channelEnd: end}
	go s.run(func() error {
		for {
			m, err := w.in.message(maxMessage)
			if err != nil {
				return err
			}
			if len(m) < 2 {
				continue // channels are opened by messages without data
			}
			if h := s.stream(uint32(m[0])); h != nil {
				h.putWithin(m[1:], h != out)
			}
		}
	})
	c := newConn(s, channelIn, out, end, to, explainExec(errs), s.close)
	c.frame = func(b, p []byte) []byte { return append(append(b, channelIn), p...) }
	return c
}

// execStreams is an exec in SPDY, with a stream for each.
func execStreams(ctx context.Context, w wire, to addr) (net.Conn, error) {
	s := newSession(w, w.conn)
	limit, stop := limitOf(ctx)
	defer stop()
	h, err := s.open(limit, headers{"streamtype", "error"}, headers{"streamtype", "stdin"}, headers{"streamtype", "stdout"}, headers{"streamtype", "stderr"})
	if err != nil {
		s.close()
		return nil, Failed(ctx, err)
	}
	return newConn(s, h[1].id, h[2], h[0], to, explainExec(h[3]), s.close), nil
}

// explainExec tells why a program ended, of the Status that says so and what it wrote
// beside; nil when nothing went wrong.
func explainExec(stderr *half) func(text string) *Error {
	return func(text string) *Error {
		var s struct {
			Status  string `json:"status"`
			Message string `json:"message"`
		}
		if json.Unmarshal([]byte(text), &s) != nil {
			s.Message = text
		}
		if s.Status == "Success" {
			return nil
		}
		e := &Error{Reason: introspect.ReasonTransport, Err: fmt.Errorf("the program in the container: %s", brief(s.Message))}
		switch said := complaint(stderr); {
		case containsAny(s.Message, "executable file not found", "no such file or directory"):
			e.Reason, e.Err = introspect.ReasonOff, fmt.Errorf("the daemon's image has no program for this: %s", brief(s.Message))
		case said != "":
			e.Err = fmt.Errorf("the program in the container: %s (%s)", brief(said), brief(s.Message))
			switch {
			case strings.Contains(said, "connection refused"):
				e.Reason = introspect.ReasonRefused
			case containsAny(said, "no such file", "no such socket"):
				e.Reason = introspect.ReasonNoSocket
			}
		}
		return e
	}
}

// complaint is what there is of a stream that nobody read so far.
func complaint(h *half) string {
	var text strings.Builder
	var chunk [512]byte
	for text.Len() < maxComplaint {
		n, err, ok := h.take(chunk[:])
		text.Write(chunk[:n])
		if !ok || err != nil {
			break
		}
	}
	return text.String()
}
