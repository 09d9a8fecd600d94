// Command aws-cni-grpc makes one gRPC call on behalf of the aws-cni plugin, next to which it
// is installed: see plugin/rpcclient.
//
// Its arguments are a socket, how long to wait for a server there, and a limit for the whole
// call. It reads the request from standard input and writes the response to standard output,
// both in the frames of daemon/api/cniwire. It gives up when standard input closes, since the
// plugin that asked is then gone. Exit status: 0 if there is a response, including an error
// of the call; 1 otherwise.
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
