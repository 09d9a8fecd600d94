package local

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/fleet"
)

// TestDial_CarriesARequestAndItsAnswer: the input goes to the socket, and the answer
// comes back even if the input has already ended.
func TestDial_CarriesARequestAndItsAnswer(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "d.sock")
	ln, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	served := make(chan error, 1)
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			served <- err
			return
		}
		in, err := io.ReadAll(conn) // until the end of the input, which is passed on
		_, werr := conn.Write(bytes.ToUpper(in))
		served <- errors.Join(err, werr, conn.Close())
	}()
	var out bytes.Buffer
	f := &cli.Factory{
		Streams:     &cli.Streams{In: strings.NewReader("get /v1/enis"), Out: &out},
		LocalTarget: func(context.Context) (fleet.Target, bool) { return fleet.Target{Address: "unix:" + path}, true },
	}
	if err := errors.Join(Dial(t.Context(), f, ""), <-served); err != nil || out.String() != "GET /V1/ENIS" {
		t.Errorf("%v: %q", err, out.String())
	}
}

// TestDial_EndsWithTheConnection: an input that never ends does not keep the command running.
func TestDial_EndsWithTheConnection(t *testing.T) {
	t.Parallel()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		if conn, err := ln.Accept(); err == nil {
			_, _ = io.WriteString(conn, "bye")
			_ = conn.Close()
		}
	}()
	in, stop := io.Pipe()
	defer stop.Close()
	var out bytes.Buffer
	if err := Dial(t.Context(), &cli.Factory{Streams: &cli.Streams{In: in, Out: &out}}, ln.Addr().String()); err != nil || out.String() != "bye" {
		t.Errorf("%v: %q", err, out.String())
	}
}

func TestDial_Refuses(t *testing.T) {
	t.Parallel()
	for address, code := range map[string]int{
		"nonsense": cli.ExitUsage, "http://127.0.0.1:1": cli.ExitUsage, "unix:relative": cli.ExitUsage,
		"unix:" + filepath.Join(t.TempDir(), "none.sock"): cli.ExitUnreachable,
	} {
		err := Dial(t.Context(), &cli.Factory{Streams: &cli.Streams{In: strings.NewReader(""), Out: io.Discard}}, address)
		var of *cli.Error
		if !errors.As(err, &of) || of.Code != code {
			t.Errorf("%s: %v, want code %d", address, err, code)
		}
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{"/ok": "", "/gone": "404"} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/ok" {
				http.NotFound(w, r)
			}
			_, _ = io.WriteString(w, "x 1\n")
		}))
		text, err := metricsOf(t.Context(), s.URL+path)
		s.Close()
		if want == "" && (err != nil || string(text) != "x 1\n") || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %q, %v", path, text, err)
		}
	}
}
