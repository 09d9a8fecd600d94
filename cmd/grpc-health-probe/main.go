// Command grpc-health-probe asks a gRPC server for its health. It is the liveness and
// readiness probe of aws-node; the entrypoint makes the same check itself (daemon/launch).
//
// Exit status: 0 serving, 1 bad arguments, 2 no connection, 3 the call failed,
// 4 not serving.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

const (
	exitServing    = 0
	exitArguments  = 1
	exitConnection = 2
	exitCall       = 3
	exitNotServing = 4
)

var version = "dev" // set by the linker

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stderr)
	stop()
	os.Exit(code)
}

type options struct {
	addr, service, userAgent   string
	connectTimeout, rpcTimeout time.Duration
	verbose                    bool
}

func run(ctx context.Context, args []string, out io.Writer) int {
	o, err := parse(args, out)
	if err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(out, "error:", err)
		}
		return exitArguments
	}
	say := func(format string, args ...any) {
		if o.verbose {
			fmt.Fprintf(out, format+"\n", args...)
		}
	}

	start := time.Now()
	conn, err := connect(ctx, o)
	if err != nil {
		fmt.Fprintf(out, "error: connect to %q within %v: %v\n", o.addr, o.connectTimeout, err)
		return exitConnection
	}
	defer conn.Close()
	say("connected after %v", time.Since(start))

	start = time.Now()
	ctx, cancel := context.WithTimeout(ctx, o.rpcTimeout)
	defer cancel()
	resp, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: o.service})
	if err != nil {
		fmt.Fprintln(out, "error:", describe(err, o))
		return exitCall
	}
	say("answered after %v", time.Since(start))
	if resp.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		fmt.Fprintf(out, "service unhealthy (responded with %q)\n", resp.GetStatus())
		return exitNotServing
	}
	fmt.Fprintf(out, "status: %v\n", resp.GetStatus())
	return exitServing
}

func parse(args []string, out io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("grpc-health-probe", flag.ContinueOnError)
	fs.SetOutput(out)
	fs.StringVar(&o.addr, "addr", "", "(required) host:port, :port or unix:///path of the server")
	fs.StringVar(&o.service, "service", "", "service name to check")
	fs.StringVar(&o.userAgent, "user-agent", "grpc_health_probe/"+version, "user agent to send")
	fs.DurationVar(&o.connectTimeout, "connect-timeout", time.Second, "timeout for connecting")
	fs.DurationVar(&o.rpcTimeout, "rpc-timeout", time.Second, "timeout for the response")
	fs.BoolVar(&o.verbose, "v", false, "log how long each step takes")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	switch {
	case o.addr == "":
		return o, errors.New("-addr not specified")
	case fs.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case o.connectTimeout <= 0:
		return o, fmt.Errorf("-connect-timeout must be greater than zero (specified: %v)", o.connectTimeout)
	case o.rpcTimeout <= 0:
		return o, fmt.Errorf("-rpc-timeout must be greater than zero (specified: %v)", o.rpcTimeout)
	}
	return o, nil
}

// connect retries until the time limit: the server may still be starting.
func connect(ctx context.Context, o options) (*grpc.ClientConn, error) {
	target := o.addr
	if !strings.HasPrefix(target, "unix:") {
		target = "passthrough:///" + target
	}
	var last atomic.Pointer[error]
	conn, err := grpc.NewClient(target,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUserAgent(o.userAgent),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, MaxDelay: 500 * time.Millisecond},
			MinConnectTimeout: o.connectTimeout,
		}),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			network := "tcp"
			if path, ok := strings.CutPrefix(addr, "unix:"); ok {
				network, addr = "unix", path
			}
			c, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err != nil {
				last.Store(&err)
			}
			return c, err
		}))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, o.connectTimeout)
	defer cancel()
	conn.Connect()
	for state := conn.GetState(); state != connectivity.Ready; state = conn.GetState() {
		if state == connectivity.Idle {
			conn.Connect()
		}
		if conn.WaitForStateChange(ctx, state) {
			continue
		}
		conn.Close()
		if err := last.Load(); err != nil {
			return nil, *err
		}
		return nil, ctx.Err()
	}
	return conn, nil
}

func describe(err error, o options) string {
	switch s := status.Convert(err); s.Code() {
	case codes.Unimplemented:
		return "this server does not implement the grpc health protocol (grpc.health.v1.Health): " + s.Message()
	case codes.DeadlineExceeded:
		return fmt.Sprintf("no answer within %v", o.rpcTimeout)
	case codes.NotFound:
		return fmt.Sprintf("the server does not know service %q", o.service)
	default:
		return fmt.Sprintf("health call failed: %v: %s", s.Code(), s.Message())
	}
}
