package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"cnictl/daemon/api/introspect"
)

// DialTimeout bounds connecting to a node; the caller's context bounds the whole request.
const DialTimeout = 3 * time.Second

// dialLimit bounds a call of Options.Dial, which may take several hops.
const dialLimit = 3 * DialTimeout

// DefaultCooldown is upstream's IP_COOLDOWN_PERIOD default. A node without a summary does
// not report the setting.
const DefaultCooldown = 30 * time.Second

// Options configure a Client. Address and Now are required.
type Options struct {
	Address   string           // unix:/path, host:port or http://host:port; with Dial any label, for errors
	UserAgent string           // sent to the node
	Now       func() time.Time // clock for answers without a Date; required

	// Dial connects to the node; nil dials Address. Its context has its own deadline, not
	// the request's: a connection that arrives too late serves the next request.
	Dial func(ctx context.Context) (net.Conn, error)
}

// Client reads one node. It is safe for concurrent use.
type Client struct {
	opts Options
	base string
	http *http.Client

	mu   sync.Mutex
	kept map[string]kept // by path
}

// kept is the last answer that carried an entity tag.
type kept struct {
	etag    string
	body    []byte
	summary *introspect.Summary // the decoded body; nil if it was not decoded
}

// Answer is a body and the node's clock when it answered.
type Answer struct {
	Body []byte
	At   time.Time

	etag    string              // "" if the answer is not kept
	summary *introspect.Summary // decoded earlier from the same body
}

// New builds a client; it does not connect.
func New(opts Options) (*Client, error) {
	if opts.Now == nil {
		return nil, errors.New("build introspection client: Now is required")
	}
	ep, dial := endpoint{base: anyNode}, opts.Dial
	if dial == nil {
		var err error
		if ep, err = parseAddress(opts.Address); err != nil {
			return nil, err
		}
		dialer := &net.Dialer{Timeout: DialTimeout}
		dial = func(ctx context.Context) (net.Conn, error) { return dialer.DialContext(ctx, ep.network, ep.address) }
	}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			// The transport may continue a dial after its request has ended.
			ctx, cancel := context.WithTimeout(ctx, dialLimit)
			defer cancel()
			conn, err := dial(ctx)
			if err != nil {
				return nil, err
			}
			return &answering{Conn: conn}, nil
		},
		MaxIdleConns:           1,
		MaxConnsPerHost:        4, // one of them may wait for events
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
	return &Client{
		opts: opts, base: ep.base, kept: map[string]kept{},
		http: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// idleKept is the longest body that is kept without a connection: longer ones, of thousands
// of nodes that are rarely asked, would fill the memory.
const idleKept = 4 << 10

// Close closes idle connections and drops long answers.
func (c *Client) Close() {
	c.http.CloseIdleConnections()
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.kept, func(_ string, k kept) bool { return cap(k.body) > idleKept })
}

// Get reads a path. If the node returns its list of paths instead of the document, the
// reason is no-endpoint.
func (c *Client) Get(ctx context.Context, path string) (Answer, error) {
	a, reason, err := c.get(ctx, path)
	if err != nil {
		return Answer{}, &Error{Address: c.opts.Address, Path: path, Reason: reason, Err: err}
	}
	return a, nil
}

func (c *Client) get(ctx context.Context, path string) (Answer, introspect.Reason, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return Answer{}, introspect.ReasonMalformed, err
	}
	req.Header.Set("User-Agent", c.opts.UserAgent)
	// Answers to queries are not kept: their number is unbounded.
	keep := !strings.Contains(path, "?")
	c.mu.Lock()
	last, have := c.kept[path]
	c.mu.Unlock()
	if have {
		req.Header.Set("If-None-Match", last.etag)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		reason, err := classify(ctx, err)
		return Answer{}, reason, err
	}
	defer resp.Body.Close()
	at := c.date(resp)
	if have && resp.StatusCode == http.StatusNotModified {
		return Answer{Body: last.body, At: at, etag: last.etag, summary: last.summary}, "", nil
	}
	if resp.StatusCode != http.StatusOK {
		reason, err := refusal(resp)
		return Answer{}, reason, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, introspect.MaxBody+1))
	if err != nil {
		reason, err := classify(ctx, err)
		return Answer{}, reason, err
	}
	switch {
	case len(body) > introspect.MaxBody:
		return Answer{}, introspect.ReasonTooLarge, introspect.ErrTooLarge
	case !json.Valid(body):
		return Answer{}, introspect.ReasonNotJSON, introspect.ErrNotJSON
	case introspect.PathsOf(body) != nil:
		return Answer{}, introspect.ReasonNoEndpoint, introspect.ErrCommands
	}
	a := Answer{Body: body, At: at}
	if etag := resp.Header.Get("ETag"); etag != "" && keep {
		a.etag = etag
		c.mu.Lock()
		c.kept[path] = kept{etag: etag, body: body}
		c.mu.Unlock()
	}
	return a, "", nil
}

// keepSummary keeps the decoded form of a kept body: most nodes usually answer that nothing
// has changed.
func (c *Client) keepSummary(a Answer, s introspect.Summary) {
	if a.etag == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.kept[introspect.PathSummary]; k.etag == a.etag {
		k.summary = &s
		c.kept[introspect.PathSummary] = k
	}
}

// maxFault bounds the document of a refusal, in bytes.
const maxFault = 16 << 10

// refusal explains an HTTP status that is not a success: by the fault that our daemon
// sends, or by the status alone.
func refusal(resp *http.Response) (introspect.Reason, error) {
	reason := introspect.ReasonStatus
	switch resp.StatusCode {
	case http.StatusNotFound:
		reason = introspect.ReasonNotFound
	case http.StatusBadRequest:
		reason = introspect.ReasonBadRequest
	case http.StatusServiceUnavailable:
		reason = introspect.ReasonBusy
	}
	var fault introspect.Fault
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxFault))
	if err != nil || json.Unmarshal(body, &fault) != nil || fault.Kind != introspect.KindFault || len(fault.Code) > 64 {
		return reason, fmt.Errorf("answered HTTP status %d", resp.StatusCode)
	}
	if fault.Code == introspect.FaultNotServed {
		reason = introspect.ReasonNotServed
	}
	return reason, &fault
}

// date returns the node's clock. Cooldowns are measured on it, so that the reader's clock
// does not change them. Its resolution is one second.
func (c *Client) date(resp *http.Response) time.Time {
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		return at.UTC()
	}
	return c.opts.Now().UTC()
}
