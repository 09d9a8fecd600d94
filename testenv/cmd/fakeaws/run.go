package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"time"

	"cnictl/testenv/aws/fakeaws"
)

const usage = `fakeaws serves a fake EC2 API (Query protocol) and instance metadata service
(IMDSv2) over one simulated world, until it is interrupted. Any program that takes
AWS's endpoints from its environment can be pointed at it.

Usage:
  fakeaws [flags]

The world has one instance by default; --world describes any other as JSON.
The metadata service identifies callers by their source address if it belongs to an
instance, and treats all others as --instance.

It prints one JSON line with the endpoints, then the environment variables that point
a program at them as NAME=VALUE lines, then, with --log, each EC2 request as one JSON line.

The control API (plain HTTP and JSON, on loopback only) adds and removes faults,
changes the world, and shows it and the requests so far; GET / lists its paths.
A fault says which calls it affects (action, first, last, params, probability and seed)
and what happens to them (code and status; effect; reply closed, hang, stall,
truncated, garbage, html, empty or foreign; atMost; hold attaching, link or detaching).
--faults takes a list of them as JSON.

Exit status: 0, also after SIGTERM or SIGINT; 1 if a client used an unknown action,
parameter or path (named on stderr); 2 for invalid flags or an invalid world.

Examples:
  fakeaws --type m5.4xlarge --realistic
  fakeaws --ec2 127.0.0.1:4566 --imds 127.0.0.1:1338 --log
  fakeaws --example > world.json && fakeaws --world world.json
  fakeaws --throttle account --metadata-lag 10s --control 127.0.0.1:4567
  fakeaws --faults faults.json   # [{"action": "AttachNetworkInterface", "last": 1, "hold": "attaching"}]

With a running fakeaws:
  export AWS_REGION=us-west-2 AWS_ENDPOINT_URL_EC2=http://127.0.0.1:4566 …
  curl -X POST 127.0.0.1:4567/faults -d '{"action": "CreateNetworkInterface", "last": 3, "reply": "closed", "effect": true}'
  curl -X POST 127.0.0.1:4567/subnets/subnet-0fa4e000000000001/occupy -d '{"count": 200}'
  curl -X PATCH 127.0.0.1:4567/settings -d '{"metadataLag": "1m", "throttle": "none"}'
  curl 127.0.0.1:4567/world; curl 127.0.0.1:4567/calls; curl -X DELETE 127.0.0.1:4567/faults

Flags:
`

type settings struct {
	world, ec2, imds, control, kind, cidr, instance string
	throttle, faults                                string
	metadataLag, describeLag                        time.Duration
	realistic, log, example                         bool
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var s settings
	flags := flag.NewFlagSet("fakeaws", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&s.world, "world", "", "file with the world as JSON, - for stdin")
	flags.StringVar(&s.ec2, "ec2", "127.0.0.1:0", "address of the EC2 API")
	flags.StringVar(&s.imds, "imds", "127.0.0.1:0", "address of the metadata service")
	flags.StringVar(&s.control, "control", "127.0.0.1:0", "loopback address of the control API, empty for none")
	flags.StringVar(&s.throttle, "throttle", "", "request limits: none, or account for EC2's documented buckets (default the world's)")
	flags.StringVar(&s.faults, "faults", "", "file with a JSON list of faults, - for stdin")
	flags.DurationVar(&s.metadataLag, "metadata-lag", 0, "delay before the metadata service shows a change in EC2 (default the world's)")
	flags.DurationVar(&s.describeLag, "describe-lag", 0, "delay before EC2 itself lists a change (default the world's)")
	flags.StringVar(&s.kind, "type", "m5.large", "instance type (without --world)")
	flags.StringVar(&s.cidr, "cidr", "10.0.0.0/24", "subnet, and CIDR of its VPC (without --world)")
	flags.StringVar(&s.instance, "instance", "", "instance that unknown callers of the metadata service are treated as (default the first)")
	flags.BoolVar(&s.realistic, "realistic", false, "give EC2 calls realistic latencies (without --world)")
	flags.BoolVar(&s.log, "log", false, "print each answered EC2 request as a JSON line")
	flags.BoolVar(&s.example, "example", false, "print an example of a world and exit")
	flags.Usage = func() {
		out := flags.Output()
		fmt.Fprint(out, usage)
		flags.PrintDefaults()
	}
	for _, a := range args {
		if a == "--help" || a == "-help" || a == "-h" {
			flags.SetOutput(stdout)
		}
	}
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "fakeaws: unexpected argument %q\n", flags.Arg(0))
		return 2
	case s.example:
		return printExample(stdout, stderr)
	}
	w, err := s.build(stdin)
	if err != nil {
		fmt.Fprintf(stderr, "fakeaws: %v\n", err)
		return 2
	}
	defer w.Close()
	if err := s.serve(ctx, w, stdout); err != nil {
		fmt.Fprintf(stderr, "fakeaws: %v\n", err)
		return 2
	}
	return report(w, stderr)
}

