package client

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
)

// notReached is a dial error with its own reason.
type notReached struct{}

func (notReached) Error() string                 { return "the user lacks a right" }
func (notReached) NodeReason() introspect.Reason { return introspect.ReasonForbidden }

// TestDial_Own: with the caller's Dial, the address is only a label.
func TestDial_Own(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") == `"1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("ETag", `"1"`)
		_, _ = w.Write([]byte(`{"a":1}`))
	}))
	t.Cleanup(server.Close)
	dials := 0
	c, err := New(Options{Address: "node a, of no address", Now: time.Now, Dial: func(ctx context.Context) (net.Conn, error) {
		dials++
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("a dial without an end")
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", server.Listener.Addr().String())
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for range 2 {
		if a, err := c.Get(t.Context(), "/v1/enis"); err != nil || string(a.Body) != `{"a":1}` {
			t.Fatalf("%s, %v", a.Body, err)
		}
	}
	if dials != 1 {
		t.Errorf("dialled %d times", dials)
	}
}

// TestDial_Reason: the reason of a dial error becomes the reason of the client's error.
func TestDial_Reason(t *testing.T) {
	t.Parallel()
	c, err := New(Options{Address: "a", Now: time.Now, Dial: func(context.Context) (net.Conn, error) { return nil, notReached{} }})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Get(t.Context(), "/v1/enis")
	var e *Error
	if !errors.As(err, &e) || e.Reason != introspect.ReasonForbidden || e.Err.Error() != "the user lacks a right" || Temporary(err) {
		t.Errorf("%v", err)
	}
}
