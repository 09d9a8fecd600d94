package ec2

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"cnictl/capacity/ec2types"
	"cnictl/capacity/limits"
	"cnictl/daemon/awssdk"
	"cnictl/daemon/scrub"
	"cnictl/doctor/evidence"
)

const (
	defaultTimeout = 20 * time.Second // of one source, all its pages together
	maxAnswer      = 16 << 20         // bytes of one page
	maxPages       = 100
	pageSize       = 1000
	maxFilter      = 200 // values of a filter
)

// Options configure a Reader. The zero value uses the SDK's default chain.
type Options struct {
	Region    string        // "" for the cluster's own, or the SDK's default
	Endpoint  string        // "" for AWS's own
	Timeout   time.Duration // of one source; 0 means 20 s
	UserAgent string        // product/version

	Credentials aws.CredentialsProvider // nil for the default chain
}

// Reader reads EC2 and, for an installation, EKS and IAM.
type Reader struct {
	opts     Options
	cfg      aws.Config
	requests atomic.Uint64
}

// New loads the AWS settings. It makes no request.
func New(ctx context.Context, opts Options) (*Reader, error) {
	if opts.Timeout <= 0 {
		opts.Timeout = defaultTimeout
	}
	var load []func(*config.LoadOptions) error
	if opts.Credentials != nil {
		load = append(load, config.WithCredentialsProvider(opts.Credentials))
	}
	cfg, err := awssdk.Load(ctx, opts.Timeout, load...)
	if err != nil {
		return nil, err
	}
	return &Reader{opts: opts, cfg: cfg}, nil
}

// Requests returns the number of requests made to AWS.
func (r *Reader) Requests() uint64 { return r.requests.Load() }

func (r *Reader) client(region string) *ec2.Client {
	return ec2.NewFromConfig(r.cfg, func(o *ec2.Options) {
		o.Region = region
		if r.opts.Endpoint != "" {
			o.BaseEndpoint = &r.opts.Endpoint
		}
		o.HTTPClient = counted{o.HTTPClient, &r.requests}
		o.APIOptions = append(o.APIOptions, r.userAgent()...)
	})
}

func (r *Reader) userAgent() (options []func(*middleware.Stack) error) {
	if r.opts.UserAgent != "" {
		options = append(options, awsmiddleware.AddUserAgentKey(r.opts.UserAgent))
	}
	return options
}

// NoCredentials begins the reason if there are no credentials to read with.
const NoCredentials = "no AWS credentials: "

// ResolveRegion returns the region to read: that of the options, else the given one, else the
// SDK's default, or "" if none is known.
func (r *Reader) ResolveRegion(given string) string {
	return cmp.Or(r.opts.Region, given, r.cfg.Region)
}

// noRegion returns why no region can be read, or "".
func (r *Reader) noRegion(given string) string {
	if r.ResolveRegion(given) == "" {
		return "no AWS region: set AWS_REGION"
	}
	return ""
}

// InstanceTypes reads the types that a region offers, like [ec2types.All]. An error is in the
// words of a source's missing reason.
func (r *Reader) InstanceTypes(ctx context.Context, region string, progress func(read int)) (all []limits.Instance, refused []error,
	err error) {
	if why := r.noCredentials(ctx); why != "" {
		return nil, nil, errors.New(why)
	}
	all, refused, err = ec2types.All(ctx, r.client(r.ResolveRegion(region)).DescribeInstanceTypes, progress)
	if err != nil {
		return all, refused, errors.New(missing(err))
	}
	return all, refused, nil
}

// counted counts requests and limits answers, because the SDK reads bodies completely.
type counted struct {
	next     ec2.HTTPClient
	requests *atomic.Uint64
}

func (c counted) Do(req *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	resp, err := c.next.Do(req)
	if err == nil {
		resp.Body = &bounded{resp.Body, maxAnswer}
	}
	return resp, err
}

type bounded struct {
	io.ReadCloser
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, fmt.Errorf("the answer is longer than %d MiB", maxAnswer>>20)
	}
	return n, err
}

func missing(err error) string {
	var api smithy.APIError
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return evidence.MissingTimeout
	case errors.As(err, &api):
		switch api.ErrorCode() {
		case "UnauthorizedOperation", "AccessDenied", "AccessDeniedException", "Client.UnauthorizedOperation":
			return evidence.MissingForbidden
		}
		return scrub.Line(api.ErrorCode() + ": " + api.ErrorMessage())
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		err = inner // what the SDK wraps around it names only operations and retries
	}
	return scrub.Line(err.Error())
}