// build creates the world and decides which instance unknown callers are.
func (s *settings) build(stdin io.Reader) (*fakeaws.World, error) {
	d, err := s.describe(stdin)
	if err != nil {
		return nil, err
	}
	if err := s.amend(&d, stdin); err != nil {
		return nil, err
	}
	w, err := d.Build()
	if err != nil {
		return nil, err
	}
	all := w.Snapshot().Instances
	if s.instance == "" && len(all) > 0 {
		s.instance = all[0].ID
	}
	if _, ok := w.Instance(s.instance); !ok {
		w.Close()
		return nil, fmt.Errorf("--instance %q: not an instance of the world", s.instance)
	}
	return w, nil
}

func (s *settings) describe(stdin io.Reader) (fakeaws.Description, error) {
	if s.world == "" {
		cidr, err := netip.ParsePrefix(s.cidr)
		if err != nil {
			return fakeaws.Description{}, fmt.Errorf("--cidr %q: must be an IPv4 block such as 10.0.0.0/24", s.cidr)
		}
		return single(s.kind, cidr, s.realistic), nil
	}
	b, err := readFile(s.world, stdin)
	if err != nil {
		return fakeaws.Description{}, fmt.Errorf("read world: %w", err)
	}
	return fakeaws.ParseDescription(b)
}

func readFile(name string, stdin io.Reader) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(name)
}

// amend adds the flags that do not concern the world's layout to its description.
func (s *settings) amend(d *fakeaws.Description, stdin io.Reader) error {
	if s.world == "-" && s.faults == "-" {
		return errors.New("--world and --faults: only one can be read from stdin")
	}
	if s.metadataLag < 0 || s.describeLag < 0 {
		return errors.New("--metadata-lag, --describe-lag: must not be negative")
	}
	if s.metadataLag > 0 {
		d.MetadataLag = fakeaws.Duration(s.metadataLag)
	}
	if s.describeLag > 0 {
		d.DescribeLag = fakeaws.Duration(s.describeLag)
	}
	if s.throttle != "" {
		var err error
		if d.Buckets, err = fakeaws.ParseThrottle(s.throttle); err != nil {
			return fmt.Errorf("--%w", err)
		}
		d.Throttle = false
	}
	if s.faults == "" {
		return nil
	}
	b, err := readFile(s.faults, stdin)
	if err != nil {
		return fmt.Errorf("read faults: %w", err)
	}
	rules, err := fakeaws.ParseFaults(b)
	d.Faults = append(d.Faults, rules...)
	return err
}

func single(kind string, cidr netip.Prefix, realistic bool) fakeaws.Description {
	return fakeaws.Description{RealisticLatency: realistic, VPCs: []fakeaws.VPCDescription{{CIDRs: []netip.Prefix{cidr},
		Subnets: []fakeaws.SubnetDescription{{CIDR: cidr, Instances: []fakeaws.InstanceDescription{{Type: kind}}}}}}}
}

