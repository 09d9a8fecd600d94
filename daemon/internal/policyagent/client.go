package policyagent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cnirpc"
	"cnictl/daemon/api/cniwire"
)

const (
	dialLimit = 2 * time.Second // upstream's
	callLimit = 5 * time.Second // including the dial and the retry
	// retryPause is the pause before the retry of a call that the agent refused because a link
	// is missing: its list of links may lag a moment behind.
	retryPause = 500 * time.Millisecond
	// largestReply is far above the agent's actual reply, a single byte.
	largestReply = 64 << 10
)

// Client calls the agent. It is safe for concurrent use.
type Client struct {
	conn   *grpc.ClientConn
	socket string

	mu     sync.Mutex
	dialed error // why the last attempt to connect failed; guarded by mu
}

// New returns a client of the agent at a socket, "" for the default one. It connects on
// the first call.
func New(socket string) (*Client, error) {
	c := &Client{socket: cmp.Or(socket, cniwire.PolicySocket)}
	var err error
	c.conn, err = grpc.NewClient("passthrough:///policy-agent",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return c.dial(ctx) }),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: dialLimit,
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(largestReply)),
	)
	if err != nil {
		return nil, fmt.Errorf("prepare calls of the network policy agent: %w", err)
	}
	return c, nil
}

// Close closes the connection and ends the calls on it.
func (c *Client) Close() error { return c.conn.Close() }

func (c *Client) dial(ctx context.Context) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", c.socket)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dialed = err
	return conn, err
}

// Error is a call that failed.
type Error struct {
	Cause cause.Code // PolicyAgentUnreachable or PolicyAgentRefused
	Err   error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Cause returns the cause of a failed call, "" if err is not from one.
func Cause(err error) cause.Code {
	var e *Error
	if !errors.As(err, &e) {
		return ""
	}
	return e.Cause
}

// Unreachable reports whether the agent did not answer; a retry may succeed.
func Unreachable(err error) bool { return Cause(err) == cause.PolicyAgentUnreachable }

// Enforce makes the agent attach a pod's policies to the given number of host links.
func (c *Client) Enforce(ctx context.Context, namespace, name, mode string, interfaces int32) error {
	return c.call(ctx, func(ctx context.Context, np cnirpc.NPBackendClient) (bool, error) {
		r, err := np.EnforceNpToPod(ctx, &cnirpc.EnforceNpRequest{
			K8S_POD_NAME: name, K8S_POD_NAMESPACE: namespace, NETWORK_POLICY_MODE: mode, InterfaceCount: interfaces,
		})
		return r.GetSuccess(), err
	})
}

// Delete makes the agent forget a pod.
func (c *Client) Delete(ctx context.Context, namespace, name string) error {
	return c.call(ctx, func(ctx context.Context, np cnirpc.NPBackendClient) (bool, error) {
		r, err := np.DeletePodNp(ctx, &cnirpc.DeleteNpRequest{K8S_POD_NAME: name, K8S_POD_NAMESPACE: namespace})
		return r.GetSuccess(), err
	})
}

var errNotSuccessful = errors.New("the agent reported failure without a reason")

func (c *Client) call(ctx context.Context, f func(context.Context, cnirpc.NPBackendClient) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	for attempt := 1; ; attempt++ {
		if err := c.connected(ctx); err != nil {
			return &Error{cause.PolicyAgentUnreachable, err}
		}
		ok, err := f(ctx, cnirpc.NewNPBackendClient(c.conn))
		switch {
		case err == nil && ok:
			return nil
		case err == nil:
			return &Error{cause.PolicyAgentRefused, errNotSuccessful}
		case status.Code(err) == codes.DeadlineExceeded:
			// Replaces the error's text, which depends on which end timed out first.
			return &Error{cause.PolicyAgentUnreachable, fmt.Errorf("no answer from %s within the deadline of %s: %w", c.socket, callLimit, context.DeadlineExceeded)}
		case attempt == 1 && isTransient(err) && pause(ctx, retryPause):
			continue
		}
		return &Error{codeOf(err), err}
	}
}

// connected waits for a connection.
func (c *Client) connected(ctx context.Context) error {
	if c.conn.GetState() == connectivity.Ready {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	c.conn.ResetConnectBackoff() // left by earlier calls
	for {
		c.conn.Connect() // does nothing unless it is idle
		state := c.conn.GetState()
		if state == connectivity.Ready {
			return nil
		}
		if !c.conn.WaitForStateChange(ctx, state) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.dialed == nil {
				return fmt.Errorf("connect to %s: %w", c.socket, ctx.Err())
			}
			return c.dialed
		}
	}
}

// isTransient reports whether an error may be transient: the agent has not seen a link yet, or
// has just been replaced.
func isTransient(err error) bool {
	s := status.Convert(err)
	if s.Code() == codes.Unavailable {
		return true
	}
	text := strings.ToLower(s.Message())
	return strings.Contains(text, "link not found") || strings.Contains(text, "no such network interface")
}

// codeOf distinguishes a refusal from an agent that does not answer.
func codeOf(err error) cause.Code {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return cause.PolicyAgentUnreachable
	}
	return cause.PolicyAgentRefused
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
