package vpcapi

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"cnictl/daemon/api/crashpoint"
	"cnictl/daemon/awssdk"
	"cnictl/daemon/budget"
	"cnictl/daemon/ipam"
)

// Config configures a Client. Region and InstanceID are required.
type Config struct {
	Region      string
	Endpoint    string        // AWS_EC2_ENDPOINT; "": AWS_ENDPOINT_URL_EC2 or AWS's own
	HTTPTimeout time.Duration // of one attempt; default 10 s
	UserAgent   string        // product/version, put before the SDK's own

	InstanceID     string
	VPCID          string            // DescribeSubnets searches this VPC …
	AZ             string            // … and this zone
	ClusterName    string            // CLUSTER_NAME, may be ""
	AdditionalTags map[string]string // ADDITIONAL_ENI_TAGS; reserved keys are ignored, see UserTags

	Budget budget.Policy // for the node's requests; zero: budget.Default
	Jitter budget.Jitter // the budget's jitter; nil: random, independent on every node

	Observe     func(Call)              // may be nil; called after every call, concurrently
	Credentials aws.CredentialsProvider // nil: the SDK's chain (environment, web identity, instance role), at the first call
}

// Call is one finished EC2 call, SDK retries included.
type Call struct {
	Action string        // as EC2 names it
	Took   time.Duration // total, including Waited and the SDK's pauses
	Code   string        // EC2's error code, "" for success and for failures without an answer
	Err    error

	Waited    time.Duration // for the request budget, over all attempts
	Attempts  int           // requests made
	Throttled int           // of these, refused by EC2's request limits
}

const (
	defaultHTTPTimeout = 10 * time.Second // as upstream
	maxAnswer          = 16 << 20         // bytes; a full page of the largest interfaces is below 4 MiB
)

// Client makes EC2 calls for one instance.
type Client struct {
	ec2  *ec2.Client
	conf Config
	pace *pacer

	credentials aws.CredentialsProvider // caches
	env         config.EnvConfig        // the SDK's variables

	mu      sync.Mutex
	subnets map[string]cidrs      // guarded by mu: by subnet id, from the last DescribeSubnets
	enis    map[ipam.ENIID]ownENI // guarded by mu: this instance's, and those that the client created
}

// ownENI is an ENI whose subnet is remembered: its addresses must lie there.
type ownENI struct {
	subnetID string
	attached bool // to this instance, so a list of the instance's ENIs has it
}

// New makes a client. It makes no request.
func New(ctx context.Context, conf Config) (*Client, error) {
	if conf.Region == "" {
		return nil, fmt.Errorf("make EC2 client: Region is empty")
	}
	if err := checkID("InstanceID", "i-", conf.InstanceID); err != nil {
		return nil, fmt.Errorf("make EC2 client: %w", err)
	}
	if conf.HTTPTimeout <= 0 {
		conf.HTTPTimeout = defaultHTTPTimeout
	}
	load := []func(*config.LoadOptions) error{
		config.WithRegion(conf.Region),
	}
	if conf.Credentials != nil {
		load = append(load, config.WithCredentialsProvider(conf.Credentials))
	}
	cfg, err := awssdk.Load(ctx, conf.HTTPTimeout, load...)
	if err != nil {
		return nil, err
	}
	conf.AdditionalTags = maps.Clone(conf.AdditionalTags)
	pace := newPacer(conf.Budget, conf.Jitter)
	client := ec2.NewFromConfig(cfg, func(o *ec2.Options) {
		if conf.Endpoint != "" {
			o.BaseEndpoint = aws.String(conf.Endpoint)
		}
		if r, ok := o.Retryer.(aws.RetryerV2); ok { // all of the SDK's are
			o.Retryer = pacedRetryer{r}
		}
		o.APIOptions = append(o.APIOptions, pace.install)
		o.HTTPClient = boundedHTTP{o.HTTPClient, maxAnswer}
		if name, version, _ := strings.Cut(conf.UserAgent, "/"); name != "" {
			o.APIOptions = append(o.APIOptions, awsmiddleware.AddUserAgentKeyValue(name, version))
		}
	})
	env, err := config.NewEnvConfig()
	if err != nil {
		return nil, fmt.Errorf("load AWS settings: %w", err)
	}
	return &Client{ec2: client, conf: conf, pace: pace, credentials: cfg.Credentials, env: env, subnets: make(map[string]cidrs), enis: make(map[ipam.ENIID]ownENI)}, nil
}

// Budget returns the state of the request budget, for each action called so far.
func (c *Client) Budget() []budget.State { return c.pace.states(time.Now()) }

// call times one EC2 call and reports it.
func call[In, Out any](ctx context.Context, c *Client, action string, do func(context.Context, *In, ...func(*ec2.Options)) (*Out, error), in *In) (*Out, error) {
	start := time.Now()
	m := &measure{}
	crashpoint.BeforeEC2(action)
	out, err := do(context.WithValue(ctx, measureKey{}, m), in)
	clean(err)
	err = c.nameAgent(err)
	crashpoint.AfterEC2(action)
	if c.conf.Observe != nil {
		c.conf.Observe(Call{Action: action, Took: time.Since(start), Code: Code(err), Err: err, Waited: m.waited, Attempts: m.attempts, Throttled: m.throttled})
	}
	return out, err
}

// remember records an ENI that the client created or that is attached to the instance.
func (c *Client) remember(e ENI) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.enis[e.ID] = ownENI{e.SubnetID, e.InstanceID == c.conf.InstanceID}
}

func (c *Client) forget(id ipam.ENIID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.enis, id)
}

// described records which of the requested ENIs EC2 returned; without ids, all of the
// instance's were requested. It forgets the others, or the map would grow forever with ENIs
// that others delete.
func (c *Client) described(ids []ipam.ENIID, shown []ENI) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(ids) == 0 {
		maps.DeleteFunc(c.enis, func(_ ipam.ENIID, e ownENI) bool { return e.attached })
	}
	was := make(map[ipam.ENIID]bool, len(ids))
	for _, id := range ids {
		_, was[id] = c.enis[id]
		delete(c.enis, id)
	}
	for _, e := range shown {
		attached := e.InstanceID == c.conf.InstanceID
		if attached || was[e.ID] && e.InstanceID == "" {
			c.enis[e.ID] = ownENI{e.SubnetID, attached}
		}
	}
}
