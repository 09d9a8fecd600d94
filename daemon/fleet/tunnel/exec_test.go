package tunnel

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/websocket"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/apimachinery/pkg/util/httpstream/spdy"
	channels "k8s.io/apimachinery/pkg/util/remotecommand"

	"cnictl/daemon/api/introspect"
	"cnictl/testenv"
)

// program runs in the peer's container: it echoes its input in capitals until the input
// ends, or fails as programs do.
func program(argv []string, in io.Reader, out, errs io.Writer) (end string) {
	failure := func(message string) string {
		return `{"metadata":{},"status":"Failure","message":"` + message + `","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"1"}]}}`
	}
	switch argv[0] {
	case "absent":
		return `{"metadata":{},"status":"Failure","message":"OCI runtime exec failed: exec failed: \"absent\": executable file not found in $PATH: unknown","code":500}`
	case "fails":
		fmt.Fprintln(errs, argv[1])
		return failure("command terminated with non-zero exit code: exit status 1")
	}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return `{"metadata":{},"status":"Success"}`
		}
		if line == "end\n" {
			return `{"metadata":{},"status":"Success"}`
		}
		fmt.Fprint(out, strings.ToUpper(line))
	}
}

type channel struct {
	ws     *websocket.Conn
	number byte
}

func (c channel) Write(p []byte) (int, error) {
	return len(p), websocket.Message.Send(c.ws, append([]byte{c.number}, p...))
}

func (p *peer) execChannels(ws *websocket.Conn, argv []string) {
	defer p.running()()
	in, feed := io.Pipe()
	go func() {
		for {
			var m []byte
			if websocket.Message.Receive(ws, &m) != nil || m[0] == channels.StreamClose {
				feed.Close()
				return
			}
			_, _ = feed.Write(m[1:])
		}
	}()
	for i := range byte(4) { // opens the channels as the API server does
		_ = websocket.Message.Send(ws, []byte{i})
	}
	fmt.Fprint(channel{ws, channels.StreamErr}, program(argv, in, channel{ws, channels.StreamStdOut}, channel{ws, channels.StreamStdErr}))
	ws.Close() // sends a close frame, as the API server does
}

func (p *peer) execStreams(w http.ResponseWriter, r *http.Request) {
	streams := make(chan httpstream.Stream, 4)
	c := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error { streams <- s; return nil })
	if c == nil {
		return
	}
	defer c.Close()
	defer p.running()()
	by := map[string]httpstream.Stream{}
	for range 4 {
		s := <-streams
		by[s.Headers().Get("streamType")] = s
	}
	fmt.Fprint(by["error"], program(r.URL.Query()["command"], by["stdin"], by["stdout"], by["stderr"]))
	for _, s := range by {
		s.Close()
	}
	<-c.CloseChan()
}

// TestExec exchanges data with a program; when it ends, so does the stream.
func TestExec(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, protocol string) {
		p := newPeer(t, nil)
		c, err := p.dialer(t, Options{Protocol: protocol}).Exec(t.Context(), aPod, "aws-node", []string{"shout"})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		lines := bufio.NewReader(c)
		for _, word := range []string{"one\n", "two\n"} {
			if _, err := io.WriteString(c, word); err != nil {
				t.Fatal(err)
			}
			if got, err := lines.ReadString('\n'); err != nil || got != strings.ToUpper(word) {
				t.Errorf("%q, %v", got, err)
			}
		}
		if _, err := io.WriteString(c, "end\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := lines.ReadByte(); !errors.Is(err, io.EOF) {
			t.Errorf("at its end %v", err)
		}
		if p.upgraded("exec "+protocol) != 1 {
			t.Errorf("%v", p.upgrades)
		}
	})
}

// TestExec_Fails: a failed program's error has the reason.
func TestExec_Fails(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, protocol string) {
		d := newPeer(t, nil).dialer(t, Options{Protocol: protocol})
		for _, c := range []struct {
			argv   []string
			reason introspect.Reason
			text   string
		}{
			{[]string{"absent"}, introspect.ReasonOff, "no program for this"},
			{[]string{"fails", "dial unix:/x: connection refused"}, introspect.ReasonRefused, "connection refused"},
			{[]string{"fails", "dial unix:/x: no such file or directory"}, introspect.ReasonNoSocket, "no such file"},
			{[]string{"fails", "it rains"}, introspect.ReasonTransport, "it rains"},
		} {
			conn, err := d.Exec(t.Context(), aPod, "aws-node", c.argv)
			if err != nil {
				t.Fatal(err)
			}
			_, err = conn.Read(make([]byte, 1))
			if e := wantReason(t, err, c.reason); !strings.Contains(e.Error(), c.text) {
				t.Errorf("%q says %q", c.argv, e)
			}
			conn.Close()
		}
	})
}

// TestExec_Close ends the program by closing its input.
func TestExec_Close(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, protocol string) {
		p := newPeer(t, nil)
		c, err := p.dialer(t, Options{Protocol: protocol}).Exec(t.Context(), aPod, "aws-node", []string{"shout"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, "x\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 2)); err != nil {
			t.Fatal(err)
		}
		c.Close()
		testenv.Eventually(t, "the program to end", func() bool { return p.streams() == 0 })
	})
}

// TestExec_Refused: Exec returns the reason for a refused upgrade, and a dial without an
// answer ends with its context.
func TestExec_Refused(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, protocol string) {
		p := newPeer(t, func(*http.Request) (int, string) { return 403, statusBody(403, "Forbidden", "no") })
		_, err := p.dialer(t, Options{Protocol: protocol}).Exec(t.Context(), aPod, "aws-node", []string{"shout"})
		if e := wantReason(t, err, introspect.ReasonForbidden); e.Resource != "pods/exec" {
			t.Errorf("%+v", e)
		}
		hang, asked := make(chan struct{}), make(chan struct{}, 8)
		p = newPeer(t, func(*http.Request) (int, string) { asked <- struct{}{}; <-hang; return 0, "" })
		t.Cleanup(func() { close(hang) })
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-asked; cancel() }()
		_, err = p.dialer(t, Options{Protocol: protocol}).Exec(ctx, aPod, "aws-node", []string{"shout"})
		wantReason(t, err, introspect.ReasonCancelled)
	})
}
