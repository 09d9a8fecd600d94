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

	"cnictl/testenv/fakeaws"
)

const usage = `fakeaws serves a fake EC2 API (Query protocol) and instance metadata service
(IMDSv2) over one simulated world, until it is interrupted.

Usage:
  fakeaws [flags]

The world has one instance by default; --world describes any other as JSON.
The metadata service tells callers apart by their source address when an instance
owns it, and takes every other for --instance.

It prints the environment that points a program at the two services, then, with
--log, each answered EC2 request as one JSON line. Exit status: 0, or 1 when a client
used an action, parameter or path that is not known (named on stderr), 2 for wrong
flags or a wrong world.

Examples:
  fakeaws --type m5.4xlarge --realistic
  fakeaws --ec2 127.0.0.1:4566 --imds 127.0.0.1:1338 --log
  fakeaws --example > world.json && fakeaws --world world.json

Flags:
`

type settings struct {
	world, ec2, imds, kind, cidr, instance string
	realistic, log, example                bool
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var s settings
	flags := flag.NewFlagSet("fakeaws", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&s.world, "world", "", "file with the world as JSON, - for stdin")
	flags.StringVar(&s.ec2, "ec2", "127.0.0.1:0", "address of the EC2 API")
	flags.StringVar(&s.imds, "imds", "127.0.0.1:0", "address of the metadata service")
	flags.StringVar(&s.kind, "type", "m5.large", "instance type (without --world)")
	flags.StringVar(&s.cidr, "cidr", "10.0.0.0/24", "subnet, and CIDR of its VPC (without --world)")
	flags.StringVar(&s.instance, "instance", "", "instance that unknown callers of the metadata service are (default the first)")
	flags.BoolVar(&s.realistic, "realistic", false, "let EC2 calls take as long as EC2's do (without --world)")
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

// build makes the world and settles who unknown callers are.
func (s *settings) build(stdin io.Reader) (*fakeaws.World, error) {
	d, err := s.describe(stdin)
	if err != nil {
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
		return nil, fmt.Errorf("--instance %q: the world has no such instance", s.instance)
	}
	return w, nil
}

func (s *settings) describe(stdin io.Reader) (fakeaws.Description, error) {
	if s.world == "" {
		cidr, err := netip.ParsePrefix(s.cidr)
		if err != nil {
			return fakeaws.Description{}, fmt.Errorf("--cidr %q: an IPv4 block like 10.0.0.0/24 is accepted", s.cidr)
		}
		return single(s.kind, cidr, s.realistic), nil
	}
	var b []byte
	var err error
	if s.world == "-" {
		b, err = io.ReadAll(stdin)
	} else {
		b, err = os.ReadFile(s.world)
	}
	if err != nil {
		return fakeaws.Description{}, fmt.Errorf("read world: %w", err)
	}
	return fakeaws.ParseDescription(b)
}

func single(kind string, cidr netip.Prefix, realistic bool) fakeaws.Description {
	return fakeaws.Description{RealisticLatency: realistic, VPCs: []fakeaws.VPCDescription{{CIDRs: []netip.Prefix{cidr},
		Subnets: []fakeaws.SubnetDescription{{CIDR: cidr, Instances: []fakeaws.InstanceDescription{{Type: kind}}}}}}}
}

func printExample(stdout, stderr io.Writer) int {
	d := fakeaws.Description{Region: "us-west-2", RealisticLatency: true, AttachDelay: fakeaws.Duration(2 * time.Second), MetadataLag: fakeaws.Duration(time.Second), Throttle: true,
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
	o := fakeaws.ServerOptions{EC2Addr: s.ec2, IMDSAddr: s.imds, Identify: identify(w, s.instance)}
	if s.log {
		o.Observe = out.call
	}
	server, err := fakeaws.Listen(w, o)
	if err != nil {
		return err
	}
	for _, v := range append(server.Env(), "AWS_REGION="+w.Region(), "FAKEAWS_INSTANCE_ID="+s.instance) {
		out.print(v)
	}
	<-ctx.Done()
	return server.Close()
}

// identify tells instances apart by source address.
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
	_, _ = fmt.Fprintln(l.w, s) // a reader that went away must not stop the service
}

func (l *lines) call(c fakeaws.Call) {
	b, err := json.Marshal(struct {
		Time   time.Time         `json:"time"`
		Action string            `json:"action"`
		Code   string            `json:"code,omitempty"`
		TookMS float64           `json:"tookMs"`
		Params map[string]string `json:"params,omitempty"`
	}{c.Start, c.Action, c.Code, float64(c.Took) / float64(time.Millisecond), c.Params})
	if err == nil {
		l.print(string(b))
	}
}

// report names what clients did that the services do not know.
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
