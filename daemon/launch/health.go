package launch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// Pauses between two probes: short at first, because a daemon that replaces another serves
// within a fraction of a second, and new pods wait for it.
const (
	firstPause = 20 * time.Millisecond
	maxPause   = 250 * time.Millisecond
	askLimit   = time.Second // of one probe, as in upstream's probe
)

// awaitServing probes the daemon's health until it serves. It also ends with ctx, and then
// returns ctx's error. waiting is called with each failed probe's error before that.
func awaitServing(ctx context.Context, socket string, waiting func(error)) error {
	var dialled atomic.Pointer[error] // why the last dial failed
	conn, err := grpc.NewClient("passthrough:///ipamd",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: firstPause, Multiplier: 1.5, MaxDelay: maxPause}, MinConnectTimeout: askLimit}),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, "unix", socket)
			dialled.Store(&err)
			return c, err
		}))
	if err != nil {
		return err
	}
	defer conn.Close()
	pause := firstPause
	for {
		err := ask(ctx, conn)
		if err == nil {
			return nil
		}
		if last := dialled.Load(); last != nil && *last != nil {
			err = *last // gRPC's text for it is longer
		}
		if ctx.Err() == nil {
			waiting(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		pause = min(pause*3/2, maxPause)
	}
}

var errNotServing = errors.New("the daemon reports that it is not serving")

func ask(ctx context.Context, conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	answer, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		return fmt.Errorf("%s", status.Convert(err).Message())
	}
	if answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		return errNotServing
	}
	return nil
}
