// Command fakeaws serves a fake EC2 API and instance metadata service.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"sync"

	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/cmd/internal/frame"
)

const usage = `fakeaws serves a fake EC2 API (Query protocol) and instance metadata service
(IMDSv2) over a world with one instance, until it is interrupted. Any program that
takes AWS's endpoints from its environment can be pointed at it.

Usage: fakeaws [flags]

  --type T          instance type (default m5.large)
  --cidr CIDR       subnet, and CIDR of its VPC (default 10.0.0.0/24)
  --ec2 ADDR        address of the EC2 API (default: a free port on 127.0.0.1)
  --imds ADDR       address of the metadata service (same default)
  --control ADDR    loopback address of the control API (same default)
  --throttle T      request limits: none (default), or account for EC2's documented ones
  --metadata-lag D  delay before the metadata service shows a change in EC2
  --describe-lag D  delay before EC2 itself lists a change
  --realistic       give EC2 calls realistic latencies
  --log             print each answered EC2 request as a JSON line

It prints one JSON line with the endpoints, then the environment variables that point
a program at them as NAME=VALUE lines.

The control API (plain HTTP and JSON) adds and removes faults, changes settings, and
shows the world and the requests so far; GET / lists its paths. A fault says which
calls it affects (action, first, last, params, probability and seed) and what happens
to them (code and status; effect; reply closed, hang, stall, truncated, garbage, html,
empty or foreign; atMost; hold attaching, link or detaching).

  curl -X POST 127.0.0.1:4567/faults -d '{"action": "CreateNetworkInterface", "last": 3, "reply": "closed", "effect": true}'
  curl -X PATCH 127.0.0.1:4567/settings -d '{"metadataLag": "1m", "throttle": "none"}'
  curl 127.0.0.1:4567/world; curl 127.0.0.1:4567/calls; curl -X DELETE 127.0.0.1:4567/faults

Exit status: 0, also after SIGTERM or SIGINT; 1 if it cannot serve, or if a client used
an unknown action, parameter or path (named on stderr); 2 for invalid flags.
`

type options struct {
	kind   string
	cidr   netip.Prefix
	world  fakeaws.Options
	server fakeaws.ServerOptions
	log    bool
}

func main() { os.Exit(program.Main()) }

var program = frame.Program[options]{Name: "fakeaws", Usage: usage, Parse: parse, Do: serve}

func parse(args []string) (o options, err error) {
	var fs flag.FlagSet
	fs.StringVar(&o.kind, "type", "m5.large", "")
	cidr := fs.String("cidr", "10.0.0.0/24", "")
	fs.StringVar(&o.server.EC2Addr, "ec2", "", "")
	fs.StringVar(&o.server.IMDSAddr, "imds", "", "")
	fs.StringVar(&o.server.ControlAddr, "control", "127.0.0.1:0", "")
	throttle := fs.String("throttle", "none", "")
	fs.DurationVar(&o.world.MetadataLag, "metadata-lag", 0, "")
	fs.DurationVar(&o.world.DescribeLag, "describe-lag", 0, "")
	realistic := fs.Bool("realistic", false, "")
	fs.BoolVar(&o.log, "log", false, "")
	if err := frame.Parse(&fs, args); err != nil {
		return o, err
	}
	if o.cidr, err = netip.ParsePrefix(*cidr); err != nil {
		return o, fmt.Errorf("--cidr %q: must be an IPv4 block such as 10.0.0.0/24", *cidr)
	}
	if o.world.MetadataLag < 0 || o.world.DescribeLag < 0 {
		return o, errors.New("--metadata-lag, --describe-lag: must not be negative")
	}
	if *realistic {
		o.world.Latency = fakeaws.RealisticLatency()
	}
	if o.world.Throttle, err = fakeaws.ParseThrottle(*throttle); err != nil {
		return o, fmt.Errorf("--%w", err)
	}
	return o, nil
}

// serve runs until ctx ends.
func serve(ctx context.Context, o options, stdout, _ io.Writer) error {
	w := fakeaws.NewWorld(o.world)
	defer w.Close()
	subnet, err := w.AddSubnet(fakeaws.SubnetSpec{VPCID: w.AddVPC(o.cidr).ID, CIDR: o.cidr})
	if err != nil {
		return fmt.Errorf("subnet %s: %w", o.cidr, err)
	}
	instance, err := w.AddInstance(fakeaws.InstanceSpec{Type: o.kind, SubnetID: subnet.ID})
	if err != nil {
		return fmt.Errorf("instance of type %q: %w", o.kind, err)
	}
	out := &lines{w: stdout}
	o.server.Identify = fakeaws.OneInstance(instance.ID)
	if o.log {
		o.server.Observe = func(c fakeaws.Call) { out.json(c) }
	}
	server, err := fakeaws.Listen(w, o.server)
	if err != nil {
		return err
	}
	out.json(map[string]string{
		"ec2": server.EC2URL, "imds": server.IMDSURL, "control": server.ControlURL, "region": w.Region(), "instanceId": instance.ID,
	})
	env := append(server.Env(), "AWS_REGION="+w.Region(), "FAKEAWS_CONTROL="+server.ControlURL, "FAKEAWS_INSTANCE_ID="+instance.ID)
	out.print(strings.Join(env, "\n"))
	<-ctx.Done()
	err = server.Close()
	for _, v := range w.Violations() {
		err = errors.Join(err, fmt.Errorf("unknown: %s", v))
	}
	return err
}

// lines writes whole lines from many goroutines. A reader that is gone does not stop the service.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) json(v any) {
	b, err := json.Marshal(v)
	if err == nil {
		l.print(string(b))
	}
}

func (l *lines) print(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = fmt.Fprintln(l.w, s)
}
