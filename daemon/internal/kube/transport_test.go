package kube

import (
	"net/http"
	"sync/atomic"
)

// tripper is a RoundTripper made from a function.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// counted counts what goes over the wire.
type counted struct {
	gets, patches, bytes atomic.Int64
}

// counting counts c's requests from now on, without watches and version requests.
func counting(c *Client) *counted {
	n := &counted{}
	next := c.rest.Client.Transport
	c.rest.Client.Transport = tripper(func(r *http.Request) (*http.Response, error) {
		switch {
		case r.Method == http.MethodPatch:
			n.patches.Add(1)
		case r.URL.Path != "/version" && r.URL.Query().Get("watch") == "":
			n.gets.Add(1)
		}
		return next.RoundTrip(r)
	})
	return n
}

// before calls f before each request of a method.
func before(c *Client, method string, f func()) {
	next := c.rest.Client.Transport
	c.rest.Client.Transport = tripper(func(r *http.Request) (*http.Response, error) {
		if r.Method == method {
			f()
		}
		return next.RoundTrip(r)
	})
}