func printExample(stdout, stderr io.Writer) int {
	d := fakeaws.Description{Region: "us-west-2", RealisticLatency: true, AttachDelay: fakeaws.Duration(2 * time.Second), MetadataLag: fakeaws.Duration(time.Second), Throttle: true,
		Faults:  []fakeaws.Rule{{Action: "DetachNetworkInterface", Last: 1, Fault: fakeaws.Fault{Reply: fakeaws.ReplyClosed, Effect: true}}},
		Latency: map[string]fakeaws.Duration{"IMDS": fakeaws.Duration(5 * time.Millisecond)},
		VPCs: []fakeaws.VPCDescription{{CIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}, SecurityGroups: []string{"pods"},
			Subnets: []fakeaws.SubnetDescription{
				{AZ: "us-west-2a", CIDR: netip.MustParsePrefix("10.0.0.0/24"), Instances: []fakeaws.InstanceDescription{{Type: "m5.large"}, {Type: "m5.4xlarge", PrivateIP: netip.MustParseAddr("10.0.0.10")}}},
				{AZ: "us-west-2a", CIDR: netip.MustParsePrefix("10.0.16.0/20"), Tags: map[string]string{"kubernetes.io/role/cni": "1"}, Occupied: 100, Fragmented: true}}}}}
	enc := json.NewEncoder(stdout)
	enc.SetIndent("", "  ")
	if err := enc.Encode(d); err != nil {
		fmt.Fprintf(stderr, "fakeaws: %v\n", err)
		return 2
	}
	return 0
}

// serve runs until ctx ends.
func (s *settings) serve(ctx context.Context, w *fakeaws.World, stdout io.Writer) error {
	out := &lines{w: stdout}
	o := fakeaws.ServerOptions{EC2Addr: s.ec2, IMDSAddr: s.imds, ControlAddr: s.control, Identify: identify(w, s.instance)}
	if s.log {
		o.Observe = out.call
	}
	server, err := fakeaws.Listen(w, o)
	if err != nil {
		return err
	}
	out.endpoints(server, w.Region(), s.instance)
	env := append(server.Env(), "AWS_REGION="+w.Region())
	if server.ControlURL != "" {
		env = append(env, "FAKEAWS_CONTROL="+server.ControlURL)
	}
	for _, v := range append(env, "FAKEAWS_INSTANCE_ID="+s.instance) {
		out.print(v)
	}
	<-ctx.Done()
	return server.Close()
}

// identify finds the instance by the request's source address.
func identify(w *fakeaws.World, otherwise string) func(*http.Request) string {
	return func(r *http.Request) string {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil {
			return otherwise
		}
		a, err := netip.ParseAddr(host)
		if err != nil {
			return otherwise
		}
		if e, ok := w.OwnerOf(a.Unmap()); ok && e.Attachment.InstanceID != "" {
			return e.Attachment.InstanceID
		}
		return otherwise
	}
}

// lines writes whole lines from many goroutines.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) print(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = fmt.Fprintln(l.w, s) // a reader that is gone must not stop the service
}

// endpoints prints the services' addresses as the first line.
func (l *lines) endpoints(s *fakeaws.Server, region, instance string) {
	b, err := json.Marshal(struct {
		EC2      string `json:"ec2"`
		IMDS     string `json:"imds"`
		Control  string `json:"control,omitempty"`
		Region   string `json:"region"`
		Instance string `json:"instanceId"`
	}{s.EC2URL, s.IMDSURL, s.ControlURL, region, instance})
	if err == nil {
		l.print(string(b))
	}
}

func (l *lines) call(c fakeaws.Call) {
	b, err := json.Marshal(c.Logged())
	if err == nil {
		l.print(string(b))
	}
}

// report prints the requests that the services do not know.
func report(w *fakeaws.World, stderr io.Writer) int {
	all := w.Violations()
	for _, v := range all {
		fmt.Fprintf(stderr, "fakeaws: unknown: %s\n", v)
	}
	if len(all) > 0 {
		return 1
	}
	return 0
}
