package imds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	sdk "github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/smithy-go/logging"
)

// Config configures a Client. The zero value works.
type Config struct {
	Endpoint string        // "": AWS_EC2_METADATA_SERVICE_ENDPOINT, or the SDK's default
	Timeout  time.Duration // of one path, SDK retries included; default 10 s
	Attempts int           // of one path, within Timeout; 0: the SDK's default
	IPv6     bool          // also read what only IPv6 mode needs
	Observe  func(Call)    // may be nil; called after every read, concurrently
}

// Call is one finished read, SDK retries included.
type Call struct {
	Path     string // below /latest
	Took     time.Duration
	NotFound bool // 404; Err is then nil
	Err      error
}

const (
	defaultTimeout = 10 * time.Second // as upstream
	maxAnswer      = 64 << 10         // bytes; the largest real list, 50 addresses, is below 1 KiB
	parallel       = 8                // reads at once: the service limits packets per second per interface

	// Four times the SDK's own limits, which a node short of CPU misses: its daemon would
	// restart again and again while pods wait for it.
	dialTimeout   = time.Second
	headerTimeout = 2 * time.Second
)

// Client reads metadata. It is safe for concurrent use.
type Client struct {
	sdk       *sdk.Client
	transport *http.Transport
	conf      Config
}

// New makes a client. It makes no request.
func New(conf Config) *Client {
	if conf.Timeout <= 0 {
		conf.Timeout = defaultTimeout
	}
	transport := awshttp.NewBuildableClient().
		WithDialerOptions(func(d *net.Dialer) { d.Timeout = dialTimeout }).
		WithTransportOptions(func(t *http.Transport) {
			t.ResponseHeaderTimeout = headerTimeout
			t.MaxIdleConnsPerHost = parallel
		}).GetTransport()
	options := sdk.Options{
		Endpoint:   conf.Endpoint,
		HTTPClient: boundedHTTP{&http.Client{Transport: transport}},
		Logger:     logging.Nop{}, // the SDK would write to stderr; the errors say what matters
	}
	if conf.Attempts > 0 {
		options.Retryer = retry.AddWithMaxAttempts(retry.NewStandard(), conf.Attempts)
	}
	return &Client{conf: conf, transport: transport, sdk: sdk.New(options)}
}

// Forget closes idle connections. Call it after installing the kernel's first NAT rules:
// connection tracking does not know older connections, so it treats their next packet as
// a new connection and sends it from another port, and the request fails.
func (c *Client) Forget() { c.transport.CloseIdleConnections() }

// get reads a path below /latest/meta-data or /latest/dynamic. found is false for 404.
func (c *Client) get(ctx context.Context, path string) (body string, found bool, err error) {
	start := time.Now()
	body, err = c.read(ctx, path)
	var status interface{ HTTPStatusCode() int }
	missing := errors.As(err, &status) && status.HTTPStatusCode() == http.StatusNotFound
	if missing {
		err = nil
	}
	if c.conf.Observe != nil {
		c.conf.Observe(Call{Path: path, Took: time.Since(start), NotFound: missing, Err: err})
	}
	if err != nil {
		return "", false, fmt.Errorf("read metadata %s: %w", path, err)
	}
	return body, !missing, nil
}

const (
	metaData = "meta-data/"
	dynamic  = "dynamic/"
)

func (c *Client) read(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.conf.Timeout)
	defer cancel()
	var content io.ReadCloser
	if path == documentPath {
		out, err := c.sdk.GetDynamicData(ctx, &sdk.GetDynamicDataInput{Path: path[len(dynamic):]})
		if err != nil {
			return "", err
		}
		content = out.Content
	} else {
		out, err := c.sdk.GetMetadata(ctx, &sdk.GetMetadataInput{Path: path[len(metaData):]})
		if err != nil {
			return "", err
		}
		content = out.Content
	}
	defer content.Close()
	b, err := io.ReadAll(content)
	return string(b), err
}

// need reads a path that every instance has.
func (c *Client) need(ctx context.Context, path string) (string, error) {
	body, found, err := c.get(ctx, path)
	if err == nil && !found {
		err = fmt.Errorf("read metadata %s: %w", path, ErrNotThere)
	}
	return body, err
}

// ErrNotThere means a 404 for a path that every instance or interface has: an interface
// went away between two reads, or the service is not EC2's.
var ErrNotThere = errors.New("not there")

// boundedHTTP limits answers, so that an endless one cannot fill memory: the SDK reads
// whole bodies.
type boundedHTTP struct{ next sdk.HTTPClient }

func (b boundedHTTP) Do(r *http.Request) (*http.Response, error) {
	resp, err := b.next.Do(r)
	if err == nil {
		resp.Body = &boundedBody{resp.Body, maxAnswer}
	}
	return resp, err
}

type boundedBody struct {
	io.ReadCloser
	left int
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.left -= n
	if b.left < 0 {
		return 0, fmt.Errorf("answer is longer than %d bytes", maxAnswer)
	}
	return n, err
}
