// Command aws-cni-grpc makes one gRPC call for the plugin aws-cni, next to which it is
// installed: see plugin/rpcclient.
//
// It takes a socket, how long to wait for a server there and how long the call may take
// in total. The request comes on standard input and the answer goes to standard output,
// both in the frames of daemon/api/cniwire. It ends when standard input does: the plugin
// that asked is gone. Exit status: 0 when there is an answer, including an error of the
// call, 1 otherwise.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"cnictl/daemon/api/cniwire"
	"cnictl/plugin/rpcclient"
)

// version is set by the linker.
var version = ""

const usage = `aws-cni-grpc calls upstream's ipamd or the network policy agent for aws-cni, which starts it.

Usage: aws-cni-grpc SOCKET DIAL TIMEOUT, with the request on standard input, which stays open
`

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "aws-cni-grpc:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 3 {
		return fmt.Errorf("version %s takes three arguments\n%s", version, usage)
	}
	dial, err := time.ParseDuration(args[1])
	if err != nil {
		return fmt.Errorf("DIAL: %w", err)
	}
	timeout, err := time.ParseDuration(args[2])
	if err != nil {
		return fmt.Errorf("TIMEOUT: %w", err)
	}
	request, err := cniwire.ReadFrame(in, nil)
	if err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	_, err = out.Write(rpcclient.Server{Socket: args[0], Dial: dial, Timeout: timeout}.Call(ctx, request))
	return err
}
