package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/api/introspect/client"
)

// dialTimeout bounds connecting to the daemon, which is on this host.
const dialTimeout = 3 * time.Second

// newDial builds local dial: the remote end of a tunnel through exec.
func newDial(f *cli.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "dial [ADDRESS]",
		Short: "Connect standard input and output to the daemon's socket",
		Long: `Connect standard input and output to this node's introspection server, or to ADDRESS
(unix:/path or host:port). This is the node's end of --via exec: cnictl runs it in the
aws-node container when port-forward cannot be used, as for a Unix socket.`,
		Example: `  kubectl -n kube-system exec -i aws-node-x7k2p -c aws-node -- cnictl local dial`,
		Args:    cli.Args(0, 1, "ADDRESS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			address := ""
			if len(args) > 0 {
				address = args[0]
			}
			return Dial(cmd.Context(), f, address)
		},
	}
}

// Dial connects the streams with the address until one side ends.
func Dial(ctx context.Context, f *cli.Factory, address string) error {
	if address == "" {
		target, _ := f.LocalTarget(ctx)
		address = target.Address
	}
	if err := client.CheckAddress(address); err != nil || strings.Contains(address, "://") {
		return &cli.Error{Code: cli.ExitUsage, What: address + " is not a valid address", Why: "it must be unix:/path or host:port"}
	}
	network, where := "tcp", address
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, where = "unix", path
	}
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, where)
	if err != nil {
		return &cli.Error{Code: cli.ExitUnreachable, What: address + ": connection failed", Why: err.Error()}
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // ends both directions
	defer stop()
	if err := join(conn, f.Streams.In, f.Streams.Out); err != nil && ctx.Err() == nil {
		return &cli.Error{Code: cli.ExitFailure, What: "the connection to " + address + " broke", Why: err.Error()}
	}
	return nil
}

// join copies in both directions. It passes on the end of the input, so that the response to
// the last request still arrives. When the connection ends, join ends: any further input
// would have nowhere to go.
func join(conn net.Conn, in io.Reader, out io.Writer) error {
	go func() {
		// A broken input counts as ended.
		_, _ = io.Copy(conn, in)
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}()
	if _, err := io.Copy(out, conn); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("copy: %w", err)
	}
	return nil
}
